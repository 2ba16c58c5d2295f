//! A bulk transfer over one TCP or Multipath TCP connection: [`BulkSender`] and [`Sink`].

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

/// Period in bytes of the data of a [`BulkSender`] without content.
const PATTERN_LEN: usize = 1 << 16;

/// A sender writes again when no more than this is unsent, or when a third of its buffer is free,
/// so that it writes large pieces. The second condition matters in a long recovery: nothing is
/// acknowledged, so no event asks for more data.
const LOW_WATER: u32 = 32 * 1024;

/// Static and not reference-counted, so that neither the start of a sender nor a handle to a piece
/// of it costs anything.
static PATTERN: [u8; PATTERN_LEN] = {
    let mut octets = [0; PATTERN_LEN];
    let mut i = 0;
    while i < PATTERN_LEN {
        octets[i] = (i ^ i >> 8) as u8;
        i += 1;
    }
    octets
};

/// The first bytes that a [`BulkSender`] without content sends; they repeat every 65,536 bytes.
pub fn pattern() -> Bytes {
    Bytes::from_static(&PATTERN)
}

/// Data that a [`BulkSender`] sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// This number of bytes of the repeated [`pattern`].
    Pattern(u64),
    /// Unlimited data of the [`pattern`].
    Endless,
    /// As much of the [`pattern`] as the connection accepts until this time.
    Until(Instant),
    /// These bytes.
    Data(Bytes),
}

impl Content {
    /// Number of bytes; `None` if it is not known in advance.
    pub fn octets(&self) -> Option<u64> {
        match self {
            Self::Pattern(n) => Some(*n),
            Self::Endless | Self::Until(_) => None,
            Self::Data(data) => Some(data.len() as u64),
        }
    }
}

/// Options of a transfer.
#[derive(Clone, Debug)]
pub struct BulkSenderConfig {
    /// Receiver.
    pub to: NodeId,
    /// Port of the receiver.
    pub port: u16,
    /// Data to send.
    pub content: Content,
    /// Transport of the connection.
    pub transport: TransportConfig,
    /// Use of the node's paths by a multipath connection.
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

    /// Number of segments of the transfer.
    fn segments(&self) -> u64 {
        let octets = self.content.octets();
        octets.map_or(ENDLESS, |octets| octets.div_ceil(self.paths.payload.max(1).into()).min(ENDLESS))
    }
}

/// Bytes of the DSS option with mapping and DATA_ACK (RFC 8684 section 3.3), padded to whole words.
fn dss_len(width: DsnWidth) -> u16 {
    match width {
        DsnWidth::Four => 20,
        DsnWidth::Eight => 28,
    }
}

/// Largest number of subflows of a connection, as in [`mptcp::Config`].
const MAX_SUBFLOWS: usize = 8;
/// Number of segments from which only the rate of a path matters.
const ENDLESS: u64 = 1 << 32;

/// Statistics of a multipath connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultipathInfo {
    /// Statistics of the connection.
    pub connection: mptcp::Info,
    /// Statistics of each subflow, in the order of opening, including those that are over.
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

/// State of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// Not begun, or in progress.
    #[default]
    Pending,
    /// All data is sent and acknowledged.
    Done,
    /// The connection ended before all data was acknowledged.
    Failed(CloseReason),
}

/// Connects at its start, sends its data and closes.
#[derive(Debug)]
pub struct BulkSender {
    config: BulkSenderConfig,
    id: Option<ConnId>,
    written: u64,
    /// Whether it has closed the connection at the end of [`Content::Until`].
    closed: bool,
    subflows: Subflows,
    /// State of the transfer.
    pub outcome: Outcome,
    /// Time of the connection attempt.
    pub started: Option<Instant>,
    /// Time at which the connection was open.
    pub opened: Option<Instant>,
    /// Time at which the last byte was acknowledged, or the connection ended.
    pub finished: Option<Instant>,
    /// The connection's statistics at its last event.
    pub info: Option<Info>,
    /// Statistics of a multipath connection and its subflows at its last event.
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

    /// Its connection, from the connection attempt until the end.
    /// [`World::info`](crate::world::World::info) has its statistics.
    pub fn connection(&self) -> Option<ConnId> {
        self.id
    }

    fn connect(&mut self, ctx: &mut Ctx<'_>) {
        let (to, transport) = ((self.config.to, self.config.port), self.config.transport);
        match self.subflows.connect(ctx, to, transport, self.config.segments()) {
            Some(Ok(id)) => self.id = Some(id),
            Some(Err(_)) => self.end(ctx, Outcome::Failed(CloseReason::Refused)),
            // There is no path yet; the application is notified when one is ready.
            None => {}
        }
    }

    /// Ends the transfer, successfully or not.
    fn end(&mut self, ctx: &mut Ctx<'_>, outcome: Outcome) {
        (self.outcome, self.finished) = (outcome, Some(ctx.now()));
        ctx.finished();
    }

    /// Number of bytes to deliver; `None` if the transfer is unlimited.
    pub fn octets(&self) -> Option<u64> {
        self.config.content.octets()
    }

    /// The connection's statistics at this moment, for a sender on `node`. The fields
    /// [`BulkSender::info`] and [`BulkSender::multipath`] date from the last event, which may be
    /// long ago in a stalled transfer; they are returned once the connection is over.
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
            // The node has started again after the end.
            ctx.finished();
            return;
        }
        // The node may have started again: the transfer begins anew.
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

/// Data that a [`Sink`] has received over one connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Connection.
    pub id: ConnId,
    /// Sender.
    pub peer: NodeId,
    /// Time at which the connection was accepted.
    pub accepted: Instant,
    /// Number of bytes received in order.
    pub bytes: u64,
    /// Time at which the last byte was received.
    pub last: Instant,
    /// Time at which the sender closed.
    pub finished: Option<Instant>,
    /// The data, if the sink keeps it.
    pub kept: Vec<u8>,
}

/// Whether a [`Sink`] keeps the data that it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// The sink only counts.
    Nothing,
    /// The sink keeps every byte.
    Everything,
}

/// Accepts connections on a port, reads all data, and closes when the peer does.
#[derive(Debug)]
pub struct Sink {
    port: u16,
    transport: TransportConfig,
    keep: Keep,
    until: Instant,
    /// One entry for each accepted connection, in order.
    pub transfers: Vec<Transfer>,
}

impl Sink {
    /// A sink that counts.
    pub fn new(port: u16, transport: impl Into<TransportConfig>) -> Self {
        let transport = transport.into();
        Self { port, transport, keep: Keep::Nothing, until: Instant::FAR_FUTURE, transfers: Vec::new() }
    }

    /// A sink that counts, and stops reading at `until`.
    pub fn reading_until(until: Instant, port: u16, transport: impl Into<TransportConfig>) -> Self {
        Self { until, ..Self::new(port, transport) }
    }

    /// A sink that keeps all data.
    pub fn keeping(port: u16, transport: impl Into<TransportConfig>) -> Self {
        Self { keep: Keep::Everything, ..Self::new(port, transport) }
    }

    /// Number of bytes received over all connections.
    pub fn bytes(&self) -> u64 {
        self.transfers.iter().map(|t| t.bytes).sum()
    }

    fn drain(&mut self, ctx: &mut Ctx<'_>, id: ConnId) {
        if ctx.now() >= self.until {
            return;
        }
        // Searched from the end: the newest connection is the most likely one.
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
