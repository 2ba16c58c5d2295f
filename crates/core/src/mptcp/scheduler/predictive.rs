//! The paper's schedule (section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks"): paths in
//! the order of their delay, and each takes as many segments as it delivers before the next one delivers its first.
//!
//! Said one segment at a time: when a slower path has room, it takes the segment that the faster ones will not have
//! delivered by the time it arrives; if there is none, it takes nothing. So a slower path never makes the end later,
//! as far as the prediction holds; and where it does not, what is still missing at the end goes on a faster one, too.

use super::{Demand, PathView, Pick, Scheduler};
use crate::time::Duration;

/// Segments that a path delivers within a time from now, the one under way on it not counted.
pub(crate) type Predict = fn(&PathView, Duration) -> u64;

/// The scheduler, with a prediction that can be exchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predictive {
    predict: Predict,
}

impl Predictive {
    pub(crate) fn new(predict: Predict) -> Self {
        Self { predict }
    }
}

impl Scheduler for Predictive {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        if demand.unsent == 0 {
            return Pick::Rescue;
        }
        // Paths of which nothing is known but the handshake are tried with little, unless there is nothing else.
        let tried = |path: &PathView| path.service.is_some() || path.in_flight < TRIAL * path.mss;
        let alone = paths.len() == 1;
        let with_room = paths.iter().filter(|path| path.takes(demand.unsent) && (alone || tried(path)));
        let Some(path) = with_room.min_by_key(|path| path.arrival()) else { return Pick::Wait };
        let horizon = path.arrival();
        let faster = paths
            .iter()
            .filter(|other| other.index != path.index && !other.stuck && other.arrival() < horizon);
        let before = faster.map(|other| (self.predict)(other, horizon) * u64::from(other.mss)).sum::<u64>();
        let mss = u64::from(path.mss.max(1));
        let skip = before.div_ceil(mss) * mss;
        if skip < demand.unsent { Pick::Send { index: path.index, skip } } else { Pick::Wait }
    }
}

/// Windows that complete: what has room leaves now, and further windows follow one round trip apart, doubling below
/// the threshold and growing by one segment above it, no faster than the bottleneck where the owner knows it.
pub(crate) fn windows(path: &PathView, horizon: Duration) -> u64 {
    let arrival = path.arrival();
    if horizon < arrival {
        return 0;
    }
    let mss = u64::from(path.mss.max(1));
    let time = (horizon - arrival).as_nanos();
    let round = path.rtt.as_nanos().max(1);
    let bottleneck = path.service.map_or(u64::MAX, |service| time / service.as_nanos().max(1) + 1);
    let ssthresh = (u64::from(path.ssthresh) / mss).max(1);
    let (mut window, mut count) = ((u64::from(path.cwnd) / mss).max(1), u64::from(path.room) / mss);
    let mut left = time;
    loop {
        // While one window is acknowledged, the next one leaves.
        window = if window < ssthresh { window * 2 } else { window + 1 };
        if left < round || count >= MOST {
            break;
        }
        count += window;
        left -= round;
    }
    count += (u128::from(window) * u128::from(left) / u128::from(round)) as u64;
    // Of a path that was never used no more is expected than it is tried with.
    let most = if path.service.is_some() { MOST } else { TRIAL.into() };
    count.min(bottleneck).min(most)
}

/// Segments on a path before its first acknowledgement of data.
const TRIAL: u32 = 2;
/// No transfer waits for more.
const MOST: u64 = 1 << 20;
