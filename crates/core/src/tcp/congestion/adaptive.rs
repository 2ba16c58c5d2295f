//! A-NewReno: a window between two bounds that moves once in so many rounds ("Multipath TCP Over Multi-Hop
//! Heterogeneous Wireless IoT Networks", section IV).
//!
//! Where the paper leaves a choice: fast retransmit sets window and threshold to max(1, floor(w / 2)) segments
//! (errata M29), and doubling stops at the threshold and at w_max (M21).

use super::{Controller, Repair, View, Windows};
use crate::tcp::congestion::AdaptiveNewReno;
use crate::time::Instant;

/// The window, in whole segments.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    options: AdaptiveNewReno,
    mss: u32,
    segments: u32,
    /// In segments.
    ssthresh: u32,
    /// Octets acknowledged in this round.
    counted: u32,
    /// Rounds since the window last grew.
    rounds: u16,
}

impl Adaptive {
    pub(crate) fn new(options: AdaptiveNewReno, mss: u32, ssthresh: u32) -> Self {
        let mss = mss.max(1);
        let options = AdaptiveNewReno { w_min: options.w_min.max(1), ..options };
        let segments = u32::from(options.w_min);
        Self { options, mss, segments, ssthresh: (ssthresh / mss).max(1), counted: 0, rounds: 0 }
    }

    fn halve(&mut self) {
        self.ssthresh = (self.segments / 2).max(1);
        self.counted = 0;
        self.rounds = 0;
    }
}

impl Controller for Adaptive {
    fn cwnd(&self) -> u32 {
        self.segments.saturating_mul(self.mss)
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh.saturating_mul(self.mss)
    }

    fn on_ack(&mut self, _now: Instant, view: &View, acked: u32) {
        self.mss = view.mss.max(1);
        self.counted = self.counted.saturating_add(acked);
        if self.counted < self.cwnd() {
            return;
        }
        self.counted = 0;
        if !view.uses(self.cwnd(), self.ssthresh()) {
            return;
        }
        self.rounds += 1;
        if self.rounds < self.options.update_every {
            return;
        }
        self.rounds = 0;
        let grown = if self.segments < self.ssthresh {
            self.segments.saturating_mul(2).min(self.ssthresh)
        } else {
            self.segments + 1
        };
        // Equation 12 has no bound; w_max is one by its definition.
        self.segments = grown.min(u32::from(self.options.w_max)).max(self.segments);
    }

    fn on_loss(&mut self, _now: Instant, _view: &View) {
        self.halve();
        self.segments = self.ssthresh;
    }

    fn on_timeout(&mut self, _now: Instant, view: &View) {
        // As RFC 5681 section 3.1: the threshold holds while the same octet times out again.
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

    const OPTIONS: AdaptiveNewReno = AdaptiveNewReno { w_min: 2, w_max: 10, update_every: 1 };

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
}
