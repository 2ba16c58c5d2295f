//! Packets at a constant rate over RDCA ([`anabranch_core::rdca`]) over UDP: [`RdcaSource`] and
//! [`RdcaSink`].
//!
//! A packet contains its number and generation time, as in [`super::packets`]. Packets for which
//! the sender has no room wait in the application, which counts them.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::rdca::{
    Header, Incarnation, Message, PeerId, Range, SenderConfig, SenderCounters, SenderEvent, SenderInfo, Seq,
    SinkConfig, SinkCounters, SinkEvent, StreamEnd, {self as core},
};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;

use super::pace::{Pace, Spacing};
use super::packets::{Arrived, packet, read_packet};
use super::sizes::Law;
use crate::app::{App, Ctx};
use crate::network::RouteChange;
use crate::packet::NodeId;
use crate::random::Stream;
use crate::stream::{ConnId, StreamEvent};

pub use anabranch_core::rdca::Outcome;

/// Whether a source tells its sender about broken routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RouteNotices {
    /// The sender is told; `standby` selects its reaction.
    #[default]
    Heeded,
    /// The sender is not told, as in the paper.
    Ignored,
}

/// Options of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdcaConfig {
    /// Sink.
    pub to: NodeId,
    /// Port of the sink.
    pub port: u16,
    /// Port of the source.
    pub from_port: u16,
    /// Number of packets.
    pub packets: u32,
    /// Length of each packet in bytes, at least [`super::packets::LEAST_PACKET`] and at most
    /// [`SenderConfig::longest`]. Longer packets are refused and never sent. A packet larger than a
    /// datagram is split.
    pub payload: u16,
    /// Time between two packets, more than zero.
    pub interval: Duration,
    /// Options of the sender.
    pub sender: SenderConfig,
    /// Whether it tells the sender about broken routes.
    pub notices: RouteNotices,
}

impl RdcaConfig {
    /// Number of datagrams for each packet.
    pub fn pieces(&self) -> u32 {
        self.sender.pieces(self.payload.into()) as u32
    }
}

/// Generates packets over time, passes them to a sender as it accepts them, and closes after the
/// last.
#[derive(Debug)]
pub struct RdcaSource {
    config: RdcaConfig,
    pace: Pace,
    /// Packets generated before the node was last started.
    before: u64,
    sender: Option<core::Sender>,
    next: Option<Instant>,
    made: Vec<Instant>,
    /// Distribution of the length, its random stream, and the lengths of the packets generated, if
    /// lengths differ.
    sizes: Option<(Law, Option<Stream>, Vec<u16>)>,
    /// Time at which each packet was first sent, for the packets that were.
    sent: Vec<Instant>,
    /// Number of packets that the sender has accepted.
    taken: u32,
    /// Peak number of packets that waited in the application.
    pub most_waiting: u32,
    /// Number of packets that the sender has reported as lost.
    pub gone: u64,
    /// Their numbers, if packets are split: several pieces of one may be lost.
    lost: BTreeSet<u32>,
    /// Number of packets that were sent and whose fate is not known.
    pub unknown: u64,
    /// Outcome of the stream, and its time.
    pub outcome: Option<(Outcome, Instant)>,
    /// Number of starts of the node, each of which makes a new incarnation of the sender.
    lives: u32,
}

impl RdcaSource {
    /// A source that begins when it is started.
    pub fn new(config: RdcaConfig) -> Self {
        let RdcaConfig { interval, packets, .. } = config;
        Self {
            config,
            pace: Pace::new(interval, Spacing::Constant, packets),
            before: 0,
            sender: None,
            next: None,
            made: Vec::new(),
            sizes: None,
            sent: Vec::new(),
            taken: 0,
            most_waiting: 0,
            gone: 0,
            lost: BTreeSet::new(),
            unknown: 0,
            outcome: None,
            lives: 0,
        }
    }

    /// Sets the arrival process, and the time after which no packet is generated.
    #[must_use]
    pub fn paced(mut self, spacing: Spacing, until: Instant) -> Self {
        (self.pace.spacing, self.pace.until) = (spacing, Some(until));
        self
    }

    /// Sets the distribution of the length; each packet must fit into a datagram. Lengths are drawn
    /// from a stream of the source's purpose.
    #[must_use]
    pub fn sized(mut self, sizes: Law) -> Self {
        self.sizes = Some((sizes, None, Vec::new()));
        self
    }

    /// Number of packets generated, including those before the node was last started.
    pub fn made_in_all(&self) -> u64 {
        self.before + self.made.len() as u64
    }

    /// Sets the purpose of the random stream: two sources of a node need different purposes.
    #[must_use]
    pub fn drawing_from(mut self, purpose: String) -> Self {
        self.pace.purpose = purpose.into();
        self
    }

    /// Generation time of each packet so far.
    pub fn made(&self) -> &[Instant] {
        &self.made
    }

    /// Time at which each packet was first sent, by number; shorter than `made` if some have not
    /// been sent.
    pub fn sent(&self) -> &[Instant] {
        &self.sent
    }

    /// Number of packets that wait in the application.
    pub fn waiting(&self) -> u32 {
        self.made.len() as u32 - self.taken
    }

    /// State of the sender.
    pub fn info(&self) -> Option<SenderInfo> {
        self.sender.as_ref().map(core::Sender::info)
    }

    /// Counters of the sender.
    pub fn counters(&self) -> Option<SenderCounters> {
        self.info().map(|info| info.counters)
    }

    /// Generates the packets that are due.
    fn make(&mut self, now: Instant) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            if self.config.packets > 0 {
                self.made.push(at);
                if let Some((law, Some(random), sizes)) = &mut self.sizes {
                    sizes.push(law.draw(random, self.pace.row()) as u16);
                }
            }
            self.next = self.pace.next(at, self.made.len());
        }
    }

    /// Passes packets to the sender as far as it has room, and ends the stream after the last
    /// packet.
    fn hand_over(&mut self, now: Instant) {
        let Some(sender) = &mut self.sender else { return };
        while let Some(made) = self.made.get(self.taken as usize) {
            let sizes = self.sizes.as_ref().map(|(_, _, sizes)| sizes);
            let drawn = sizes.and_then(|sizes| sizes.get(self.taken as usize));
            let payload = drawn.copied().unwrap_or(self.config.payload);
            if sender.write(now, packet(self.taken, *made, payload)).is_err() {
                break;
            }
            self.taken += 1;
        }
        self.most_waiting = self.most_waiting.max(self.made.len() as u32 - self.taken);
        if self.next.is_none() && self.taken as usize == self.made.len() {
            sender.close(now);
        }
    }

    /// Sends the sender's messages and handles its events.
    fn attend(&mut self, ctx: &mut Ctx<'_>) {
        let (now, pieces) = (ctx.now(), self.config.pieces());
        self.make(now);
        loop {
            self.hand_over(now);
            let Some(sender) = &mut self.sender else { return };
            let mut busy = false;
            while let Some(message) = sender.poll_transmit(now) {
                busy = true;
                if let Message::Data(data) = &message
                    && data.seq.0 as usize == self.sent.len() * pieces as usize
                {
                    self.sent.push(now);
                }
                let header = self.config.sender.header;
                say(ctx, header, (self.config.to, self.config.from_port, self.config.port), &message);
            }
            while let Some(event) = sender.poll_event() {
                busy = true;
                match event {
                    SenderEvent::Opened | SenderEvent::Confirmed { .. } | SenderEvent::Writable => {}
                    SenderEvent::Gone(range) => self.gone += lose(&mut self.lost, pieces, range),
                    SenderEvent::SinkLost { unknown } => {
                        self.unknown += lose(&mut self.lost, pieces, unknown)
                    }
                    SenderEvent::Closed { outcome, unknown, .. } => {
                        self.unknown += lose(&mut self.lost, pieces, unknown);
                        self.outcome = Some((outcome, now));
                        ctx.finished();
                    }
                }
            }
            if !busy {
                break;
            }
        }
        let due = self.sender.as_ref().and_then(core::Sender::next_timeout);
        ctx.set_timer([self.next, due].into_iter().flatten().min());
    }
}

impl App for RdcaSource {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        let (pace, before) = (self.pace.clone(), self.made_in_all());
        let lives = self.lives.wrapping_add(1);
        let sizes = self.sizes.take().map(|(law, random, _)| {
            let random = random.or_else(|| Some(ctx.stream(&format!("sizes of {}", self.pace.purpose))));
            (law, random, Vec::new())
        });
        *self = Self { lives, pace, before, sizes, ..Self::new(self.config) };
        if ctx.bind(self.config.from_port).is_err() {
            ctx.trace(format_args!("port {} is taken: this source hears nothing", self.config.from_port));
        }
        let incarnation = Incarnation((ctx.stream("rdca source").bits() as u32).wrapping_add(self.lives));
        self.sender = Some(core::Sender::new(self.config.sender, incarnation, Seq(0)));
        self.next = self.pace.start(ctx);
        self.attend(ctx);
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, _: u16, payload: Bytes) {
        if (from, from_port) != (self.config.to, self.config.port) {
            return;
        }
        if let Some(sender) = &mut self.sender {
            sender.handle_datagram(ctx.now(), &payload);
        }
        self.attend(ctx);
    }

    fn on_route(&mut self, ctx: &mut Ctx<'_>, to: NodeId, change: RouteChange) {
        if to != self.config.to || self.config.notices == RouteNotices::Ignored {
            return;
        }
        if let Some(sender) = &mut self.sender {
            match change {
                RouteChange::Found => sender.path_found(ctx.now()),
                RouteChange::Failed | RouteChange::Broken => sender.path_lost(ctx.now()),
            }
        }
        self.attend(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(ctx.now());
        }
        self.attend(ctx);
    }
}

/// Receives the packets of all sources that send to a port.
#[derive(Debug)]
pub struct RdcaSink {
    port: u16,
    config: SinkConfig,
    sink: Option<core::Sink>,
    /// Number of datagrams for each packet.
    pieces: u32,
    /// Packets received, in the order of delivery by the transport, without duplicates.
    pub arrived: Vec<Arrived>,
    /// Number of packets that the transport has reported as lost.
    pub gone: u64,
    /// Number of packets that were received again over a new stream, after a restart.
    pub again: u64,
    /// Number of packets out of order without a loss report, or with invalid content, which is an
    /// error of the simulator.
    pub wrong: u64,
    /// Streams that have ended, and how.
    pub ended: Vec<(NodeId, StreamEnd)>,
    /// Number of the next packet, by source.
    next: BTreeMap<NodeId, u32>,
    lives: u32,
}

impl RdcaSink {
    /// A sink that listens on `port`.
    pub fn new(port: u16, config: SinkConfig) -> Self {
        Self {
            port,
            config,
            sink: None,
            pieces: 1,
            arrived: Vec::new(),
            gone: 0,
            again: 0,
            wrong: 0,
            ended: Vec::new(),
            next: BTreeMap::new(),
            lives: 0,
        }
    }

    /// Sets the number of datagrams for each packet.
    #[must_use]
    pub fn cut_into(self, pieces: u32) -> Self {
        Self { pieces: pieces.max(1), ..self }
    }

    /// Counters of the transport.
    pub fn counters(&self) -> Option<SinkCounters> {
        self.sink.as_ref().map(core::Sink::counters)
    }

    fn attend(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        while let Some(sink) = &mut self.sink {
            if let Some((peer, message)) = sink.poll_transmit(now) {
                let (node, port) = end(peer);
                say(ctx, self.config.header, (node, self.port, port), &message);
            } else if let Some(event) = sink.poll_event() {
                self.note(now, event);
            } else {
                let due = sink.next_timeout();
                return ctx.set_timer(due);
            }
        }
    }

    fn note(&mut self, now: Instant, event: SinkEvent) {
        match event {
            SinkEvent::Opened { peer, first } => {
                self.next.entry(end(peer).0).or_insert(first.0.div_ceil(self.pieces));
            }
            SinkEvent::Packet { peer, seq, payload } => {
                let from = end(peer).0;
                let next = self.next.entry(from).or_default();
                match read_packet(&payload).filter(|(number, _)| number * self.pieces == seq.0) {
                    Some((number, made)) if number == *next => {
                        *next += 1;
                        self.arrived.push(Arrived { from, number, made, at: now, len: payload.len() as u32 });
                    }
                    Some((number, _)) if number < *next => self.again += 1,
                    Some(_) | None => self.wrong += 1,
                }
            }
            SinkEvent::Gone { peer, range } => {
                // If a packet is lost, all its pieces are reported lost, including the first.
                let (first, next) = (range.start.0.div_ceil(self.pieces), range.end.0.div_ceil(self.pieces));
                self.gone += u64::from(next - first);
                let expected = self.next.entry(end(peer).0).or_default();
                *expected = next.max(*expected);
            }
            SinkEvent::Ended { peer, end: how, .. } => {
                let from = end(peer).0;
                self.ended.push((from, how));
                // A source that starts again begins with its first packet. A source whose sink has
                // restarted continues.
                self.next.remove(&from);
            }
        }
    }
}

impl App for RdcaSink {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.lives = self.lives.wrapping_add(1);
        self.next.clear();
        if ctx.bind(self.port).is_err() {
            ctx.trace(format_args!("port {} is taken: this sink hears nothing", self.port));
        }
        // The epochs of two lives differ by more than the number of streams in a life.
        let epoch = (ctx.stream("rdca sink").bits() as u32).wrapping_add(self.lives << 16);
        self.sink = Some(core::Sink::new(self.config, epoch));
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, _: u16, payload: Bytes) {
        if let Some(sink) = &mut self.sink {
            sink.handle_datagram(ctx.now(), peer(from, from_port), &payload);
        }
        self.attend(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(sink) = &mut self.sink {
            sink.handle_timeout(ctx.now());
        }
        self.attend(ctx);
    }
}

/// Number of packets that have a piece in this range, without those that were in `lost` before.
fn lose(lost: &mut BTreeSet<u32>, pieces: u32, range: Range) -> u64 {
    match pieces {
        1 => range.len().into(),
        pieces => {
            let packets = range.start.0 / pieces..range.end.0.div_ceil(pieces);
            packets.filter(|packet| lost.insert(*packet)).count() as u64
        }
    }
}

/// Sends a message to a node, from one port to another.
fn say(ctx: &mut Ctx<'_>, header: Header, (to, from_port, port): (NodeId, u16, u16), message: &Message) {
    let mut octets = Vec::new();
    header.encode(message, &mut octets);
    if ctx.send_datagram(to, from_port, port, octets.into()).is_err() {
        ctx.trace(format_args!("{to:?} does not exist: the message is lost"));
    }
}

/// A node and its port, as the sink identifies them.
fn peer(node: NodeId, port: u16) -> PeerId {
    PeerId(u64::from(node.0) << 16 | u64::from(port))
}

fn end(peer: PeerId) -> (NodeId, u16) {
    (NodeId((peer.0 >> 16) as u32), peer.0 as u16)
}
