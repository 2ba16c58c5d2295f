//! Assignment of the pool. No buffer grows before another has shrunk, and none shrinks below its
//! contents.

use alloc::vec::Vec;

use super::share::fit;
use super::view::{Connection, ConnectionId};

/// The size that the owner must set for a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Id of the connection.
    pub id: ConnectionId,
    /// Decided size in bytes, at least one MSS.
    pub target: u64,
    /// Memory of the pool that the connection has now, in bytes. It exceeds the target while the
    /// buffer holds more than the target, and is below it while other buffers do. Further
    /// assignments move it to the target.
    pub limit: u64,
}

impl Assignment {
    /// Size up to which the buffer may be filled from now on, in bytes. A buffer above its target
    /// accepts no data: an application that writes whenever there is room would otherwise keep it
    /// at the limit, and the memory for others would never become free.
    pub fn size(&self) -> u64 {
        self.target.min(self.limit)
    }
}

/// The pool and its connections, sorted by id.
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

    /// Sets new targets, cut to fit the pool; returns whether a cut was necessary.
    pub(super) fn aim(&mut self, asks: &[u64]) -> bool {
        let least: Vec<u64> = self.connections.iter().map(|c| u64::from(c.mss)).collect();
        let targets = fit(asks, &least, self.threshold);
        for (connection, target) in self.connections.iter_mut().zip(&targets) {
            connection.target = *target;
        }
        targets.iter().zip(asks).any(|(target, ask)| target < ask)
    }

    /// Moves limits towards their targets as far as possible: down to the buffers' contents, then
    /// up by the freed memory, first one segment for each connection.
    pub(super) fn settle(&mut self) {
        // Shrinking comes first, so that the freed memory can be assigned in the same call.
        for connection in &mut self.connections {
            if connection.limit > connection.target {
                connection.limit = connection.target.max(connection.occupied.min(connection.limit));
            }
        }
        let mut held: u128 = self.connections.iter().map(holds).sum();
        let segment = |connection: &Connection| connection.target.min(u64::from(connection.mss));
        let whole = |connection: &Connection| connection.target;
        // First one segment for each connection, so that none is blocked while large buffers drain.
        for aim in [segment as fn(&Connection) -> u64, whole] {
            for connection in &mut self.connections {
                let others = held - holds(connection);
                let room = u128::from(self.threshold).saturating_sub(others + u128::from(connection.limit));
                let missing = u128::from(aim(connection).saturating_sub(connection.limit));
                // At most `missing`, which fits into 64 bits.
                connection.limit += missing.min(room) as u64;
                held = others + holds(connection);
            }
        }
    }

    /// Returns the next assignment: buffers that shrink come first.
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

/// Memory that is not available to others. An owner that acts late may have more in the buffer than
/// its limit.
fn holds(connection: &Connection) -> u128 {
    u128::from(connection.limit.max(connection.occupied))
}
