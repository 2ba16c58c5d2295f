//! Policies that do not consider the pool: dynamic right-sizing, bandwidth-delay product, fixed
//! sizes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::policy::{Host, Policy};
use super::view::{Connection, ConnectionId};
use crate::time::Duration;

/// Dynamic right-sizing (Fisk and Feng 2001): room for twice the bytes that arrive within a round
/// trip, never less than before.
///
/// The original runs in the receiver, which advertises a window. This variant runs in the sender
/// and uses acknowledged bytes, which are the same bytes half a round trip later: the buffers to be
/// sized are the sender's, and a receiver cannot set them.
#[derive(Clone, Debug)]
pub(super) struct RightSizing {
    initial: u64,
    seen: BTreeMap<ConnectionId, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    acknowledged: u64,
    size: u64,
}

impl RightSizing {
    pub(super) fn new(initial: u64) -> Self {
        Self { initial, seen: BTreeMap::new() }
    }
}

impl Policy for RightSizing {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        let mut size = |connection: &Connection| {
            let first = Seen { acknowledged: connection.acknowledged, size: self.initial };
            let seen = self.seen.entry(connection.id).or_insert(first);
            let octets = connection.acknowledged.saturating_sub(seen.acknowledged);
            seen.acknowledged = connection.acknowledged;
            if let Some(rtt) = connection.slowest() {
                seen.size = seen.size.max(within(octets, rtt, host.elapsed).saturating_mul(2));
            }
            seen.size
        };
        host.connections.iter().map(&mut size).collect()
    }

    fn closed(&mut self, id: ConnectionId) {
        self.seen.remove(&id);
    }
}

/// Twice the bandwidth-delay product of each connection, or twice the window while that is unknown.
/// The pool limits it to the max-min shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product;

impl Policy for Product {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        let size = |c: &Connection| {
            c.product().map_or(c.window().saturating_mul(2), |product| (2.0 * product) as u64)
        };
        host.connections.iter().map(size).collect()
    }
}

/// A fixed number of bytes for each connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed(pub(super) u64);

impl Policy for Fixed {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        host.connections.iter().map(|_| self.0).collect()
    }
}

/// Bytes per round trip, given the bytes of a time span; 0 without a span.
fn within(octets: u64, rtt: Duration, span: Duration) -> u64 {
    let product = u128::from(octets) * u128::from(rtt.as_nanos());
    let octets = product.checked_div(u128::from(span.as_nanos())).unwrap_or(0);
    u64::try_from(octets).unwrap_or(u64::MAX)
}
