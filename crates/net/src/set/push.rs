//! The sender: one file to one node.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_core::set::{File, Outcome, Sender, SenderConfig, SessionReport, StreamId, TransferId};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::SenderKeys;
use bytes::Bytes;

use super::KnownGateway;
use super::driver::{Driver, LineError};
use super::options::SocketOptions;
use super::pace::outflow::Outflow;
use super::security::Security;
use crate::clock::Clock;

/// How long the end of connections may take once the outcome is known.
const FAREWELL: Duration = Duration::from_secs(2);

/// In two or three milliseconds, for which a process may well have to wait for its turn, 50 Mbit/s
/// carry so many.
const SPARE_CHUNKS: u64 = 12;

/// A transfer to make.
#[derive(Clone, Debug)]
pub struct PushConfig {
    /// The node.
    pub node: SocketAddr,
    /// Gateways to go through; those of the node's table if there are none.
    pub via: Vec<KnownGateway>,
    /// Who we are and how we know the node. `None`: nothing is encrypted.
    pub keys: Option<Arc<SenderKeys>>,
    /// Drawn at random: it tells this transfer from all others.
    pub transfer: TransferId,
    /// What a signer says of the file, for nodes that ask for it: see [`Sender::bring`].
    pub manifest: Option<Bytes>,
    /// Bits per second that are handed to gateways in all, in bytes of sessions; not bounded if
    /// `None`.
    pub rate: Option<u64>,
    /// Bits per second that are handed to each gateway.
    pub rate_gateway: Option<u64>,
    /// Options of the session manager, among them which file it is.
    pub set: SenderConfig,
    /// Options of its sockets.
    pub sockets: SocketOptions,
}

impl PushConfig {
    /// The usual options.
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

/// What a push sends.
#[derive(Debug)]
pub enum PushFile {
    /// Bytes in memory.
    Octets(Bytes),
    /// The first so many bytes of a file, which are read when they are sent, and again when they
    /// are sent again.
    OnDisk(fs::File, u64),
}

impl From<Bytes> for PushFile {
    fn from(octets: Bytes) -> Self {
        Self::Octets(octets)
    }
}

impl PushFile {
    /// The same file, for another push of it.
    ///
    /// # Errors
    /// The host has no descriptor left.
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
    started: Instant,
    established: Option<Instant>,
    finished: Option<Instant>,
}

impl Push {
    /// Begins when it is run; its clock begins now.
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
        Self { driver, started, established: None, finished: None }
    }

    /// Goes on until something has happened; the outcome once that is known. The connections are
    /// still there then: see [`Push::close`].
    pub async fn step(&mut self) -> Option<Outcome> {
        self.pump();
        if self.outcome().is_none() {
            self.driver.next().await;
            self.pump();
        }
        self.outcome()
    }

    /// Gives the transfer up for good, also one that has failed: [`Push::close`] tells the node,
    /// which is free then. To be called before [`Push::close`], unless the same transfer is tried
    /// again soon. Nothing happens to a transfer that was delivered.
    pub fn cancel(&mut self) {
        self.driver.machine.give_up(self.driver.now());
        self.pump();
    }

    /// Ends what is still open, for two seconds at most: what was said last shall arrive.
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

    /// How the transfer ended, once it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.driver.machine.outcome()
    }

    /// Bytes that the node is known to have delivered in order.
    pub fn delivered(&self) -> u64 {
        self.driver.machine.delivered()
    }

    /// Bytes that the node had already.
    pub fn resumed_from(&self) -> u64 {
        self.driver.machine.resumed_from()
    }

    /// From the beginning until the node had everything; `None` if it never had.
    pub fn latency(&self) -> Option<Duration> {
        let delivered = self.outcome() == Some(Outcome::Delivered);
        self.finished.filter(|_| delivered).map(|at| at.saturating_since(self.started))
    }

    /// From the beginning until the first session was open, or the file was delivered without one;
    /// `None` if neither happened.
    pub fn establishment(&self) -> Option<Duration> {
        self.established.map(|at| at.saturating_since(self.started))
    }

    /// The sessions, in the order of calls.
    pub fn sessions(&self) -> impl Iterator<Item = SessionReport> + '_ {
        self.driver.machine.sessions()
    }

    /// Segments that TCP has sent again to a session's gateway.
    pub fn retransmissions(&self, session: StreamId) -> u32 {
        self.driver.retransmissions(session)
    }

    /// The file could not be read to its end: the transfer was abandoned.
    pub fn unread(&self) -> Option<&io::Error> {
        self.driver.unread.as_ref()
    }

    /// Why connections failed: the last reason of each peer, in the order in which they happened.
    pub fn errors(&self) -> &[LineError] {
        &self.driver.errors
    }

    fn pump(&mut self) {
        let octets = self.driver.pump();
        debug_assert!(octets.is_none(), "a sender delivers nothing here");
        let now = self.driver.now();
        if self.driver.unread.is_some() && self.outcome().is_none() {
            self.driver.machine.give_up(now);
            self.driver.tell_torn();
            let _ = self.driver.pump();
        }
        if self.driver.machine.is_established() {
            self.established.get_or_insert(now);
        }
        if self.outcome().is_some() {
            self.finished.get_or_insert(now);
        }
    }
}
