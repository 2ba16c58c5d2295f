//! The send buffers of running programs under a budget, without their help.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

use anabranch_core::sockbuf::{ConnectionId, Kind};
use anabranch_core::time::{Duration, Instant};

use super::place::Place;
use super::process::{Foreign, Process, Settings, ends, is_tcp};
use super::tuner::{FlowState, Tuner};
use super::{AddError, Config};
use crate::buffers::{self, LEAST_SEND_BUFFER, Memory};
use crate::tcp_info::{State, TcpInfo};

/// Configuration of a [`ProgramTuner`].
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramConfig {
    /// Configuration of the tuner. `pool.threshold` is the budget for all sockets.
    pub tuner: Config,
    /// Part of the budget in bytes for sockets that begin to send before they have a share: two
    /// packets with overhead.
    pub spare: u64,
    /// Unsent bytes at which a socket stops being writable (TCP_NOTSENT_LOWAT); `None` leaves that
    /// as it is.
    pub unsent_mark: Option<u64>,
    /// Addresses of the same peer. Each other address is a peer of its own.
    pub peers: Vec<Vec<IpAddr>>,
}

impl ProgramConfig {
    /// Default values for this pool. The overrun is 68 KiB, one packet of 64 KiB with overhead.
    pub fn new(pool: anabranch_core::sockbuf::Config) -> Self {
        const PACKET: u32 = 68 << 10;
        let tuner = Config { overrun: PACKET, look: Duration::from_millis(20), ..Config::new(pool) };
        Self { tuner, spare: 2 * u64::from(PACKET), unsent_mark: None, peers: Vec::new() }
    }
}

/// What is needed to restore a socket, also for another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Saved {
    /// The process that has the socket.
    pub pid: u32,
    /// See [`Process::started`].
    pub started: u64,
    /// Number that the kernel gives to no other socket (SO_COOKIE).
    pub cookie: u64,
    /// What is restored.
    pub settings: Settings,
}

/// Result of [`ProgramTuner::restore`] and [`restore`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// Sockets with their old settings again.
    pub sockets: u64,
    /// Sockets that the processes no longer have.
    pub closed: u64,
    /// Sockets whose size is restored and stays fixed, since the kernel is older than 5.18.
    pub locked: u64,
}

/// State of a socket of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SocketState {
    /// Its process.
    pub pid: u32,
    /// Its own address.
    pub local: SocketAddr,
    /// Address of its peer.
    pub peer: SocketAddr,
    /// Whether it is part of a striped connection.
    pub striped: bool,
    /// Its state in the tuner.
    pub flow: FlowState,
}

/// Numbers of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Population {
    /// Sockets that send, with a share of the budget.
    pub active: u64,
    /// Sockets that have nothing to send. They have the smallest buffer.
    pub idle: u64,
    /// Of these, sockets that have data to send, for whose share the budget has no room.
    pub crowded: u64,
    /// Sockets found since the start.
    pub found: u64,
}

/// Manages the send buffers of the TCP sockets of running programs under one budget.
///
/// [`ProgramTuner::step`] finds their sockets, which come and go. A socket without data to send has
/// the smallest buffer, and gets a share when it has some. Connections to one peer from several
/// local addresses are striped: they share the memory of one connection.
///
/// Only settings of sockets change; data is neither read nor written. The settings do not return
/// by themselves: call [`ProgramTuner::restore`] at the end. `step` passes what [`restore`] needs
/// to its caller before it changes a socket, so that another process can do it after a crash.
#[derive(Debug)]
pub struct ProgramTuner {
    config: ProgramConfig,
    tuner: Tuner,
    processes: Vec<Arc<Process>>,
    sockets: BTreeMap<u64, Managed>,
    /// Sockets that the processes no longer have, which others may have.
    lost: BTreeMap<u64, Managed>,
    search_at: Instant,
    /// Inode of each descriptor at the last scan, with the cookie of a TCP socket.
    seen: BTreeMap<(u32, RawFd), (u64, Option<u64>)>,
    scan_at: Instant,
    population: Population,
    /// Whether `Saved` has changed.
    unsaved: bool,
}

/// A socket of a program.
#[derive(Debug)]
struct Managed {
    foreign: Foreign,
    inode: u64,
    before: Settings,
    local: SocketAddr,
    peer: SocketAddr,
    /// Its connection in the tuner; `None` while it is idle.
    connection: Option<ConnectionId>,
    /// When it last had data, and the bytes acknowledged by then.
    busy: (Instant, u64),
}

impl ProgramTuner {
    /// Creates a tuner for these processes. It changes nothing yet.
    ///
    /// # Errors
    /// A value of the pool's configuration is out of range, or the budget has no room for one
    /// socket.
    pub fn new(now: Instant, config: ProgramConfig, processes: Vec<Process>) -> Result<Self, AddError> {
        let (budget, overrun) = (config.tuner.pool.threshold, u64::from(config.tuner.overrun));
        let needed = config.spare + overrun + 2 * LEAST_SEND_BUFFER;
        if budget < needed {
            return Err(AddError::Full { needed, budget });
        }
        let tuner = Tuner::new(now, config.tuner).map_err(io::Error::other)?;
        Ok(Self {
            config,
            tuner,
            processes: processes.into_iter().map(Arc::new).collect(),
            sockets: BTreeMap::new(),
            lost: BTreeMap::new(),
            search_at: now,
            seen: BTreeMap::new(),
            scan_at: now,
            population: Population::default(),
            unsaved: false,
        })
    }

    /// Finds new sockets, reads all, and decides and sets sizes if that is due. `save` gets the old
    /// settings of all sockets before a new one is changed.
    ///
    /// # Errors
    /// `save` failed; new sockets are unchanged and found again in the next step.
    pub fn step(&mut self, now: Instant, mut save: impl FnMut(&[Saved]) -> io::Result<()>) -> io::Result<()> {
        let saved = self.scan(now, &mut save);
        self.wake(now);
        self.tuner.step(now);
        self.rest(now);
        saved?;
        if std::mem::take(&mut self.unsaved) {
            save(&self.saved())?;
        }
        Ok(())
    }

    /// When to call [`ProgramTuner::step`] next.
    pub fn next_timeout(&self, now: Instant) -> Instant {
        let look = now + self.config.tuner.look;
        self.tuner.next_timeout(now).map_or(look, |due| due.min(look))
    }

    /// Whether at least one of the processes has not ended.
    pub fn is_needed(&self) -> bool {
        self.processes.iter().any(|process| process.is_running())
    }

    /// The tuner of the sockets that send.
    pub fn tuner(&self) -> &Tuner {
        &self.tuner
    }

    /// The budget in bytes.
    pub fn budget(&self) -> u64 {
        self.config.tuner.pool.threshold
    }

    /// Numbers of sockets.
    pub fn population(&self) -> Population {
        self.population
    }

    /// Upper bound of the memory of all sockets, and the memory in use, in bytes.
    pub fn memory(&self) -> (u64, u64) {
        let totals = self.tuner.totals();
        (totals.limits + self.config.spare + self.population.idle * LEAST_SEND_BUFFER, totals.queued)
    }

    /// Sockets that send, as of the last step.
    pub fn sockets(&self) -> impl Iterator<Item = SocketState> {
        self.tuner.all().filter_map(|(connection, flow)| {
            let socket = self.sockets.get(&flow.place.cookie()?)?;
            let kinds = self.tuner.connections();
            let striped = kinds.iter().any(|c| c.id == connection && c.kind == Kind::Striped);
            let (pid, flow) = (socket.foreign.spot().0.pid(), flow.state(connection));
            Some(SocketState { pid, local: socket.local, peer: socket.peer, striped, flow })
        })
    }

    /// Gives all sockets their old settings.
    pub fn restore(&mut self) -> Restored {
        let mut restored = Restored::default();
        for (cookie, socket) in std::mem::take(&mut self.sockets) {
            match socket.foreign.open() {
                Ok(open) => restored.count(Some(open), socket.before),
                Err(_) => _ = self.lost.insert(cookie, socket),
            }
        }
        restored.add(self.restore_lost());
        restored
    }

    /// Restores the sockets that only other processes have.
    fn restore_lost(&mut self) -> Restored {
        let lost = std::mem::take(&mut self.lost);
        let inodes: BTreeSet<u64> = lost.values().map(|socket| socket.inode).collect();
        let wanted = lost.keys().copied().collect();
        let mut found = elsewhere(&wanted, |inode| inodes.contains(&inode));
        let mut restored = Restored::default();
        lost.iter().for_each(|(cookie, socket)| restored.count(found.remove(cookie), socket.before));
        restored
    }

    fn saved(&self) -> Vec<Saved> {
        let saved = |(cookie, socket): (&u64, &Managed)| {
            let process = socket.foreign.spot().0;
            let (pid, started) = (process.pid(), process.started());
            Saved { pid, started, cookie: *cookie, settings: socket.before }
        };
        self.sockets.iter().chain(&self.lost).map(saved).collect()
    }

    /// Looks for sockets that have appeared, moved to other descriptors, or gone.
    fn scan(&mut self, now: Instant, save: &mut impl FnMut(&[Saved]) -> io::Result<()>) -> io::Result<()> {
        if now < self.scan_at {
            return Ok(());
        }
        self.scan_at = now + SCAN;
        let mut seen = BTreeMap::new();
        let mut new = Vec::new();
        for process in &self.processes {
            // A process that has ended has no descriptors.
            for (number, inode) in process.sockets().unwrap_or_default() {
                let key = (process.pid(), number);
                let known = self.seen.get(&key).filter(|(before, _)| *before == inode);
                let met = match known {
                    Some((_, Some(cookie))) => Met::Connection(*cookie),
                    Some((_, None)) => Met::Other,
                    None => self.meet(now, process, (number, inode), &mut new),
                };
                let cookie = match met {
                    Met::Connection(cookie) => Some(cookie),
                    Met::Other => None,
                    Met::NotConnected => continue,
                };
                if let Some(socket) = cookie.and_then(|cookie| self.sockets.get(&cookie)) {
                    socket.foreign.moved(process, number);
                }
                seen.insert(key, (inode, cookie));
            }
        }
        let present: BTreeSet<u64> = seen.values().filter_map(|(_, cookie)| *cookie).collect();
        self.seen = seen;
        if self.lost.is_empty() {
            // A descriptor on its way to another process is in none.
            self.search_at = now + SEARCH;
        }
        self.lost.extend(self.sockets.extract_if(.., |cookie, _| !present.contains(cookie)));
        let mut returned = BTreeSet::new();
        for (cookie, socket) in &mut new {
            if let Some(lost) = self.lost.remove(cookie) {
                socket.before = lost.before;
                returned.insert(*cookie);
            }
        }
        if now >= self.search_at && !self.lost.is_empty() {
            self.restore_lost();
            self.unsaved = true;
        }
        if new.is_empty() {
            return Ok(());
        }
        let cookies: Vec<u64> = new.iter().map(|(cookie, _)| *cookie).collect();
        self.sockets.extend(new);
        if let Err(error) = save(&self.saved()) {
            self.lost.extend(self.sockets.extract_if(.., |cookie, _| returned.contains(cookie)));
            self.sockets.retain(|cookie, _| !cookies.contains(cookie));
            self.seen.retain(|_, (_, cookie)| cookie.is_none_or(|cookie| !cookies.contains(&cookie)));
            return Err(error);
        }
        self.population.found += cookies.len() as u64;
        for cookie in &cookies {
            let Some(managed) = self.sockets.get(cookie) else { continue };
            let Ok(socket) = managed.foreign.open() else { continue };
            // A socket that has gone meanwhile is noticed by the next scan.
            let _ = managed.foreign.limit(&socket, LEAST_SEND_BUFFER);
            if let Some(mark) = self.config.unsent_mark {
                let _ = buffers::set_unsent_mark(&socket, mark);
            }
        }
        Ok(())
    }

    /// Looks at a descriptor for the first time. A new connection is added to `new`.
    fn meet(
        &self,
        now: Instant,
        process: &Arc<Process>,
        (number, inode): (RawFd, u64),
        new: &mut Vec<(u64, Managed)>,
    ) -> Met {
        let Ok(socket) = process.duplicate(number) else { return Met::NotConnected };
        if !is_tcp(&socket) {
            return Met::Other;
        }
        let connection = || {
            let info = TcpInfo::read(&socket).ok().filter(|info| {
                !matches!(info.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
            })?;
            let (local, peer) = ends(&socket)?;
            let before = Settings::read(&socket).ok()?;
            let cookie = rustix::net::sockopt::socket_cookie(&socket).ok()?;
            let foreign = Foreign::new(cookie, process, number);
            let busy = (now, info.bytes_acked.unwrap_or(0));
            Some((cookie, Managed { foreign, inode, before, local, peer, connection: None, busy }))
        };
        let Some((cookie, socket)) = connection() else { return Met::NotConnected };
        // A socket may have several descriptors, in several processes.
        if !self.sockets.contains_key(&cookie) && new.iter().all(|(known, _)| *known != cookie) {
            new.push((cookie, socket));
        }
        Met::Connection(cookie)
    }

    /// Gives sockets that have begun to send a share of the budget.
    fn wake(&mut self, now: Instant) {
        let tuned: BTreeSet<u64> = self.tuner.all().filter_map(|(_, flow)| flow.place.cookie()).collect();
        let mut waking = Vec::new();
        for (cookie, socket) in &mut self.sockets {
            if tuned.contains(cookie) {
                continue;
            }
            socket.connection = None;
            let Ok(open) = socket.foreign.open() else { continue };
            let Ok(memory) = Memory::read(&open) else { continue };
            socket.foreign.found(memory.send_buffer);
            if memory.send_buffer != LEAST_SEND_BUFFER {
                let _ = socket.foreign.limit(&open, LEAST_SEND_BUFFER);
            }
            let acknowledged = TcpInfo::read(&open).ok().and_then(|info| info.bytes_acked).unwrap_or(0);
            let sent = acknowledged.saturating_sub(socket.busy.1);
            socket.busy.1 = acknowledged;
            // Less than the smallest buffer needs no share.
            if memory.queued.max(sent) > LEAST_SEND_BUFFER {
                waking.push(*cookie);
            }
        }
        let before = self.population.idle;
        self.population.crowded = 0;
        for cookie in waking {
            let active = self.tuner.totals().sockets;
            let added = self.set_budget(active + 1).and_then(|()| self.add(cookie));
            self.population.crowded += u64::from(matches!(added, Err(AddError::Full { .. })));
            if let Some(socket) = self.sockets.get_mut(&cookie).filter(|_| added.is_ok()) {
                socket.busy.0 = now;
            }
        }
        let active = self.tuner.totals().sockets;
        self.population.active = active;
        self.population.idle = (self.sockets.len() as u64).saturating_sub(active);
        if self.population.idle != before {
            // There was room for them before.
            let _ = self.set_budget(active);
        }
    }

    /// Sets the budget of the tuner while `active` sockets send.
    fn set_budget(&mut self, active: u64) -> Result<(), AddError> {
        let idle = (self.sockets.len() as u64).saturating_sub(active) * LEAST_SEND_BUFFER;
        let budget = self.config.tuner.pool.threshold;
        self.tuner.set_budget(budget.saturating_sub(self.config.spare + idle))
    }

    /// Adds a socket to the tuner, together with the others of its peer.
    fn add(&mut self, cookie: u64) -> Result<(), AddError> {
        let place = |socket: &Managed| Place::There(socket.foreign.clone());
        let Some(socket) = self.sockets.get(&cookie) else { return Ok(()) };
        let (new, peer) = (place(socket), self.peer(socket.peer.ip()));
        // The connections of the peer that send.
        let others: Vec<(u64, ConnectionId)> = self
            .sockets
            .iter()
            .filter(|(_, other)| self.peer(other.peer.ip()) == peer)
            .filter_map(|(cookie, other)| Some((*cookie, other.connection?)))
            .collect();
        let kinds = self.tuner.connections();
        let striped =
            kinds.iter().find(|c| c.kind == Kind::Striped && others.iter().any(|(_, id)| *id == c.id));
        if let Some(id) = striped.map(|connection| connection.id) {
            self.tuner.join(id, &new)?;
            self.note(&[cookie], id);
            return Ok(());
        }
        let locals = others.iter().map(|(cookie, _)| self.sockets[cookie].local.ip());
        let is_striped = { locals }.any(|local| local != socket.local.ip());
        if !is_striped {
            let id = self.tuner.open(Kind::Single, &[new])?;
            self.note(&[cookie], id);
            return Ok(());
        }
        let all: Vec<u64> = others.iter().map(|(cookie, _)| *cookie).chain([cookie]).collect();
        let places: Vec<Place> = all.iter().map(|cookie| place(&self.sockets[cookie])).collect();
        others.iter().for_each(|(_, id)| self.tuner.remove(*id));
        match self.tuner.open(Kind::Striped, &places) {
            Ok(id) => self.note(&all, id),
            Err(error) => {
                // They had room before.
                for (cookie, place) in all.iter().zip(&places).take(others.len()) {
                    if let Ok(id) = self.tuner.open(Kind::Single, std::slice::from_ref(place)) {
                        self.note(&[*cookie], id);
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn note(&mut self, cookies: &[u64], id: ConnectionId) {
        for cookie in cookies {
            if let Some(socket) = self.sockets.get_mut(cookie) {
                socket.connection = Some(id);
            }
        }
    }

    /// The peer with this address.
    fn peer(&self, ip: IpAddr) -> IpAddr {
        self.config
            .peers
            .iter()
            .find(|peer| peer.contains(&ip))
            .and_then(|peer| peer.first())
            .map_or(ip, |ip| *ip)
    }

    /// Notes sizes that the program has set itself, and takes back the share of connections that
    /// have sent nothing for a while.
    fn rest(&mut self, now: Instant) {
        let mut latest = BTreeMap::<ConnectionId, Instant>::new();
        for (id, flow) in self.tuner.all() {
            let Some(socket) = flow.place.cookie().and_then(|cookie| self.sockets.get_mut(&cookie)) else {
                continue;
            };
            let acknowledged = flow.info.bytes_acked.unwrap_or(0);
            if flow.memory.queued > 0 || acknowledged != socket.busy.1 {
                socket.busy = (now, acknowledged);
            }
            let last = latest.entry(id).or_insert(socket.busy.0);
            *last = (*last).max(socket.busy.0);
        }
        for socket in self.sockets.values_mut() {
            // The program's own choice is the one to restore.
            if let Some(send_buffer) = socket.foreign.take_overridden() {
                socket.before = Settings { send_buffer, locked: true, ..socket.before };
                self.unsaved = true;
            }
        }
        for (id, _) in latest.iter().filter(|(_, last)| now.saturating_since(**last) >= QUIET) {
            self.tuner.remove(*id);
            for socket in self.sockets.values_mut().filter(|socket| socket.connection == Some(*id)) {
                socket.connection = None;
                if let Ok(open) = socket.foreign.open() {
                    let _ = socket.foreign.limit(&open, LEAST_SEND_BUFFER);
                }
            }
        }
    }
}

/// What a descriptor is.
enum Met {
    /// A connection of TCP, with its cookie.
    Connection(u64),
    /// A socket that may become one.
    NotConnected,
    /// Something else.
    Other,
}

/// Restores sockets that another process has tuned, and left.
pub fn restore(saved: &[Saved]) -> Restored {
    let mut open = BTreeMap::new();
    let processes: BTreeSet<(u32, u64)> = saved.iter().map(|saved| (saved.pid, saved.started)).collect();
    for (pid, started) in processes {
        let Ok(process) = Process::open(pid) else { continue };
        if process.started() != started {
            continue;
        }
        let found = process.sockets().unwrap_or_default();
        let duplicates = found.into_iter().filter_map(|(number, _)| process.duplicate(number).ok());
        for socket in duplicates.filter(is_tcp) {
            if let Ok(cookie) = rustix::net::sockopt::socket_cookie(&socket) {
                open.insert(cookie, socket);
            }
        }
    }
    let missing: BTreeSet<u64> =
        saved.iter().map(|saved| saved.cookie).filter(|cookie| !open.contains_key(cookie)).collect();
    open.extend(elsewhere(&missing, |_| true));
    let mut restored = Restored::default();
    saved.iter().for_each(|saved| restored.count(open.remove(&saved.cookie), saved.settings));
    restored
}

/// Finds these sockets in all processes that may be traced. A process shares its sockets with its
/// children, and may pass them to others (SCM_RIGHTS).
fn elsewhere(cookies: &BTreeSet<u64>, is_candidate: impl Fn(u64) -> bool) -> BTreeMap<u64, OwnedFd> {
    let mut found = BTreeMap::new();
    if cookies.is_empty() {
        return found;
    }
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        let Ok(process) = Process::open(pid) else { continue };
        for (number, _) in process.sockets().unwrap_or_default().into_iter().filter(|s| is_candidate(s.1)) {
            let Ok(socket) = process.duplicate(number) else { continue };
            match rustix::net::sockopt::socket_cookie(&socket) {
                Ok(cookie) if cookies.contains(&cookie) => _ = found.insert(cookie, socket),
                _ => {}
            }
        }
    }
    found
}

impl Restored {
    fn add(&mut self, other: Self) {
        self.sockets += other.sockets;
        self.closed += other.closed;
        self.locked += other.locked;
    }

    fn count(&mut self, socket: Option<OwnedFd>, settings: Settings) {
        let Some(socket) = socket else {
            self.closed += 1;
            return;
        };
        match settings.restore(&socket) {
            Ok(()) => self.sockets += 1,
            Err(_) => self.locked += 1,
        }
    }
}

/// Interval at which new sockets are looked for.
const SCAN: Duration = Duration::from_millis(50);
/// Time after which sockets that the processes no longer have are looked for in others.
const SEARCH: Duration = Duration::from_secs(1);
/// Time without data after which a connection is idle.
const QUIET: Duration = Duration::from_secs(10);
