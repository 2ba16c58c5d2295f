//! The table of connections: bounded, and with an order that does not depend on hashing.

use alloc::vec::Vec;

use super::connection::Connection;
use super::flow::Key;
use crate::time::{Duration, Instant};

/// The connections, and their hashes for the search.
#[derive(Clone, Debug)]
pub(super) struct Table {
    tags: Vec<u32>,
    connections: Vec<Connection>,
    capacity: usize,
    /// The connection state behind [`Table::STATELESS`].
    stateless: Connection,
}

impl Table {
    /// Index of a connection without a place: a blank state that is reset by the next such
    /// connection.
    pub(super) const STATELESS: usize = usize::MAX;

    /// Number of connections for which memory is allocated at the start.
    pub(super) const SMALL: usize = 8;

    pub(super) fn new(capacity: usize) -> Self {
        let stateless = Connection::new(Key::NONE, Instant::ZERO);
        let capacity = capacity.max(1);
        // A small table never grows, so that the memory of a small node is known in advance.
        let first = capacity.min(Self::SMALL);
        let (tags, connections) = (Vec::with_capacity(first), Vec::with_capacity(first));
        Self { tags, connections, capacity, stateless }
    }

    #[inline]
    pub(super) fn find(&self, key: &Key) -> Option<usize> {
        let tag = key.tag();
        let mut from = 0;
        while let Some(next) = self.tags[from..].iter().position(|t| *t == tag) {
            let at = from + next;
            if self.connections[at].key == *key {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }

    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.connections.len() >= self.capacity
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> &Connection {
        self.connections.get(at).unwrap_or(&self.stateless)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> &mut Connection {
        self.connections.get_mut(at).unwrap_or(&mut self.stateless)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter()
    }

    /// Adds a connection; returns its index.
    pub(super) fn insert(&mut self, connection: Connection) -> usize {
        self.tags.push(connection.key.tag());
        self.connections.push(connection);
        self.connections.len() - 1
    }

    /// The index of a connection, or of a blank state.
    #[inline]
    pub(super) fn find_or_blank(&mut self, key: Key, now: Instant) -> usize {
        self.find(&key).unwrap_or_else(|| {
            self.stateless = Connection::new(key, now);
            Self::STATELESS
        })
    }

    /// Removes a connection; the last one takes its index.
    pub(super) fn remove(&mut self, at: usize) {
        self.tags.swap_remove(at);
        self.connections.swap_remove(at);
    }

    /// The connection with the longest silence.
    pub(super) fn stalest(&self) -> Option<usize> {
        let all = self.connections.iter().enumerate();
        all.min_by_key(|(_, c)| c.last_seen).map(|(at, _)| at)
    }

    /// A connection that was silent for `idle`.
    pub(super) fn idle(&self, now: Instant, idle: Duration) -> Option<usize> {
        self.connections.iter().position(|c| now.saturating_since(c.last_seen) >= idle)
    }
}
