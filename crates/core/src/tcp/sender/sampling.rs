//! Rate samples for controllers that use them: application limits, deliveries and losses.

use super::{Expired, Phase, Sender};
use crate::time::Instant;

impl Sender {
    /// As [`Sender::handle_timeout`], and reports found losses to the controller.
    pub(crate) fn handle_timers(&mut self, now: Instant, limit: u8) -> Expired {
        let timeouts = self.counts.timeouts;
        self.check_app_limited();
        let expired = self.handle_timeout(now, limit);
        if self.counts.timeouts != timeouts {
            self.stop_waiting();
        }
        self.tell_losses(now);
        expired
    }

    /// CheckIfApplicationLimited() (draft-ietf-ccwg-bbr): the window has room, and all available
    /// data is in flight. Must be called before the state changes.
    #[inline]
    pub(super) fn check_app_limited(&mut self) {
        if self.flight.rate.is_some() && !self.more && self.unsent() == 0 && self.flight.lost() == 0 {
            let pipe = self.flight.pipe();
            if pipe < self.cwnd()
                && let Some(rate) = &mut self.flight.rate
            {
                rate.limit(pipe);
            }
        }
    }

    /// Called before a segment is sent: detects the end of an idle time of the application.
    #[inline]
    pub(super) fn note_restart(&mut self, now: Instant) {
        let silent = match &self.flight.rate {
            Some(rate) => self.flight.pipe() == 0 && rate.is_limited(),
            None => self.una == self.max,
        };
        if silent {
            let view = self.view(0, self.repair());
            self.congestion.on_restart(now, &view);
        }
    }

    /// Called after a segment was sent: notes a full window.
    #[inline]
    pub(super) fn note_full(&mut self) {
        if self.flight.rate.is_some() && self.flight.pipe().saturating_add(self.mss) > self.cwnd() {
            let max = self.max;
            if let Some(rate) = &mut self.flight.rate {
                rate.filled(max);
            }
        }
    }

    /// Reports losses and the sample of a processed acknowledgement.
    #[inline]
    pub(super) fn sample(&mut self, now: Instant) {
        if self.flight.rate.is_some() {
            self.tell_losses(now);
            self.tell_sample(now);
        }
    }

    fn tell_losses(&mut self, now: Instant) {
        let (in_flight, view) = (self.flight.pipe(), self.view(self.in_flight(), self.repair()));
        let Some(rate) = &mut self.flight.rate else { return };
        let mut i = 0;
        while let Some(loss) = rate.next_loss(i, in_flight) {
            self.congestion.on_lost(now, &view, &loss);
            i += 1;
        }
    }

    fn tell_sample(&mut self, now: Instant) {
        let (in_flight, view) = (self.flight.pipe(), self.view(self.in_flight(), self.repair()));
        let min_rtt = self.rtt.min_rtt();
        let Some(rate) = &mut self.flight.rate else { return };
        let Some(mut sample) = rate.sample(now, min_rtt) else { return };
        sample.in_flight = in_flight;
        sample.recovering = self.phase != Phase::Open;
        sample.selective = self.sacked;
        self.congestion.on_sample(now, &view, &sample);
        if self.congestion.limits_itself() {
            rate.limit(in_flight);
        }
    }
}
