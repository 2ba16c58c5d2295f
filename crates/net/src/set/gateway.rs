//! The gateway: a relay for each sender that connects, to the nodes that its operator allows.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use anabranch_core::set::{Relay, RelayConfig, RelayCounters};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::Doorkeeper;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet, yield_now};

use super::allow::Allow;
use super::crowd::{self, Caller, Host, Hosts, Idler};
use super::driver::{Driver, LineError, Permission};
use super::line::has_unread;
use super::listen;
use super::options::SocketOptions;
use super::pace::intake::{Caps, Intake};
use super::security::{RefusedCounters, Security};
use crate::clock::Clock;

/// Lower limit of the buffer per session, in bytes: half of its share of the memory.
const LEAST: u64 = 16 << 10;
/// Upper limit of the buffer per session, in bytes: more data in flight through one gateway is
/// queue, not window.
const MOST: u64 = 4 << 20;
/// Pause of the listener after an error, such as too many open descriptors.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Options of a [`Gateway`].
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The gateway's key and the senders that it serves. `None`: serves every sender.
    pub door: Option<Arc<Doorkeeper>>,
    /// Destinations that senders may reach. Without a rule, none is permitted.
    pub allow: Vec<Allow>,
    /// Limit of simultaneous sessions; further senders are reset.
    pub connections: usize,
    /// Limit of simultaneous sessions per host (per /64 with IPv6).
    pub per_host: usize,
    /// Limit of simultaneous sessions per node; further senders are told that the node is
    /// congested.
    pub per_node: usize,
    /// Rate limit per node in bits per second of TCP payload; `None` is unlimited.
    pub rate_node: Option<u64>,
    /// Rate limit for all nodes together in bits per second.
    pub rate_mesh: Option<u64>,
    /// Limit of simultaneous senders that have not authenticated and named their destination. If it
    /// is exceeded, one of them is reset: the oldest of the host that has most of them.
    pub half_open: usize,
    /// Payload bytes that all sessions together may hold, in this process and in the kernel. Each
    /// session gets an equal share: half for unread bytes and half for bytes not yet sent to the
    /// node.
    pub memory: u64,
    /// A session without progress for this time is reset.
    pub idle: Duration,
    /// A sender that has not named its destination within this time is reset.
    pub setsyn_timeout: Duration,
    /// A node that does not answer within this time is unreachable.
    pub dial_timeout: Duration,
}

impl GatewayConfig {
    /// A configuration for a few hundred sessions in 256 MiB that listens on `listen`. It permits
    /// no destination yet.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            door: None,
            allow: Vec::new(),
            connections: 256,
            per_host: usize::MAX,
            per_node: 16,
            rate_node: None,
            rate_mesh: None,
            half_open: 64,
            memory: 256 << 20,
            idle: Duration::from_secs(120),
            setsyn_timeout: Duration::from_secs(10),
            dial_timeout: Duration::from_secs(10),
        }
    }

    fn caps(&self) -> Caps {
        Caps { mesh: self.rate_mesh, node: self.rate_node, per_node: self.per_node }
    }

    /// Buffer of one session towards its node, in bytes.
    pub fn session_buffer(&self) -> u32 {
        let part = self.memory / (2 * self.connections.max(1) as u64);
        part.clamp(LEAST, MOST) as u32
    }
}

/// An event reported by a gateway.
#[derive(Debug)]
pub enum GatewayEvent {
    /// A session has ended.
    Ended {
        /// Address of the sender.
        peer: SocketAddr,
        /// Traffic of the session.
        counters: RelayCounters,
        /// Connections and messages refused, by reason.
        refused: RefusedCounters,
        /// The last error of a connection that failed, if any.
        error: Option<LineError>,
    },
    /// A sender was reset because the limit of sessions is reached.
    Full {
        /// Address of the sender.
        peer: SocketAddr,
        /// True if the limit per host is reached.
        of_one_host: bool,
    },
    /// A sender was reset because too many have not named their destination.
    Evicted {
        /// Address of the sender.
        peer: SocketAddr,
    },
}

/// A listening gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Arc<GatewayConfig>,
    listener: TcpListener,
    clock: Clock,
    intake: Intake,
    gauges: Arc<Gauges>,
}

/// Statistics of a running gateway.
#[derive(Debug, Default)]
pub struct Gauges {
    sessions: AtomicU64,
    octets_down: AtomicU64,
    octets_up: AtomicU64,
    deaf: AtomicBool,
}

impl Gauges {
    /// Number of current sessions, half-open ones included.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Number of bytes relayed from senders to nodes, open sessions included.
    pub fn octets_down(&self) -> u64 {
        self.octets_down.load(Ordering::Relaxed)
    }

    /// Number of bytes relayed from nodes to senders.
    pub fn octets_up(&self) -> u64 {
        self.octets_up.load(Ordering::Relaxed)
    }

    /// True if the last accept failed, for example because too many descriptors are open.
    pub fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Relaxed)
    }
}

impl Gateway {
    /// Starts to listen. No session is served before [`Gateway::run`].
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(config: GatewayConfig) -> io::Result<Self> {
        let listener = listen(config.listen, config.session_buffer())?;
        let clock = Clock::start();
        let intake = Intake::new(clock.now(), config.caps());
        Ok(Self { config: Arc::new(config), listener, clock, intake, gauges: Arc::default() })
    }

    /// The statistics of this gateway.
    pub fn gauges(&self) -> Arc<Gauges> {
        Arc::clone(&self.gauges)
    }

    /// The local address.
    ///
    /// # Errors
    /// The kernel does not return the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts the next sender. An IPv4-mapped IPv6 address is converted to IPv4.
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.listener.accept().await?;
        Ok((stream, SocketAddr::new(peer.ip().to_canonical(), peer.port())))
    }

    /// Serves senders. Dropping the future ends all sessions.
    pub async fn run(&self, mut tell: impl FnMut(GatewayEvent)) {
        let mut sessions = Sessions::default();
        loop {
            let is_crowded = sessions.is_crowded(self.config.half_open);
            self.gauges.sessions.store(sessions.tasks.len() as u64, Ordering::Relaxed);
            tokio::select! {
                Some(ended) = sessions.tasks.join_next_with_id() => {
                    // A panic in a session is a bug of this crate and ends only that session.
                    if let Some(event) = sessions.end(ended) {
                        tell(event);
                    }
                }
                // New senders wait in the kernel until the sessions have read their bytes.
                () = yield_now(), if is_crowded => {}
                called = self.accept(), if !is_crowded => match called {
                    Ok((stream, peer)) => {
                        self.gauges.deaf.store(false, Ordering::Relaxed);
                        if let Some(event) = self.begin(&mut sessions, stream, peer) {
                            tell(event);
                        }
                    }
                    Err(_) => {
                        self.gauges.deaf.store(true, Ordering::Relaxed);
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    /// Handles a new sender.
    fn begin(&self, sessions: &mut Sessions, stream: TcpStream, peer: SocketAddr) -> Option<GatewayEvent> {
        let of_one_host = sessions.of(peer) >= self.config.per_host;
        if of_one_host || sessions.tasks.len() >= self.config.connections {
            let _ = stream.set_zero_linger();
            return Some(GatewayEvent::Full { peer, of_one_host });
        }
        let (known, stream) = (Arc::new(AtomicBool::new(false)), Arc::new(stream));
        // Weak, so that this entry does not keep the socket of a finished session open.
        let socket = Arc::downgrade(&stream);
        let (config, intake) = (Arc::clone(&self.config), self.intake.clone());
        let shared = Shared { intake, known: Arc::clone(&known), gauges: self.gauges() };
        let session = serve(config, self.clock, stream, peer, shared);
        let task = sessions.tasks.spawn(session);
        sessions.begin(peer, HalfOpen { task, known, socket, host: Host::of(peer), since: self.clock.now() });
        sessions.evict(self.config.half_open)
    }
}

/// The sessions of a gateway.
#[derive(Debug, Default)]
struct Sessions {
    tasks: JoinSet<GatewayEvent>,
    peers: HashMap<Id, SocketAddr>,
    /// Number of sessions of each host.
    hosts: HashMap<Host, usize>,
    /// Sessions that were half-open when last checked, oldest first.
    half_open: VecDeque<HalfOpen>,
    /// Hosts whose sessions have named their destination.
    known: Hosts,
}

/// A session that had not named its destination when last checked.
#[derive(Debug)]
struct HalfOpen {
    task: AbortHandle,
    /// True once the session has named its destination.
    known: Arc<AtomicBool>,
    /// The socket, which the session owns.
    socket: Weak<TcpStream>,
    host: Host,
    since: Instant,
}

impl HalfOpen {
    fn is_over(&self) -> bool {
        self.known.load(Ordering::Relaxed) || self.task.is_finished()
    }

    /// True if the sender has unread bytes, which may name its destination.
    fn has_unread(&self) -> bool {
        self.socket.upgrade().is_some_and(|socket| has_unread(&socket))
    }
}

impl Sessions {
    fn of(&self, peer: SocketAddr) -> usize {
        self.hosts.get(&Host::of(peer)).copied().unwrap_or(0)
    }

    fn begin(&mut self, peer: SocketAddr, session: HalfOpen) {
        self.peers.insert(session.task.id(), peer);
        *self.hosts.entry(Host::of(peer)).or_default() += 1;
        self.half_open.push_back(session);
    }

    /// True if no half-open session can be closed before its unread bytes are processed.
    fn is_crowded(&mut self, most: usize) -> bool {
        let is_full = self.count_half_open(most) >= most.max(1);
        is_full && self.half_open.iter().all(HalfOpen::has_unread)
    }

    /// Number of half-open sessions. Sessions that are no longer half-open are removed only if the
    /// list has reached `most`.
    fn count_half_open(&mut self, most: usize) -> usize {
        if self.half_open.len() >= most {
            let Self { half_open, known, .. } = self;
            half_open.iter().filter(|s| s.known.load(Ordering::Relaxed)).for_each(|s| known.remember(s.host));
            half_open.retain(|session| !session.is_over());
        }
        self.half_open.len()
    }

    fn caller(&self, session: &HalfOpen) -> Caller {
        Caller {
            host: session.host,
            is_known: self.known.has(session.host),
            is_introduced: false,
            since: session.since,
        }
    }

    /// Closes a half-open session if there are too many: see [`crowd::idler`].
    fn evict(&mut self, most: usize) -> Option<GatewayEvent> {
        if self.count_half_open(most) <= most {
            return None;
        }
        let callers: Vec<Caller> = self.half_open.iter().map(|session| self.caller(session)).collect();
        // If all have unread bytes, the oldest has had the most time.
        let idler = match crowd::idler(&callers, |index| self.half_open[index].has_unread()) {
            Idler::At(index) => index,
            Idler::Later | Idler::None => 0,
        };
        let HalfOpen { task, .. } = self.half_open.remove(idler)?;
        task.abort();
        self.peers.get(&task.id()).map(|peer| GatewayEvent::Evicted { peer: *peer })
    }

    fn end(&mut self, ended: Result<(Id, GatewayEvent), JoinError>) -> Option<GatewayEvent> {
        let (id, event) = ended.map_or_else(|error| (error.id(), None), |(id, event)| (id, Some(event)));
        if let Some(peer) = self.peers.remove(&id)
            && let Entry::Occupied(mut sessions) = self.hosts.entry(Host::of(peer))
        {
            *sessions.get_mut() -= 1;
            if *sessions.get() == 0 {
                sessions.remove();
            }
        }
        event
    }
}

/// State that a session shares with its gateway.
struct Shared {
    intake: Intake,
    /// True once the sender has named its destination.
    known: Arc<AtomicBool>,
    gauges: Arc<Gauges>,
}

/// Serves one sender until all of its streams are closed.
async fn serve(
    config: Arc<GatewayConfig>,
    clock: Clock,
    stream: Arc<TcpStream>,
    peer: SocketAddr,
    shared: Shared,
) -> GatewayEvent {
    let Shared { intake, known, gauges } = shared;
    let buffer = config.session_buffer();
    let relay = RelayConfig { buffer, setsyn_timeout: config.setsyn_timeout, ..RelayConfig::default() };
    let sockets = SocketOptions {
        receive_buffer: buffer,
        dial_timeout: config.dial_timeout,
        idle: Some(config.idle),
        greeting_timeout: config.setsyn_timeout,
        // The node sends little. Reading from it stops while more than this waits for the sender.
        queue: buffer.saturating_add(super::line::READ as u32),
        ..SocketOptions::default()
    };
    let security = config.door.clone().map_or(Security::None, Security::Gateway);
    let is_capped = config.rate_node.is_some() || config.rate_mesh.is_some();
    let permit = move |now, to: SocketAddr| match config.allow.iter().any(|rule| rule.permits(to)) {
        false => Permission::Forbidden,
        true => {
            intake.admit(now, to.ip()).map_or(Permission::Congested, |seat| Permission::Granted(Some(seat)))
        }
    };
    let driver = Driver::new(clock, Relay::new(relay), sockets);
    let driver = driver.permitting(Box::new(permit)).secured(security);
    let mut driver = if is_capped { driver.pacing() } else { driver };
    driver.accept(stream, peer);
    let mut before = RelayCounters::default();
    loop {
        let octets = driver.pump();
        debug_assert!(octets.is_none(), "a relay delivers nothing here");
        let counters = driver.machine.counters();
        gauges.octets_down.fetch_add(counters.octets_down - before.octets_down, Ordering::Relaxed);
        gauges.octets_up.fetch_add(counters.octets_up - before.octets_up, Ordering::Relaxed);
        before = counters;
        if driver.is_idle() {
            let error = driver.errors.pop();
            return GatewayEvent::Ended { peer, counters, refused: driver.refused, error };
        }
        if driver.has_dialled() {
            known.store(true, Ordering::Relaxed);
        }
        driver.next().await;
    }
}
