//! A scheduler for Multipath TCP: each segment goes to the subflow on which it arrives first, among
//! those that can send it at once.

use anabranch_core::mptcp::CustomScheduler;
use anabranch_core::mptcp::scheduler::{Demand, PathView, Pick, Scheduler};

pub(crate) const SOONEST: CustomScheduler = CustomScheduler::new("soonest", |()| Box::new(Soonest));

#[derive(Debug)]
struct Soonest;

impl Scheduler for Soonest {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        if demand.unsent == 0 {
            // A segment that is late on one subflow may arrive sooner on another.
            return Pick::Rescue;
        }
        let open = paths.iter().filter(|path| !path.stuck && path.takes(demand.unsent));
        match open.min_by_key(|path| path.arrival()) {
            Some(path) => Pick::Send { index: path.index, skip: 0 },
            None => Pick::Wait,
        }
    }
}
