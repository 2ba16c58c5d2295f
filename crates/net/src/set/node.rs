//! The node: receives files, one at a time, into a sink.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_core::set::{
    FileIdentity, Gateway, Grant, MAX_MANIFEST, Receiver, ReceiverConfig, RefuseReason, Request, TransferId,
};
use anabranch_core::time::Duration;
use anabranch_secure::NodeKeys;
use bytes::Bytes;
use tokio::net::TcpListener;

use super::driver::Driver;
use super::options::SocketOptions;
use super::security::{RefusedCounters, Security};
use super::{KnownGateway, listen};
use crate::clock::Clock;

/// What a sender would send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Which transfer.
    pub transfer: TransferId,
    /// Octets of the file.
    pub length: u64,
    /// Which file, if the sender has said so.
    pub file: Option<FileIdentity>,
    /// What a signer says of the file, unread.
    pub manifest: Option<Bytes>,
}

/// What a sink says to an [`Offer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The octets from there on are wanted; those before it are here.
    From(u64),
    /// It is not wanted, and the node has so many octets of what is unfinished.
    Refuse(RefuseReason, u64),
}

/// An error of a sink, with what the sender is told of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What the sender is told.
    pub reason: RefuseReason,
    /// What happened, for the node's owner.
    pub message: String,
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::other(refusal)
    }
}

/// Where a node's octets go. While a method's future is pending, nothing is read from the network
/// and nothing acknowledged: the sender waits.
pub trait Sink {
    /// A transfer would begin. Nothing else is under way: what was unfinished was abandoned.
    fn begin(&mut self, offer: &Offer) -> impl Future<Output = io::Result<Verdict>> + Send;
    /// Its next octets. They are acknowledged once this is done.
    fn write(&mut self, octets: Bytes) -> impl Future<Output = io::Result<()>> + Send;
    /// That was all. The sender is told so once this is done. An error of kind
    /// [`io::ErrorKind::InvalidData`] says that the octets are not those of the file that was
    /// announced; a [`Refusal`] within it has the reason that the sender is told.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// The rest of it will not come for now, or something has failed.
    fn abandon(&mut self);
}

/// Options of a [`Node`].
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where senders and gateways call.
    pub listen: SocketAddr,
    /// Whom it takes files from, by their keys. `None`: from anybody, and nothing is encrypted.
    pub who: Option<Arc<NodeKeys>>,
    /// Gateways to announce, at most [`anabranch_core::set::MAX_GATEWAYS`].
    pub gateways: Vec<KnownGateway>,
    /// Octets that may wait out of order. What paths of very different delays carry meanwhile must
    /// fit: the sum of their rates times the longest delay.
    pub buffer: u32,
    /// Connections at once.
    pub connections: usize,
    /// A connection on which nothing moves for so long is reset, and a transfer without news makes
    /// way for another.
    pub idle: Duration,
    /// Whoever has called is reset if it has not shown who it is by then.
    pub greeting_timeout: Duration,
}

impl NodeConfig {
    /// A node with a buffer of 4 MiB, at `listen`, that announces no gateway yet.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            who: None,
            gateways: Vec::new(),
            buffer: 4 << 20,
            connections: 64,
            idle: Duration::from_secs(60),
            greeting_timeout: Duration::from_secs(10),
        }
    }

    /// The gateway table.
    fn rows(&self) -> Vec<Gateway> {
        (1..).zip(&self.gateways).map(|(id, gateway)| gateway.row(id)).collect()
    }

    fn machine(&self) -> Receiver {
        Receiver::new(ReceiverConfig {
            buffer: self.buffer,
            first_window: self.buffer.min(FIRST_WINDOW),
            gateways: self.rows(),
            ack_delay: ACK_DELAY,
            idle: self.idle,
            grant: Grant::Ask,
            manifest: MAX_MANIFEST,
            ..ReceiverConfig::default()
        })
    }
}

/// Octets that a connection may send before it has said what it is for.
const FIRST_WINDOW: u32 = 16 << 10;
/// For so long a chunk may wait for its acknowledgement.
const ACK_DELAY: Duration = Duration::from_millis(10);

/// What a node has to tell.
#[derive(Debug)]
pub enum NodeEvent {
    /// A transfer has begun.
    Began {
        /// Which.
        transfer: TransferId,
        /// Its octets before this one were here already.
        from: u64,
    },
    /// The sink does not want a transfer.
    Declined {
        /// Which.
        transfer: TransferId,
        /// What its sender was told.
        reason: RefuseReason,
        /// Octets of what is unfinished here.
        delivered: u64,
    },
    /// A file is there, and the sink has finished with it.
    Finished {
        /// Which.
        transfer: TransferId,
        /// Its octets.
        octets: u64,
    },
    /// The rest of a file will not come: its sender has given it up, or another transfer has taken
    /// its place.
    Abandoned {
        /// Which.
        transfer: TransferId,
        /// Octets that had come in order.
        octets: u64,
    },
    /// The sink has failed. The sender is told so, and nothing that the sink has not taken is
    /// acknowledged.
    Failed {
        /// Which transfer.
        transfer: TransferId,
        /// Why.
        error: io::Error,
    },
}

/// The transfer that the sink knows.
#[derive(Clone, Copy, Debug)]
struct Current {
    transfer: TransferId,
    taken: u64,
    finished: bool,
}

/// A node that listens.
pub struct Node<S> {
    config: NodeConfig,
    driver: Driver<Receiver>,
    address: SocketAddr,
    sink: S,
    current: Option<Current>,
    /// Octets that the sink was given.
    received: u64,
    events: Vec<NodeEvent>,
    announced: Announced,
}

/// The gateways that a node announces. A clone changes them while the node runs.
#[derive(Clone, Debug, Default)]
pub struct Announced(Arc<Mutex<Option<Vec<KnownGateway>>>>);

impl Announced {
    /// The node announces these with its next answer.
    pub fn set(&self, gateways: Vec<KnownGateway>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateways);
    }

    fn take(&self) -> Option<Vec<KnownGateway>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<S: Sink> Node<S> {
    /// Listens from now on; nobody is served before [`Node::next`]. To be called on a runtime.
    ///
    /// # Errors
    /// It cannot listen there.
    pub fn bind(config: NodeConfig, sink: S) -> io::Result<Self> {
        // The window of one connection may be as large as the buffer of all.
        let listener: TcpListener = listen(config.listen, config.buffer)?;
        let address = listener.local_addr()?;
        let sockets = SocketOptions {
            receive_buffer: config.buffer,
            idle: Some(config.idle),
            greeting_timeout: config.greeting_timeout,
            queue: QUEUE,
            connections: config.connections,
            ..SocketOptions::default()
        };
        let security = config.who.clone().map_or(Security::None, Security::Node);
        let driver = Driver::new(Clock::start(), config.machine(), sockets);
        let driver = driver.listening(listener).secured(security);
        Ok(Self {
            config,
            driver,
            address,
            sink,
            current: None,
            received: 0,
            events: Vec::new(),
            announced: Announced::default(),
        })
    }

    /// Changes which gateways it announces.
    pub fn announced(&self) -> Announced {
        self.announced.clone()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the octets go.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Nobody is connected.
    pub fn is_idle(&self) -> bool {
        self.driver.is_idle()
    }

    /// What was refused so far, for want of a key, because somebody has meddled with it, or for
    /// want of room.
    pub fn refused(&self) -> RefusedCounters {
        self.driver.refused
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.driver.connections()
    }

    /// Octets of files that arrived in order since the node was bound.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The kernel refused to hand out the last connection: too many descriptors are open, say.
    pub fn is_deaf(&self) -> bool {
        self.driver.is_deaf()
    }

    /// Octets of the present transfer that the sink has; 0 between transfers.
    pub fn taken(&self) -> u64 {
        self.current.filter(|current| !current.finished).map_or(0, |current| current.taken)
    }

    /// Serves until there is something to tell, or for one event of a socket.
    pub async fn next(&mut self) -> Option<NodeEvent> {
        if self.events.is_empty() {
            self.driver.next().await;
            while let Err(error) = self.pump().await {
                self.fail(error);
            }
            self.events.reverse();
        }
        self.events.pop()
    }

    /// Carries out what the machine wants. Nothing is said to the sender before the sink has done
    /// what it speaks of.
    async fn pump(&mut self) -> io::Result<()> {
        if let Some(gateways) = self.announced.take() {
            self.config.gateways = gateways;
            self.driver.machine.set_gateways(self.config.rows());
        }
        loop {
            self.finish().await?;
            let Some(effect) = self.driver.poll_effect() else {
                if self.settle().await? || self.driver.flush() {
                    continue;
                }
                return Ok(());
            };
            if let Some(octets) = self.driver.act(effect) {
                let n = octets.len() as u64;
                self.sink.write(octets).await?;
                self.received += n;
                if let Some(current) = &mut self.current {
                    current.taken += n;
                }
            }
        }
    }

    /// Tells the sink that it has everything.
    async fn finish(&mut self) -> io::Result<()> {
        let Some(current) = self.current.as_mut().filter(|current| !current.finished) else { return Ok(()) };
        let all = (current.transfer, current.taken);
        if self.driver.machine.is_complete() && self.driver.machine.delivered() == Some(all) {
            self.sink.finish().await?;
            current.finished = true;
            self.events.push(NodeEvent::Finished { transfer: current.transfer, octets: current.taken });
        }
        Ok(())
    }

    /// Tells the sink that a transfer is over, and asks it about one that would begin, once it has
    /// what was delivered until then; false if there was none.
    async fn settle(&mut self) -> io::Result<bool> {
        let under_way = self.driver.machine.delivered().map(|(transfer, _)| transfer);
        if let Some(current) = self.current.take_if(|current| Some(current.transfer) != under_way)
            && !current.finished
        {
            self.sink.abandon();
            let Current { transfer, taken: octets, .. } = current;
            self.events.push(NodeEvent::Abandoned { transfer, octets });
        }
        let Some(request) = self.driver.machine.asked().cloned() else { return Ok(false) };
        let Request { transfer, length, file, manifest, .. } = request;
        let offer = Offer { transfer, length, file, manifest };
        let before = self.current.replace(Current { transfer, taken: 0, finished: false });
        let verdict = self.sink.begin(&offer).await?;
        let now = self.driver.now();
        match verdict {
            Verdict::From(from) => {
                let from = from.min(offer.length);
                self.current = Some(Current { transfer, taken: from, finished: false });
                self.driver.machine.grant(now, transfer, from);
                self.events.push(NodeEvent::Began { transfer, from });
            }
            Verdict::Refuse(reason, delivered) => {
                self.current = before;
                self.driver.machine.decline(now, transfer, reason, delivered);
                self.events.push(NodeEvent::Declined { transfer, reason, delivered });
            }
        }
        Ok(true)
    }

    /// The sink has failed, with a transfer or when it was asked about one: its sender is told why.
    fn fail(&mut self, error: io::Error) {
        let (now, reason) = (self.driver.now(), reason(&error));
        let asked = self.driver.machine.asked().map(|request| request.transfer);
        match asked {
            Some(transfer) => self.driver.machine.decline(now, transfer, reason, 0),
            None => self.driver.machine.abort(now, reason),
        }
        if let Some(current) = self.current.take() {
            self.sink.abandon();
            self.events.push(NodeEvent::Failed { transfer: current.transfer, error });
        }
    }
}

/// What a sender is told of an error of the sink.
fn reason(error: &io::Error) -> RefuseReason {
    use io::ErrorKind::{FileTooLarge, InvalidData, QuotaExceeded, StorageFull};
    let refusal = error.get_ref().and_then(|within| within.downcast_ref::<Refusal>());
    match error.kind() {
        _ if let Some(refusal) = refusal => refusal.reason,
        StorageFull | QuotaExceeded | FileTooLarge => RefuseReason::NoRoom,
        InvalidData => RefuseReason::Digest,
        _ => RefuseReason::Failed,
    }
}

/// Octets of answers that may wait for somebody who does not read them, on one connection.
const QUEUE: u32 = 64 << 10;
