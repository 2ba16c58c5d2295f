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

/// A file that a sender offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Identifier of the transfer.
    pub transfer: TransferId,
    /// Length of the file in bytes.
    pub length: u64,
    /// Identity of the file, if the sender announced it.
    pub file: Option<FileIdentity>,
    /// The signer's manifest, not parsed.
    pub manifest: Option<Bytes>,
}

/// A sink's answer to an [`Offer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Accepted: the sink wants the bytes from this offset on and has the bytes before it.
    From(u64),
    /// Refused, with the number of bytes that the node has of an unfinished file.
    Refuse(RefuseReason, u64),
}

/// An error of a sink, with the reason that is sent to the sender.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The reason that is sent to the sender.
    pub reason: RefuseReason,
    /// Description for the node's owner.
    pub message: String,
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::other(refusal)
    }
}

/// Destination of the bytes that a node receives. While a future of one of these methods is
/// pending, the node reads nothing from the network and acknowledges nothing, so the sender waits.
pub trait Sink {
    /// Begins a transfer. No other transfer is in progress: an unfinished one was abandoned before.
    fn begin(&mut self, offer: &Offer) -> impl Future<Output = io::Result<Verdict>> + Send;
    /// Writes the next bytes. The node acknowledges them after this future completes.
    fn write(&mut self, octets: Bytes) -> impl Future<Output = io::Result<()>> + Send;
    /// Finishes the file. The node reports success to the sender after this future completes. An
    /// error of kind [`io::ErrorKind::InvalidData`] means that the bytes do not match the announced
    /// file. A [`Refusal`] inside the error carries the reason that is sent to the sender.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// The transfer has stopped: the remaining bytes will not arrive for now, or an error occurred.
    fn abandon(&mut self);
}

/// Options of a [`Node`].
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Address to listen on for senders and gateways.
    pub listen: SocketAddr,
    /// The accepted senders and their keys. `None`: accepts every sender, without encryption.
    pub who: Option<Arc<NodeKeys>>,
    /// Gateways to announce, at most [`anabranch_core::set::MAX_GATEWAYS`].
    pub gateways: Vec<KnownGateway>,
    /// Reorder buffer in bytes. It must hold what faster paths deliver while the slowest path
    /// delays a byte: the sum of the rates times the longest delay.
    pub buffer: u32,
    /// Limit of simultaneous connections.
    pub connections: usize,
    /// A connection without progress for this time is reset. A transfer without progress for this
    /// time gives way to another.
    pub idle: Duration,
    /// An incoming connection that has not authenticated within this time is reset.
    pub greeting_timeout: Duration,
}

impl NodeConfig {
    /// A configuration with a buffer of 4 MiB that listens on `listen` and announces no gateway.
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

/// Bytes that a connection may send before it names its purpose.
const FIRST_WINDOW: u32 = 16 << 10;
/// Longest delay of an acknowledgement of a chunk.
const ACK_DELAY: Duration = Duration::from_millis(10);

/// An event reported by a node.
#[derive(Debug)]
pub enum NodeEvent {
    /// A transfer has begun.
    Began {
        /// Identifier of the transfer.
        transfer: TransferId,
        /// Number of bytes that the node already had.
        from: u64,
    },
    /// The sink refused a transfer.
    Declined {
        /// Identifier of the transfer.
        transfer: TransferId,
        /// The reason sent to the sender.
        reason: RefuseReason,
        /// Number of bytes that the node has of an unfinished file.
        delivered: u64,
    },
    /// A file is complete, and the sink has finished it.
    Finished {
        /// Identifier of the transfer.
        transfer: TransferId,
        /// Length of the file in bytes.
        octets: u64,
    },
    /// A transfer ended early: its sender cancelled it, or another transfer took its place.
    Abandoned {
        /// Identifier of the transfer.
        transfer: TransferId,
        /// Number of bytes received in order.
        octets: u64,
    },
    /// The sink failed. The node tells the sender, and acknowledges nothing that the sink has not
    /// accepted.
    Failed {
        /// Identifier of the transfer.
        transfer: TransferId,
        /// The error of the sink.
        error: io::Error,
    },
}

/// The transfer that the sink has begun.
#[derive(Clone, Copy, Debug)]
struct Current {
    transfer: TransferId,
    taken: u64,
    finished: bool,
}

/// A listening node.
pub struct Node<S> {
    config: NodeConfig,
    driver: Driver<Receiver>,
    address: SocketAddr,
    sink: S,
    current: Option<Current>,
    /// Number of bytes passed to the sink.
    received: u64,
    events: Vec<NodeEvent>,
    announced: Announced,
}

/// The gateways that a node announces. A clone can change them while the node runs.
#[derive(Clone, Debug, Default)]
pub struct Announced(Arc<Mutex<Option<Vec<KnownGateway>>>>);

impl Announced {
    /// Replaces the gateways in the node's next answers.
    pub fn set(&self, gateways: Vec<KnownGateway>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateways);
    }

    fn take(&self) -> Option<Vec<KnownGateway>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<S: Sink> Node<S> {
    /// Starts to listen. No connection is served before [`Node::next`]. Must be called on a tokio
    /// runtime.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(config: NodeConfig, sink: S) -> io::Result<Self> {
        // The window of one connection may be as large as the shared buffer.
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

    /// A handle that changes the announced gateways.
    pub fn announced(&self) -> Announced {
        self.announced.clone()
    }

    /// The local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// True if there is no connection.
    pub fn is_idle(&self) -> bool {
        self.driver.is_idle()
    }

    /// Counts what was refused so far: unknown keys, tampering, and lack of room.
    pub fn refused(&self) -> RefusedCounters {
        self.driver.refused
    }

    /// Number of current connections.
    pub fn connections(&self) -> usize {
        self.driver.connections()
    }

    /// Number of file bytes received in order since the node was bound.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// True if the last accept failed, for example because too many descriptors are open.
    pub fn is_deaf(&self) -> bool {
        self.driver.is_deaf()
    }

    /// Number of bytes of the current transfer that the sink has accepted; 0 between transfers.
    pub fn taken(&self) -> u64 {
        self.current.filter(|current| !current.finished).map_or(0, |current| current.taken)
    }

    /// Serves until there is an event to report, or for one socket event.
    pub async fn next(&mut self) -> Option<NodeEvent> {
        if self.events.is_empty() {
            self.driver.next().await;
            while let Err(error) = self.pump().await {
                self.fail(error);
            }
            // `pop` takes events from the end.
            self.events.reverse();
        }
        self.events.pop()
    }

    /// Carries out effects of the machine. The sender is told only what the sink has completed.
    async fn pump(&mut self) -> io::Result<()> {
        if let Some(gateways) = self.announced.take() {
            self.config.gateways = gateways;
            self.driver.machine.set_gateways(self.config.rows());
        }
        loop {
            // Before the next effect, which may report the completion to the sender.
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

    /// Finishes the file at the sink.
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

    /// Tells the sink that a transfer has ended, and offers it the next one after it has written
    /// all delivered bytes. Returns false if there was nothing to do.
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
        // The sink knows the transfer from here on, so that a failure of `begin` is reported for
        // it.
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

    /// Handles a failure of the sink, during a transfer or an offer: tells the sender the reason.
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

/// The reason that is sent to the sender for an error of the sink.
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

/// Limit of answer bytes that wait for a peer on one connection.
const QUEUE: u32 = 64 << 10;
