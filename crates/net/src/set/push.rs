//! The sender: delivers one file to one node.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_core::set::{
    File, Moments, Outcome, Sender, SenderConfig, SessionReport, StreamId, StripingDecision, TransferId,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::SenderKeys;
use bytes::Bytes;

use super::KnownGateway;
use super::driver::{Driver, LineError};
use super::options::SocketOptions;
use super::pace::outflow::Outflow;
use super::security::Security;
use crate::clock::Clock;

/// Limit of the time to close connections after the outcome is known.
const FAREWELL: Duration = Duration::from_secs(2);

/// Number of chunks that 50 Mbit/s carry in two to three milliseconds, the time that a process may
/// wait to be scheduled.
const SPARE_CHUNKS: u64 = 12;

/// Configuration of a transfer.
#[derive(Clone, Debug)]
pub struct PushConfig {
    /// Address of the node.
    pub node: SocketAddr,
    /// Gateways to use; if empty, those of the node's table.
    pub via: Vec<KnownGateway>,
    /// The sender's key and the node's. `None`: no encryption.
    pub keys: Option<Arc<SenderKeys>>,
    /// Random identifier of this transfer.
    pub transfer: TransferId,
    /// The signer's manifest, for nodes that require one: see [`Sender::bring`].
    pub manifest: Option<Bytes>,
    /// Rate limit to all gateways together in bits per second, counted in bytes of sessions; `None`
    /// is unlimited.
    pub rate: Option<u64>,
    /// Rate limit to each gateway in bits per second.
    pub rate_gateway: Option<u64>,
    /// Options of the session manager, including the identity of the file.
    pub set: SenderConfig,
    /// Options of the sockets.
    pub sockets: SocketOptions,
}

impl PushConfig {
    /// The default options.
    pub fn new(node: SocketAddr, transfer: TransferId) -> Self {
        Self {
            node,
            via: Vec::new(),
            keys: None,
            transfer,
            manifest: None,
            rate: None,
            rate_gateway: None,
            set: SenderConfig { spare_chunks: SPARE_CHUNKS, ..SenderConfig::default() },
            sockets: SocketOptions { idle: None, ..SocketOptions::default() },
        }
    }
}

/// The content to send.
#[derive(Debug)]
pub enum PushFile {
    /// Bytes in memory.
    Octets(Bytes),
    /// The first bytes of a file, up to this length. They are read when they are sent, and again
    /// when they are retransmitted.
    OnDisk(fs::File, u64),
}

impl From<Bytes> for PushFile {
    fn from(octets: Bytes) -> Self {
        Self::Octets(octets)
    }
}

impl PushFile {
    /// Duplicates the file for another push.
    ///
    /// # Errors
    /// The host has no free descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Octets(octets) => Self::Octets(octets.clone()),
            Self::OnDisk(file, length) => Self::OnDisk(file.try_clone()?, *length),
        })
    }

    fn split(self) -> (File, Option<fs::File>) {
        match self {
            Self::Octets(octets) => (octets.into(), None),
            Self::OnDisk(file, length) => (File::Elsewhere(length), Some(file)),
        }
    }
}

/// One transfer.
pub struct Push {
    driver: Driver<Sender>,
}

impl Push {
    /// Creates a transfer and starts its clock. The transfer begins with the first [`Push::step`].
    pub fn new(config: PushConfig, file: impl Into<PushFile>) -> Self {
        let (file, on_disk) = file.into().split();
        let clock = Clock::start();
        let started = clock.now();
        let mut sender = Sender::new(started, config.set, config.node, config.transfer, file);
        sender.go_through((1..).zip(&config.via).map(|(id, gateway)| gateway.row(id)).collect());
        sender.bring(config.manifest);
        let security = config.keys.map_or(Security::None, Security::Sender);
        let outflow = Outflow::new(started, config.rate, config.rate_gateway);
        let driver = Driver::new(clock, sender, config.sockets);
        let driver = driver.secured(security).bounded(outflow).reading(on_disk);
        Self { driver }
    }

    /// Runs until the next event. Returns the outcome once it is known; the connections then still
    /// exist: see [`Push::close`].
    pub async fn step(&mut self) -> Option<Outcome> {
        self.pump();
        if self.outcome().is_none() {
            self.driver.next().await;
            self.pump();
        }
        self.outcome()
    }

    /// Abandons the transfer permanently, even one that has failed. [`Push::close`] then tells the
    /// node, which becomes free for others. Call this before [`Push::close`], unless the same
    /// transfer is retried soon. It does not affect a delivered transfer.
    pub fn cancel(&mut self) {
        self.driver.machine.give_up(self.driver.now());
        self.pump();
    }

    /// Closes all connections within two seconds, so that the last messages can arrive.
    pub async fn close(&mut self) {
        self.pump();
        let end = async {
            while !self.driver.is_idle() {
                self.driver.next().await;
                let _ = self.driver.pump();
            }
        };
        let _ = tokio::time::timeout(std::time::Duration::from_nanos(FAREWELL.as_nanos()), end).await;
        self.driver.abort_all();
    }

    /// The outcome, once it is known.
    pub fn outcome(&self) -> Option<Outcome> {
        self.driver.machine.outcome()
    }

    /// Number of bytes that the node has confirmed as delivered in order.
    pub fn delivered(&self) -> u64 {
        self.driver.machine.delivered()
    }

    /// Number of bytes that the node already had.
    pub fn resumed_from(&self) -> u64 {
        self.driver.machine.resumed_from()
    }

    /// Time from the start until the node had the whole file; `None` if it is not complete.
    pub fn latency(&self) -> Option<Duration> {
        self.since_start(self.moments().delivered)
    }

    /// Time from the start until the first session was open, or the file was delivered without a
    /// session; `None` if neither happened.
    pub fn establishment(&self) -> Option<Duration> {
        self.since_start(self.moments().established)
    }

    /// The moments of the transfer, of which reports make phases.
    pub fn moments(&self) -> &Moments {
        self.driver.machine.moments()
    }

    /// What adaptive striping has decided so far: see [`Sender::decisions`].
    pub fn decisions(&self) -> &[StripingDecision] {
        self.driver.machine.decisions()
    }

    fn since_start(&self, moment: Option<Instant>) -> Option<Duration> {
        moment.map(|at| at.saturating_since(self.moments().started))
    }

    /// The sessions, in the order in which they were opened.
    pub fn sessions(&self) -> impl Iterator<Item = SessionReport> + '_ {
        self.driver.machine.sessions()
    }

    /// Number of segments that TCP has retransmitted to a session's gateway.
    pub fn retransmissions(&self, session: StreamId) -> u32 {
        self.driver.retransmissions(session)
    }

    /// The error if the file could not be read to its end, which aborted the transfer.
    pub fn unread(&self) -> Option<&io::Error> {
        self.driver.unread.as_ref()
    }

    /// Why connections failed: the last error of each peer, in order of occurrence.
    pub fn errors(&self) -> &[LineError] {
        &self.driver.errors
    }

    fn pump(&mut self) {
        let octets = self.driver.pump();
        debug_assert!(octets.is_none(), "a sender delivers nothing here");
        if self.driver.unread.is_some() && self.outcome().is_none() {
            // Give up first; otherwise the machine would try other paths for the reset streams.
            let now = self.driver.now();
            self.driver.machine.give_up(now);
            self.driver.tell_torn();
            let _ = self.driver.pump();
        }
    }
}
