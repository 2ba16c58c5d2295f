//! Records of a log and how each is read.

use std::io::BufRead;

pub use anabranch_wire::eventlog::Medium;
use anabranch_wire::eventlog::{
    PHASES, VERSION_2, VERSION_3, VERSION_4, frame, incident, packet as flag, reason, state, stream, tag,
};

use super::octets::{EXACT, Fault};
use super::{Figures, Places, Reader};

/// A record of a log.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    /// Description of the run; the first record.
    Run(Run),
    /// The next node; nodes are numbered from 0.
    Node(Node),
    /// The next one-way link; links are numbered from 0.
    Link(Link),
    /// The next one-way flow; flows are numbered from 0.
    Flow(Flow),
    /// The flow is a subflow of a connection.
    Subflow {
        /// Number of the flow.
        flow: u32,
        /// Number of the multipath connection, at either end.
        group: u32,
        /// Number of the subflow in the connection.
        subflow: u32,
    },
    /// A packet. It may be described again later; the first description holds.
    Packet(Packet),
    /// An event with its time in nanoseconds.
    Event(u64, Event),
}

/// Description of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Name of the scenario.
    pub name: String,
    /// Hash that identifies the scenario; may be empty.
    pub hash: String,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the run.
    pub run: u64,
    /// Version of the program.
    pub version: String,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Kind of the node, as one word; may be empty.
    pub kind: String,
    /// Position in metres east and north of the origin.
    pub position: Option<(f64, f64)>,
}

/// A one-way link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Node at its start.
    pub from: u32,
    /// Node at its end.
    pub to: u32,
    /// Medium of the link.
    pub over: Medium,
    /// Bit rate in bit/s.
    pub rate: u64,
    /// Delay in nanoseconds.
    pub delay: u64,
}

/// A one-way flow of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Node that sends the packets.
    pub source: u32,
    /// Destination node; `None` for a broadcast.
    pub destination: Option<u32>,
    /// IP protocol number: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: (u32, u32),
}

/// A fragment of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Offset of its first byte in the packet's IP payload.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Length of the packet's whole IP payload, in bytes.
    pub whole: u64,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Number of the packet in the run.
    pub id: i64,
    /// Flow of the packet.
    pub flow: u32,
    /// Flags, as defined in [`anabranch_wire::eventlog::packet`].
    pub flags: u8,
    /// Length in bytes, including the IP header.
    pub wire_len: u64,
    /// Number of its path; 0 is the best path at each node.
    pub path: u8,
    /// Node that made the packet, if that is not its source.
    pub maker: Option<u32>,
    /// The fragment that this packet is, if it is one.
    pub piece: Option<Piece>,
    /// Sequence number of a TCP segment, relative to the flow's first and extended beyond 32 bits.
    pub seq: i64,
    /// Payload length of a TCP segment, in bytes.
    pub len: u64,
    /// Acknowledgement number of a TCP segment, extended in the same way.
    pub ack: i64,
    /// Window field of the TCP header, unscaled.
    pub window: u64,
    /// Data sequence number of the first byte, if the segment has one.
    pub dsn: Option<i64>,
}

impl Packet {
    /// Sequence numbers that a TCP segment consumes: one per byte, and one each for SYN and FIN.
    pub(crate) fn seq_len(&self) -> i64 {
        let ends = self.flags & (flag::SYN | flag::FIN);
        self.len as i64 + i64::from(ends.count_ones())
    }
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Node that sends it.
    pub from: u32,
    /// Destination node; `None` for a broadcast.
    pub to: Option<u32>,
    /// Kind of the frame, as defined in [`anabranch_wire::eventlog::frame`].
    pub kind: u8,
    /// Flags, as defined in [`anabranch_wire::eventlog::frame`].
    pub flags: u8,
    /// Duration in nanoseconds. The time of the event is the frame's end.
    pub nanos: u64,
    /// Length on the air in bytes, without the preamble.
    pub octets: u64,
    /// Number of the packet in the frame, and number of the piece of it.
    pub packet: Option<(i64, u64)>,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; 0 means unbounded.
    pub ssthresh: u64,
    /// Smoothed round-trip time in microseconds; 0 means not measured.
    pub srtt: u64,
    /// Window advertised by the peer, in bytes.
    pub peer_window: u64,
    /// Bytes sent and not acknowledged: the FlightSize of RFC 5681. Those that selective
    /// acknowledgements name count until a cumulative one covers them.
    pub in_flight: u64,
    /// Bytes written and not sent.
    pub unsent: u64,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// Number of retransmission time-outs.
    pub timeouts: u64,
    /// Limit of the send buffer in bytes; 0 means unknown.
    pub send_buffer: u64,
}

/// An event of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A link accepted a packet.
    Sent {
        /// Number of the link.
        link: u32,
        /// Number of the packet.
        packet: i64,
    },
    /// A packet arrived at the end of a link.
    Received {
        /// Number of the link.
        link: u32,
        /// Number of the packet.
        packet: i64,
    },
    /// A link lost a packet.
    Lost {
        /// Number of the link.
        link: u32,
        /// Number of the packet.
        packet: i64,
        /// Reason, as defined in [`anabranch_wire::eventlog::reason`].
        reason: u8,
    },
    /// A node discarded a packet.
    Discarded {
        /// Number of the node.
        node: u32,
        /// Number of the packet.
        packet: i64,
        /// Reason, as defined in [`anabranch_wire::eventlog::reason`].
        reason: u8,
    },
    /// The transmitter of a cable will send a packet later.
    Waits {
        /// Number of the link.
        link: u32,
        /// Number of the packet.
        packet: i64,
        /// Waiting time in nanoseconds; [`anabranch_wire::eventlog::LONGEST`] if it is not known
        /// yet.
        nanos: u64,
    },
    /// The transmission of a frame ended.
    Frame(Frame),
    /// A connection has a new state.
    State {
        /// Flow that the connection sends.
        flow: u32,
        /// The new state.
        state: State,
    },
    /// A connection notified its application.
    Stream {
        /// Flow that the connection sends.
        flow: u32,
        /// Kind of notification, as defined in [`anabranch_wire::eventlog::stream`].
        what: u8,
    },
    /// A part of a file was written to a connection.
    Chunk {
        /// Flow that the connection sends.
        flow: u32,
        /// Number of bytes written to the connection before.
        written_at: u64,
        /// Offset in the file.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// A node or link failed, recovered or changed.
    Incident {
        /// Kind of incident, as defined in [`anabranch_wire::eventlog::incident`].
        what: u8,
        /// Number of the node or link.
        index: u32,
        /// New bit rate in bit/s, if the rate changed.
        value: u64,
    },
    /// A line of text.
    Note {
        /// Node that the line is about.
        node: Option<u32>,
        /// The text.
        text: String,
    },
    /// A node starts to move in a straight line at constant speed.
    Leg {
        /// Number of the node.
        node: u32,
        /// Duration of the movement in nanoseconds.
        nanos: u64,
        /// Destination in metres.
        to: (f64, f64),
    },
    /// A SET transfer is over.
    Phases {
        /// Node that sends the file.
        source: u32,
        /// Node that receives the file.
        destination: u32,
        /// Time since the start of the transfer in nanoseconds.
        passed: u64,
        /// Durations of the phases that have ended, in their order, in nanoseconds.
        phases: Vec<u64>,
    },
    /// End of the log.
    End {
        /// Number of events before it.
        events: u64,
    },
}

impl<R: BufRead> Reader<R> {
    pub(super) fn read_run(&mut self) -> Result<Record, Fault> {
        let octets = &mut self.octets;
        let (name, hash) = (octets.text()?, octets.text()?);
        let (seed, run, version) = (octets.number()?, octets.number()?, octets.text()?);
        Ok(Record::Run(Run { name, hash, seed, run, version }))
    }

    pub(super) fn read_node(&mut self) -> Result<Record, Fault> {
        let octets = &mut self.octets;
        let (name, kind) = (octets.text()?, octets.text()?);
        let position = match octets.octet()? {
            0 => None,
            1 => Some((octets.real()?, octets.real()?)),
            _ => return Err(Fault::Bad("a node's place is neither there nor absent")),
        };
        self.nodes = self.nodes.checked_add(1).ok_or(Fault::Bad("more nodes than can be"))?;
        Ok(Record::Node(Node { name, kind, position }))
    }

    pub(super) fn read_link(&mut self) -> Result<Record, Fault> {
        let (from, to) = (self.node()?, self.node()?);
        let over = Medium::of(self.octets.octet()?).ok_or(Fault::Bad("a link over nothing known"))?;
        let (rate, delay) = (self.octets.number()?, self.octets.number()?);
        self.links.push(Places::default());
        Ok(Record::Link(Link { from, to, over, rate, delay }))
    }

    pub(super) fn read_flow(&mut self) -> Result<Record, Fault> {
        let (source, destination) = (self.node()?, self.maybe_node()?);
        let protocol = self.octets.octet()?;
        let ports = (self.octets.small()?, self.octets.small()?);
        self.flows.push(Figures::default());
        Ok(Record::Flow(Flow { source, destination, protocol, ports }))
    }

    pub(super) fn read_packet(&mut self) -> Result<Record, Fault> {
        let id = self.octets.next(&mut self.packet)?;
        let flow = self.flow()?;
        let (flags, wire_len) = (self.octets.octet()?, self.octets.small()?.into());
        let path = self.octets.octet()?;
        let has = |flag: u8| flags & flag != 0;
        let maker = if has(flag::MADE_BY_ANOTHER) { Some(self.node()?) } else { None };
        let octets = &mut self.octets;
        let piece = if has(flag::FRAGMENT) {
            let [offset, len, whole] =
                [octets.small()?.into(), octets.small()?.into(), octets.small()?.into()];
            Some(Piece { offset, len, whole })
        } else {
            None
        };
        let mut packet = Packet {
            id,
            flow,
            flags,
            wire_len,
            path,
            maker,
            piece,
            seq: 0,
            len: 0,
            ack: 0,
            window: 0,
            dsn: None,
        };
        if has(flag::TCP) {
            let figures = &mut self.flows[flow as usize];
            packet.seq = octets.next_within(&mut figures.seq)?;
            packet.len = octets.small()?.into();
            if has(flag::ACK) {
                packet.ack = octets.next_within(&mut figures.ack)?;
            }
            packet.window = octets.small()?.into();
            if has(flag::MAPPED) {
                packet.dsn = Some(octets.next(&mut figures.dsn)?);
            }
        }
        Ok(Record::Packet(packet))
    }

    pub(super) fn read_event(&mut self, tag: u8) -> Result<Event, Fault> {
        Ok(match tag {
            tag::SENT => {
                let link = self.link()?;
                Event::Sent { link, packet: self.octets.next(&mut self.links[link as usize].sent)? }
            }
            tag::RECEIVED => {
                let link = self.link()?;
                Event::Received { link, packet: self.octets.next(&mut self.links[link as usize].arrived)? }
            }
            tag::LOST => {
                let link = self.link()?;
                let packet = self.octets.next(&mut self.links[link as usize].arrived)?;
                Event::Lost { link, packet, reason: self.reason()? }
            }
            tag::DISCARDED => {
                let node = self.node()?;
                let packet = self.octets.next(&mut self.discarded)?;
                Event::Discarded { node, packet, reason: self.reason()? }
            }
            tag::WAITS => {
                let link = self.link()?;
                let packet = self.octets.next(&mut { self.links[link as usize].sent })?;
                Event::Waits { link, packet, nanos: self.octets.within()? }
            }
            tag::FRAME => self.read_frame()?,
            tag::STATE => self.read_state()?,
            tag::BUFFER if self.version >= VERSION_4 => self.read_buffer()?,
            tag::STREAM => {
                let (flow, what) = (self.flow()?, self.octets.octet()?);
                let known =
                    what <= stream::PEER_CLOSED || (stream::CLOSED..=stream::CLOSED + 4).contains(&what);
                known
                    .then_some(Event::Stream { flow, what })
                    .ok_or(Fault::Bad("an unknown event of a stream"))?
            }
            tag::CHUNK => Event::Chunk {
                flow: self.flow()?,
                written_at: self.octets.within()?,
                offset: self.octets.within()?,
                len: self.octets.small()?.into(),
            },
            tag::INCIDENT => {
                let what = self.octets.octet()?;
                let index = match what {
                    incident::NODE_DOWN | incident::NODE_UP => self.node()?,
                    incident::LINK_DOWN | incident::LINK_UP | incident::RATE => self.link()?,
                    _ => return Err(Fault::Bad("an unknown incident")),
                };
                Event::Incident { what, index, value: self.octets.number()? }
            }
            tag::NOTE => Event::Note { node: self.maybe_node()?, text: self.octets.text()? },
            tag::LEG if self.version >= VERSION_2 => {
                let (node, nanos) = (self.node()?, self.octets.within()?);
                Event::Leg { node, nanos, to: (self.octets.real()?, self.octets.real()?) }
            }
            tag::PHASES if self.version >= VERSION_3 => self.read_phases()?,
            tag::END => Event::End { events: self.octets.number()? },
            _ => return Err(Fault::Bad("an event of an unknown kind")),
        })
    }

    fn reason(&mut self) -> Result<u8, Fault> {
        Some(self.octets.octet()?).filter(|r| *r <= reason::EARLY).ok_or(Fault::Bad("an unknown reason"))
    }

    fn read_frame(&mut self) -> Result<Event, Fault> {
        let (from, to) = (self.node()?, self.maybe_node()?);
        let octets = &mut self.octets;
        let (kind, flags, nanos, len) =
            (octets.octet()?, octets.octet()?, octets.within()?, octets.within()?);
        let packet = match kind {
            frame::DATA => Some((octets.next(&mut self.framed)?, octets.number()?)),
            frame::ACK | frame::RTS | frame::CTS => None,
            frame::WAKEUP if self.version >= VERSION_2 => None,
            _ => return Err(Fault::Bad("a frame of an unknown kind")),
        };
        Ok(Event::Frame(Frame { from, to, kind, flags, nanos, octets: len, packet }))
    }

    fn read_phases(&mut self) -> Result<Event, Fault> {
        let (source, destination, passed) = (self.node()?, self.node()?, self.octets.within()?);
        let count = usize::from(self.octets.octet()?);
        if count > PHASES {
            return Err(Fault::Bad("a transfer with more phases than there are"));
        }
        let phases = (0..count).map(|_| self.octets.within()).collect::<Result<Vec<u64>, Fault>>()?;
        if phases.iter().sum::<u64>() > passed {
            return Err(Fault::Bad("phases that are longer than their transfer"));
        }
        Ok(Event::Phases { source, destination, passed, phases })
    }

    fn read_state(&mut self) -> Result<Event, Fault> {
        let flow = self.flow()?;
        let mask = self.octets.octet()?;
        let figures = &mut self.flows[flow as usize].state;
        for (i, figure) in figures.iter_mut().enumerate() {
            if mask >> i & 1 == 1 {
                self.octets.next(figure)?;
            }
        }
        Ok(self.state_of(flow))
    }

    fn read_buffer(&mut self) -> Result<Event, Fault> {
        let flow = self.flow()?;
        self.octets.next(&mut self.flows[flow as usize].send_buffer)?;
        Ok(self.state_of(flow))
    }

    fn state_of(&self, flow: u32) -> Event {
        let Figures { state: figures, send_buffer, .. } = &self.flows[flow as usize];
        let exact = |figure: i64| figure.max(0) as u64 & (EXACT - 1);
        let figure = |flag: u8| exact(figures[flag.trailing_zeros() as usize]);
        let state = State {
            cwnd: figure(state::CWND),
            ssthresh: figure(state::SSTHRESH),
            srtt: figure(state::SRTT),
            peer_window: figure(state::PEER_WINDOW),
            in_flight: figure(state::IN_FLIGHT),
            unsent: figure(state::UNSENT),
            retransmissions: figure(state::RETRANSMISSIONS),
            timeouts: figure(state::TIMEOUTS),
            send_buffer: exact(*send_buffer),
        };
        Event::State { flow, state }
    }
}
