//! Who has what of the pool. Nothing grows before something else has shrunk, and nothing shrinks
//! below what is in it.

use alloc::vec::Vec;

use super::share::fit;
use super::view::{Connection, ConnectionId};

/// What a buffer's owner is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Which connection's.
    pub id: ConnectionId,
    /// The size that was decided, bytes, at least one MSS.
    pub target: u64,
    /// What of the pool is the connection's now, bytes. Above the target while the buffer holds
    /// more than that; below while others do. It follows by further assignments.
    pub limit: u64,
}

impl Assignment {
    /// Bytes up to which the buffer is to be filled from now on. While it holds more than its
    /// target it takes nothing: an application that writes as soon as there is room would otherwise
    /// fill it up to the limit again and again, and what was meant for others would never be free.
    pub fn size(&self) -> u64 {
        self.target.min(self.limit)
    }
}

/// The pool and all who have a part of it, by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub threshold: u64,
    pub connections: Vec<Connection>,
}

impl Pool {
    pub(super) fn find(&self, id: ConnectionId) -> Result<usize, usize> {
        self.connections.binary_search_by_key(&id, |connection| connection.id)
    }

    /// Bytes that one segment for each connection takes.
    pub(super) fn least(&self) -> u64 {
        self.connections.iter().map(|c| u64::from(c.mss)).sum()
    }

    /// New targets, cut so that they fit; whether they had to be.
    pub(super) fn aim(&mut self, asks: &[u64]) -> bool {
        let least: Vec<u64> = self.connections.iter().map(|c| u64::from(c.mss)).collect();
        let targets = fit(asks, &least, self.threshold);
        for (connection, target) in self.connections.iter_mut().zip(&targets) {
            connection.target = *target;
        }
        targets.iter().zip(asks).any(|(target, ask)| target < ask)
    }

    /// Lets limits follow their targets as far as they can: down to what is in the buffer, then up
    /// to what that has freed, one segment for each first.
    pub(super) fn settle(&mut self) {
        for connection in &mut self.connections {
            if connection.limit > connection.target {
                connection.limit = connection.target.max(connection.occupied.min(connection.limit));
            }
        }
        let mut held: u128 = self.connections.iter().map(holds).sum();
        let segment = |connection: &Connection| connection.target.min(u64::from(connection.mss));
        let whole = |connection: &Connection| connection.target;
        for aim in [segment as fn(&Connection) -> u64, whole] {
            for connection in &mut self.connections {
                let others = held - holds(connection);
                let room = u128::from(self.threshold).saturating_sub(others + u128::from(connection.limit));
                let missing = u128::from(aim(connection).saturating_sub(connection.limit));
                // No more than `missing`, which came from 64 bits.
                connection.limit += missing.min(room) as u64;
                held = others + holds(connection);
            }
        }
    }

    /// The next answer: what shrinks before what grows.
    pub(super) fn poll(&mut self) -> Option<Assignment> {
        let news = |c: &&mut Connection| c.told != (c.target, c.limit);
        let shrinks = self.connections.iter_mut().find(|c| c.limit < c.told.1);
        let connection = match shrinks {
            Some(connection) => connection,
            None => self.connections.iter_mut().find(news)?,
        };
        connection.told = (connection.target, connection.limit);
        Some(Assignment { id: connection.id, target: connection.target, limit: connection.limit })
    }
}

/// What is not there for others. An owner that was slow to act has more in the buffer than it was
/// told.
fn holds(connection: &Connection) -> u128 {
    u128::from(connection.limit.max(connection.occupied))
}
