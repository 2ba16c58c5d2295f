//! Automatic TCP buffer tuning with memory balancing: as Figures 1 and 2 print it, and as its
//! authors describe it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::policy::{Host, Policy};
use super::view::{Connection, ConnectionId};

/// Figures 1 and 2 with a separate `hiwat_fair_share` for each connection. Choices that they leave
/// open (erratum B10): the first share is the pool divided by the number of connections, and the
/// sums start at 0 each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Printed {
    shares: BTreeMap<ConnectionId, u64>,
}

impl Policy for Printed {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        let pool = host.threshold;
        let first = pool / (host.connections.len() as u64).max(1);
        let share = |shares: &BTreeMap<_, u64>, c: &Connection| shares.get(&c.id).copied().unwrap_or(first);
        let (mut small, mut large, mut needed) = (0, 0, 0_u64);
        for connection in host.connections {
            let target = net_target(connection);
            if target < share(&self.shares, connection) {
                small += 1;
                needed = needed.saturating_add(target);
            } else {
                large += 1;
            }
        }
        for connection in host.connections {
            let target = net_target(connection);
            let mut own = share(&self.shares, connection);
            if needed >= pool {
                if target < own {
                    own = pool / (small + large);
                }
            } else if target > own {
                own = (pool - needed) / large;
            }
            self.shares.insert(connection.id, own);
        }
        host.connections.iter().map(|c| net_target(c).min(share(&self.shares, c))).collect()
    }

    fn closed(&mut self, id: ConnectionId) {
        self.shares.remove(&id);
    }
}

/// One share for all connections, computed in each cycle. From below the max-min fair share it
/// reaches that share in at most as many steps as there are connections, and never exceeds it; from
/// above it first falls below. A buffer between two and four windows is not changed (erratum B18).
#[derive(Clone, Debug, Default)]
pub(super) struct Original {
    share: Option<u64>,
    targets: BTreeMap<ConnectionId, u64>,
}

impl Policy for Original {
    fn sizes(&mut self, host: &Host<'_>) -> Vec<u64> {
        let pool = host.threshold;
        let number = (host.connections.len() as u64).max(1);
        let targets: Vec<u64> = host.connections.iter().map(|c| self.target(c)).collect();
        let share = self.share.unwrap_or(pool / number);
        let small = targets.iter().filter(|target| **target < share);
        let needed = small.clone().fold(0_u64, |sum, target| sum.saturating_add(*target));
        let large = targets.len() as u64 - small.count() as u64;
        let share = if needed >= pool {
            pool / number
        } else {
            // No connection is large, so none needs a limit below the pool.
            (pool - needed).checked_div(large).unwrap_or(pool)
        };
        self.share = Some(share);
        targets.into_iter().map(|target| target.min(share)).collect()
    }

    fn closed(&mut self, id: ConnectionId) {
        self.targets.remove(&id);
    }
}

impl Original {
    fn target(&mut self, connection: &Connection) -> u64 {
        let window = connection.window();
        let (least, most) = (window.saturating_mul(2), window.saturating_mul(4));
        let target = self.targets.entry(connection.id).or_insert(least);
        *target = (*target).clamp(least, most);
        *target
    }
}

/// `sb_net_target` (Figure 1 line 1); for a striped connection over all windows.
fn net_target(connection: &Connection) -> u64 {
    connection.window().saturating_mul(2)
}
