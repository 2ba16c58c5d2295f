//! Packets at a constant rate over RDCA ([`anabranch_core::rdca`]) over UDP: [`RdcaSource`] and
//! [`RdcaSink`].
//!
//! A packet says which it is and when it was made, as in [`super::packets`]. What the sender has no
//! room for waits in the application, and is counted there.

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

/// Whether a source tells its sender that a route has broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RouteNotices {
    /// It does: nothing but probes is sent until the sink answers ([`core::Sender::path_lost`]).
    #[default]
    Heeded,
    /// It does not, as in the paper.
    Ignored,
}

/// What a source makes, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdcaConfig {
    /// The sink.
    pub to: NodeId,
    /// Its port.
    pub port: u16,
    /// The port of the source.
    pub from_port: u16,
    /// How many packets.
    pub packets: u32,
    /// Bytes of each, at least [`super::packets::LEAST_PACKET`], and at most
    /// [`SenderConfig::longest`]. Longer ones are refused, and never sent; what exceeds a datagram
    /// is cut.
    pub payload: u16,
    /// Time from one to the next, more than zero.
    pub interval: Duration,
    /// How the sender behaves.
    pub sender: SenderConfig,
    /// Whether it heeds routes that break.
    pub notices: RouteNotices,
}

impl RdcaConfig {
    /// Datagrams that each packet is cut into.
    pub fn pieces(&self) -> u32 {
        self.sender.pieces(self.payload.into()) as u32
    }
}

/// Makes packets as time goes on, hands them to a sender as it takes them, and closes after the
/// last.
#[derive(Debug)]
pub struct RdcaSource {
    config: RdcaConfig,
    pace: Pace,
    /// Packets made before the node was last started.
    before: u64,
    sender: Option<core::Sender>,
    next: Option<Instant>,
    made: Vec<Instant>,
    /// How long packets are, what draws it, and how long those are that were made, if they differ.
    sizes: Option<(Law, Option<Stream>, Vec<u16>)>,
    /// When each packet was first sent, as far as it was.
    sent: Vec<Instant>,
    /// Packets that the sender has taken.
    taken: u32,
    /// The most packets that waited in the application at once.
    pub most_waiting: u32,
    /// Packets of which the sender has said that they are lost.
    pub gone: u64,
    /// Which, if they are cut: several pieces of one may be lost.
    lost: BTreeSet<u32>,
    /// Packets that were sent, and of which it is not known whether they arrived.
    pub unknown: u64,
    /// How the stream ended, and when.
    pub outcome: Option<(Outcome, Instant)>,
    /// Times that the node was started: each is another incarnation of the sender.
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

    /// The same, with packets that follow upon each other in this way, and none later than that.
    #[must_use]
    pub fn paced(mut self, spacing: Spacing, until: Instant) -> Self {
        (self.pace.spacing, self.pace.until) = (spacing, Some(until));
        self
    }

    /// The same, with packets of these lengths, which each fit into a datagram; they are drawn from
    /// a stream of the source's purpose.
    #[must_use]
    pub fn sized(mut self, sizes: Law) -> Self {
        self.sizes = Some((sizes, None, Vec::new()));
        self
    }

    /// Packets made, those before the node was last started included.
    pub fn made_in_all(&self) -> u64 {
        self.before + self.made.len() as u64
    }

    /// The same, with random numbers from a stream of that purpose: two sources of a node must not
    /// share one.
    #[must_use]
    pub fn drawing_from(mut self, purpose: String) -> Self {
        self.pace.purpose = purpose.into();
        self
    }

    /// When each packet so far was made.
    pub fn made(&self) -> &[Instant] {
        &self.made
    }

    /// When each packet was first sent, by number; fewer than were made, if some were not sent yet.
    pub fn sent(&self) -> &[Instant] {
        &self.sent
    }

    /// Packets that wait in the application.
    pub fn waiting(&self) -> u32 {
        self.made.len() as u32 - self.taken
    }

    /// How the sender stands.
    pub fn info(&self) -> Option<SenderInfo> {
        self.sender.as_ref().map(core::Sender::info)
    }

    /// What the sender has counted.
    pub fn counters(&self) -> Option<SenderCounters> {
        self.info().map(|info| info.counters)
    }

    /// Everything that was due to be made by now is.
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

    /// The sender takes what it has room for; after the last packet the stream ends.
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

    /// What the sender says is sent, what it tells is noted.
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
    /// Datagrams that each packet is cut into.
    pieces: u32,
    /// What came, in the order in which the transport handed it on, each packet once.
    pub arrived: Vec<Arrived>,
    /// Packets of which the transport has said that they are lost.
    pub gone: u64,
    /// Packets that came again, over a stream that a restart had made necessary.
    pub again: u64,
    /// Packets that came out of order without a word, or whose octets are wrong: a fault.
    pub wrong: u64,
    /// Streams that have ended, by how.
    pub ended: Vec<(NodeId, StreamEnd)>,
    /// The packet that is next, by source.
    next: BTreeMap<NodeId, u32>,
    lives: u32,
}

impl RdcaSink {
    /// A sink that listens to `port`.
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

    /// The same, for packets that are each cut into that many datagrams.
    #[must_use]
    pub fn cut_into(self, pieces: u32) -> Self {
        Self { pieces: pieces.max(1), ..self }
    }

    /// What the transport has counted.
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
                // Of a packet that is lost all pieces are, the first included.
                let (first, next) = (range.start.0.div_ceil(self.pieces), range.end.0.div_ceil(self.pieces));
                self.gone += u64::from(next - first);
                let expected = self.next.entry(end(peer).0).or_default();
                *expected = next.max(*expected);
            }
            SinkEvent::Ended { peer, end: how, .. } => {
                let from = end(peer).0;
                self.ended.push((from, how));
                // A source that begins anew begins with its first packet, and one that found this
                // sink restarted goes on.
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
        // Lives are apart by more streams than one has.
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

/// Packets that have a piece in this range, and that are not among those that were `lost` before.
fn lose(lost: &mut BTreeSet<u32>, pieces: u32, range: Range) -> u64 {
    match pieces {
        1 => range.len().into(),
        pieces => {
            let packets = range.start.0 / pieces..range.end.0.div_ceil(pieces);
            packets.filter(|packet| lost.insert(*packet)).count() as u64
        }
    }
}

/// A message leaves, to a node from one port to another.
fn say(ctx: &mut Ctx<'_>, header: Header, (to, from_port, port): (NodeId, u16, u16), message: &Message) {
    let mut octets = Vec::new();
    header.encode(message, &mut octets);
    if ctx.send_datagram(to, from_port, port, octets.into()).is_err() {
        ctx.trace(format_args!("{to:?} does not exist: the message is lost"));
    }
}

/// A node and its port, as a sink knows them.
fn peer(node: NodeId, port: u16) -> PeerId {
    PeerId(u64::from(node.0) << 16 | u64::from(port))
}

fn end(peer: PeerId) -> (NodeId, u16) {
    (NodeId((peer.0 >> 16) as u32), peer.0 as u16)
}
