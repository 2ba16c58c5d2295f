//! The predictive scheduler (section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless
//! IoT Networks"): paths are ordered by delay, and each gets as many segments as it delivers before
//! the next path delivers its first.
//!
//! The decision is made for one segment at a time. A slower path with room gets the first segment
//! that the faster paths will not have delivered when it arrives; if there is none, it gets
//! nothing. A slower path therefore never delays the end if the prediction holds. If it does not
//! hold, the missing data is also sent on a faster path at the end.

use alloc::vec::Vec;

use super::{Demand, PathView, Pick, Scheduler};
use crate::mptcp::prediction::{self, MAX_WINDOW, Reading};
use crate::time::Duration;

/// The scheduler and its cached results.
#[derive(Clone, Debug)]
pub(crate) struct Predictive {
    /// Whether the peer sends one acknowledgement per window, as section VII assumes: a round ends
    /// with its last segment, and the next begins afterwards. Otherwise each acknowledgement
    /// releases the next segments.
    whole_windows: bool,
    memo: Memo,
}

impl Predictive {
    pub(crate) fn new(whole_windows: bool) -> Self {
        Self { whole_windows, memo: Memo::default() }
    }

    /// Number of segments that a path delivers within `horizon`. Segments in flight count as the
    /// beginning of its round although they are already sent: the recursion always starts a new
    /// round, and is late by that amount.
    fn delivers(&mut self, path: &PathView, horizon: Duration) -> u64 {
        let mss = path.mss.max(1);
        let arrival = path.arrival();
        if horizon < arrival {
            return 0;
        }
        // An unused path is expected to deliver no more than its trial segments.
        let Some(service) = path.service else { return u64::from(TRIAL) };
        let rtt = path.min_rtt.min(path.rtt).as_nanos().max(1);
        let w_min = path.w_min.clamp(1, MAX_WINDOW);
        let grains = |time: Duration, grain: u64| {
            u32::try_from(u128::from(time.as_nanos()) * u128::from(grain) / u128::from(rtt))
                .unwrap_or(u32::MAX)
        };
        let question = Question {
            time: grains(horizon, GRAIN),
            first: grains(arrival.saturating_sub(path.wait), GRAIN).max(1),
            next: if self.whole_windows { grains(service, FINE) } else { 0 },
            rto: grains(path.rto, GRAIN).max(1),
            loss: (path.loss.clamp(0.0, 0.9) * 256.0) as u32,
            cwnd: (path.cwnd / mss).clamp(1, MAX_WINDOW),
            ssthresh: (path.ssthresh / mss).min(MAX_WINDOW),
            w_min,
            w_max: path.w_max.clamp(w_min, MAX_WINDOW),
        };
        let bottleneck = (horizon - arrival).as_nanos() / service.as_nanos().max(1) + 1;
        self.memo.ask(question).min(bottleneck)
    }
}

impl Scheduler for Predictive {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        if demand.unsent == 0 {
            return Pick::Rescue;
        }
        let known = paths.iter().filter(|path| path.service.is_some());
        let broadest = known.min_by_key(|path| path.service).map(|path| path.index);
        let open = |path: &PathView| {
            let binds = paths.len() == 1 || broadest == Some(path.index) || !is_full(path);
            binds && path.takes(demand.unsent)
        };
        let with_room = paths.iter().filter(|path| open(path));
        let Some(path) = with_room.min_by_key(|path| path.arrival()) else { return Pick::Wait };
        let horizon = path.arrival();
        let faster = paths
            .iter()
            .filter(|other| other.index != path.index && !other.stuck && other.arrival() < horizon);
        let before = faster.map(|other| self.delivers(other, horizon) * u64::from(other.mss)).sum::<u64>();
        let mss = u64::from(path.mss.max(1));
        let skip = before.div_ceil(mss) * mss;
        if skip < demand.unsent { Pick::Send { index: path.index, skip } } else { Pick::Wait }
    }
}

/// Whether the bottleneck is busy until the next acknowledgement. More data would only wait there,
/// bound to a path before the progress of the others is known. A path known only from its handshake
/// is tried with few segments. The path with the fastest bottleneck is limited by its congestion
/// window only, which grows only if it is filled.
fn is_full(path: &PathView) -> bool {
    let enough = match path.service {
        Some(service) => path.min_rtt.as_nanos() / service.as_nanos().max(1) + SPARE,
        None => TRIAL.into(),
    };
    u64::from(path.in_flight) >= enough * u64::from(path.mss)
}

/// Arguments of the recursion, with all times in parts of the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Question {
    /// Unit: 1/[`GRAIN`] of the round-trip time.
    time: u32,
    first: u32,
    /// Finer unit, because it counts once per segment.
    next: u32,
    rto: u32,
    /// Unit: 1/256.
    loss: u32,
    cwnd: u32,
    ssthresh: u32,
    w_min: u32,
    w_max: u32,
}

/// Cache of results: the same question recurs with every segment and every acknowledgement.
#[derive(Clone, Debug, Default)]
struct Memo {
    answers: Vec<(Question, u64)>,
    /// Index of the next entry to replace.
    at: usize,
}

impl Memo {
    fn ask(&mut self, question: Question) -> u64 {
        if let Some((_, answer)) = self.answers.iter().find(|(asked, _)| *asked == question) {
            return *answer;
        }
        let answer = question.answer();
        if self.answers.len() < KEPT {
            self.answers.push((question, answer));
        } else {
            self.answers[self.at] = (question, answer);
            self.at = (self.at + 1) % KEPT;
        }
        answer
    }
}

impl Question {
    /// The result of section VII.
    fn answer(&self) -> u64 {
        let parts = |n: u32, grain: u64| f64::from(n) / grain as f64;
        let path = prediction::Path {
            rtt: 1.0,
            t_first: parts(self.first, GRAIN),
            t_next: parts(self.next, FINE),
            rto: parts(self.rto, GRAIN),
            loss: f64::from(self.loss) / 256.0,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            w_min: self.w_min,
            w_max: self.w_max,
        };
        let packets = prediction::packets(&path, parts(self.time, GRAIN), Reading::default());
        packets.map_or(0, |packets| packets.count.into())
    }
}

/// Number of segments on a path before its first acknowledgement of data.
const TRIAL: u32 = 2;
/// Segments beyond those that fill the path: an acknowledgement covers two segments, and may be
/// late.
const SPARE: u64 = 3;
/// Resolution of times in parts of the round-trip time.
const GRAIN: u64 = 16;
const FINE: u64 = 256;
/// Number of cached results.
const KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Five unloaded hops at 100 kbit/s, in the middle of a long transfer.
    fn five_hops() -> PathView {
        PathView {
            service: Some(Duration::from_millis(23)),
            min_rtt: Duration::from_millis(140),
            rtt: Duration::from_millis(140),
            mss: 100,
            cwnd: 1000,
            ssthresh: 1000,
            rto: Duration::from_secs(80),
            ..PathView::unknown(0)
        }
    }

    #[test]
    fn a_path_delivers_no_more_than_its_largest_window_lets_it() {
        let horizon = Duration::from_secs(10);
        let delivers = |path: PathView| Predictive::new(true).delivers(&path, horizon);
        let unbounded = delivers(five_hops());
        let bounded = delivers(PathView { w_max: 10, ..five_hops() });
        assert!(bounded > 10 && bounded * 10 < unbounded * 9, "{bounded} of {unbounded}");
    }

    #[test]
    fn after_a_time_out_a_path_goes_on_with_its_smallest_window() {
        let horizon = Duration::from_secs(10);
        let lossy = PathView { rto: Duration::from_secs(1), loss: 0.3, w_max: 10, ..five_hops() };
        let delivers = |path: PathView| Predictive::new(true).delivers(&path, horizon);
        let (one, five) = (delivers(lossy), delivers(PathView { w_min: 5, ..lossy }));
        assert!(five > one, "{one}, {five}");
    }
}
