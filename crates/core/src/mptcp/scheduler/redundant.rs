//! Redundant transmission.

use super::{Demand, PathView, Pick, Scheduler};

/// A path with room first sends data that other paths have and it has not, then new data. Data
/// acknowledged by DATA_ACK is not sent again, so a slow path skips data that would arrive too
/// late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redundant;

impl Scheduler for Redundant {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        let copy = paths.iter().find(|path| path.lacks && path.takes(u64::from(path.mss)));
        if let Some(path) = copy {
            return Pick::Copy { index: path.index };
        }
        let mut fresh = paths.iter().filter(|path| demand.unsent > 0 && path.takes(demand.unsent));
        fresh.next().map_or(Pick::Wait, |path| Pick::Send { index: path.index, skip: 0 })
    }
}
