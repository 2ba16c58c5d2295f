//! [`EventLog`] writes the events of a run as a compact log, from which `anabranch view` makes a
//! page that replays them. `docs/reference/replay.md` describes the format,
//! [`anabranch_wire::eventlog`] has its numbers, and `crates/view` reads it.
//!
//! A record is written when its event happens: a log that breaks off is complete up to that point.
//! Memory grows with the number of nodes, links, connections and packets in flight, but not with
//! time. A table of [`RECENT`] entries tells new packets from described ones; describing a packet
//! twice costs a few bytes.
//!
//! The bytes depend only on the run.

mod flows;
mod legs;

use std::collections::BTreeMap;
use std::io::{self, Write};

use anabranch_core::set::Moments;
use anabranch_core::tcp::CloseReason;
use anabranch_core::time::Instant;
use anabranch_wire::eventlog::{self as format, Medium, Record, tag};

use crate::air::motion::Mover;
use crate::frames::{AirFrame, Content, Reception};
use crate::link::{LinkConfig, LinkDrop};
use crate::packet::{LinkId, NodeId, Packet};
use crate::stream::{ConnId, StreamEvent};
use crate::trace::{ChunkView, ConnectionView, Incident, NodeDrop, Observer, Point, WifiFrame};
use crate::wifi::{FrameKind, PhyConfig};

use flows::Flows;
use legs::Legs;

/// Number of recent packets that are known to be described already.
pub const RECENT: usize = 1 << 14;

/// Head of a log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// Name of the scenario.
    pub name: String,
    /// Hash that identifies the scenario, in hexadecimal; may be empty.
    pub hash: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of the run.
    pub run: u64,
    /// Version of the program.
    pub version: String,
    /// Kind and position of each node, by its number; nodes beyond the end have neither.
    pub nodes: Vec<NodeFacts>,
    /// Whether some nodes sleep, so that there may be wake-up frames.
    pub sleeps: bool,
    /// Whether to write the phases of SET transfers.
    pub phases: bool,
}

/// Facts about a node that are not part of the simulation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeFacts {
    /// Kind of the node as a word, such as `gateway`; may be empty.
    pub kind: String,
    /// Position in metres east and north of the origin; that at the start, if the node moves.
    pub position: Option<(f64, f64)>,
    /// Motion of the node.
    pub mover: Option<Mover>,
}

/// An observer that writes an event log. The first error of the writer ends the log and is kept for
/// [`EventLog::finish`].
#[derive(Debug)]
pub struct EventLog<W> {
    out: W,
    error: Option<io::Error>,
    run: Run,
    record: Record,
    now: Instant,
    events: u64,
    links: Vec<LinkState>,
    over: Medium,
    on_air: Vec<LinkId>,
    flows: Flows,
    legs: Legs,
    /// The flows of the open connections.
    connections: BTreeMap<(NodeId, ConnId), u32>,
    /// By table entry: 1 more than the number of the packet that was described last.
    recent: Vec<u64>,
    described: i64,
    discarded: i64,
    framed: i64,
}

/// The values of a link's last record, relative to which the next one is encoded.
#[derive(Clone, Copy, Debug, Default)]
struct LinkState {
    rate: u64,
    delay: u64,
    sent: i64,
    arrived: i64,
}

impl<W: Write + Send + 'static> EventLog<W> {
    /// A log to `out`, which should be buffered.
    pub fn new(out: W, run: Run) -> Self {
        let legs = Legs::of(run.nodes.iter().map(|node| node.mover.as_ref()));
        Self {
            legs,
            out,
            error: None,
            run,
            record: Record::default(),
            now: Instant::ZERO,
            events: 0,
            links: Vec::new(),
            over: Medium::Cable,
            on_air: Vec::new(),
            flows: Flows::default(),
            connections: BTreeMap::new(),
            recent: vec![0; RECENT],
            described: 0,
            discarded: 0,
            framed: 0,
        }
    }

    /// Ends the log at the time of its last event. Returns the flushed writer.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(self) -> Result<W, io::Error> {
        let end = self.now;
        self.finish_at(end)
    }

    /// Ends the log of a run that lasted until `end`.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish_at(mut self, end: Instant) -> Result<W, io::Error> {
        // Legs that begin before the end belong to the log, too.
        self.write_legs(end);
        let events = self.events;
        self.begin_event(end, tag::END).number(events);
        self.write();
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Begins the record of an event, after the records of legs that have begun by then.
    fn at(&mut self, now: Instant, tag: u8) -> &mut Record {
        self.write_legs(now);
        self.begin_event(now, tag)
    }

    /// Writes the records of the legs that have begun by then.
    fn write_legs(&mut self, now: Instant) {
        while let Some((node, leg)) = self.legs.next_until(now) {
            let nanos = leg.end.saturating_since(leg.begin).as_nanos().min(format::LONGEST);
            let record = self.begin_event(leg.begin, tag::LEG).number(node.into()).number(nanos);
            record.real(leg.to.x).real(leg.to.y);
            self.write();
        }
    }

    /// Times in a log do not decrease.
    fn begin_event(&mut self, now: Instant, tag: u8) -> &mut Record {
        let now = now.max(self.now);
        let passed = now.as_nanos() - self.now.as_nanos();
        self.now = now;
        self.events += 1;
        self.record.begin(tag).number(passed)
    }

    fn write(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(self.record.octets()).err();
        }
    }

    /// Describes a packet that was not described recently. Its maker is the node that sends it
    /// first.
    fn describe(&mut self, packet: &Packet, maker: NodeId) {
        let place = packet.id as usize % RECENT;
        if self.recent[place] == packet.id + 1 {
            return;
        }
        self.recent[place] = packet.id + 1;
        let Self { record, flows, out, error, described, .. } = self;
        let flow = flows.of_packet(packet, |definition| {
            if error.is_none() {
                *error = out.write_all(definition).err();
            }
        });
        flows.describe(record, flow, packet, maker, described);
        self.write();
    }

    fn frame(&mut self, now: Instant, frame: &Frame<'_>) {
        if let Some(packet) = frame.packet {
            self.describe(packet, frame.from);
        }
        let before = self.framed;
        let record = self.at(now, tag::FRAME);
        record.number(frame.from.0.into()).number(frame.to.map_or(0, |to| u64::from(to.0) + 1));
        record.octet(frame.kind).octet(frame.flags).number(frame.nanos).number(frame.octets);
        if let Some(packet) = frame.packet {
            record.difference(packet.id as i64, before).number(frame.piece);
            self.framed = packet.id as i64;
        }
        self.write();
    }
}

/// Number of a close reason in the log.
fn closed(reason: CloseReason) -> u8 {
    let reason = match reason {
        CloseReason::Graceful => 0,
        CloseReason::Reset => 1,
        CloseReason::Aborted => 2,
        CloseReason::Refused => 3,
        CloseReason::TimedOut => 4,
    };
    format::stream::CLOSED + reason
}

/// A frame of either radio.
struct Frame<'a> {
    from: NodeId,
    to: Option<NodeId>,
    kind: u8,
    flags: u8,
    nanos: u64,
    octets: u64,
    packet: Option<&'a Packet>,
    piece: u64,
}

impl<W: Write + Send + 'static> Observer for EventLog<W> {
    fn on_attach_radio(&mut self, links: &[LinkId]) -> bool {
        (self.over, self.on_air) = (Medium::Ieee802154, links.to_vec());
        true
    }

    fn on_attach_wifi(&mut self, links: &[LinkId], _: &PhyConfig) -> bool {
        (self.over, self.on_air) = (Medium::Ieee80211, links.to_vec());
        true
    }

    fn on_attach_link(&mut self, _: LinkId, config: &LinkConfig) {
        let (rate, delay) = (config.rate, config.delay.as_nanos());
        self.links.push(LinkState { rate, delay, ..LinkState::default() });
    }

    fn on_attach(&mut self, nodes: &[&str], links: &[(NodeId, NodeId)]) {
        let is_first = self.legs.is_empty() && !self.run.sleeps;
        self.record.preamble(match (self.run.phases, is_first) {
            (true, _) => format::VERSION_3,
            (false, false) => format::VERSION_2,
            (false, true) => format::VERSION,
        });
        self.write();
        let run = &self.run;
        let record = self.record.begin(tag::RUN).text(&run.name).text(&run.hash);
        record.number(run.seed).number(run.run).text(&run.version);
        self.write();
        for (i, name) in nodes.iter().enumerate() {
            let facts = self.run.nodes.get(i).cloned().unwrap_or_default();
            let record = self.record.begin(tag::NODE).text(name).text(&facts.kind);
            match facts.position {
                None => record.octet(0),
                Some((x, y)) => record.octet(1).real(x).real(y),
            };
            self.write();
        }
        for (i, (from, to)) in links.iter().enumerate() {
            let LinkState { rate, delay, .. } = self.links[i];
            let over_air = self.on_air.binary_search(&LinkId(i as u32)).is_ok();
            let over = if over_air { self.over } else { Medium::Cable };
            let record = self.record.begin(tag::LINK).number(from.0.into()).number(to.0.into());
            record.octet(over as u8).number(rate).number(delay);
            self.write();
        }
        self.flows.set_links(links);
    }

    fn wants_connections(&self) -> bool {
        true
    }

    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        let maker = self.flows.start_of(link);
        let id = packet.id as i64;
        self.describe(packet, maker);
        let state = self.links[link.index()];
        let (tag, before) = match point {
            Point::Sent => (tag::SENT, state.sent),
            Point::Received => (tag::RECEIVED, state.arrived),
            Point::Dropped(_) => (tag::LOST, state.arrived),
        };
        let record = self.at(now, tag).number(link.0.into()).difference(id, before);
        if let Point::Dropped(why) = point {
            record.octet(match why {
                LinkDrop::QueueFull => format::reason::QUEUE_FULL,
                LinkDrop::Early => format::reason::EARLY,
                LinkDrop::Loss => format::reason::CHANNEL,
                LinkDrop::Down => format::reason::LINK_DOWN,
            });
        }
        let state = &mut self.links[link.index()];
        match point {
            Point::Sent => state.sent = id,
            Point::Received | Point::Dropped(_) => state.arrived = id,
        }
        self.write();
    }

    fn on_departure(&mut self, now: Instant, link: LinkId, packet: u64, start: Instant) {
        let wait = start.saturating_since(now).as_nanos().min(format::LONGEST);
        let before = self.links[link.index()].sent;
        let record = self.at(now, tag::WAITS).number(link.0.into());
        record.difference(packet as i64, before).number(wait);
        self.write();
    }

    fn on_node_drop(&mut self, now: Instant, node: NodeId, reason: NodeDrop, packet: &Packet) {
        self.describe(packet, node);
        let before = std::mem::replace(&mut self.discarded, packet.id as i64);
        let record = self.at(now, tag::DISCARDED).number(node.0.into()).difference(packet.id as i64, before);
        record.octet(match reason {
            NodeDrop::NoRoute => format::reason::NO_ROUTE,
            NodeDrop::HopLimit => format::reason::HOP_LIMIT,
            NodeDrop::TooBig => format::reason::TOO_BIG,
            NodeDrop::Down => format::reason::NODE_DOWN,
            NodeDrop::Held => format::reason::HELD,
            NodeDrop::WaitedInVain => format::reason::WAITED_IN_VAIN,
        });
        self.write();
    }

    fn on_frame(&mut self, now: Instant, frame: &AirFrame<'_>) {
        let (kind, packet, piece) = match frame.content {
            Content::Ack(_) => (format::frame::ACK, None, 0),
            Content::Wakeup { .. } => (format::frame::WAKEUP, None, 0),
            Content::Piece { packet, piece, .. } => (format::frame::DATA, Some(packet), piece),
        };
        let flags = match frame.reception {
            Reception::Received => format::frame::RECEIVED,
            Reception::Missed => 0,
            Reception::BrokenOff => format::frame::BROKEN_OFF,
        };
        let nanos = frame.end.saturating_since(frame.start).as_nanos();
        let AirFrame { from, to, psdu_len, .. } = *frame;
        let (octets, piece) = (psdu_len.into(), piece.into());
        self.frame(now, &Frame { from, to, kind, flags, nanos, octets, packet, piece });
    }

    fn on_wifi_frame(&mut self, now: Instant, shown: &WifiFrame<'_>) {
        let kind = match shown.frame.kind {
            FrameKind::Data => format::frame::DATA,
            FrameKind::Rts => format::frame::RTS,
            FrameKind::Cts => format::frame::CTS,
            FrameKind::Ack => format::frame::ACK,
        };
        let again = if shown.frame.retry { format::frame::AGAIN } else { 0 };
        let flags = again
            | match (shown.frame.cut, shown.frame.receivers) {
                (true, _) => format::frame::BROKEN_OFF,
                (false, 0) => 0,
                (false, _) => format::frame::RECEIVED,
            };
        let nanos = shown.frame.end.saturating_since(shown.frame.start).as_nanos();
        let WifiFrame { from, to, packet, .. } = *shown;
        let octets = shown.frame.mpdu_len.into();
        self.frame(now, &Frame { from, to, kind, flags, nanos, octets, packet, piece: 0 });
    }

    fn on_connection(&mut self, now: Instant, seen: &ConnectionView<'_>) {
        let Self { flows, out, error, .. } = self;
        let flow = flows.of_connection(seen, |definition| {
            if error.is_none() {
                *error = out.write_all(definition).err();
            }
        });
        self.connections.entry((seen.node, seen.id)).or_insert(flow);
        if let Some(change) = self.flows.change_of(flow, seen.info) {
            change.put(self.at(now, tag::STATE).number(flow.into()));
            self.write();
        }
    }

    fn on_stream(&mut self, now: Instant, node: NodeId, connection: ConnId, event: StreamEvent) {
        let code = match event {
            StreamEvent::Accepted { .. } => format::stream::ACCEPTED,
            StreamEvent::Opened => format::stream::OPENED,
            StreamEvent::PeerClosed => format::stream::PEER_CLOSED,
            StreamEvent::Closed(reason) => closed(reason),
            // There are as many of these events as segments, which are in the log.
            StreamEvent::Readable | StreamEvent::Writable => return,
        };
        let Some(&flow) = self.connections.get(&(node, connection)) else { return };
        if let StreamEvent::Closed(_) = event {
            self.connections.remove(&(node, connection));
        }
        self.at(now, tag::STREAM).number(flow.into()).octet(code);
        self.write();
    }

    fn on_chunk(&mut self, now: Instant, chunk: &ChunkView) {
        let Self { flows, out, error, .. } = self;
        let flow = flows.of_ends(chunk.node, chunk.peer, chunk.ports, |definition| {
            if error.is_none() {
                *error = out.write_all(definition).err();
            }
        });
        let record = self.at(now, tag::CHUNK).number(flow.into());
        record.number(chunk.written_at).number(chunk.offset).number(chunk.len.into());
        self.write();
    }

    fn on_phases(&mut self, now: Instant, from: NodeId, to: NodeId, moments: &Moments) {
        if !self.run.phases {
            return;
        }
        let passed = now.saturating_since(moments.started).as_nanos();
        let phases = moments.phases().count() as u8;
        let record = self.at(now, tag::PHASES).number(from.0.into()).number(to.0.into());
        record.number(passed).octet(phases);
        for span in moments.phases() {
            record.number(span.length().as_nanos());
        }
        self.write();
    }

    fn on_incident(&mut self, now: Instant, what: Incident) {
        let (code, index, value) = match what {
            Incident::NodeDown(node) => (format::incident::NODE_DOWN, node.0, 0),
            Incident::NodeUp(node) => (format::incident::NODE_UP, node.0, 0),
            Incident::LinkDown(link) => (format::incident::LINK_DOWN, link.0, 0),
            Incident::LinkUp(link) => (format::incident::LINK_UP, link.0, 0),
            Incident::Rate(link, rate) => (format::incident::RATE, link.0, rate),
        };
        self.at(now, tag::INCIDENT).octet(code).number(index.into()).number(value);
        self.write();
    }

    fn on_note(&mut self, now: Instant, node: Option<NodeId>, text: std::fmt::Arguments<'_>) {
        let text = text.to_string();
        self.at(now, tag::NOTE).number(node.map_or(0, |node| u64::from(node.0) + 1)).text(&text);
        self.write();
    }
}
