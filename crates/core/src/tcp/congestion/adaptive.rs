//! A-NewReno: a window between two bounds ("Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT
//! Networks", section IV). Without losses the window grows once in `update_every` rounds, or it is
//! explored and then held: [`AdaptivePhases`].
//!
//! Choices that the paper leaves open: fast retransmit sets window and threshold to max(1, floor(w
//! / 2)) segments (erratum M29), and doubling stops at the threshold and at w_max (M21). The
//! performance of a window is its throughput in bytes per second (M27).

use super::{Controller, Repair, View, Windows};
use crate::tcp::congestion::{AdaptiveNewReno, AdaptivePhases};
use crate::time::Instant;

/// The window in whole segments.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    options: AdaptiveNewReno,
    mss: u32,
    segments: u32,
    /// In segments.
    ssthresh: u32,
    /// Bytes acknowledged in this round.
    counted: u32,
    /// Start of this round; `None` if the window was not fully used since.
    began: Option<Instant>,
    /// Rounds since the window last grew.
    rounds: u16,
    phase: Phase,
}

/// Phase of the choice of a window.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The best window so far, and its throughput in bytes per second.
    Explore(Option<(u32, u64)>),
    /// Throughput of the window when it was chosen, and its recent throughput.
    Hold { chosen: u64, recent: u64 },
}

impl Adaptive {
    pub(crate) fn new(options: AdaptiveNewReno, mss: u32, ssthresh: u32) -> Self {
        let mss = mss.max(1);
        let options = AdaptiveNewReno { w_min: options.w_min.max(1), ..options };
        let segments = u32::from(options.w_min);
        Self {
            options,
            mss,
            segments,
            ssthresh: (ssthresh / mss).max(1),
            counted: 0,
            began: None,
            rounds: 0,
            phase: Phase::Explore(None),
        }
    }

    fn halve(&mut self) {
        self.ssthresh = (self.segments / 2).max(1);
        self.counted = 0;
        self.began = None;
        self.rounds = 0;
        self.phase = Phase::Explore(None);
    }

    /// Equation 12. The equation has no upper bound; w_max bounds the window by its definition.
    fn grow(&mut self) {
        let grown = if self.segments < self.ssthresh {
            self.segments.saturating_mul(2).min(self.ssthresh)
        } else {
            self.segments + 1
        };
        self.segments = grown.min(u32::from(self.options.w_max)).max(self.segments);
    }

    /// Evaluates a round with a throughput of `rate` bytes per second.
    fn perform(&mut self, rate: u64) {
        match self.phase {
            Phase::Explore(Some((best, most))) if rate <= most => {
                self.segments = best;
                self.phase = Phase::Hold { chosen: most, recent: most };
            }
            Phase::Explore(_) if self.segments >= u32::from(self.options.w_max) => {
                self.phase = Phase::Hold { chosen: rate, recent: rate };
            }
            Phase::Explore(_) => {
                self.phase = Phase::Explore(Some((self.segments, rate)));
                self.grow();
            }
            Phase::Hold { chosen, recent } => {
                let recent = recent - recent / 4 + rate / 4;
                self.phase = Phase::Hold { chosen, recent };
                if recent < chosen / 2 {
                    self.segments = u32::from(self.options.w_min);
                    self.phase = Phase::Explore(None);
                }
            }
        }
    }
}

impl Controller for Adaptive {
    fn cwnd(&self) -> u32 {
        self.segments.saturating_mul(self.mss)
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh.saturating_mul(self.mss)
    }

    fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        self.mss = view.mss.max(1);
        self.counted = self.counted.saturating_add(acked);
        if self.counted < self.cwnd() {
            return;
        }
        let octets = u64::from(core::mem::take(&mut self.counted));
        if !view.uses(self.cwnd(), self.ssthresh()) {
            // A window that was not fully used has not been tested.
            self.began = None;
            return;
        }
        let began = self.began.replace(now);
        match self.options.phases {
            AdaptivePhases::Grow => {
                self.rounds += 1;
                if self.rounds >= self.options.update_every {
                    self.rounds = 0;
                    self.grow();
                }
            }
            AdaptivePhases::ExploreHold => match began {
                Some(began) => {
                    let took = now.saturating_since(began).as_nanos().max(1);
                    self.perform(octets * 1_000_000_000 / took);
                }
                // The duration of the first round is unknown.
                None if matches!(self.phase, Phase::Explore(None)) => self.grow(),
                None => {}
            },
        }
    }

    fn on_loss(&mut self, _now: Instant, _view: &View) {
        self.halve();
        self.segments = self.ssthresh;
    }

    fn on_timeout(&mut self, _now: Instant, view: &View) {
        // As in RFC 5681 section 3.1: a repeated time-out for the same byte keeps the threshold.
        if view.repair != Repair::RepeatedTimeout {
            self.halve();
        }
        self.segments = u32::from(self.options.w_min);
    }

    fn on_spurious(&mut self, _now: Instant, _view: &View, prior: Windows) {
        self.segments = self.segments.max(prior.cwnd / self.mss);
        self.ssthresh = self.ssthresh.max(prior.ssthresh / self.mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    const OPTIONS: AdaptiveNewReno =
        AdaptiveNewReno { w_min: 2, w_max: 10, update_every: 1, phases: AdaptivePhases::Grow };

    fn view(repair: Repair) -> View {
        View::of(100, repair)
    }

    /// The window after each of `n` rounds without loss.
    fn rounds(window: &mut Adaptive, n: usize) -> std::vec::Vec<u32> {
        let round = |_| {
            let cwnd = window.cwnd();
            window.on_ack(Instant::ZERO, &view(Repair::NewReno), cwnd);
            window.cwnd() / 100
        };
        (0..n).map(round).collect()
    }

    #[test]
    fn grows_to_the_threshold_then_by_one_up_to_the_bound() {
        let mut window = Adaptive::new(OPTIONS, 100, 700);
        assert_eq!(rounds(&mut window, 6), [4, 7, 8, 9, 10, 10]);
        window.on_loss(Instant::ZERO, &view(Repair::NewReno));
        assert_eq!((window.cwnd(), window.ssthresh()), (500, 500));
        window.on_timeout(Instant::ZERO, &view(Repair::FirstTimeout));
        assert_eq!((window.cwnd(), window.ssthresh()), (200, 200));
        window.on_timeout(Instant::ZERO, &view(Repair::RepeatedTimeout));
        assert_eq!((window.cwnd(), window.ssthresh()), (200, 200));
    }

    #[test]
    fn moves_once_in_so_many_rounds() {
        let mut window = Adaptive::new(AdaptiveNewReno { update_every: 3, ..OPTIONS }, 100, 700);
        assert_eq!(rounds(&mut window, 7), [2, 2, 4, 4, 4, 7, 7]);
    }

    /// The window after each of `n` rounds over a path with a limited throughput; below that limit
    /// the round-trip time of 1 s limits the rate.
    fn rounds_at(
        window: &mut Adaptive,
        now: &mut Instant,
        n: usize,
        segments_per_second: u64,
    ) -> std::vec::Vec<u32> {
        let round = |_| {
            let cwnd = window.cwnd();
            let took = (1_000 * u64::from(cwnd / 100) / segments_per_second).max(1_000);
            *now += Duration::from_millis(took);
            window.on_ack(*now, &view(Repair::NewReno), cwnd);
            window.cwnd() / 100
        };
        (0..n).map(round).collect()
    }

    #[test]
    fn holds_the_window_that_delivers_most_until_it_delivers_much_less() {
        let options = AdaptiveNewReno { phases: AdaptivePhases::ExploreHold, ..OPTIONS };
        let mut window = Adaptive::new(options, 100, 400);
        let mut now = Instant::ZERO;
        // The first round has no start time. More than 7 segments do not increase the throughput.
        assert_eq!(rounds_at(&mut window, &mut now, 8, 7), [4, 5, 6, 7, 8, 7, 7, 7]);
        assert_eq!(rounds_at(&mut window, &mut now, 20, 7), [7; 20]);
        // A slightly lower throughput does not restart the search; a quarter does.
        assert_eq!(rounds_at(&mut window, &mut now, 20, 5), [7; 20]);
        let after = rounds_at(&mut window, &mut now, 12, 1);
        assert!(after.contains(&2) && after[11] < 7, "{after:?}");
        // A loss restarts the search from half of the window.
        let mut window = Adaptive::new(options, 100, 400);
        rounds_at(&mut window, &mut now, 8, 7);
        window.on_loss(now, &view(Repair::NewReno));
        assert_eq!(rounds_at(&mut window, &mut now, 7, 7), [4, 5, 6, 7, 8, 7, 7]);
    }

    #[test]
    fn holds_the_largest_window_where_nothing_limits_it() {
        let options = AdaptiveNewReno { phases: AdaptivePhases::ExploreHold, update_every: 9, ..OPTIONS };
        let mut window = Adaptive::new(options, 100, 400);
        let mut now = Instant::ZERO;
        assert_eq!(rounds_at(&mut window, &mut now, 9, 1_000), [4, 5, 6, 7, 8, 9, 10, 10, 10]);
    }
}
