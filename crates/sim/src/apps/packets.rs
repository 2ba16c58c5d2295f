//! Packets that a source makes now and then, each of the same length, over one connection:
//! [`PacketSource`] and [`PacketSink`].
//!
//! A packet says which it is and when it was made, so that the sink knows how long it took, and
//! whether each came once and in order. When the transport first sent it is seen by an observer,
//! [`FirstSent`].

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

/// The least octets of a packet: its number and when it was made.
pub const LEAST_PACKET: u16 = 12;

/// What a source makes, and for whom.
#[derive(Clone, Debug)]
pub struct PacketSourceConfig {
    /// The receiver.
    pub to: NodeId,
    /// Its port.
    pub port: u16,
    /// How many packets.
    pub packets: u32,
    /// Octets of each, at least [`LEAST_PACKET`].
    pub payload: u16,
    /// Mean time between two; they are made as a Poisson process, unless it is said otherwise
    /// ([`PacketSource::spaced`]).
    pub interval: Duration,
    /// How the connection behaves. A multipath connection has a subflow on each of the node's
    /// paths.
    pub transport: TransportConfig,
    /// How windows and time-outs of a multipath connection follow from the length of the path; as
    /// configured if not.
    pub adaptation: Option<Adaptation>,
    /// Paths on which a multipath connection has subflows at a time, the best ones; the others
    /// stand by for when one of these is lost.
    pub subflows: usize,
}

/// Connects, and again if the connection fails; makes packets as time goes on; closes when all are
/// acknowledged.
#[derive(Debug)]
pub struct PacketSource {
    config: PacketSourceConfig,
    pace: Pace,
    /// Packets made before the node was last started.
    before: u64,
    id: Option<ConnId>,
    /// When the next packet is made.
    next: Option<Instant>,
    /// When each that was made was made.
    made: Vec<Instant>,
    /// Octets written to the connection that is open.
    written: u64,
    /// The first packet of that connection.
    base: u32,
    subflows: Subflows,
    /// Connections that failed.
    pub failures: u32,
    /// When all was acknowledged.
    pub finished: Option<Instant>,
}

/// How long a source waits before it connects anew.
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

    /// The same, with packets that follow upon each other in this way.
    #[must_use]
    pub fn spaced(mut self, spacing: Spacing) -> Self {
        self.pace.spacing = spacing;
        self
    }

    /// The same, with no packet later than that.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.pace.until = Some(until);
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

    /// What was made and not written goes to the connection, as far as there is room.
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

    /// Everything that was due to be made by now is.
    fn make(&mut self, now: Instant) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            self.made.push(at);
            self.next = self.pace.next(at, self.made.len());
            if self.next.is_none() {
                // A packet that would be too late is not made, and not waited for.
                self.config.packets = self.made.len() as u32;
            }
        }
    }
}

/// The octets of a packet.
pub(super) fn packet(number: u32, made: Instant, len: u16) -> Bytes {
    let mut octets = Vec::with_capacity(len.into());
    octets.extend_from_slice(&number.to_be_bytes());
    octets.extend_from_slice(&made.as_nanos().to_be_bytes());
    octets.extend((octets.len()..usize::from(len.max(LEAST_PACKET))).map(|i| i as u8 ^ number as u8));
    octets.into()
}

/// Its number and when it was made; `None` if these are not the octets of a packet.
pub(super) fn read_packet(octets: &[u8]) -> Option<(u32, Instant)> {
    let (number, rest) = octets.split_first_chunk()?;
    let (made, tail) = rest.split_first_chunk()?;
    let number = u32::from_be_bytes(*number);
    // Without a way out in between, so that many are looked at at once.
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
                    // What the peer has not acknowledged is told again; it knows by the numbers
                    // what it has.
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
    /// Its source.
    pub from: NodeId,
    /// Its number there.
    pub number: u32,
    /// When it was made.
    pub made: Instant,
    /// When its last octet could be read.
    pub at: Instant,
    /// Its octets.
    pub len: u32,
}

/// A connection, and the beginning of a packet that is not whole.
#[derive(Debug)]
struct Incoming {
    id: ConnId,
    peer: NodeId,
    rest: Vec<u8>,
}

/// Accepts connections to a port and reads packets from them.
#[derive(Debug)]
pub struct PacketSink {
    port: u16,
    payload: u16,
    transport: TransportConfig,
    open: Vec<Incoming>,
    /// What came, in order of arrival, each packet once.
    pub arrived: Vec<Arrived>,
    /// Packets that came again over a further connection.
    pub again: u64,
    /// Packets that came before one that is older, or whose octets are wrong: a fault.
    pub wrong: u64,
    next: std::collections::BTreeMap<NodeId, u32>,
}

impl PacketSink {
    /// A sink for packets of `payload` octets.
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
