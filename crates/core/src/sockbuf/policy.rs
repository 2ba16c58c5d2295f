//! The trait of policies.

use alloc::vec::Vec;

use super::view::{Connection, ConnectionId};
use crate::time::Duration;

/// The state that a policy sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host<'a> {
    /// Size of the pool in bytes.
    pub threshold: u64,
    /// Time since the last decision; 0 at the first.
    pub elapsed: Duration,
    /// Sorted by id.
    pub connections: &'a [Connection],
}

/// A policy that divides the pool.
pub(super) trait Policy {
    /// Returns a size for each connection, in their order. The tuner corrects sizes below one MSS,
    /// or with a sum above the pool.
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64>;

    /// Drops the state of a closed connection.
    fn closed(&mut self, _id: ConnectionId) {}
}
