//! Packets of equal length that a source generates over time and sends over one connection:
//! [`PacketSource`] and [`PacketSink`].
//!
//! A packet contains its number and its generation time. The sink therefore knows its delay, and
//! whether each packet arrived once and in order. [`FirstSent`] is an observer that records when
//! the transport first sent each packet.

mod first_sent;

use anabranch_core::mptcp::prediction::Adaptation;
use anabranch_core::tcp::CloseReason;
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;
pub use first_sent::FirstSent;

use super::pace::Pace;
pub use super::pace::Spacing;
use super::subflows::{Interfaces, PathUse, Subflows};
use crate::app::{App, Ctx};
use crate::packet::NodeId;
use crate::stream::{ConnId, StreamEvent};
use crate::transport::TransportConfig;

/// Least length of a packet in bytes: its number and generation time.
pub const LEAST_PACKET: u16 = 12;

/// Options of a source.
#[derive(Clone, Debug)]
pub struct PacketSourceConfig {
    /// Receiver.
    pub to: NodeId,
    /// Port of the receiver.
    pub port: u16,
    /// Number of packets.
    pub packets: u32,
    /// Length of each packet in bytes, at least [`LEAST_PACKET`].
    pub payload: u16,
    /// Mean time between two packets. They are a Poisson process, unless [`PacketSource::spaced`]
    /// sets another.
    pub interval: Duration,
    /// Transport of the connection. A multipath connection has a subflow on each of the node's
    /// paths.
    pub transport: TransportConfig,
    /// Derivation of windows and time-outs of a multipath connection from the length of the path;
    /// `None` keeps the configured values.
    pub adaptation: Option<Adaptation>,
    /// Largest number of subflows of a multipath connection, one on each of the best paths. Other
    /// paths replace a lost one.
    pub subflows: usize,
}

/// Connects, and connects again if the connection fails; generates packets over time; closes when
/// all are acknowledged.
#[derive(Debug)]
pub struct PacketSource {
    config: PacketSourceConfig,
    pace: Pace,
    /// Packets generated before the node was last started.
    before: u64,
    id: Option<ConnId>,
    /// Time of the next packet.
    next: Option<Instant>,
    /// Generation time of each packet.
    made: Vec<Instant>,
    /// Bytes written to the open connection.
    written: u64,
    /// Number of the first packet of that connection.
    base: u32,
    subflows: Subflows,
    /// Number of failed connections.
    pub failures: u32,
    /// Time at which all packets were acknowledged.
    pub finished: Option<Instant>,
}

/// Time between a failure and the next connection attempt.
pub(super) const PAUSE: Duration = Duration::from_secs(5);

impl PacketSource {
    /// A source that begins when it is started.
    pub fn new(config: PacketSourceConfig) -> Self {
        let PacketSourceConfig { payload, adaptation, subflows, interval, packets, .. } = config;
        Self {
            config,
            pace: Pace::new(interval, Spacing::default(), packets),
            before: 0,
            id: None,
            next: None,
            made: Vec::new(),
            written: 0,
            base: 0,
            subflows: Subflows::new(PathUse {
                subflows,
                payload,
                interfaces: Interfaces::default(),
                adaptation,
            }),
            failures: 0,
            finished: None,
        }
    }

    /// Sets the arrival process of the packets.
    #[must_use]
    pub fn spaced(mut self, spacing: Spacing) -> Self {
        self.pace.spacing = spacing;
        self
    }

    /// Sets the time after which no packet is generated.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.pace.until = Some(until);
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

    fn connect(&mut self, ctx: &mut Ctx<'_>) {
        self.written = 0;
        let to = (self.config.to, self.config.port);
        let left = self.config.packets - self.base;
        // Without a path the timer tries again.
        let Some(connected) = self.subflows.connect(ctx, to, self.config.transport, left.into()) else {
            return;
        };
        self.id = connected.ok();
        if self.id.is_none() {
            self.failures += 1;
        }
    }

    fn follow_paths(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(id) = self.id {
            self.subflows.follow_paths(ctx, id);
        }
    }

    /// Writes waiting packets to the connection, as far as there is room.
    fn fill(&mut self, ctx: &mut Ctx<'_>) {
        let Some(id) = self.id else { return };
        let len = u64::from(self.config.payload);
        loop {
            let number = self.base + (self.written / len) as u32;
            let Some(made) = self.made.get(number as usize) else { break };
            let mut packet =
                packet(number, *made, self.config.payload).slice((self.written % len) as usize..);
            match ctx.write(id, &mut packet) {
                Ok(0) | Err(_) => break,
                Ok(n) => self.written += n as u64,
            }
        }
        self.arm(ctx);
    }

    fn acknowledged(&self, ctx: &Ctx<'_>) -> u32 {
        let acked = self.id.and_then(|id| ctx.info(id)).map_or(0, |info| info.bytes_acked);
        self.base + (acked / u64::from(self.config.payload)) as u32
    }

    fn arm(&mut self, ctx: &mut Ctx<'_>) {
        let due = match (self.id, self.finished) {
            (_, Some(_)) => None,
            (None, None) => Some(ctx.now() + PAUSE),
            (Some(_), None) => None,
        };
        ctx.set_timer([self.next, due].into_iter().flatten().min());
    }

    /// Generates the packets that are due.
    fn make(&mut self, now: Instant) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            self.made.push(at);
            self.next = self.pace.next(at, self.made.len());
            if self.next.is_none() {
                // A packet that would be too late is not generated and not awaited.
                self.config.packets = self.made.len() as u32;
            }
        }
    }
}

/// The bytes of a packet.
pub(super) fn packet(number: u32, made: Instant, len: u16) -> Bytes {
    let mut octets = Vec::with_capacity(len.into());
    octets.extend_from_slice(&number.to_be_bytes());
    octets.extend_from_slice(&made.as_nanos().to_be_bytes());
    octets.extend((octets.len()..usize::from(len.max(LEAST_PACKET))).map(|i| i as u8 ^ number as u8));
    octets.into()
}

/// Number and generation time of a packet; `None` if the bytes are not those of a packet.
pub(super) fn read_packet(octets: &[u8]) -> Option<(u32, Instant)> {
    let (number, rest) = octets.split_first_chunk()?;
    let (made, tail) = rest.split_first_chunk()?;
    let number = u32::from_be_bytes(*number);
    // Without an early exit, so that the compiler can vectorise the comparison.
    let expected = |i: usize| (usize::from(LEAST_PACKET) + i) as u8 ^ number as u8;
    let wrong = tail.iter().enumerate().fold(0, |wrong, (i, octet)| wrong | (*octet ^ expected(i)));
    (wrong == 0).then(|| (number, Instant::from_nanos(u64::from_be_bytes(*made))))
}

impl App for PacketSource {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        let (pace, before) = (self.pace.clone(), self.made_in_all());
        let config = PacketSourceConfig { packets: pace.packets, ..self.config.clone() };
        *self = Self { pace, before, ..Self::new(config) };
        self.next = self.pace.start(ctx);
        if self.next.is_none() {
            self.finished = Some(ctx.now());
            ctx.finished();
            return;
        }
        self.make(ctx.now());
        self.connect(ctx);
        self.arm(ctx);
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        if self.id != Some(id) {
            return;
        }
        match event {
            StreamEvent::Opened => {
                self.follow_paths(ctx);
                self.fill(ctx);
            }
            StreamEvent::Writable => {
                self.subflows.on_writable(ctx, id);
                self.fill(ctx);
                if self.acknowledged(ctx) >= self.config.packets && self.finished.is_none() {
                    self.finished = Some(ctx.now());
                    ctx.finished();
                    ctx.close(id);
                }
            }
            StreamEvent::Readable => while ctx.read(id, usize::MAX).is_some() {},
            StreamEvent::PeerClosed | StreamEvent::Accepted { .. } => {}
            StreamEvent::Closed(reason) => {
                let acknowledged = self.acknowledged(ctx);
                self.id = None;
                if reason != CloseReason::Graceful && self.finished.is_none() {
                    // Packets that the peer has not acknowledged are sent again. The peer
                    // recognises duplicates by their numbers.
                    self.failures += 1;
                    self.base = acknowledged;
                }
                self.arm(ctx);
            }
        }
    }

    fn on_paths(&mut self, ctx: &mut Ctx<'_>) {
        self.follow_paths(ctx);
        if self.id.is_none() {
            self.arm(ctx);
        }
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        self.make(ctx.now());
        if self.id.is_none() && self.finished.is_none() {
            self.connect(ctx);
        }
        self.fill(ctx);
        self.arm(ctx);
    }
}

/// A packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// Source of the packet.
    pub from: NodeId,
    /// Number of the packet at its source.
    pub number: u32,
    /// Generation time.
    pub made: Instant,
    /// Time at which its last byte could be read.
    pub at: Instant,
    /// Length in bytes.
    pub len: u32,
}

/// A connection, and the beginning of an incomplete packet.
#[derive(Debug)]
struct Incoming {
    id: ConnId,
    peer: NodeId,
    rest: Vec<u8>,
}

/// Accepts connections on a port and reads packets from them.
#[derive(Debug)]
pub struct PacketSink {
    port: u16,
    payload: u16,
    transport: TransportConfig,
    open: Vec<Incoming>,
    /// Packets received, in order of arrival, without duplicates.
    pub arrived: Vec<Arrived>,
    /// Number of packets that were received again over another connection.
    pub again: u64,
    /// Number of packets out of order or with invalid content, which is an error of the simulator.
    pub wrong: u64,
    next: std::collections::BTreeMap<NodeId, u32>,
}

impl PacketSink {
    /// A sink for packets of `payload` bytes.
    pub fn new(port: u16, payload: u16, transport: TransportConfig) -> Self {
        Self {
            port,
            payload,
            transport,
            open: Vec::new(),
            arrived: Vec::new(),
            again: 0,
            wrong: 0,
            next: Default::default(),
        }
    }

    fn drain(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        let Some(at) = self.open.iter().position(|c| c.id == id) else { return };
        while let Some(data) = ctx.read(id, usize::MAX) {
            self.open[at].rest.extend_from_slice(&data);
        }
        let peer = self.open[at].peer;
        let len = usize::from(self.payload.max(LEAST_PACKET));
        let rest = std::mem::take(&mut self.open[at].rest);
        let whole = rest.len() / len * len;
        for octets in rest[..whole].chunks_exact(len) {
            self.take(ctx.now(), peer, octets);
        }
        self.open[at].rest = rest[whole..].to_vec();
    }

    fn take(&mut self, now: Instant, from: NodeId, octets: &[u8]) {
        let Some((number, made)) = read_packet(octets) else {
            self.wrong += 1;
            return;
        };
        let next = self.next.entry(from).or_default();
        if number > *next {
            self.wrong += 1;
        } else if number < *next {
            self.again += 1;
        } else {
            *next += 1;
            self.arrived.push(Arrived { from, number, made, at: now, len: octets.len() as u32 });
        }
    }
}

impl App for PacketSink {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.open.clear();
        if ctx.listen(self.port, self.transport).is_err() {
            ctx.trace(format_args!("port {} is taken: this sink hears nothing", self.port));
        }
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        match event {
            StreamEvent::Accepted { peer, .. } => self.open.push(Incoming { id, peer, rest: Vec::new() }),
            StreamEvent::Readable => self.drain(ctx, id),
            StreamEvent::PeerClosed => {
                self.drain(ctx, id);
                ctx.close(id);
            }
            StreamEvent::Closed(_) => {
                self.drain(ctx, id);
                self.open.retain(|c| c.id != id);
            }
            StreamEvent::Opened | StreamEvent::Writable => {}
        }
    }
}
