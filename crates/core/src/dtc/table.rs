//! The connections that a node knows: bounded, in no order that a hash decides.

use alloc::vec::Vec;

use super::connection::Connection;
use super::flow::Key;
use crate::time::{Duration, Instant};

/// Connections beside the words that find them.
#[derive(Clone, Debug)]
pub(super) struct Table {
    tags: Vec<u32>,
    connections: Vec<Connection>,
    capacity: usize,
}

impl Table {
    pub(super) fn new(capacity: usize) -> Self {
        Self { tags: Vec::new(), connections: Vec::new(), capacity: capacity.max(1) }
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
        &self.connections[at]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> &mut Connection {
        &mut self.connections[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter()
    }

    /// The index of the new one.
    pub(super) fn insert(&mut self, connection: Connection) -> usize {
        self.tags.push(connection.key.tag());
        self.connections.push(connection);
        self.connections.len() - 1
    }

    /// Forgets one; the index of the one that takes its place.
    pub(super) fn remove(&mut self, at: usize) -> usize {
        self.tags.swap_remove(at);
        self.connections.swap_remove(at);
        self.connections.len()
    }

    /// The one silent for longest among those that `spare` does not protect.
    pub(super) fn stalest(&self, spare: impl Fn(usize) -> bool) -> Option<usize> {
        let candidates = self.connections.iter().enumerate().filter(|(at, _)| !spare(*at));
        candidates.min_by_key(|(_, c)| c.last_seen).map(|(at, _)| at)
    }

    /// One that was silent for `idle`.
    pub(super) fn idle(&self, now: Instant, idle: Duration) -> Option<usize> {
        self.connections.iter().position(|c| now.saturating_since(c.last_seen) >= idle)
    }
}
