//! Round robin.

use super::{Demand, PathView, Pick, Scheduler};

/// The next path with room after the last used one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundRobin {
    /// Index of the first subflow to consider.
    next: usize,
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        let mut with_room =
            paths.iter().filter(|path| demand.unsent > 0 && path.takes(demand.unsent)).map(|path| path.index);
        let first = with_room.clone().next();
        let Some(index) = with_room.find(|index| *index >= self.next).or(first) else { return Pick::Wait };
        self.next = index + 1;
        Pick::Send { index, skip: 0 }
    }
}
