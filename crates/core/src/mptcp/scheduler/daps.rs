//! By the ratio of delays (Kuhn et al., ICC 2014).

use super::{Demand, PathView, Pick, Scheduler};

/// A slower path takes the segment that will be due when it arrives: what the faster ones deliver
/// until then is passed over. The paper lays a schedule for a whole common multiple of the
/// round-trip times; here the same is said one segment at a time, with round-trip times as they
/// are.
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

/// Bytes that `fast` delivers before a segment that `slow` sends now arrives.
fn delivers_before(fast: &PathView, slow: &PathView) -> u64 {
    let ahead = slow.rtt.saturating_sub(fast.rtt).as_nanos() / 2;
    let octets = u128::from(fast.cwnd) * u128::from(ahead) / u128::from(fast.rtt.as_nanos().max(1));
    octets.min(u128::from(u32::MAX)) as u64
}
