//! The gateway: a relay for each sender that connects, to those whom its operator allows.

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
    /// Sessions at once of one host (of one /64, over IPv6).
    pub per_host: usize,
    /// Sessions at once with one node; senders of further ones are told that it is congested.
    pub per_node: usize,
    /// Bits per second that are read for one node, in octets of TCP's payload; not bounded if
    /// `None`.
    pub rate_node: Option<u64>,
    /// Bits per second that are read for all nodes together.
    pub rate_mesh: Option<u64>,
    /// Senders at once that have not said who they are and whom they want: where there is one more,
    /// the one that has waited longest is reset.
    pub half_open: usize,
    /// Octets of payload that all sessions together may hold, here and in the kernel. Each may have
    /// its part of it: half for what waits to be read and half for what waits for the node.
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
        /// What was refused, for want of a key or because it had been here before.
        refused: RefusedCounters,
        /// What the kernel said last of a connection that failed, if one did.
        error: Option<LineError>,
    },
    /// A sender was reset: there are as many sessions as there may be.
    Full {
        /// The sender.
        peer: SocketAddr,
        /// They are all of its host.
        of_one_host: bool,
    },
    /// A sender has waited too long while others called.
    Evicted {
        /// The sender.
        peer: SocketAddr,
    },
}

/// A gateway that listens.
#[derive(Debug)]
pub struct Gateway {
    config: Arc<GatewayConfig>,
    listener: TcpListener,
    clock: Clock,
    intake: Intake,
    gauges: Arc<Gauges>,
}

/// What a gateway does while it runs.
#[derive(Debug, Default)]
pub struct Gauges {
    sessions: AtomicU64,
    octets_down: AtomicU64,
    octets_up: AtomicU64,
    deaf: AtomicBool,
}

impl Gauges {
    /// Sessions open now, half-open ones included.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Octets from senders to nodes so far, those of sessions that are open included.
    pub fn octets_down(&self) -> u64 {
        self.octets_down.load(Ordering::Relaxed)
    }

    /// Octets from nodes to senders so far.
    pub fn octets_up(&self) -> u64 {
        self.octets_up.load(Ordering::Relaxed)
    }

    /// The kernel refused to hand out the last connection: too many descriptors are open, say.
    pub fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Relaxed)
    }
}

impl Gateway {
    /// Listens from now on; nobody is served before [`Gateway::run`].
    ///
    /// # Errors
    /// It cannot listen there.
    pub fn bind(config: GatewayConfig) -> io::Result<Self> {
        let listener = listen(config.listen, config.session_buffer())?;
        let clock = Clock::start();
        let intake = Intake::new(clock.now(), config.caps());
        Ok(Self { config: Arc::new(config), listener, clock, intake, gauges: Arc::default() })
    }

    /// What it does while it runs.
    pub fn gauges(&self) -> Arc<Gauges> {
        Arc::clone(&self.gauges)
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
        let mut sessions = Sessions::default();
        loop {
            let is_crowded = sessions.is_crowded(self.config.half_open);
            self.gauges.sessions.store(sessions.tasks.len() as u64, Ordering::Relaxed);
            tokio::select! {
                Some(ended) = sessions.tasks.join_next_with_id() => {
                    // A session that has panicked is a fault of ours that ends this one alone.
                    if let Some(event) = sessions.end(ended) {
                        tell(event);
                    }
                }
                // The next sender waits in the kernel until the sessions have read.
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

    /// A sender has called.
    fn begin(&self, sessions: &mut Sessions, stream: TcpStream, peer: SocketAddr) -> Option<GatewayEvent> {
        let of_one_host = sessions.of(peer) >= self.config.per_host;
        if of_one_host || sessions.tasks.len() >= self.config.connections {
            let _ = stream.set_zero_linger();
            return Some(GatewayEvent::Full { peer, of_one_host });
        }
        let (known, stream) = (Arc::new(AtomicBool::new(false)), Arc::new(stream));
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
    /// Sessions of each host.
    hosts: HashMap<Host, usize>,
    /// Those that had not said what they want when they were last looked at, the oldest first.
    half_open: VecDeque<HalfOpen>,
    /// Hosts of those that have.
    known: Hosts,
}

/// A session that had not said what it wants when it was last looked at.
#[derive(Debug)]
struct HalfOpen {
    task: AbortHandle,
    /// It has said what it wants.
    known: Arc<AtomicBool>,
    /// The session owns it.
    socket: Weak<TcpStream>,
    host: Host,
    since: Instant,
}

impl HalfOpen {
    fn is_over(&self) -> bool {
        self.known.load(Ordering::Relaxed) || self.task.is_finished()
    }

    /// The sender's bytes wait to be read: they may say what it wants.
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

    /// No session can make way for a further one before it has read what its sender has said.
    fn is_crowded(&mut self, most: usize) -> bool {
        let is_full = self.count_half_open(most) >= most.max(1);
        is_full && self.half_open.iter().all(HalfOpen::has_unread)
    }

    /// How many have not said what they want; those that have are only taken out where there would
    /// be `most`.
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

    /// Makes room where too many have not said what they want: see [`crowd::idler`].
    fn evict(&mut self, most: usize) -> Option<GatewayEvent> {
        if self.count_half_open(most) <= most {
            return None;
        }
        let callers: Vec<Caller> = self.half_open.iter().map(|session| self.caller(session)).collect();
        // Where all have bytes that wait, the oldest has had most time.
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

/// What a session shares with its gateway.
struct Shared {
    intake: Intake,
    /// The sender has said what it wants.
    known: Arc<AtomicBool>,
    gauges: Arc<Gauges>,
}

/// One sender, until all is closed.
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
        // What the node says is little. It is not read while more than this waits for the sender.
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
