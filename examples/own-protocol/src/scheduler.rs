//! A scheduler for Multipath TCP: each segment goes where it arrives first, among the subflows that
//! would send it at once.

use anabranch_core::mptcp::CustomScheduler;
use anabranch_core::mptcp::scheduler::{Demand, PathView, Pick, Scheduler};

pub(crate) const SOONEST: CustomScheduler = CustomScheduler::new("soonest", |()| Box::new(Soonest));

#[derive(Debug)]
struct Soonest;

impl Scheduler for Soonest {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        if demand.unsent == 0 {
            // What is late on one subflow may still come sooner by another.
            return Pick::Rescue;
        }
        let open = paths.iter().filter(|path| !path.stuck && path.takes(demand.unsent));
        match open.min_by_key(|path| path.arrival()) {
            Some(path) => Pick::Send { index: path.index, skip: 0 },
            None => Pick::Wait,
        }
    }
}
