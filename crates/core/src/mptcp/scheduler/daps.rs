//! DAPS: assigns by the ratio of delays (Kuhn et al., ICC 2014).

use super::{Demand, PathView, Pick, Scheduler};

/// A slower path gets the segment that will be due when it arrives: the data that faster paths
/// deliver until then is skipped. The paper plans a whole common multiple of the round-trip times.
/// This implementation makes the same decision for one segment at a time, with current round-trip
/// times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daps;

impl Scheduler for Daps {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        if demand.unsent == 0 {
            return Pick::Wait;
        }
        let with_room = paths.iter().filter(|path| path.takes(demand.unsent));
        let Some(path) = with_room.min_by_key(|path| path.rtt) else { return Pick::Wait };
        let before: u64 = paths.iter().map(|other| delivers_before(other, path)).sum();
        let mss = u64::from(path.mss.max(1));
        let skip = (before / mss * mss).min(demand.unsent.saturating_sub(mss));
        Pick::Send { index: path.index, skip }
    }
}

/// Bytes that `fast` delivers before a segment sent now on `slow` arrives.
fn delivers_before(fast: &PathView, slow: &PathView) -> u64 {
    let ahead = slow.rtt.saturating_sub(fast.rtt).as_nanos() / 2;
    let octets = u128::from(fast.cwnd) * u128::from(ahead) / u128::from(fast.rtt.as_nanos().max(1));
    octets.min(u128::from(u32::MAX)) as u64
}
