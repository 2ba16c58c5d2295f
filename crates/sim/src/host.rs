//! The host of a node: its connections and their subflows, its listeners and its ports. It holds
//! the state; [`crate::world`] operates the connections.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::hash::{BuildHasherDefault, Hasher};

use anabranch_core::mptcp::{self, JoinError, Secrets, SubflowId, join_token};
use anabranch_core::segment::{AddressId, Key, Segment, SeqNumber};
use anabranch_core::sockbuf::OpenError;
use anabranch_core::tcp;
use anabranch_core::time::Instant;

use crate::event::AppId;
use crate::packet::{IpVersion, NodeId};
use crate::random::Stream;
use crate::stream::ConnId;
use crate::transport::{Transport, TransportConfig, path_id};

/// First of the ports for [`crate::app::Ctx::connect`] (RFC 6335 section 6).
pub const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// Default number of half-open connections that a listener holds.
pub const BACKLOG: u32 = 128;

/// Reason why an application cannot listen on a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// An application of the node already listens on it.
    #[error("port {0} is already listened on")]
    PortInUse(u16),
}

/// Reason why an application cannot bind a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// An application of the node has bound it already.
    #[error("datagrams to port {0} are already taken")]
    PortInUse(u16),
}

/// Reason why a datagram cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// The payload exceeds the largest datagram.
    #[error("a datagram carries at most {most} bytes, not {octets}")]
    TooLong {
        /// Length of the payload in bytes.
        octets: usize,
        /// Largest length in bytes.
        most: usize,
    },
    /// There is no such node.
    #[error("there is no node {0:?}")]
    NoSuchNode(NodeId),
}

/// Largest payload of a datagram in bytes, in both versions of IP (RFC 791, RFC 768).
pub const MAX_DATAGRAM: usize = 65_507;

/// Reason why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The node's pool of send buffers has no room for one segment.
    #[error(transparent)]
    NoBuffer(#[from] OpenError),
    /// All ephemeral ports are in use towards this peer and port.
    #[error("no ephemeral port is left towards that peer and port")]
    NoPortLeft,
    /// Another subflow cannot be opened.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The connection is over, or is not a multipath connection.
    #[error("there is no multipath connection to join")]
    NoConnection,
}

/// The side that opened a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Ours,
    /// A peer, through a listener; `ListenerPending` until the connection is open.
    Listener,
    ListenerPending,
}

/// A connection and the host's state about it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) connection: Transport,
    pub(crate) app: AppId,
    pub(crate) remote: NodeId,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// The path to which TCP keeps; a multipath connection has one for each subflow.
    pub(crate) path: u8,
    /// Local and remote ports of further subflows.
    pub(crate) joined: Vec<(u16, u16)>,
    pub(crate) origin: Origin,
    /// Time of the earliest pending time-out event.
    pub(crate) armed: Option<Instant>,
    /// Whether it is on the list of connections to be looked after.
    pub(crate) dirty: bool,
    /// Whether it is among the connections touched since the last query.
    pub(crate) noted: bool,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

#[derive(Debug)]
struct Listener {
    config: TransportConfig,
    app: AppId,
    backlog: u32,
    half_open: u32,
}

/// Ports and peer of a connection as one word: peer, local port, remote port.
fn key(local_port: u16, remote: NodeId, remote_port: u16) -> u64 {
    u64::from(remote.0) << 32 | u64::from(local_port) << 16 | u64::from(remote_port)
}

/// Multiplies by an odd constant (Fibonacci hashing). Simulated peers do not attack the table, and
/// it is never iterated, so its order does not affect results.
#[derive(Clone, Copy, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Result of a segment without a connection.
pub(crate) enum Stranger {
    /// A new connection, or another subflow of one.
    Accepted(u32),
    /// No listener, or not a SYN: the reset to send.
    Unwanted(Segment),
    /// The backlog is full: no answer.
    Overloaded,
}

/// The TCP host of one node.
pub(crate) struct Host {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By key: the slot of a connection, and the number of the subflow.
    table: HashMap<u64, (u32, u16), BuildHasherDefault<KeyHasher>>,
    listeners: BTreeMap<u16, Listener>,
    /// By port: the application that receives the datagrams.
    bound: BTreeMap<u16, AppId>,
    /// The application that receives segments in place of this host.
    pub(crate) taker: Option<AppId>,
    next_port: u16,
    iss: Stream,
    ip: IpVersion,
}

impl Host {
    /// A host without connections; `iss` gives initial sequence numbers.
    pub(crate) fn new(iss: Stream, ip: IpVersion) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            table: HashMap::default(),
            listeners: BTreeMap::new(),
            bound: BTreeMap::new(),
            taker: None,
            next_port: FIRST_EPHEMERAL_PORT,
            iss,
            ip,
        }
    }

    /// Finds the slot and subflow for a segment from `src`.
    #[inline]
    pub(crate) fn find(&self, src: NodeId, segment: &Segment) -> Option<(u32, u16)> {
        self.table.get(&key(segment.dst_port, src, segment.src_port)).copied()
    }

    /// The connection in a slot.
    #[inline]
    fn entry(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.entry.as_mut()
    }

    /// The connection with this id, if it still exists.
    #[inline]
    pub(crate) fn get(&mut self, id: ConnId) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_mut() } else { None }
    }

    /// As [`Host::get`], for reading.
    pub(crate) fn peek(&self, id: ConnId) -> Option<&Entry> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_ref() } else { None }
    }

    /// The id of the connection in a slot.
    #[inline]
    pub(crate) fn id(&self, slot: u32) -> ConnId {
        ConnId { slot, generation: self.slots[slot as usize].generation }
    }

    /// All connections, by slot.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnId> {
        let taken = self.slots.iter().enumerate().filter(|(_, s)| s.entry.is_some());
        taken.map(|(i, s)| ConnId { slot: i as u32, generation: s.generation })
    }

    /// Number of connections, including those that are closing.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Opens a connection from an ephemeral port, over the path with this number.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        app: AppId,
        (remote, remote_port): (NodeId, u16),
        config: TransportConfig,
        path: u8,
    ) -> Result<ConnId, ConnectError> {
        let local_port = self.ephemeral_port(remote, remote_port)?;
        let number = path;
        let connection = match config.over(self.ip) {
            TransportConfig::Tcp(config) => {
                Transport::Tcp(tcp::Connection::connect(now, config, local_port, remote_port, self.iss()))
            }
            TransportConfig::Multipath(config) => {
                let (ports, secrets) = ((local_port, remote_port), self.secrets());
                let path = path_id(path);
                Transport::Multipath(Box::new(mptcp::Connection::connect(now, config, path, ports, secrets)))
            }
        };
        let slot = self.insert(Entry {
            connection,
            app,
            remote,
            local_port,
            remote_port,
            path: number,
            joined: Vec::new(),
            origin: Origin::Ours,
            armed: None,
            dirty: false,
            noted: false,
        });
        Ok(self.id(slot))
    }

    /// Opens another subflow of a connection from another port, with its own TCP configuration if
    /// one is given.
    pub(crate) fn join(
        &mut self,
        now: Instant,
        id: ConnId,
        path: u8,
        tcp: Option<tcp::Config>,
    ) -> Result<SubflowId, ConnectError> {
        let entry = self.peek(id).ok_or(ConnectError::NoConnection)?;
        let (remote, remote_port) = (entry.remote, entry.remote_port);
        let local_port = self.ephemeral_port(remote, remote_port)?;
        let secrets = self.secrets();
        let tcp = tcp.map(|tcp| tcp::Config { default_mss: self.ip.default_mss(), ..tcp });
        let entry = self.get(id).ok_or(ConnectError::NoConnection)?;
        let connection = entry.connection.multipath_mut().ok_or(ConnectError::NoConnection)?;
        let ports = (local_port, remote_port);
        let subflow = connection.join(now, (path_id(path), AddressId(path)), ports, tcp, secrets)?;
        entry.joined.push(ports);
        self.table.insert(key(local_port, remote, remote_port), (id.slot, subflow.0));
        Ok(subflow)
    }

    /// Accepts SYNs to a port.
    pub(crate) fn listen(
        &mut self,
        app: AppId,
        port: u16,
        config: TransportConfig,
        backlog: u32,
    ) -> Result<(), ListenError> {
        if self.listeners.contains_key(&port) {
            return Err(ListenError::PortInUse(port));
        }
        let config = config.over(self.ip);
        self.listeners.insert(port, Listener { config, app, backlog, half_open: 0 });
        Ok(())
    }

    /// Stops accepting SYNs to a port; open connections remain.
    pub(crate) fn unlisten(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Whether a SYN to a listener replaces the connection of a slot, which is in TIME-WAIT (RFC
    /// 6191). Returns the least initial sequence number of the new connection. The old one is
    /// removed like any other that is over.
    #[cold]
    pub(crate) fn give_way(&mut self, now: Instant, slot: u32, syn: &Segment) -> Option<SeqNumber> {
        // A connection is replaced only if the new one will be accepted.
        let listener = self.listeners.get(&syn.dst_port)?;
        if listener.half_open >= listener.backlog || join_token(syn).is_some() {
            return None;
        }
        self.entry(slot)?.connection.give_way(now, syn)
    }

    /// Handles a segment without a connection. `least` is the least initial sequence number of a
    /// new connection, if it replaces another.
    pub(crate) fn handle_stranger(
        &mut self,
        now: Instant,
        (src, path): (NodeId, u8),
        least: Option<SeqNumber>,
        segment: Segment,
    ) -> Stranger {
        let Some(listener) = self.listeners.get(&segment.dst_port) else {
            return Stranger::Unwanted(segment);
        };
        let (config, app, full) = (listener.config, listener.app, listener.half_open >= listener.backlog);
        if join_token(&segment).is_some() {
            return self.handle_join(now, src, path, segment);
        }
        let connection = match config {
            TransportConfig::Tcp(config) => {
                let iss = above(least, self.iss());
                tcp::Connection::accept(now, config, &segment, iss).map(Transport::Tcp)
            }
            TransportConfig::Multipath(config) => {
                let secrets = self.secrets();
                let accepted = mptcp::Connection::accept(now, config, path_id(path), &segment, secrets);
                accepted.map(|connection| Transport::Multipath(Box::new(connection)))
            }
        };
        let Some(connection) = connection else { return Stranger::Unwanted(segment) };
        if full {
            return Stranger::Overloaded;
        }
        self.half_open(segment.dst_port, 1);
        let entry = Entry {
            connection,
            app,
            remote: src,
            local_port: segment.dst_port,
            remote_port: segment.src_port,
            path,
            joined: Vec::new(),
            origin: Origin::ListenerPending,
            armed: None,
            dirty: false,
            noted: false,
        };
        Stranger::Accepted(self.insert(entry))
    }

    /// Handles a SYN that requests another subflow of a connection, identified by its token (RFC
    /// 8684 section 3.2).
    fn handle_join(&mut self, now: Instant, src: NodeId, path: u8, syn: Segment) -> Stranger {
        let secrets = self.secrets();
        let token = join_token(&syn);
        // A linear search: another subflow is opened rarely.
        let named = |entry: &Entry| entry.connection.multipath().is_some_and(|c| Some(c.token()) == token);
        let slot = self.slots.iter().position(|s| s.entry.as_ref().is_some_and(named));
        let Some((slot, entry)) = slot.and_then(|slot| Some((slot, self.slots[slot].entry.as_mut()?))) else {
            return Stranger::Unwanted(syn);
        };
        let Some(connection) = entry.connection.multipath_mut() else { return Stranger::Unwanted(syn) };
        match connection.accept_join(now, path_id(path), &syn, AddressId(path), secrets) {
            Ok(subflow) => {
                entry.joined.push((syn.dst_port, syn.src_port));
                self.table.insert(key(syn.dst_port, src, syn.src_port), (slot as u32, subflow.0));
                Stranger::Accepted(slot as u32)
            }
            Err(_) => Stranger::Unwanted(syn),
        }
    }

    /// A listener's connection has been established.
    pub(crate) fn opened(&mut self, slot: u32) {
        let Some(entry) = self.entry(slot) else { return };
        if entry.origin == Origin::ListenerPending {
            entry.origin = Origin::Listener;
            let port = entry.local_port;
            self.half_open(port, -1);
        }
    }

    /// Removes a connection. Its id is invalid from now on.
    pub(crate) fn remove(&mut self, slot: u32) {
        let this = &mut self.slots[slot as usize];
        let Some(entry) = this.entry.take() else { return };
        this.generation = this.generation.wrapping_add(1);
        self.free.push(slot);
        let own = key(entry.local_port, entry.remote, entry.remote_port);
        // After a replacement, the table entry belongs to the new connection.
        if self.table.get(&own).is_some_and(|(owner, _)| *owner == slot) {
            self.table.remove(&own);
        }
        for (local, remote) in &entry.joined {
            self.table.remove(&key(*local, entry.remote, *remote));
        }
        if entry.origin == Origin::ListenerPending {
            self.half_open(entry.local_port, -1);
        }
    }

    /// Removes all connections and listeners.
    pub(crate) fn clear(&mut self) {
        for slot in 0..self.slots.len() {
            self.remove(slot as u32);
        }
        self.listeners.clear();
        self.bound.clear();
        self.taker = None;
    }

    /// Passes the datagrams to a port to an application.
    pub(crate) fn bind(&mut self, app: AppId, port: u16) -> Result<(), BindError> {
        match self.bound.entry(port) {
            btree_map::Entry::Occupied(_) => Err(BindError::PortInUse(port)),
            btree_map::Entry::Vacant(place) => {
                place.insert(app);
                Ok(())
            }
        }
    }

    /// Stops passing the datagrams to a port, if `app` receives them.
    pub(crate) fn unbind(&mut self, app: AppId, port: u16) {
        if self.bound(port) == Some(app) {
            self.bound.remove(&port);
        }
    }

    /// The application that receives the datagrams to a port.
    pub(crate) fn bound(&self, port: u16) -> Option<AppId> {
        self.bound.get(&port).copied()
    }

    /// The connections to a node, by slot.
    pub(crate) fn towards(&self, node: NodeId) -> impl Iterator<Item = ConnId> {
        self.ids().filter(move |id| self.peek(*id).is_some_and(|entry| entry.remote == node))
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        let key = key(entry.local_port, entry.remote, entry.remote_port);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, entry: None });
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].entry = Some(entry);
        self.table.insert(key, (slot, 0));
        slot
    }

    fn half_open(&mut self, port: u16, change: i32) {
        if let Some(listener) = self.listeners.get_mut(&port) {
            listener.half_open = listener.half_open.saturating_add_signed(change);
        }
    }

    /// The unpredictable values of a multipath connection or another subflow.
    fn secrets(&mut self) -> Secrets {
        let key = Key(self.iss.bits());
        let word = self.iss.bits();
        Secrets { key, nonce: (word >> 32) as u32, iss: SeqNumber(word as u32) }
    }

    fn iss(&mut self) -> SeqNumber {
        SeqNumber(self.iss.bits() as u32)
    }

    fn ephemeral_port(&mut self, remote: NodeId, remote_port: u16) -> Result<u16, ConnectError> {
        for _ in FIRST_EPHEMERAL_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            let taken = self.table.contains_key(&key(port, remote, remote_port));
            if !taken && !self.listeners.contains_key(&port) {
                return Ok(port);
            }
        }
        Err(ConnectError::NoPortLeft)
    }
}

/// An initial sequence number that is at least `least`, and as hard to guess as `iss` but for one
/// bit.
fn above(least: Option<SeqNumber>, iss: SeqNumber) -> SeqNumber {
    if least.is_none_or(|least| iss.ge(least)) { iss } else { iss + (1 << 31) }
}
