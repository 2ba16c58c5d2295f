//! The gateway: a relay for each sender that connects, to those whom its operator allows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_core::set::{Relay, RelayConfig, RelayCounters};
use anabranch_core::time::Duration;
use anabranch_secure::Doorkeeper;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::allow::Allow;
use super::driver::{Driver, LineError};
use super::listen;
use super::options::SocketOptions;
use super::security::Security;
use crate::clock::Clock;

/// The least that one session may hold for its node, octets: half of its part of the memory.
const LEAST: u64 = 16 << 10;
/// The most: more than that on its way through one gateway is a queue, not a window.
const MOST: u64 = 4 << 20;
/// After an error of the listener (too many descriptors), it is left alone for so long.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Options of a [`Gateway`].
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Where senders call.
    pub listen: SocketAddr,
    /// Who it is, and whom it serves. `None`: anybody.
    pub door: Option<Arc<Doorkeeper>>,
    /// Whom it may call for them. Nobody if there is no rule.
    pub allow: Vec<Allow>,
    /// Sessions at once; further senders are reset.
    pub connections: usize,
    /// Octets of payload that all sessions together may hold, here and in the kernel. Each may have its part of it: half
    /// for what waits to be read and half for what waits for the node.
    pub memory: u64,
    /// A session on which nothing moves for so long is reset.
    pub idle: Duration,
    /// A sender that has not said whom it wants is reset after so long.
    pub setsyn_timeout: Duration,
    /// A node that does not answer for so long is unreachable.
    pub dial_timeout: Duration,
}

impl GatewayConfig {
    /// A gateway for a few hundred sessions in 256 MiB, at `listen`, that may call nobody yet.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            door: None,
            allow: Vec::new(),
            connections: 256,
            memory: 256 << 20,
            idle: Duration::from_secs(120),
            setsyn_timeout: Duration::from_secs(10),
            dial_timeout: Duration::from_secs(10),
        }
    }

    /// Octets that one session may hold for its node.
    pub fn session_buffer(&self) -> u32 {
        let part = self.memory / (2 * self.connections.max(1) as u64);
        part.clamp(LEAST, MOST) as u32
    }
}

/// What a gateway has to tell.
#[derive(Debug)]
pub enum GatewayEvent {
    /// A session is over.
    Ended {
        /// The sender.
        peer: SocketAddr,
        /// What the relay did for it.
        counters: RelayCounters,
        /// What the kernel said last of a connection that failed, if one did.
        error: Option<LineError>,
    },
    /// A sender was reset: there are as many sessions as there may be.
    Full {
        /// The sender.
        peer: SocketAddr,
    },
}

/// A gateway that listens.
#[derive(Debug)]
pub struct Gateway {
    config: Arc<GatewayConfig>,
    listener: TcpListener,
}

impl Gateway {
    /// Listens from now on; nobody is served before [`Gateway::run`].
    ///
    /// # Errors
    /// It cannot listen there.
    pub fn bind(config: GatewayConfig) -> io::Result<Self> {
        let listener = listen(config.listen, config.session_buffer())?;
        Ok(Self { config: Arc::new(config), listener })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next sender, by its plain address where it calls an IPv6 socket by IPv4.
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.listener.accept().await?;
        Ok((stream, SocketAddr::new(peer.ip().to_canonical(), peer.port())))
    }

    /// Serves until it is dropped, and with it all sessions.
    pub async fn run(&self, mut tell: impl FnMut(GatewayEvent)) {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                Some(ended) = sessions.join_next() => {
                    // A session that has panicked is a fault of ours that ends this one alone.
                    if let Ok(event) = ended {
                        tell(event);
                    }
                }
                called = self.accept() => match called {
                    Ok((stream, peer)) if sessions.len() >= self.config.connections => {
                        let _ = stream.set_zero_linger();
                        tell(GatewayEvent::Full { peer });
                    }
                    Ok((stream, peer)) => {
                        sessions.spawn(serve(Arc::clone(&self.config), stream, peer));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

/// One sender, until all is closed.
async fn serve(config: Arc<GatewayConfig>, stream: TcpStream, peer: SocketAddr) -> GatewayEvent {
    let buffer = config.session_buffer();
    let relay = RelayConfig { buffer, setsyn_timeout: config.setsyn_timeout, ..RelayConfig::default() };
    let sockets = SocketOptions {
        receive_buffer: buffer,
        dial_timeout: config.dial_timeout,
        idle: Some(config.idle),
        // What the node says is little. It is not read while more than this waits for the sender.
        queue: buffer.saturating_add(super::line::READ as u32),
        ..SocketOptions::default()
    };
    let security = config.door.clone().map_or(Security::None, Security::Gateway);
    let permit = move |to| config.allow.iter().any(|rule| rule.permits(to));
    let driver = Driver::new(Clock::start(), Relay::new(relay), sockets);
    let mut driver = driver.permitting(Box::new(permit)).secured(security);
    driver.accept(stream, peer);
    loop {
        let octets = driver.pump();
        debug_assert!(octets.is_none(), "a relay delivers nothing here");
        if driver.is_idle() {
            return GatewayEvent::Ended { peer, counters: driver.machine.counters(), error: driver.error };
        }
        driver.next().await;
    }
}
