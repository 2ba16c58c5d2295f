//! BLEST: waits rather than blocks (Ferlin et al., IFIP Networking 2016).

use super::{Demand, PathView, Pick, Scheduler};

/// Fastest path first. Before it uses a slower path, it estimates the data that the fastest path
/// sends while one segment of the slower path is in flight. If the window has no room for both, it
/// sends nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blest {
    /// Correction factor of the estimate in hundredths. It grows while the window blocks, and
    /// shrinks otherwise.
    lambda: u64,
    blocked: bool,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: 100, blocked: false }
    }
}

impl Scheduler for Blest {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        if demand.unsent == 0 {
            return Pick::Wait;
        }
        let with_room = paths.iter().filter(|path| path.takes(demand.unsent));
        let (Some(fast), Some(slow)) =
            (paths.iter().min_by_key(|path| path.rtt), with_room.min_by_key(|path| path.rtt))
        else {
            return Pick::Wait;
        };
        self.blocked |= demand.in_flight + u64::from(slow.mss) > demand.window;
        if slow.index == fast.index {
            return Pick::Send { index: fast.index, skip: 0 };
        }
        let step = if self.blocked { 101 } else { 99 };
        self.lambda = (self.lambda * step / 100).clamp(LEAST, MOST);
        self.blocked = false;
        // X of the paper's equation: the window grows by one segment in each round trip of the fast
        // path.
        let (rtt_f, rtt_s) = (fast.rtt.as_nanos().max(1), slow.rtt.as_nanos());
        let mss = u64::from(fast.mss);
        let growth = u64::from(fast.mss) * (rtt_s - rtt_f.min(rtt_s)) / rtt_f / 2;
        let window = u128::from(u64::from(fast.cwnd) + growth);
        let sends = window * u128::from(rtt_s) / u128::from(rtt_f) * u128::from(self.lambda) / 100;
        let taken = u64::from(slow.in_flight) + mss;
        if sends > u128::from(demand.window.saturating_sub(taken)) {
            Pick::Wait
        } else {
            Pick::Send { index: slow.index, skip: 0 }
        }
    }
}

const LEAST: u64 = 100;
const MOST: u64 = 130;
