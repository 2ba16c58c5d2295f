//! Fastest path first.

use super::{Demand, PathView, Pick, Scheduler};

/// The path with room and the smallest smoothed round-trip time; of equal ones the first opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastestRtt;

impl Scheduler for FastestRtt {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        let with_room = paths.iter().filter(|path| demand.unsent > 0 && path.takes(demand.unsent));
        match with_room.min_by_key(|path| path.rtt) {
            Some(path) => Pick::Send { index: path.index, skip: 0 },
            None => Pick::Wait,
        }
    }
}
