//! Records and how each is read.

use std::io::BufRead;

pub use anabranch_wire::eventlog::Medium;
use anabranch_wire::eventlog::{VERSION_2, frame, incident, packet as flag, reason, state, stream, tag};

use super::octets::{EXACT, Fault};
use super::{Figures, Places, Reader};

/// What a log says next.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    /// The run; comes first.
    Run(Run),
    /// The next node; nodes count from 0.
    Node(Node),
    /// The next link, one way; links count from 0.
    Link(Link),
    /// The next flow, one way; flows count from 0.
    Flow(Flow),
    /// A flow is a subflow of a connection.
    Subflow {
        /// The flow.
        flow: u32,
        /// Number of the connection among those of several subflows, at either end.
        group: u32,
        /// Which of its subflows.
        subflow: u32,
    },
    /// A packet; one that was described before may be described again, and then the first holds.
    Packet(Packet),
    /// Something happens, at a time in nanoseconds.
    Event(u64, Event),
}

/// A run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// What the scenario is called.
    pub name: String,
    /// What tells this scenario from others; may be empty.
    pub hash: String,
    /// Root of all random streams.
    pub seed: u64,
    /// Number of the run.
    pub run: u64,
    /// Version of the program.
    pub version: String,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it is, in a word; may be empty.
    pub kind: String,
    /// Where it is, in metres east and north of the origin.
    pub position: Option<(f64, f64)>,
}

/// A link, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The node where it begins.
    pub from: u32,
    /// The node where it ends.
    pub to: u32,
    /// What it leads over.
    pub over: Medium,
    /// Rate in bit/s.
    pub rate: u64,
    /// Delay in nanoseconds.
    pub delay: u64,
}

/// Who talks to whom, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The node that talks.
    pub source: u32,
    /// To whom; `None` for all in reach.
    pub destination: Option<u32>,
    /// Number of the transport: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// The ports, source and destination.
    pub ports: (u32, u32),
}

/// A piece of a packet that was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its first octet, counted from the first behind the IP header of the whole.
    pub offset: u64,
    /// Octets of it.
    pub len: u64,
    /// Octets of the whole behind its IP header.
    pub whole: u64,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its number in the run.
    pub id: i64,
    /// Its flow.
    pub flow: u32,
    /// Flags, as [`anabranch_wire::eventlog::packet`] has them.
    pub flags: u8,
    /// Octets, IP header included.
    pub wire_len: u64,
    /// Number of its path; 0 is the best at each node.
    pub path: u8,
    /// Who has made it, if it was not its source.
    pub maker: Option<u32>,
    /// Which piece of a whole it is, if it is one.
    pub piece: Option<Piece>,
    /// Sequence number of a TCP segment, counted on past 32 bits from that of the flow's first.
    pub seq: i64,
    /// Octets that a TCP segment carries.
    pub len: u64,
    /// Acknowledgement number of a TCP segment, counted on in the same way.
    pub ack: i64,
    /// The window field of a TCP segment, as it stands in the header.
    pub window: u64,
    /// Data sequence number of the first octet, if it is said.
    pub dsn: Option<i64>,
}

impl Packet {
    /// Sequence numbers that a TCP segment takes: its octets, and one each for SYN and FIN.
    pub(crate) fn seq_len(&self) -> i64 {
        let ends = self.flags & (flag::SYN | flag::FIN);
        self.len as i64 + i64::from(ends.count_ones())
    }
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Its sender.
    pub from: u32,
    /// For whom; `None` for all.
    pub to: Option<u32>,
    /// What it is, as [`anabranch_wire::eventlog::frame`] has it.
    pub kind: u8,
    /// Flags, as [`anabranch_wire::eventlog::frame`] has them.
    pub flags: u8,
    /// Nanoseconds from its beginning to its end, which is the event's time.
    pub nanos: u64,
    /// Octets on the air, without preamble.
    pub octets: u64,
    /// The number of the packet in it, and which piece of that.
    pub packet: Option<(i64, u64)>,
}

/// How a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Congestion window, octets.
    pub cwnd: u64,
    /// Slow-start threshold, octets; 0 is unbounded.
    pub ssthresh: u64,
    /// Smoothed round-trip time, microseconds; 0 is not measured.
    pub srtt: u64,
    /// Window that the peer offers, octets.
    pub peer_window: u64,
    /// Bytes sent and not acknowledged: the FlightSize of RFC 5681. Those that selective
    /// acknowledgements name count until a cumulative one covers them.
    pub in_flight: u64,
    /// Octets written and not sent.
    pub unsent: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
}

/// Something that happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A link has accepted a packet.
    Sent {
        /// The link.
        link: u32,
        /// The packet.
        packet: i64,
    },
    /// A packet has arrived at the end of a link.
    Received {
        /// The link.
        link: u32,
        /// The packet.
        packet: i64,
    },
    /// A link has lost a packet.
    Lost {
        /// The link.
        link: u32,
        /// The packet.
        packet: i64,
        /// Why, as [`anabranch_wire::eventlog::reason`] has it.
        reason: u8,
    },
    /// A node has thrown a packet away.
    Discarded {
        /// The node.
        node: u32,
        /// The packet.
        packet: i64,
        /// Why, as [`anabranch_wire::eventlog::reason`] has it.
        reason: u8,
    },
    /// A cable's transmitter will begin with a packet later.
    Waits {
        /// The link.
        link: u32,
        /// The packet.
        packet: i64,
        /// Nanoseconds from now; [`anabranch_wire::eventlog::LONGEST`] if that is not known yet.
        nanos: u64,
    },
    /// A frame has left the air.
    Frame(Frame),
    /// How a connection stands from now on.
    State {
        /// What it sends.
        flow: u32,
        /// How it stands.
        state: State,
    },
    /// What an application learns of a connection.
    Stream {
        /// What the connection sends.
        flow: u32,
        /// What, as [`anabranch_wire::eventlog::stream`] has it.
        what: u8,
    },
    /// A part of a file was written to a connection.
    Chunk {
        /// What the connection sends.
        flow: u32,
        /// Octets that were written to the connection before.
        written_at: u64,
        /// Where in the file.
        offset: u64,
        /// Octets.
        len: u64,
    },
    /// Something breaks, heals or changes.
    Incident {
        /// What, as [`anabranch_wire::eventlog::incident`] has it.
        what: u8,
        /// The node or link.
        index: u32,
        /// The new rate in bit/s, if that changes.
        value: u64,
    },
    /// A line of text.
    Note {
        /// The node that it is about.
        node: Option<u32>,
        /// The line.
        text: String,
    },
    /// A node begins to move in a straight line, at a constant speed.
    Leg {
        /// The node.
        node: u32,
        /// Nanoseconds until it is there.
        nanos: u64,
        /// Where it goes, in metres.
        to: (f64, f64),
    },
    /// The end.
    End {
        /// How many events came before.
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

    fn read_state(&mut self) -> Result<Event, Fault> {
        let flow = self.flow()?;
        let mask = self.octets.octet()?;
        let figures = &mut self.flows[flow as usize].state;
        for (i, figure) in figures.iter_mut().enumerate() {
            if mask >> i & 1 == 1 {
                self.octets.next(figure)?;
            }
        }
        let figure = |flag: u8| figures[flag.trailing_zeros() as usize].max(0) as u64 & (EXACT - 1);
        let state = State {
            cwnd: figure(state::CWND),
            ssthresh: figure(state::SSTHRESH),
            srtt: figure(state::SRTT),
            peer_window: figure(state::PEER_WINDOW),
            in_flight: figure(state::IN_FLIGHT),
            unsent: figure(state::UNSENT),
            retransmissions: figure(state::RETRANSMISSIONS),
            timeouts: figure(state::TIMEOUTS),
        };
        Ok(Event::State { flow, state })
    }
}
