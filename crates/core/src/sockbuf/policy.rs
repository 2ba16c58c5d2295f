//! What a policy is.

use alloc::vec::Vec;

use super::view::{Connection, ConnectionId};
use crate::time::Duration;

/// All that there is to be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host<'a> {
    /// Bytes of the pool.
    pub threshold: u64,
    /// Since the last decision; 0 at the first.
    pub elapsed: Duration,
    /// By their numbers.
    pub connections: &'a [Connection],
}

/// Who divides the pool.
pub(super) trait Policy {
    /// A size for each connection, in their order. What is below one MSS or together above the pool
    /// is mended by the tuner.
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64>;

    /// What was remembered of this connection is of no use any more.
    fn closed(&mut self, _id: ConnectionId) {}
}
