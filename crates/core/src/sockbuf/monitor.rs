//! The monitoring agent (Figure 4, errata B4 to B7, B11, B12). Its averages are reals, as in the
//! paper.

use alloc::collections::BTreeMap;

use super::config::{Deviation, Excess, PidConfig};
use super::view::{Connection, ConnectionId};

/// `AvgBuffOccup` and `AvgDev` of each connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Agent {
    averages: BTreeMap<ConnectionId, Average>,
}

#[derive(Clone, Copy, Debug)]
struct Average {
    occupied: f64,
    deviation: f64,
}

impl Agent {
    /// Lines 2 to 5 with `t - 1` on the right side (erratum B5): the unused part of the
    /// connection's buffer in bytes, at least zero (erratum B7). The first average is the first
    /// occupancy: starting at 0, the buffer of a new connection would count as unused.
    pub(super) fn observe(&mut self, connection: &Connection, config: &PidConfig) -> f64 {
        let occupied = connection.occupied as f64;
        let first = Average { occupied, deviation: 0.0 };
        let average = self.averages.entry(connection.id).or_insert(first);
        average.occupied = weigh(config.alpha, occupied, average.occupied);
        let deviation = match config.deviation {
            Deviation::Absolute => (occupied - average.occupied).abs(),
            Deviation::Signed => occupied - average.occupied,
        };
        average.deviation = weigh(config.beta, deviation, average.deviation);
        // Memory that is decided but not usable yet cannot be unused.
        let assigned = connection.target.min(connection.limit) as f64;
        (assigned - (average.occupied + average.deviation)).max(0.0)
    }

    pub(super) fn closed(&mut self, id: ConnectionId) {
        self.averages.remove(&id);
    }
}

/// The numerator of `proportion` (lines 7 and 10, erratum B6); 0 for a connection without
/// measurements.
pub(super) fn weight(connection: &Connection, excess: Excess) -> f64 {
    match excess {
        Excess::Bandwidth => connection.rate(),
        Excess::Product => connection.product(),
    }
    .unwrap_or(0.0)
}

fn weigh(weight: f64, newest: f64, average: f64) -> f64 {
    weight * newest + (1.0 - weight) * average
}
