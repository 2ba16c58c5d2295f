//! The table of connections: bounded, and with an order that does not depend on hashing.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::connection::Connection;
use super::flow::Key;
use super::index::{Index, NONE};
use crate::time::{Duration, Instant};

/// The connections, in a list by the time of their last segments.
#[derive(Clone, Debug)]
pub(super) struct Table {
    connections: Vec<Connection>,
    /// The connections by their tags; a small table is searched.
    index: Option<Box<Index>>,
    /// The connections with the longest and the shortest silence.
    stalest: u32,
    newest: u32,
    /// The connection state behind [`Table::STATELESS`].
    stateless: Connection,
}

impl Table {
    /// Index of a connection without a place: a blank state that is reset by the next such
    /// connection.
    pub(super) const STATELESS: usize = usize::MAX;

    /// Number of connections up to which all memory is allocated at the start, and connections are
    /// found without an index.
    pub(super) const SMALL: usize = 8;

    pub(super) fn new(capacity: usize) -> Self {
        // A small table never grows, so that the memory of a small node is known in advance.
        let (first, index) =
            if capacity > Self::SMALL { (0, Some(Box::default())) } else { (capacity, None) };
        Self {
            connections: Vec::with_capacity(first),
            index,
            stalest: NONE,
            newest: NONE,
            stateless: Connection::new(Key::NONE, Instant::ZERO, [NONE; 2]),
        }
    }

    #[inline]
    pub(super) fn find(&self, key: &Key) -> Option<usize> {
        let is_it = |at: &usize| self.connections[*at].key == *key;
        match &self.index {
            Some(index) => index.find(key.tag(), |at| is_it(&at)),
            None => (0..self.connections.len()).find(is_it),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> &Connection {
        self.connections.get(at).unwrap_or(&self.stateless)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> &mut Connection {
        self.connections.get_mut(at).unwrap_or(&mut self.stateless)
    }

    /// Adds a connection; returns its index.
    pub(super) fn insert(&mut self, connection: Connection) -> usize {
        let at = self.connections.len();
        if let Some(index) = &mut self.index {
            index.insert(connection.key.tag(), at);
        }
        self.connections.push(connection);
        self.append(at);
        at
    }

    /// Notes a segment of a connection.
    #[inline]
    pub(super) fn touch(&mut self, at: usize, now: Instant) {
        self.get_mut(at).last_seen = now;
        if at != Self::STATELESS && self.newest != at as u32 {
            self.unlink(at);
            self.append(at);
        }
    }

    /// Sets the state of a connection without a place; returns its index.
    pub(super) fn set_stateless(&mut self, connection: Connection) -> usize {
        self.stateless = connection;
        Self::STATELESS
    }

    /// Removes a connection; the last one takes its index.
    pub(super) fn remove(&mut self, at: usize) {
        self.unlink(at);
        let removed = self.connections.swap_remove(at);
        if let Some(index) = &mut self.index {
            index.remove(removed.key.tag(), at);
        }
        let from = self.connections.len();
        if at < from {
            let Connection { key, older, newer, .. } = self.connections[at];
            if let Some(index) = &mut self.index {
                index.renumber(key.tag(), from, at);
            }
            *self.newer_of(older) = at as u32;
            *self.older_of(newer) = at as u32;
        }
    }

    /// The connection with the longest silence.
    pub(super) fn stalest(&self) -> Option<usize> {
        (self.stalest != NONE).then_some(self.stalest as usize)
    }

    /// A connection that was silent for `idle`.
    pub(super) fn idle(&self, now: Instant, idle: Duration) -> Option<usize> {
        self.stalest().filter(|at| now.saturating_since(self.connections[*at].last_seen) >= idle)
    }

    /// Puts a connection at the end of the list.
    fn append(&mut self, at: usize) {
        let older = core::mem::replace(&mut self.newest, at as u32);
        *self.newer_of(older) = at as u32;
        (self.connections[at].older, self.connections[at].newer) = (older, NONE);
    }

    fn unlink(&mut self, at: usize) {
        let Connection { older, newer, .. } = self.connections[at];
        *self.newer_of(older) = newer;
        *self.older_of(newer) = older;
    }

    /// The link to the connection after `older`, or to the first.
    fn newer_of(&mut self, older: u32) -> &mut u32 {
        match older {
            NONE => &mut self.stalest,
            older => &mut self.connections[older as usize].newer,
        }
    }

    /// The link to the connection before `newer`, or to the last.
    fn older_of(&mut self, newer: u32) -> &mut u32 {
        match newer {
            NONE => &mut self.newest,
            newer => &mut self.connections[newer as usize].older,
        }
    }
}
