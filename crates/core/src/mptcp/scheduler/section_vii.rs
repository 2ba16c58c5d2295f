//! The scheduler of section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT
//! Networks" (Guo et al., ICC 2024) as printed, with the corrections of the errata.
//!
//! [`prediction::schedule`] computes the number of packets of each path: as many as it delivers in
//! half of the next slower path's round trip; the slowest path gets its window. The fastest path
//! sends the first of the waiting packets, the next path those after them, and so on: all packets
//! arrive in order if the model holds. When the paths with room have sent their packets, the
//! numbers are computed again.
//!
//! The paper does not consider packets that are in flight at that time: the numbers hold for rounds
//! that begin with nothing in flight, and are used here unchanged. Unsent packets of a path without
//! room count among the waiting packets. A path that recovers from a time-out gives up its number,
//! because it is unknown when it would send.

use alloc::vec::Vec;

use super::{Demand, PathView, Pick, Scheduler};
use crate::mptcp::prediction::{self, MAX_TIME, MAX_WINDOW, Reading};
use crate::time::Duration;

/// The scheduler and the current numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SectionVii {
    /// In ascending order of round-trip times.
    shares: Vec<Share>,
    /// Arguments of the last computation, and the resulting numbers.
    asked: Vec<(usize, prediction::Path)>,
    numbers: Vec<u32>,
    /// The subflow picked last, and [`Demand::assigned`] at that time.
    picked: Option<(usize, u64)>,
}

/// Number of packets that a path still has to send.
#[derive(Clone, Copy, Debug)]
struct Share {
    index: usize,
    packets: u32,
}

impl Scheduler for SectionVii {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        self.settle(demand, paths);
        let find = |share: &Share| paths.iter().find(|path| path.index == share.index);
        let has_room = |share: &Share| find(share).is_some_and(|path| path.takes(demand.unsent));
        if demand.unsent == 0 || !paths.iter().any(|path| path.takes(demand.unsent)) {
            return Pick::Wait;
        }
        if !self.shares.iter().any(|share| share.packets > 0 && has_room(share)) {
            self.compute(paths);
        }
        let mut skip = 0;
        for share in self.shares.iter().filter(|share| share.packets > 0) {
            if skip >= demand.unsent {
                break;
            }
            if has_room(share) {
                self.picked = Some((share.index, demand.assigned));
                return Pick::Send { index: share.index, skip };
            }
            skip += find(share).map_or(0, |path| u64::from(share.packets) * u64::from(path.mss));
        }
        Pick::Wait
    }
}

impl SectionVii {
    /// Counts the last pick as sent, unless the peer's window prevented it.
    fn settle(&mut self, demand: &Demand, paths: &[PathView]) {
        if let Some((index, assigned)) = self.picked.take()
            && demand.assigned > assigned
            && let Some(share) = self.shares.iter_mut().find(|share| share.index == index)
        {
            share.packets = share.packets.saturating_sub(1);
        }
        for path in paths.iter().filter(|path| path.stuck) {
            self.shares.retain(|share| share.index != path.index);
        }
    }

    fn compute(&mut self, paths: &[PathView]) {
        let mut asked: Vec<(usize, prediction::Path)> =
            paths.iter().filter(|p| !p.stuck).map(|path| (path.index, as_modelled(path))).collect();
        // Of equal paths, the one that was opened first.
        asked.sort_by(|(_, a), (_, b)| a.rtt.total_cmp(&b.rtt));
        if asked != self.asked {
            let modelled: Vec<prediction::Path> = asked.iter().map(|(_, path)| *path).collect();
            let packets = prediction::schedule(&modelled, Reading::default())
                .expect("all quantities are within their ranges, and the paths in order");
            self.numbers = packets.iter().map(|packets| packets.count).collect();
            self.asked = asked;
        }
        let numbers = self.asked.iter().zip(&self.numbers);
        self.shares =
            numbers.map(|((index, _), packets)| Share { index: *index, packets: *packets }).collect();
    }
}

/// A path with the model's round-trip time and times as set by the owner; missing ones are
/// measured.
fn as_modelled(path: &PathView) -> prediction::Path {
    let seconds = |time: Duration| time.as_secs_f64().min(MAX_TIME);
    let above_zero = |time: Duration| seconds(time).max(SHORTEST);
    let mss = path.mss.max(1);
    let rtt = path.facts.rtt.unwrap_or(path.rtt);
    let t_next = path.service.unwrap_or_default();
    let w_min = path.w_min.clamp(1, MAX_WINDOW);
    prediction::Path {
        rtt: above_zero(rtt),
        t_first: above_zero(rtt / 2 + path.facts.payload_time.unwrap_or(t_next)),
        t_next: seconds(t_next),
        rto: above_zero(path.rto),
        loss: path.loss.clamp(0.0, LARGEST_LOSS),
        cwnd: (path.cwnd / mss).clamp(1, MAX_WINDOW),
        ssthresh: path.ssthresh / mss,
        w_min,
        w_max: path.w_max.clamp(w_min, MAX_WINDOW),
    }
}

/// Shortest time of the recursion in seconds.
const SHORTEST: f64 = 1e-6;
/// Upper bound of the loss, so that a path with more losses still has a number of packets.
const LARGEST_LOSS: f64 = 0.9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mptcp::PathFacts;

    /// A lossless path that needs 25 ms for each further packet.
    fn path(index: usize, rtt_ms: u64, window: u32) -> PathView {
        PathView {
            service: Some(Duration::from_millis(25)),
            cwnd: window * 100,
            ssthresh: 1600,
            room: window * 100,
            rto: Duration::from_secs(20),
            facts: PathFacts {
                rtt: Some(Duration::from_millis(rtt_ms)),
                payload_time: Some(Duration::from_millis(8)),
                ..PathFacts::default()
            },
            ..PathView::unknown(index)
        }
    }

    /// Runs the scheduler until it sends nothing; returns the subflow of each packet and the
    /// packet's number among the waiting ones.
    fn sent(scheduler: &mut SectionVii, paths: &mut [PathView], waiting: u64) -> Vec<(usize, u64)> {
        let mut left: Vec<u64> = (0..waiting).collect();
        let mut sent = Vec::new();
        loop {
            let assigned = (waiting - left.len() as u64) * 100;
            let demand = Demand { unsent: left.len() as u64 * 100, window: 1 << 20, in_flight: 0, assigned };
            let Pick::Send { index, skip } = scheduler.pick(&demand, paths) else { return sent };
            let path = paths.iter_mut().find(|path| path.index == index).expect("a path that is there");
            assert!(path.room >= 100, "{index} has no room");
            path.room -= 100;
            sent.push((index, left.remove((skip / 100) as usize)));
        }
    }

    #[test]
    fn each_path_sends_the_number_that_the_schedule_gives_it() {
        // Opened in another order than that of the round-trip times.
        let mut paths = [path(0, 2000, 4), path(1, 100, 8), path(2, 600, 8)];
        let order = [1, 2, 0].map(|i| as_modelled(&paths[i]));
        let numbers = prediction::schedule(&order, Reading::default()).expect("legal paths");
        let numbers = numbers.iter().map(|packets| packets.count).collect::<Vec<_>>();
        assert!(numbers[0] > 6 && numbers[1] > 6 && numbers[2] == 4, "{numbers:?}");
        let mut scheduler = SectionVii::default();
        let sent = sent(&mut scheduler, &mut paths, 1000);
        let of = |index| sent.iter().filter(|(i, _)| *i == index).map(|(_, n)| *n).collect::<Vec<_>>();
        // The fastest path sends the first packets, as many as its window holds; the next path
        // those after all of its number.
        let [first, second] = [u64::from(numbers[0]), u64::from(numbers[0] + numbers[1])];
        assert_eq!(of(1)[..6], [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(2)[..2], [first, first + 1]);
        assert_eq!(of(0)[..2], [second, second + 1]);
    }

    #[test]
    fn numbers_are_computed_anew_when_they_are_used_up() {
        let mut paths = [path(0, 100, 100), path(1, 400, 1)];
        let mut scheduler = SectionVii::default();
        let number = {
            let modelled = paths.map(|path| as_modelled(&path));
            prediction::schedule(&modelled, Reading::default()).expect("legal paths")[0].count
        };
        // The window of the first path holds many times its number.
        assert!(number < 50, "{number}");
        let sent = sent(&mut scheduler, &mut paths, 60);
        assert_eq!(sent.iter().filter(|(index, _)| *index == 0).count(), 59, "{sent:?}");
        assert_eq!(sent.iter().find(|(index, _)| *index == 1), Some(&(1, u64::from(number))));
    }

    #[test]
    fn a_slower_path_gets_nothing_of_what_the_faster_one_delivers_in_time() {
        let mut paths = [path(0, 100, 2), path(1, 400, 8)];
        let sent = sent(&mut SectionVii::default(), &mut paths, 3);
        assert_eq!(sent, [(0, 0), (0, 1)]);
    }

    /// Half of the second round-trip time is shorter than the time of the first packet: case 1.
    #[test]
    fn of_equal_paths_only_the_last_one_is_used() {
        let mut paths = [path(0, 400, 8), path(1, 400, 8)];
        let sent = sent(&mut SectionVii::default(), &mut paths, 100);
        assert_eq!((sent.len(), sent[0], sent[7]), (8, (1, 0), (1, 7)));
    }

    #[test]
    fn what_the_window_of_the_peer_holds_back_is_not_counted() {
        let mut scheduler = SectionVii::default();
        let paths = [path(0, 100, 100), path(1, 400, 1)];
        let demand = Demand { unsent: 10_000, window: 0, in_flight: 0, assigned: 0 };
        for _ in 0..100 {
            assert_eq!(scheduler.pick(&demand, &paths), Pick::Send { index: 0, skip: 0 });
        }
    }

    #[test]
    fn a_path_that_repairs_a_time_out_holds_nothing_back() {
        let mut scheduler = SectionVii::default();
        let mut paths = [path(0, 100, 2), path(1, 400, 8)];
        assert_eq!(sent(&mut scheduler, &mut paths, 3).len(), 2);
        let demand = Demand { unsent: 100, window: 1 << 20, in_flight: 200, assigned: 200 };
        assert_eq!(scheduler.pick(&demand, &paths), Pick::Wait);
        paths[0].stuck = true;
        assert_eq!(scheduler.pick(&demand, &paths), Pick::Send { index: 1, skip: 0 });
    }

    proptest! {
        #[test]
        fn any_paths_have_a_schedule(
            mss in 0_u32..2000, cwnd: u32, ssthresh: u32, bounds: (u32, u32), times: [u64; 5], loss in -1.0_f64..2.0
        ) {
            let [rtt, payload, service, rto, other] = times.map(Duration::from_nanos);
            let facts = PathFacts { rtt: Some(rtt), payload_time: Some(payload), ..PathFacts::default() };
            let one = PathView {
                mss, cwnd, ssthresh, w_min: bounds.0, w_max: bounds.1, service: Some(service), rto, loss, facts,
                room: u32::MAX, ..PathView::unknown(0)
            };
            let other = PathView { rtt: other, room: u32::MAX, ..PathView::unknown(1) };
            let demand = Demand { unsent: 1 << 40, window: 1 << 40, in_flight: 0, assigned: 0 };
            let pick = SectionVii::default().pick(&demand, &[one, other]);
            prop_assert!(matches!(pick, Pick::Send { .. }), "{pick:?}");
        }
    }
}
