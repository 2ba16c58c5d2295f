//! A bulk transfer over one connection, TCP or Multipath TCP: [`BulkSender`] and [`Sink`].

use anabranch_core::mptcp::{self, SubflowId, SubflowInfo};
use anabranch_core::tcp::{CloseReason, DsnWidth, Info};
use anabranch_core::time::Instant;
use bytes::Bytes;

use super::subflows::{Interfaces, PathUse, Subflows};
use crate::app::{App, Ctx};
use crate::packet::NodeId;
use crate::stream::{ConnId, StreamEvent};
use crate::transport::TransportConfig;
use crate::world::World;

/// Octets that repeat in what a [`BulkSender`] without data sends.
const PATTERN_LEN: usize = 1 << 16;

/// A sender writes again when no more than this is unsent, or when a third of its buffer is free,
/// so that it writes large pieces. The second matters in a long recovery, in which nothing is
/// acknowledged and so no event asks for more.
const LOW_WATER: u32 = 32 * 1024;

/// One for all runs, and never counted: neither a sender's start nor a handle to a piece of it
/// costs anything.
static PATTERN: [u8; PATTERN_LEN] = {
    let mut octets = [0; PATTERN_LEN];
    let mut i = 0;
    while i < PATTERN_LEN {
        octets[i] = (i ^ i >> 8) as u8;
        i += 1;
    }
    octets
};

/// The first octets that a [`BulkSender`] without data sends; they repeat every 65,536.
pub fn pattern() -> Bytes {
    Bytes::from_static(&PATTERN)
}

/// What a [`BulkSender`] sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// That many octets of [`pattern`], over and over.
    Pattern(u64),
    /// [`pattern`], without end.
    Endless,
    /// [`pattern`], as much as the connection takes by then.
    Until(Instant),
    /// These octets.
    Data(Bytes),
}

impl Content {
    /// Number of octets; `None` if that is not known before.
    pub fn octets(&self) -> Option<u64> {
        match self {
            Self::Pattern(n) => Some(*n),
            Self::Endless | Self::Until(_) => None,
            Self::Data(data) => Some(data.len() as u64),
        }
    }
}

/// What is sent where.
#[derive(Clone, Debug)]
pub struct BulkSenderConfig {
    /// The receiver.
    pub to: NodeId,
    /// Its port.
    pub port: u16,
    /// What to send.
    pub content: Content,
    /// How the connection behaves.
    pub transport: TransportConfig,
    /// Which of the node's paths a multipath connection uses, and how.
    pub paths: PathUse,
}

impl BulkSenderConfig {
    /// A transfer to a port of a node. A multipath connection has a subflow on each of the node's
    /// paths, at most 8.
    pub fn new(to: NodeId, port: u16, content: Content, transport: impl Into<TransportConfig>) -> Self {
        let transport = transport.into();
        let payload = match transport {
            TransportConfig::Tcp(config) => config.mss,
            TransportConfig::Multipath(config) => {
                config.tcp.mss.saturating_sub(dss_len(config.dsn_width)).max(1)
            }
        };
        let interfaces = Interfaces::default();
        let paths = PathUse { subflows: MAX_SUBFLOWS, payload, interfaces, adaptation: None };
        Self { to, port, content, transport, paths }
    }

    /// Segments that it takes.
    fn segments(&self) -> u64 {
        let octets = self.content.octets();
        octets.map_or(ENDLESS, |octets| octets.div_ceil(self.paths.payload.max(1).into()).min(ENDLESS))
    }
}

/// Octets of the DSS option with mapping and DATA_ACK (RFC 8684 section 3.3), whole words.
fn dss_len(width: DsnWidth) -> u16 {
    match width {
        DsnWidth::Four => 20,
        DsnWidth::Eight => 28,
    }
}

/// Subflows of a connection at a time, as [`mptcp::Config`] has it.
const MAX_SUBFLOWS: usize = 8;
/// Segments after which only the pace of a path matters.
const ENDLESS: u64 = 1 << 32;

/// The figures of a multipath connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultipathInfo {
    /// Of the connection.
    pub connection: mptcp::Info,
    /// Of each subflow, in the order of opening, those that are over included.
    pub subflows: Vec<SubflowInfo>,
}

impl MultipathInfo {
    fn of(connection: &mptcp::Connection) -> Self {
        let mut info = Self { connection: connection.info(), subflows: Vec::new() };
        info.update(connection);
        info
    }

    fn update(&mut self, connection: &mptcp::Connection) {
        self.connection = connection.info();
        self.subflows.clear();
        self.subflows.extend((0..).map_while(|n| connection.subflow_info(SubflowId(n))));
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// Not begun, or under way.
    #[default]
    Pending,
    /// All is sent and acknowledged.
    Done,
    /// The connection ended before.
    Failed(CloseReason),
}

/// Connects at its start, sends a number of octets, closes.
#[derive(Debug)]
pub struct BulkSender {
    config: BulkSenderConfig,
    id: Option<ConnId>,
    written: u64,
    /// It has closed the connection at the end of [`Content::Until`].
    closed: bool,
    subflows: Subflows,
    /// What has become of it.
    pub outcome: Outcome,
    /// When it began to connect.
    pub started: Option<Instant>,
    /// When the connection was open.
    pub opened: Option<Instant>,
    /// When the last octet was acknowledged.
    pub finished: Option<Instant>,
    /// The connection's figures when it was last heard of.
    pub info: Option<Info>,
    /// The same of a multipath connection and its subflows.
    pub multipath: Option<MultipathInfo>,
}

impl BulkSender {
    /// A sender that begins when it is started.
    pub fn new(config: BulkSenderConfig) -> Self {
        let subflows = Subflows::new(config.paths);
        Self {
            config,
            id: None,
            written: 0,
            closed: false,
            subflows,
            outcome: Outcome::Pending,
            started: None,
            opened: None,
            finished: None,
            info: None,
            multipath: None,
        }
    }

    /// Its connection, from when it calls until that is over.
    /// [`World::info`](crate::world::World::info) has its figures.
    pub fn connection(&self) -> Option<ConnId> {
        self.id
    }

    fn connect(&mut self, ctx: &mut Ctx<'_>) {
        let (to, transport) = ((self.config.to, self.config.port), self.config.transport);
        match self.subflows.connect(ctx, to, transport, self.config.segments()) {
            Some(Ok(id)) => self.id = Some(id),
            Some(Err(_)) => self.end(ctx, Outcome::Failed(CloseReason::Refused)),
            // A path will come, and be heard of.
            None => {}
        }
    }

    /// All is delivered, or nothing more will be.
    fn end(&mut self, ctx: &mut Ctx<'_>, outcome: Outcome) {
        (self.outcome, self.finished) = (outcome, Some(ctx.now()));
        ctx.finished();
    }

    /// Number of bytes to deliver; `None` if the transfer has no end.
    pub fn octets(&self) -> Option<u64> {
        self.config.content.octets()
    }

    /// The connection's figures at this moment, with the sender on `node`. The fields
    /// [`BulkSender::info`] and [`BulkSender::multipath`] are as old as the last event, which may
    /// be long ago in a transfer that stalls. They are returned once the connection is over.
    pub fn current(&self, world: &World, node: NodeId) -> (Option<Info>, Option<MultipathInfo>) {
        let live = self.id.and_then(|id| Some((id, world.info(node, id)?)));
        let Some((id, info)) = live else { return (self.info, self.multipath.clone()) };
        (Some(info), world.multipath(node, id).map(MultipathInfo::of))
    }

    fn look(&mut self, ctx: &Ctx<'_>, id: ConnId) {
        self.info = ctx.info(id);
        let Some(connection) = ctx.multipath(id) else { return };
        match &mut self.multipath {
            Some(multipath) => multipath.update(connection),
            none => *none = Some(MultipathInfo::of(connection)),
        }
    }

    fn fill(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        let total = self.config.content.octets().unwrap_or(u64::MAX);
        while self.written < total {
            let mut data = match &self.config.content {
                Content::Data(data) => data.slice(self.written as usize..),
                Content::Pattern(_) | Content::Endless | Content::Until(_) => {
                    let at = self.written as usize % PATTERN_LEN;
                    let left = usize::try_from(total - self.written).unwrap_or(usize::MAX);
                    Bytes::from_static(&PATTERN[at..at + left.min(PATTERN_LEN - at)])
                }
            };
            match ctx.write(id, &mut data) {
                Ok(0) | Err(_) => return,
                Ok(n) => self.written += n as u64,
            }
        }
        ctx.close(id);
    }
}

impl App for BulkSender {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if matches!(self.config.content, Content::Until(end) if end <= ctx.now()) {
            // The node has recovered after the end.
            ctx.finished();
            return;
        }
        *self = Self::new(self.config.clone());
        self.started = Some(ctx.now());
        if let Content::Until(end) = self.config.content {
            ctx.set_timer(Some(end));
        }
        self.connect(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(id) = self.id {
            self.closed = true;
            ctx.close(id);
        }
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        match event {
            StreamEvent::Opened => {
                self.opened = Some(ctx.now());
                self.subflows.follow_paths(ctx, id);
                self.fill(ctx, id);
            }
            StreamEvent::Writable => {
                self.look(ctx, id);
                self.subflows.on_writable(ctx, id);
                if !self.closed && self.config.content.octets().is_none_or(|total| self.written < total) {
                    let wants = |info: Info| {
                        info.unsent <= LOW_WATER || info.buffered <= info.send_buffer - info.send_buffer / 3
                    };
                    if self.info.is_some_and(wants) {
                        self.fill(ctx, id);
                    }
                } else {
                    let acked = self.info.map_or(0, |info| info.bytes_acked);
                    if acked >= self.written && self.outcome == Outcome::Pending {
                        self.end(ctx, Outcome::Done);
                    }
                }
            }
            StreamEvent::Readable => while ctx.read(id, usize::MAX).is_some() {},
            StreamEvent::PeerClosed | StreamEvent::Accepted { .. } => {}
            StreamEvent::Closed(reason) => {
                self.look(ctx, id);
                self.id = None;
                if self.outcome == Outcome::Pending {
                    let done = reason == CloseReason::Graceful;
                    self.end(ctx, if done { Outcome::Done } else { Outcome::Failed(reason) });
                }
            }
        }
    }

    fn on_paths(&mut self, ctx: &mut Ctx<'_>) {
        match self.id {
            Some(id) => self.subflows.follow_paths(ctx, id),
            None if self.started.is_some() && self.outcome == Outcome::Pending => self.connect(ctx),
            None => {}
        }
    }
}

/// What a [`Sink`] has received over one connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The connection.
    pub id: ConnId,
    /// The sender.
    pub peer: NodeId,
    /// When the connection was accepted.
    pub accepted: Instant,
    /// Octets received in order.
    pub bytes: u64,
    /// When the last octet came.
    pub last: Instant,
    /// When the sender finished.
    pub finished: Option<Instant>,
    /// What came, if the sink keeps it.
    pub kept: Vec<u8>,
}

/// Whether a [`Sink`] keeps what it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// It only counts.
    Nothing,
    /// It keeps every octet.
    Everything,
}

/// Accepts connections to a port, reads all that comes, and closes when the peer does.
#[derive(Debug)]
pub struct Sink {
    port: u16,
    transport: TransportConfig,
    keep: Keep,
    until: Instant,
    /// One for every connection accepted, in order.
    pub transfers: Vec<Transfer>,
}

impl Sink {
    /// A sink that counts.
    pub fn new(port: u16, transport: impl Into<TransportConfig>) -> Self {
        let transport = transport.into();
        Self { port, transport, keep: Keep::Nothing, until: Instant::FAR_FUTURE, transfers: Vec::new() }
    }

    /// A sink that counts, and reads nothing from `until` on.
    pub fn reading_until(until: Instant, port: u16, transport: impl Into<TransportConfig>) -> Self {
        Self { until, ..Self::new(port, transport) }
    }

    /// A sink that keeps all it reads.
    pub fn keeping(port: u16, transport: impl Into<TransportConfig>) -> Self {
        Self { keep: Keep::Everything, ..Self::new(port, transport) }
    }

    /// Octets received over all connections.
    pub fn bytes(&self) -> u64 {
        self.transfers.iter().map(|t| t.bytes).sum()
    }

    fn drain(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        if ctx.now() >= self.until {
            return;
        }
        // The newest connection is the likely one.
        let Some(transfer) = self.transfers.iter_mut().rev().find(|t| t.id == id) else { return };
        while let Some(data) = ctx.read(id, usize::MAX) {
            transfer.bytes += data.len() as u64;
            transfer.last = ctx.now();
            if self.keep == Keep::Everything {
                transfer.kept.extend_from_slice(&data);
            }
        }
    }
}

impl App for Sink {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.listen(self.port, self.transport).is_err() {
            ctx.trace(format_args!("port {} is taken: this sink hears nothing", self.port));
        }
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        match event {
            StreamEvent::Accepted { peer, .. } => {
                let now = ctx.now();
                self.transfers.push(Transfer {
                    id,
                    peer,
                    accepted: now,
                    bytes: 0,
                    last: now,
                    finished: None,
                    kept: Vec::new(),
                });
            }
            StreamEvent::Readable | StreamEvent::Closed(_) => self.drain(ctx, id),
            StreamEvent::PeerClosed => {
                self.drain(ctx, id);
                if let Some(transfer) = self.transfers.iter_mut().rev().find(|t| t.id == id) {
                    transfer.finished = Some(ctx.now());
                }
                ctx.close(id);
            }
            StreamEvent::Opened | StreamEvent::Writable => {}
        }
    }
}
