//! A TCP and Multipath TCP host in memory: IP packets of several paths on one side, byte streams on
//! the other.
//!
//! The stack is driven like a connection of the core: `handle_*` and commands, then
//! [`Stack::poll_transmit`] and [`Stack::poll_event`] until `None`, then [`Stack::next_timeout`].
//!
//! * `paths` chooses the path of a connection and opens subflows on the others.
//! * `input` finds the connection of a packet.
//! * `buffers` lets buffers grow with the throughput of a connection.
//! * `queues` keeps the queues of transfers short while other connections exchange messages.
//! * `entropy` draws keys, ports and sequence numbers.

mod buffers;
mod entropy;
mod input;
mod paths;
mod queues;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use anabranch_core::mptcp::{Config, Connection, Event, PathId, Secrets, SubflowId, token_of};
use anabranch_core::segment::{Key, Segment, Token};
use anabranch_core::tcp::{self, CloseReason, KeepAlive, State, WriteError};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::{self, Header, Protocol};
use bytes::Bytes;

pub use paths::{PathConfig, PathReport};

use buffers::{Buffers, FIRST_BUFFER};
use entropy::Entropy;
use paths::Path;

/// Options of a [`Stack`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Options of each connection. The MSS follows from the MTU of the path, and the buffers grow
    /// with the throughput.
    pub config: Config,
    /// Limit on connections, including those that are closing. Further ones are refused.
    pub connections: usize,
    /// Limit on those of them that peers have opened, so that peers leave room for this host's own.
    pub accepted: usize,
    /// Bytes by which the buffers of all connections together may grow, beyond the first 32 KiB of
    /// each buffer.
    pub memory: u64,
    /// Queueing delay that a transfer may cause on a path while other connections exchange messages
    /// there; `None` is unlimited.
    pub queue_delay: Option<Duration>,
    /// Secret from which keys, nonces, ports and sequence numbers are derived. Two stacks must
    /// never have the same.
    pub seed: [u8; 32],
}

impl Options {
    /// A present-day host with this secret: [`tcp::Config::modern`], at most 16,384 connections,
    /// half of them opened by peers, 64 MiB, and a queueing delay of 10 ms.
    pub fn new(seed: [u8; 32]) -> Self {
        let tcp = tcp::Config {
            // As Linux does by default: some middleboxes drop a SYN that requests ECN.
            ecn: tcp::EcnMode::Accept,
            auto_tune: None,
            send_buffer: FIRST_BUFFER,
            receive_buffer: FIRST_BUFFER,
            keep_alive: Some(KeepAlive::LINUX),
            rto: tcp::RtoConfig {
                min: SHORTEST_RTO,
                granularity: SHORTEST_RTO,
                max: LONGEST_RTO,
                ..tcp::Config::modern().rto
            },
            // A peer with BBR would take the delay of the acknowledgement for that of a slow path,
            // and send the end of its next message later.
            ack_remainder: true,
            // As long as with a longest time-out of 60 s.
            data_retries: 255,
            ..tcp::Config::modern()
        };
        let config = Config {
            tcp,
            capable_syns: CAPABLE_SYNS,
            repeat_keys: true,
            silence: Some(SILENCE),
            ..Config::default()
        };
        let queue_delay = Some(QUEUE_DELAY);
        Self { config, connections: 16_384, accepted: 8192, memory: 64 << 20, queue_delay, seed }
    }
}

/// Id of a connection. An id is never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

/// An event for the owner of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackEvent {
    /// A peer has opened a connection to a port of [`Stack::listen`].
    Accepted {
        /// The connection, which the owner must release.
        id: ConnId,
        /// Port at which it was accepted.
        port: u16,
        /// Address of the peer.
        peer: SocketAddr,
    },
    /// The state of a connection has changed, or it can be read or written.
    Changed(ConnId),
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The handshake is not complete.
    Opening,
    /// Data flows.
    Open,
    /// The connection is over.
    Closed(CloseReason),
}

/// Result of [`Stack::read`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// Bytes in order.
    Data(Bytes),
    /// There are none now.
    Nothing,
    /// The peer has closed its direction, and everything before was read.
    End,
    /// The connection has failed.
    Failed(CloseReason),
}

/// Why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// No path is up and has an address of the destination's family.
    #[error("no interface leads there")]
    NoPath,
    /// The destination is no unicast address of another host.
    #[error("the destination is not an address of another host")]
    Destination,
    /// The limit on connections is reached, or all ports are in use.
    #[error("too many connections")]
    TooMany,
}

/// Local and remote address of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Tuple {
    local: SocketAddr,
    remote: SocketAddr,
}

/// A subflow as the stack sees it.
#[derive(Debug)]
struct Flow {
    path: PathId,
    tuple: Tuple,
    alive: bool,
    /// Retransmission time-outs that were noticed.
    timeouts: u64,
    /// The last acknowledgement, which TIME-WAIT repeats.
    last: Option<Box<Segment>>,
}

/// The end that has opened a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Ours,
    Theirs,
}

/// Another address of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Remote {
    id: u8,
    address: SocketAddr,
}

#[derive(Debug)]
struct Entry {
    connection: Box<Connection>,
    origin: Origin,
    /// By number of the subflow.
    flows: Vec<Flow>,
    /// Addresses that the peer has announced.
    remotes: Vec<Remote>,
    /// Joins that were tried, which are not repeated before `recover_at`.
    tried: Vec<(PathId, SocketAddr)>,
    /// Whether paths may lack a subflow.
    uncovered: bool,
    recover_at: Option<Instant>,
    /// When the rates of its paths are measured again.
    measure_at: Instant,
    /// Measurements at which data waited to be sent, less those at which none did, within bounds.
    waits: u8,
    /// When a released connection is aborted.
    orphan_at: Option<Instant>,
    /// Bytes that the peer had not taken when that time was set.
    orphan_rest: u64,
    /// The earliest entry of the heap of timers.
    armed: Option<Instant>,
    dirty: bool,
    noted: bool,
    open: bool,
    peer_closed: bool,
    closing: bool,
    released: bool,
    closed: Option<CloseReason>,
    buffers: Buffers,
}

impl Entry {
    fn new(connection: Connection, origin: Origin, (path, tuple): (PathId, Tuple), now: Instant) -> Self {
        Self {
            connection: Box::new(connection),
            origin,
            flows: vec![Flow::new(path, tuple)],
            remotes: Vec::new(),
            tried: Vec::new(),
            uncovered: true,
            recover_at: None,
            measure_at: now,
            waits: 0,
            orphan_at: None,
            orphan_rest: 0,
            armed: None,
            dirty: false,
            noted: false,
            open: false,
            peer_closed: false,
            closing: false,
            released: false,
            closed: None,
            buffers: Buffers::new(now),
        }
    }

    /// Whether nothing but TIME-WAIT remains.
    fn is_at_rest(&self) -> bool {
        self.closed.is_some()
            || (0..self.flows.len() as u16).all(|id| {
                let info = self.connection.subflow_info(SubflowId(id));
                info.is_none_or(|info| matches!(info.tcp.state, State::TimeWait | State::Closed))
            })
    }

    fn next_timeout(&self) -> Option<Instant> {
        [self.connection.next_timeout(), self.recover_at, self.orphan_at].into_iter().flatten().min()
    }
}

impl Flow {
    fn new(path: PathId, tuple: Tuple) -> Self {
        Self { path, tuple, alive: true, timeouts: 0, last: None }
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

/// A subflow in TIME-WAIT.
#[derive(Debug)]
struct Waiting {
    path: PathId,
    until: Instant,
    ack: Option<Box<Segment>>,
}

/// Counters of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Connections opened by this host.
    pub opened: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that continue as plain TCP, because the peer or the network lacks MPTCP.
    pub fallbacks: u64,
    /// Connections that have failed after they were open: reset by the peer, or without an answer.
    pub failed: u64,
    /// Packets dropped: malformed, fragments, other protocols, or beyond a limit.
    pub dropped: u64,
    /// Segments for no connection, which were answered with a reset.
    pub refused: u64,
}

/// A host in memory. See the module's documentation.
#[derive(Debug)]
pub struct Stack {
    config: Config,
    limit: usize,
    /// Limit on connections that peers have opened, and their number.
    accepted: (usize, usize),
    entropy: Entropy,
    paths: BTreeMap<PathId, Path>,
    listening: BTreeSet<u16>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    table: HashMap<Tuple, (u32, SubflowId)>,
    tokens: HashMap<Token, u32>,
    waiting: HashMap<Tuple, Waiting>,
    /// In the order of their ends.
    waits: VecDeque<(Instant, Tuple)>,
    timers: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    /// Connections that may have something to send.
    dirty: VecDeque<u32>,
    /// Segments sent in a row for the first of `dirty`.
    turn: u32,
    /// The MTU of paths to destinations, where a router has said that it is smaller, and until when
    /// that counts.
    mtus: HashMap<(PathId, IpAddr), (u32, Instant)>,
    /// Segments of no connection.
    loose: VecDeque<(PathId, Tuple, Segment)>,
    events: VecDeque<StackEvent>,
    half_open: usize,
    /// Bytes by which buffers may still grow.
    memory: u64,
    queue_delay: Option<Duration>,
    /// Identification of the next IPv4 packet.
    ident: u32,
    counters: Counters,
}

impl Stack {
    /// Creates a stack without paths.
    pub fn new(options: Options) -> Self {
        Self {
            config: options.config,
            limit: options.connections,
            accepted: (options.accepted, 0),
            entropy: Entropy::new(options.seed),
            paths: BTreeMap::new(),
            listening: BTreeSet::new(),
            slots: Vec::new(),
            free: Vec::new(),
            table: HashMap::new(),
            tokens: HashMap::new(),
            waiting: HashMap::new(),
            waits: VecDeque::new(),
            timers: BinaryHeap::new(),
            dirty: VecDeque::new(),
            turn: 0,
            mtus: HashMap::new(),
            loose: VecDeque::new(),
            events: VecDeque::new(),
            half_open: 0,
            memory: options.memory,
            queue_delay: options.queue_delay,
            ident: 0,
            counters: Counters::default(),
        }
    }

    /// Accepts connections to a port, on the addresses of all paths.
    pub fn listen(&mut self, port: u16) {
        self.listening.insert(port);
    }

    /// Opens a connection on the best path; further subflows follow on the others.
    ///
    /// # Errors
    /// There is no path, no port or no room, or the destination is not another host's address.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr) -> Result<ConnId, ConnectError> {
        if !is_remote(remote) {
            return Err(ConnectError::Destination);
        }
        let path = self.best_path(now, remote.ip(), &[]).ok_or(ConnectError::NoPath)?;
        if self.len() >= self.limit {
            return Err(ConnectError::TooMany);
        }
        let tuple = self.tuple(path, remote).ok_or(ConnectError::TooMany)?;
        let config = self.first_config(now, path, remote.ip());
        let secrets = self.secrets(now, tuple);
        let ports = (tuple.local.port(), remote.port());
        let connection = Connection::connect(now, config, path, ports, secrets);
        self.counters.opened += 1;
        Ok(self.insert(Entry::new(connection, Origin::Ours, (path, tuple), now)))
    }

    /// Returns up to `max` bytes that have arrived.
    pub fn read(&mut self, now: Instant, id: ConnId, max: usize) -> Read {
        let Some(entry) = self.get(id) else { return Read::End };
        let Some(data) = entry.connection.read(max) else {
            return match (entry.peer_closed, entry.closed) {
                (true, _) | (_, Some(CloseReason::Graceful)) => Read::End,
                (false, Some(reason)) => Read::Failed(reason),
                (false, None) => Read::Nothing,
            };
        };
        self.grow_receive(now, id.slot, data.len());
        self.touch(id.slot);
        Read::Data(data)
    }

    /// Bytes that [`Stack::write`] accepts now.
    pub fn space(&mut self, id: ConnId) -> usize {
        let Some(entry) = self.get(id) else { return 0 };
        let info = entry.connection.info();
        u64::from(info.send_buffer).saturating_sub(info.buffered) as usize
    }

    /// Queues data, as [`Connection::write`] does.
    ///
    /// # Errors
    /// The connection is closed or closing.
    pub fn write(&mut self, now: Instant, id: ConnId, data: &mut Bytes) -> Result<usize, WriteError> {
        let entry = self.get(id).ok_or(WriteError::Closed)?;
        let waited = entry.connection.unsent() > 0;
        if !waited {
            entry.note_idle(now);
        }
        let written = entry.connection.write(data)?;
        if written > 0 && !waited {
            self.note_message(now, id.slot);
        }
        self.grow_send(now, id.slot);
        self.touch(id.slot);
        Ok(written)
    }

    /// Closes the sending direction after the queued data.
    pub fn close(&mut self, now: Instant, id: ConnId) {
        if let Some(entry) = self.get(id) {
            entry.connection.close(now);
            entry.closing = true;
            self.touch(id.slot);
        }
    }

    /// Resets a connection and releases it. No effect on one that was released.
    pub fn abort(&mut self, now: Instant, id: ConnId) {
        if let Some(entry) = self.get(id).filter(|entry| !entry.released) {
            entry.connection.abort(now);
            self.release(now, id);
        }
    }

    /// Resets all connections. The owner releases those that it has.
    pub fn abort_all(&mut self, now: Instant) {
        for slot in 0..self.slots.len() as u32 {
            if let Some(entry) = self.entry(slot) {
                entry.connection.abort(now);
                self.touch(slot);
            }
        }
    }

    /// Ends the owner's interest in a connection. What remains is closed in both directions, and
    /// aborted if 60 s pass in which the peer takes no data.
    pub fn release(&mut self, now: Instant, id: ConnId) {
        if let Some(entry) = self.get(id) {
            entry.released = true;
            entry.closing = true;
            entry.orphan_at = Some(now + ORPHAN_TIME);
            entry.orphan_rest = entry.connection.info().buffered;
            entry.connection.close(now);
            self.touch(id.slot);
        }
    }

    /// State of a connection; a released one that is over counts as gracefully closed.
    pub fn status(&self, id: ConnId) -> Status {
        match self.peek(id) {
            None => Status::Closed(CloseReason::Graceful),
            Some(Entry { closed: Some(reason), .. }) => Status::Closed(*reason),
            Some(entry) if entry.open => Status::Open,
            Some(_) => Status::Opening,
        }
    }

    /// Statistics of a connection.
    pub fn info(&self, id: ConnId) -> Option<anabranch_core::mptcp::Info> {
        self.peek(id).map(|entry| entry.connection.info())
    }

    /// Number of connections, including those that are closing. Subflows in TIME-WAIT do not count.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of subflows in TIME-WAIT.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Writes the next packet to send to `out`, which is cleared first, and returns its path.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<PathId> {
        loop {
            if let Some((path, tuple, segment)) = self.loose.pop_front() {
                if self.emit(path, tuple, &segment, out) {
                    return Some(path);
                }
                continue;
            }
            let slot = *self.dirty.front()?;
            self.settle(now, slot);
            let Some(entry) = self.entry(slot) else {
                self.dirty.pop_front();
                continue;
            };
            let Some((id, segment)) = entry.connection.poll_transmit(now) else {
                self.rest(now, slot);
                continue;
            };
            let ends = entry.closing || entry.peer_closed;
            let Some(flow) = entry.flows.get_mut(usize::from(id.0)) else { continue };
            let (path, tuple) = (flow.path, flow.tuple);
            if ends && segment.payload.is_empty() {
                flow.last = Some(Box::new(segment.clone()));
            }
            self.turn += 1;
            if self.turn >= MOST_IN_A_ROW {
                // Others wait, and this connection may have more.
                self.turn = 0;
                self.dirty.rotate_left(1);
            }
            if self.emit(path, tuple, &segment, out) {
                return Some(path);
            }
        }
    }

    /// Returns the next event, until `None`.
    pub fn poll_event(&mut self) -> Option<StackEvent> {
        let event = self.events.pop_front()?;
        if let StackEvent::Changed(id) = event
            && let Some(entry) = self.get(id)
        {
            entry.noted = false;
        }
        Some(event)
    }

    /// When to call [`Stack::handle_timeout`]; may lie in the past.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        [timer, self.waits.front().map(|(at, _)| *at)].into_iter().flatten().min()
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(Reverse((at, slot, generation))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let Some(entry) = self.get(ConnId { slot, generation }) else { continue };
            if entry.armed != Some(at) {
                continue;
            }
            entry.armed = None;
            if entry.connection.next_timeout().is_some_and(|at| at <= now) {
                entry.connection.handle_timeout(now);
            }
            if entry.orphan_at.is_some_and(|at| at <= now) {
                // As long as the peer takes data, the connection has its time anew.
                let rest = entry.connection.info().buffered;
                if rest < std::mem::replace(&mut entry.orphan_rest, rest) {
                    entry.orphan_at = Some(now + ORPHAN_TIME);
                } else {
                    entry.orphan_at = None;
                    entry.connection.abort(now);
                }
            }
            if entry.recover_at.is_some_and(|at| at <= now) {
                entry.recover_at = None;
                entry.tried.clear();
                entry.uncovered = true;
            }
            self.notice_timeouts(now, slot);
            self.touch(slot);
        }
        while self.waits.front().is_some_and(|(at, _)| *at <= now) {
            let Some((at, tuple)) = self.waits.pop_front() else { break };
            if self.waiting.get(&tuple).is_some_and(|waiting| waiting.until == at) {
                self.waiting.remove(&tuple);
            }
        }
    }

    /// Lets a connection react to what has happened to it.
    fn settle(&mut self, now: Instant, slot: u32) {
        let mut changed = false;
        while let Some(event) = self.entry(slot).and_then(|entry| entry.connection.poll_event()) {
            changed = true;
            self.on_event(now, slot, event);
        }
        let id = self.id(slot);
        let Some(entry) = self.entry(slot) else { return };
        if changed && !entry.noted && !entry.released {
            entry.noted = true;
            self.events.push_back(StackEvent::Changed(id));
        }
        self.cover(now, slot);
    }

    fn on_event(&mut self, now: Instant, slot: u32, event: Event) {
        let id = self.id(slot);
        let Some(entry) = self.entry(slot) else { return };
        match event {
            Event::Established if !entry.open => {
                entry.open = true;
                let tuple = entry.flows[0].tuple;
                if entry.origin == Origin::Theirs {
                    let accepted = StackEvent::Accepted { id, port: tuple.local.port(), peer: tuple.remote };
                    self.half_open -= 1;
                    self.counters.accepted += 1;
                    self.events.push_back(accepted);
                }
                self.measure(slot, SubflowId(0));
                self.probe(now, slot);
            }
            Event::FellBack => {
                self.counters.fallbacks += 1;
                self.probe(now, slot);
            }
            Event::SubflowEstablished(subflow) => self.measure(slot, subflow),
            Event::SubflowClosed(subflow, _) => self.lose(now, slot, subflow),
            Event::AddressAdded { id, address, port } => self.learn(slot, id.0, address, port),
            Event::AddressRemoved(id) => entry.remotes.retain(|remote| remote.id != id.0),
            Event::PeerClosed => entry.peer_closed = true,
            Event::Closed(reason) => {
                entry.closed = Some(reason);
                let failed = matches!(reason, CloseReason::Reset | CloseReason::TimedOut) && entry.open;
                // The owner has never heard of it, so it would not release it.
                entry.released |= entry.origin == Origin::Theirs && !entry.open;
                self.counters.failed += u64::from(failed);
            }
            // The peer has taken data.
            Event::Writable => self.measure_rates(now, slot),
            Event::Established | Event::Readable | Event::Priority(..) => {}
        }
    }

    /// Handles a connection that has nothing to send: it waits for its timer, or is removed.
    fn rest(&mut self, now: Instant, slot: u32) {
        self.dirty.pop_front();
        self.turn = 0;
        let generation = self.id(slot).generation;
        let Some(entry) = self.entry(slot) else { return };
        entry.dirty = false;
        if entry.released && entry.is_at_rest() {
            return self.remove(now, slot);
        }
        if let Some(at) = entry.next_timeout()
            && entry.armed.is_none_or(|armed| at < armed)
        {
            entry.armed = Some(at);
            self.timers.push(Reverse((at, slot, generation)));
        }
    }

    fn insert(&mut self, entry: Entry) -> ConnId {
        let (tuple, token) = (entry.flows[0].tuple, entry.connection.token());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].entry = Some(entry);
        self.table.insert(tuple, (slot, SubflowId(0)));
        self.tokens.insert(token, slot);
        self.touch(slot);
        self.id(slot)
    }

    /// Removes a connection; its subflows in TIME-WAIT remain as such.
    fn remove(&mut self, now: Instant, slot: u32) {
        let time_wait = self.config.tcp.time_wait;
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        let Some(entry) = place.entry.take() else { return };
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        self.half_open -= usize::from(entry.origin == Origin::Theirs && !entry.open);
        self.accepted.1 -= usize::from(entry.origin == Origin::Theirs);
        self.memory += entry.buffers.grown();
        self.tokens.remove(&entry.connection.token());
        for (id, flow) in (0..).zip(entry.flows) {
            let info = entry.connection.subflow_info(SubflowId(id));
            if let (true, Some(info), Some(path)) = (flow.alive, info, self.paths.get_mut(&flow.path)) {
                path.count(&info);
            }
            // A tuple of a closed subflow may belong to another connection by now.
            if self.table.get(&flow.tuple) == Some(&(slot, SubflowId(id))) {
                self.table.remove(&flow.tuple);
                if info.is_some_and(|info| info.tcp.state == State::TimeWait) {
                    let until = now + time_wait;
                    self.waits.push_back((until, flow.tuple));
                    let waiting = Waiting { path: flow.path, until, ack: flow.last };
                    self.waiting.insert(flow.tuple, waiting);
                }
            }
        }
    }

    /// Writes the packet of a segment. Returns false if its path is down or it cannot be written.
    fn emit(&mut self, path: PathId, tuple: Tuple, segment: &Segment, out: &mut Vec<u8>) -> bool {
        out.clear();
        let Some(path) = self.paths.get_mut(&path).filter(|path| path.up) else { return false };
        let mut header = Header::new(tuple.local.ip(), tuple.remote.ip(), Protocol::TCP);
        // Routers may fragment an IPv4 packet, so its identification must be unique (RFC 6864).
        self.ident = self.ident.wrapping_add(1);
        header.ident = self.ident;
        if ip::emit_tcp(&header, segment, out).is_err() {
            return false;
        }
        path.sent(segment.payload.len());
        true
    }

    /// Marks a connection that may have something to send.
    fn touch(&mut self, slot: u32) {
        if let Some(entry) = self.entry(slot)
            && !std::mem::replace(&mut entry.dirty, true)
        {
            self.dirty.push_back(slot);
        }
    }

    fn entry(&mut self, slot: u32) -> Option<&mut Entry> {
        entry_of(&mut self.slots, slot)
    }

    fn id(&self, slot: u32) -> ConnId {
        ConnId { slot, generation: self.slots.get(slot as usize).map_or(0, |slot| slot.generation) }
    }

    fn get(&mut self, id: ConnId) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_mut() } else { None }
    }

    fn peek(&self, id: ConnId) -> Option<&Entry> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_ref() } else { None }
    }

    /// A local address and a free port for a connection or subflow on a path.
    fn tuple(&mut self, path: PathId, remote: SocketAddr) -> Option<Tuple> {
        let local = self.paths.get(&path)?.address(remote.is_ipv4())?;
        // RFC 6056 section 3.3.1: a random port, and the next free one.
        let range = u32::from(PORTS.end() - PORTS.start()) + 1;
        let first = self.entropy.draw() as u32 % range;
        (0..range).find_map(|i| {
            let port = PORTS.start() + ((first + i) % range) as u16;
            let tuple = Tuple { local: SocketAddr::new(local, port), remote };
            let used = self.table.contains_key(&tuple) || self.waiting.contains_key(&tuple);
            (!used && !self.listening.contains(&port)).then_some(tuple)
        })
    }

    /// Secrets of a new subflow, and of a new connection.
    fn secrets(&mut self, now: Instant, tuple: Tuple) -> Secrets {
        let iss = self.entropy.iss(now, tuple.local, tuple.remote);
        loop {
            let (key, nonce) = (Key(self.entropy.draw()), self.entropy.draw() as u32);
            // RFC 8684 section 3.1: the token identifies one connection of this host.
            if !self.tokens.contains_key(&token_of(key)) {
                return Secrets { key, nonce, iss };
            }
        }
    }

    /// The options of a connection that this host opens. A SYN without an answer is followed by one
    /// on another path, which requests Multipath TCP too: what was lost on a path that does not
    /// work says nothing about the server.
    fn first_config(&self, now: Instant, path: PathId, remote: IpAddr) -> Config {
        let config = self.config_on(now, path, remote);
        let paths = u8::try_from(self.leading(remote)).unwrap_or(u8::MAX);
        let capable_syns = if config.capable_syns > 0 { config.capable_syns.max(paths) } else { 0 };
        Config { capable_syns, ..config }
    }

    /// The options of a connection or subflow on a path to an address.
    fn config_on(&self, now: Instant, path: PathId, remote: IpAddr) -> Config {
        let mtu = self.paths.get(&path).map_or(least_mtu(remote), |path| path.mtu());
        let known = self.mtus.get(&(path, remote)).filter(|(_, until)| now < *until);
        let mss = mss(known.map_or(mtu, |(known, _)| mtu.min(*known)), remote);
        let default_mss = if remote.is_ipv4() { 536 } else { 1220 };
        Config { tcp: tcp::Config { mss, default_mss, ..self.config.tcp }, ..self.config }
    }
}

/// The largest payload and options of a segment in a packet of `mtu` bytes.
fn mss(mtu: u32, remote: IpAddr) -> u16 {
    let headers = if remote.is_ipv4() { 40 } else { 60 };
    mtu.saturating_sub(headers).clamp(88, 65_495) as u16
}

/// The MTU that every path has: RFC 8200 section 5, and for IPv4 what Linux believes at least
/// (net.ipv4.route.min_pmtu).
fn least_mtu(remote: IpAddr) -> u32 {
    if remote.is_ipv4() { 552 } else { 1280 }
}

/// The connection of a slot, while the other fields of the stack remain free.
fn entry_of(slots: &mut [Slot], slot: u32) -> Option<&mut Entry> {
    slots.get_mut(slot as usize)?.entry.as_mut()
}

/// Whether an address may be that of another host.
fn is_remote(address: SocketAddr) -> bool {
    let there = match address.ip() {
        IpAddr::V4(v4) => {
            !(v4.is_loopback() || v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.to_ipv4_mapped().is_some()
                || v6.is_unicast_link_local())
        }
    };
    there && address.port() != 0
}

/// Ephemeral ports, as on Linux by default.
const PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;
/// Number of SYNs with MP_CAPABLE, as on Linux by default, or more if there are more paths.
const CAPABLE_SYNS: u8 = 2;
/// Least time-out, and least distance from the round-trip time. Its first half covers the delayed
/// acknowledgements of Linux (40 ms). A time-out moves the data to another path, so a spurious one
/// costs little, and a late one is a pause of the whole connection.
const SHORTEST_RTO: Duration = Duration::from_millis(100);
/// Time beyond a round trip after which other subflows send the data of a silent one: Linux delays
/// acknowledgements by 40 ms.
const SILENCE: Duration = Duration::from_millis(50);
/// A subflow on a path that is silent tries again within this time, so that a path that returns is
/// used again within 2 s. RFC 6298 section 2.5 asks for 60 s if there is a limit at all; other
/// subflows carry the data meanwhile.
const LONGEST_RTO: Duration = Duration::from_millis(1500);
/// Queueing delay of transfers beside messages: a few packets on a path of several Mbit/s.
const QUEUE_DELAY: Duration = Duration::from_millis(10);
/// Time for a released connection to come to an end, as that of FIN-WAIT-2 on Linux.
const ORPHAN_TIME: Duration = Duration::from_secs(60);
/// Segments that a connection sends before others have their turn.
const MOST_IN_A_ROW: u32 = 64;
