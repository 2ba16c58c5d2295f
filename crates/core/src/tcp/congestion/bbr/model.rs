//! BBR's model of the delivery rate, of aggregated acknowledgements, and of losses.

use super::{Bbr, UNBOUNDED, percent};
use crate::rates::octets_in;
use crate::tcp::congestion::RateSample;
use crate::time::Instant;

/// BBR.max_bw: the largest sample of the current and the previous ProbeBW cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    before: u64,
    now: u64,
}

impl MaxBandwidth {
    /// The bandwidth in bytes per second.
    pub(super) fn value(&self) -> u64 {
        self.before.max(self.now)
    }

    /// UpdateMaxBw(): an application-limited sample is a lower bound, so it counts only if it is
    /// larger.
    pub(super) fn update(&mut self, sample: &RateSample) {
        if sample.delivery_rate > 0 && (sample.delivery_rate >= self.value() || !sample.app_limited) {
            self.now = self.now.max(sample.delivery_rate);
        }
    }

    /// AdvanceMaxBwFilter(). A cycle without a sample keeps the old value.
    pub(super) fn advance(&mut self) {
        if self.now > 0 {
            (self.before, self.now) = (self.now, 0);
        }
    }
}

/// Bounds of the model; all are infinite at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: u64,
    pub(super) inflight_shortterm: u32,
    pub(super) inflight_longterm: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bw_shortterm: u64::MAX, inflight_shortterm: UNBOUNDED, inflight_longterm: UNBOUNDED }
    }
}

impl Bounds {
    /// ResetShortTermModel().
    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (u64::MAX, UNBOUNDED);
    }

    /// Raises each bound to at least its value in `prior`.
    pub(super) fn raise(&mut self, prior: &Self) {
        self.bw_shortterm = self.bw_shortterm.max(prior.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(prior.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(prior.inflight_longterm);
    }
}

/// Losses, and the data delivered in the round trip in which they were found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    pub(super) bw_latest: u64,
    pub(super) inflight_latest: u32,
    pub(super) is_loss_in_round: bool,
    pub(super) loss_round_start: bool,
    pub(super) loss_round_delivered: u64,
}

impl Signals {
    /// ResetCongestionSignals().
    pub(super) fn reset(&mut self) {
        (self.is_loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0, 0);
    }

    /// AdvanceLatestDeliverySignals().
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate;
            self.inflight_latest = volume(sample.delivered);
        }
    }
}

/// Detection of a full pipe: the delivery rate no longer grows with the sending rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached: the pipe was full at least once.
    pub(super) reached: bool,
    /// BBR.full_bw_now.
    pub(super) now: bool,
    /// BBR.full_bw.
    bw: u64,
    /// BBR.full_bw_count.
    count: u32,
}

impl FullPipe {
    /// ResetFullBW() with a new baseline.
    pub(super) fn reset(&mut self, bw: u64) {
        (self.now, self.bw, self.count) = (false, bw, 0);
    }

    /// CheckFullBWReached().
    pub(super) fn check(&mut self, round_start: bool, sample: &RateSample) {
        // A sample without a rate carries no information about the pipe.
        if self.now || !round_start || sample.app_limited || sample.delivery_rate == 0 {
            return;
        }
        if sample.delivery_rate >= percent(self.bw, 125) {
            return self.reset(sample.delivery_rate);
        }
        self.count += 1;
        self.now = self.count >= 3;
        self.reached |= self.now;
    }
}

/// BBR.extra_acked: bytes of aggregated acknowledgements beyond what the rate explains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// BBR.extra_acked_interval_start.
    start: Instant,
    /// BBR.extra_acked_delivered.
    delivered: u64,
    /// Maximum of the current and of the previous half of the filter; the current one begins at
    /// `round`.
    now: u32,
    before: u32,
    round: u64,
}

impl Aggregation {
    pub(super) fn extra_acked(&self) -> u32 {
        self.now.max(self.before)
    }

    pub(super) fn restart(&mut self, now: Instant) {
        self.start = now;
    }

    /// UpdateACKAggregation(). `progress` is BBR.round_count and BBR.full_bw_reached.
    pub(super) fn update(
        &mut self,
        now: Instant,
        bw: u64,
        sample: &RateSample,
        cwnd: u32,
        progress: (u64, bool),
    ) {
        let expected = octets_in(bw, now.saturating_since(self.start));
        let mut extra = self.delivered.saturating_sub(expected);
        if self.delivered <= expected {
            (self.delivered, self.start, extra) = (0, now, 0);
        }
        self.delivered += u64::from(sample.newly_acked);
        extra += u64::from(sample.newly_acked);
        let (round, full) = progress;
        // Startup remembers one round trip; later the filter covers ten: this half and the previous
        // one.
        let half = if full { EXTRA_ACKED_FILTER_LEN / 2 } else { 1 };
        if round >= self.round + half {
            self.before = if full { self.now } else { 0 };
            (self.now, self.round) = (0, round);
        }
        self.now = self.now.max(extra.min(cwnd.into()) as u32);
    }
}

impl Bbr {
    /// UpdateLatestDeliverySignals().
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample) {
        let signals = &mut self.signals;
        signals.bw_latest = signals.bw_latest.max(sample.delivery_rate);
        signals.inflight_latest = signals.inflight_latest.max(volume(sample.delivered));
        signals.loss_round_start = sample.prior_delivered >= signals.loss_round_delivered;
        if signals.loss_round_start {
            signals.loss_round_delivered = sample.total_delivered;
        }
    }

    /// UpdateCongestionSignals().
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample) {
        self.update_round(sample);
        self.max_bw.update(sample);
        if !self.signals.loss_round_start {
            return;
        }
        // While probing, losses adapt the long-term bound instead.
        if self.signals.is_loss_in_round && !self.is_probing() {
            self.lower_bounds();
        }
        self.signals.is_loss_in_round = false;
    }

    /// InitLowerBounds() and LossLowerBounds().
    fn lower_bounds(&mut self) {
        let bounds = &mut self.bounds;
        if bounds.bw_shortterm == u64::MAX {
            bounds.bw_shortterm = self.max_bw.value();
        }
        if bounds.inflight_shortterm == UNBOUNDED {
            bounds.inflight_shortterm = self.cwnd;
        }
        bounds.bw_shortterm = self.signals.bw_latest.max(percent(bounds.bw_shortterm, BETA));
        let shrunk = percent(bounds.inflight_shortterm.into(), BETA) as u32;
        bounds.inflight_shortterm = self.signals.inflight_latest.max(shrunk);
    }
}

/// A volume in flight or delivered in one round trip, below the value that stands for infinity.
fn volume(bytes: u64) -> u32 {
    bytes.min(u64::from(UNBOUNDED - 1)) as u32
}

/// BBR.Beta, in per cent.
pub(super) const BETA: u64 = 70;
/// BBR.ExtraAckedFilterLen, in round trips.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
