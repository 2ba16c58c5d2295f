//! The TCP host of a node: its table of connections, its listeners, its ports. It holds; what acts on the
//! connections is [`crate::world`].

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use anabranch_core::segment::{Segment, SeqNumber};
use anabranch_core::tcp::{Config, Connection};
use anabranch_core::time::Instant;

use crate::event::AppId;
use crate::packet::NodeId;
use crate::random::Stream;
use crate::stream::ConnId;

/// First port of those given to [`crate::app::Ctx::connect`] (RFC 6335 section 6).
pub const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// Half-open connections that a listener holds, unless told otherwise.
pub const BACKLOG: u32 = 128;

/// Why a port cannot be listened on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// An application of the node already does.
    #[error("port {0} is already listened on")]
    PortInUse(u16),
}

/// Why a connection cannot be tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Every ephemeral port is in use towards that peer and port.
    #[error("no ephemeral port is left towards that peer and port")]
    NoPortLeft,
}

/// Who began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Ours,
    /// A peer, through our listener; `pending` until open.
    Listener,
    ListenerPending,
}

/// A connection and what the host knows of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) connection: Connection,
    pub(crate) app: AppId,
    pub(crate) remote: NodeId,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) origin: Origin,
    /// When the earliest pending time-out event comes.
    pub(crate) armed: Option<Instant>,
    /// It is on the list of those to be looked after.
    pub(crate) dirty: bool,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

#[derive(Debug)]
struct Listener {
    config: Config,
    app: AppId,
    backlog: u32,
    half_open: u32,
}

/// Ports and peer of a connection, as one word: peer, local port, remote port.
fn key(local_port: u16, remote: NodeId, remote_port: u16) -> u64 {
    u64::from(remote.0) << 32 | u64::from(local_port) << 16 | u64::from(remote_port)
}

/// Multiplies by an odd constant (Fibonacci hashing). Peers of a simulation do not attack its tables, and
/// the table is never iterated.
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

/// What a segment for which there is no connection gets.
pub(crate) enum Stranger {
    /// A new connection.
    Accepted(u32),
    /// Nobody listens, or it is not a SYN: a reset.
    Unwanted(Segment),
    /// The backlog is full: silence.
    Overloaded,
}

/// The TCP host of one node.
pub(crate) struct Host {
    slots: Vec<Slot>,
    free: Vec<u32>,
    table: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    listeners: BTreeMap<u16, Listener>,
    next_port: u16,
    iss: Stream,
}

impl Host {
    /// A host without connections; `iss` gives initial sequence numbers.
    pub(crate) fn new(iss: Stream) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            table: HashMap::default(),
            listeners: BTreeMap::new(),
            next_port: FIRST_EPHEMERAL_PORT,
            iss,
        }
    }

    /// Finds the slot for a segment from `src`.
    #[inline]
    pub(crate) fn find(&self, src: NodeId, segment: &Segment) -> Option<u32> {
        self.table.get(&key(segment.dst_port, src, segment.src_port)).copied()
    }

    /// The connection in a slot.
    #[inline]
    fn entry(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.entry.as_mut()
    }

    /// The connection in a slot, if it is still that one.
    #[inline]
    pub(crate) fn get(&mut self, id: ConnId) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_mut() } else { None }
    }

    /// As [`Host::get`], to look at.
    pub(crate) fn peek(&self, id: ConnId) -> Option<&Entry> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_ref() } else { None }
    }

    /// The name of the connection in a slot.
    #[inline]
    pub(crate) fn id(&self, slot: u32) -> ConnId {
        ConnId { slot, generation: self.slots[slot as usize].generation }
    }

    /// All connections, by slot.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnId> {
        let taken = self.slots.iter().enumerate().filter(|(_, s)| s.entry.is_some());
        taken.map(|(i, s)| ConnId { slot: i as u32, generation: s.generation })
    }

    /// Number of connections, those that are closing included.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Opens a connection from an ephemeral port.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        app: AppId,
        remote: NodeId,
        remote_port: u16,
        config: Config,
    ) -> Result<ConnId, ConnectError> {
        let local_port = self.ephemeral_port(remote, remote_port)?;
        let iss = self.iss();
        let connection = Connection::connect(now, config, local_port, remote_port, iss);
        let origin = Origin::Ours;
        let entry =
            Entry { connection, app, remote, local_port, remote_port, origin, armed: None, dirty: false };
        let slot = self.insert(entry);
        Ok(self.id(slot))
    }

    /// Answers SYNs to a port.
    pub(crate) fn listen(
        &mut self,
        app: AppId,
        port: u16,
        config: Config,
        backlog: u32,
    ) -> Result<(), ListenError> {
        if self.listeners.contains_key(&port) {
            return Err(ListenError::PortInUse(port));
        }
        self.listeners.insert(port, Listener { config, app, backlog, half_open: 0 });
        Ok(())
    }

    /// No longer answers SYNs to a port; open connections stay.
    pub(crate) fn unlisten(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// A segment for which there is no connection.
    pub(crate) fn handle_stranger(&mut self, now: Instant, src: NodeId, segment: Segment) -> Stranger {
        let Some(listener) = self.listeners.get(&segment.dst_port) else {
            return Stranger::Unwanted(segment);
        };
        let (config, app, full) = (listener.config, listener.app, listener.half_open >= listener.backlog);
        let iss = self.iss();
        let Some(connection) = Connection::accept(now, config, &segment, iss) else {
            return Stranger::Unwanted(segment);
        };
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
            origin: Origin::ListenerPending,
            armed: None,
            dirty: false,
        };
        Stranger::Accepted(self.insert(entry))
    }

    /// A listener's connection has become open.
    pub(crate) fn opened(&mut self, slot: u32) {
        let Some(entry) = self.entry(slot) else { return };
        if entry.origin == Origin::ListenerPending {
            entry.origin = Origin::Listener;
            let port = entry.local_port;
            self.half_open(port, -1);
        }
    }

    /// Forgets a connection. Its id names nothing from now on.
    pub(crate) fn remove(&mut self, slot: u32) {
        let this = &mut self.slots[slot as usize];
        let Some(entry) = this.entry.take() else { return };
        this.generation = this.generation.wrapping_add(1);
        self.free.push(slot);
        self.table.remove(&key(entry.local_port, entry.remote, entry.remote_port));
        if entry.origin == Origin::ListenerPending {
            self.half_open(entry.local_port, -1);
        }
    }

    /// Forgets all connections and listeners.
    pub(crate) fn clear(&mut self) {
        for slot in 0..self.slots.len() {
            self.remove(slot as u32);
        }
        self.listeners.clear();
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        let key = key(entry.local_port, entry.remote, entry.remote_port);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, entry: None });
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].entry = Some(entry);
        self.table.insert(key, slot);
        slot
    }

    fn half_open(&mut self, port: u16, change: i32) {
        if let Some(listener) = self.listeners.get_mut(&port) {
            listener.half_open = listener.half_open.saturating_add_signed(change);
        }
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
