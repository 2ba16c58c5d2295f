//! Slow start and congestion avoidance of RFC 5681 with the window arithmetic of RFC 6582.

use super::{Controller, Repair, View, Windows};
use crate::tcp::congestion::ByteCounting;
use crate::time::Instant;

/// The window of NewReno.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    cwnd: u32,
    ssthresh: u32,
    /// Bytes acknowledged towards the next increase in congestion avoidance (RFC 3465 section
    /// 2.1).
    counted: u32,
}

impl NewReno {
    pub(crate) fn new(cwnd: u32, ssthresh: u32) -> Self {
        Self { cwnd, ssthresh, counted: 0 }
    }

    /// Adds bytes in congestion avoidance according to another rule.
    pub(super) fn grow(&mut self, octets: u32, limit: u32) {
        self.cwnd = self.cwnd.saturating_add(octets).min(limit);
    }

    /// Applies a reduction by another rule than half of the data in flight.
    pub(super) fn reduce(&mut self, ssthresh: u32, cwnd: u32) {
        self.ssthresh = ssthresh;
        self.cwnd = cwnd;
        self.counted = 0;
    }

    fn avoid_congestion(&mut self, view: &View, acked: u32) {
        match view.byte_counting {
            // RFC 5681 equation 3. It never adds less than one byte.
            ByteCounting::Off => {
                let step = u64::from(view.mss) * u64::from(view.mss) / u64::from(self.cwnd.max(1));
                self.cwnd = self.cwnd.saturating_add((step as u32).max(1));
            }
            ByteCounting::On { .. } => {
                self.counted = self.counted.saturating_add(acked);
                if self.counted >= self.cwnd {
                    self.counted -= self.cwnd;
                    self.cwnd = self.cwnd.saturating_add(view.mss);
                }
            }
        }
    }
}

impl Controller for NewReno {
    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    #[inline]
    fn on_ack(&mut self, _now: Instant, view: &View, acked: u32) {
        if !view.uses(self.cwnd, self.ssthresh) {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(view.slow_start_step(acked));
        } else {
            self.avoid_congestion(view, acked);
        }
        self.cwnd = self.cwnd.min(view.limit);
    }

    fn on_slow_start_end(&mut self, _now: Instant, _view: &View) {
        self.ssthresh = self.cwnd;
    }

    fn on_loss(&mut self, _now: Instant, view: &View) {
        self.ssthresh = half_flight(view);
        self.cwnd = self.ssthresh;
        self.counted = 0;
    }

    fn on_mark(&mut self, now: Instant, view: &View) {
        let cwnd = self.cwnd;
        if view.abe {
            // RFC 8511 section 3: beta_ecn is 0.8.
            let ssthresh = (u64::from(view.in_flight) * 4 / 5) as u32;
            let ssthresh = ssthresh.max(view.least_ssthresh);
            self.reduce(ssthresh, ssthresh);
        } else {
            self.on_loss(now, view);
        }
        self.cwnd = self.cwnd.min(cwnd);
    }

    fn on_recovered(&mut self, _now: Instant, view: &View) {
        if view.repair == Repair::NewReno {
            // RFC 6582 section 3.2 step 3, option 1: avoids a burst after a full acknowledgement.
            self.cwnd = self.ssthresh.min(view.in_flight.max(view.mss).saturating_add(view.mss));
        }
    }

    fn on_timeout(&mut self, _now: Instant, view: &View) {
        // RFC 5681 section 3.1: a repeated time-out for the same byte keeps the threshold.
        if view.repair != Repair::RepeatedTimeout {
            self.ssthresh = half_flight(view);
        }
        self.cwnd = view.mss;
        self.counted = 0;
    }

    fn on_spurious(&mut self, _now: Instant, view: &View, prior: Windows) {
        self.cwnd = self.cwnd.max(prior.cwnd).min(view.limit);
        self.ssthresh = self.ssthresh.max(prior.ssthresh);
    }

    fn on_idle(&mut self, _now: Instant, view: &View) {
        self.cwnd = self.cwnd.min(view.initial_window);
        self.counted = 0;
    }
}

/// RFC 5681 equation 4.
fn half_flight(view: &View) -> u32 {
    (view.in_flight / 2).max(view.least_ssthresh)
}
