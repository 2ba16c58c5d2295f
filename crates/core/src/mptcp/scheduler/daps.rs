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
        // Whole segments, so that the skipped data leaves no small ones. Many of them out of order
        // fill the receive buffer of Linux with their headers, and then it takes no data at all.
        let skip = before.min(demand.unsent.saturating_sub(mss)) / mss * mss;
        Pick::Send { index: path.index, skip }
    }
}

/// Bytes that `fast` delivers before a segment sent now on `slow` arrives.
fn delivers_before(fast: &PathView, slow: &PathView) -> u64 {
    let ahead = slow.rtt.saturating_sub(fast.rtt).as_nanos() / 2;
    let octets = u128::from(fast.cwnd) * u128::from(ahead) / u128::from(fast.rtt.as_nanos().max(1));
    octets.min(u128::from(u32::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn skipped_data_is_whole_segments() {
        let fast = PathView { rtt: Duration::from_millis(10), cwnd: 1000, room: 0, ..PathView::unknown(0) };
        let slow = PathView { rtt: Duration::from_millis(100), ..PathView::unknown(1) };
        // The fast path delivers 4500 bytes until a segment on the slow one arrives.
        for (unsent, skip) in [(50, 0), (250, 100), (4_399, 4_200), (100_000, 4_500)] {
            let demand = Demand { unsent, window: 1 << 20, in_flight: 0, assigned: 0 };
            assert_eq!(Daps.pick(&demand, &[fast, slow]), Pick::Send { index: 1, skip }, "{unsent}");
        }
    }
}
