//! The timer of the sending half: retransmission (RFC 6298 section 5), persist (RFC 9293 section
//! 3.8.6.1) or stand-by without a route (Holland and Vaidya 1999). At most one of them runs.

use super::{Phase, Resend, Sender, Timing};
use crate::tcp::congestion::Repair;
use crate::time::{Duration, Instant};

/// State of the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// No data is outstanding.
    Idle,
    /// Data is outstanding.
    Retransmit(Instant),
    /// Only probes are outstanding, and the peer's window is too small for data.
    Persist {
        at: Instant,
        /// Number of probes sent, for the back-off.
        probes: u32,
        due: Probe,
    },
    /// Data is outstanding, and there is no route. Only probes are sent until an acknowledgement
    /// arrives.
    Standby { at: Instant, due: Probe },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Probe {
    Waiting,
    Due,
}

/// Consequence of an expired timer for the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expired {
    /// The timer has not expired.
    No,
    /// Data will be sent again.
    Retry,
    /// R2 (RFC 9293 section 3.8.3) is reached: abandon the connection.
    GiveUp,
}

impl Sender {
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.timer {
            Timer::Idle => None,
            Timer::Retransmit(at) => {
                let sooner = self.rack.reorder_at.into_iter().chain(self.rack.probe_at).min();
                Some(sooner.map_or(at, |sooner| sooner.min(at)))
            }
            Timer::Persist { at, .. } | Timer::Standby { at, .. } => Some(at),
        }
    }

    /// Handles a possibly expired timer. At most `limit` consecutive expiries lead to another
    /// attempt.
    pub(crate) fn handle_timeout(&mut self, now: Instant, limit: u8) -> Expired {
        if self.deadline().is_none_or(|at| now < at) {
            return Expired::No;
        }
        if let Timer::Standby { .. } = self.timer {
            self.timer = Timer::Standby { at: now + self.probe_interval(), due: Probe::Due };
            return Expired::Retry;
        }
        if let Timer::Retransmit(at) = self.timer
            && self.answered_sooner(now, at)
        {
            return Expired::Retry;
        }
        self.retries += 1;
        if self.retries > u32::from(limit) {
            return Expired::GiveUp;
        }
        match self.timer {
            Timer::Idle | Timer::Standby { .. } => {}
            Timer::Retransmit(_) if self.window.wnd == 0 && self.una.ge(self.base) => self.refused(now),
            Timer::Retransmit(_) => self.retransmit_timeout(now),
            Timer::Persist { probes, .. } => self.probe(now, probes + 1),
        }
        Expired::Retry
    }

    /// Handles the timers of RACK-TLP, which precede the time-out at `at`.
    fn answered_sooner(&mut self, now: Instant, at: Instant) -> bool {
        if self.rack.probe_at.take_if(|probe| *probe <= now).is_some() {
            self.rack.probe_due = true;
            return true;
        }
        if now >= at {
            return false;
        }
        self.rack.reorder_at = None;
        let flight = self.in_flight();
        self.rack_detect(now);
        self.repair_lost(now, flight);
        self.prr.begun_by_timer();
        true
    }

    /// RFC 6298 sections 5.4 to 5.6 and RFC 5681 section 3.1: retransmits one segment and starts
    /// slow start over the lost data.
    fn retransmit_timeout(&mut self, now: Instant) {
        self.counts.timeouts += 1;
        // One reduction per window of losses: during a recovery the threshold already has the value
        // set by the first loss.
        let again = self.retries > 1 || self.phase != Phase::Open;
        let repair = if again || self.is_marked() { Repair::RepeatedTimeout } else { Repair::FirstTimeout };
        self.doubt_sack();
        self.begin_timeout(again);
        let view = self.view(self.in_flight().min(self.cwnd()), repair);
        self.congestion.on_timeout(now, &view);
        self.say_reduced();
        self.rtt.back_off();
        // Further losses of the data sent so far belong to this episode (RFC 6582 section 3.2).
        self.recover = self.max;
        self.lose_outstanding(now);
        if self.uses_rack() && self.una.ge(self.base) {
            // Segments sent just before the time-out are not marked lost and may fill the window,
            // so SND.UNA is sent regardless of it.
            self.resend = Resend::Una;
        }
        self.phase = Phase::Loss;
        self.timer = Timer::Retransmit(now + self.rtt.rto());
    }

    /// Handles a window that has closed on data in flight: only probes are sent until it opens.
    fn refused(&mut self, now: Instant) {
        self.send_again(now);
        self.probe(now, 1);
    }

    /// Retransmits the data in flight as after a time-out, although nothing was lost to congestion.
    pub(super) fn send_again(&mut self, now: Instant) {
        self.flight.withdraw_all();
        self.lose_outstanding(now);
        self.forget_prior();
        self.recover = self.max;
        self.phase = Phase::Loss;
    }

    fn lose_outstanding(&mut self, now: Instant) {
        self.timing = Timing::Spoiled;
        self.resend = Resend::Idle;
        self.dup_acks = 0;
        self.inflation = 0;
        (self.rack.reorder_at, self.rack.probe_at, self.rack.probe_due) = (None, None, false);
        if self.uses_rack() {
            self.rack_on_timeout(now);
        } else {
            self.flight.lose_all();
        }
        self.peak.flight = 0;
    }

    fn probe(&mut self, now: Instant, probes: u32) {
        let at = now + self.rtt.interval(probes);
        self.timer = Timer::Persist { at, probes, due: Probe::Due };
    }

    /// Starts the persist timer: data waits, nothing is outstanding, and the window admits nothing
    /// (RFC 9293 section 3.8.6.1).
    pub(super) fn persist(&mut self, now: Instant) {
        let at = now + self.rtt.interval(0);
        self.timer = Timer::Persist { at, probes: 0, due: Probe::Waiting };
    }

    /// Restarts the timer after new data was acknowledged or sent (RFC 6298 sections 5.1 to 5.3).
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Instant) {
        self.timer = if self.una == self.max { Timer::Idle } else { Timer::Retransmit(now + self.rtt.rto()) };
    }

    #[inline]
    pub(super) fn ensure_timer(&mut self, now: Instant) {
        match self.timer {
            Timer::Idle => self.timer = Timer::Retransmit(now + self.rtt.rto()),
            Timer::Retransmit(_) | Timer::Persist { .. } | Timer::Standby { .. } => {}
        }
    }

    /// Enters stand-by because the route is lost. Outstanding data waits for a route; window and
    /// time-out stay unchanged. Without outstanding data, or with a closed window, there is nothing
    /// to stop.
    pub(crate) fn stand_by(&mut self, now: Instant) {
        if self.config.elfn.is_some()
            && let Timer::Retransmit(_) = self.timer
        {
            self.timer = Timer::Standby { at: now + self.probe_interval(), due: Probe::Waiting };
        }
    }

    pub(super) fn stands_by(&self) -> bool {
        matches!(self.timer, Timer::Standby { .. })
    }

    /// Leaves stand-by: an acknowledgement shows that there is a route again.
    #[inline]
    pub(super) fn leave_standby(&mut self, now: Instant) {
        if let Timer::Standby { .. } = self.timer {
            self.timer = Timer::Retransmit(now + self.rtt.rto());
        }
    }

    fn probe_interval(&self) -> Duration {
        self.config.elfn.unwrap_or_default().max(SHORTEST_PROBE)
    }

    /// Resets the retry count: the peer answers, so it is reachable.
    #[inline]
    pub(super) fn answered(&mut self) {
        match self.timer {
            Timer::Persist { .. } => self.retries = 0,
            Timer::Retransmit(_) if self.window.wnd == 0 => self.retries = 0,
            Timer::Idle | Timer::Retransmit(_) | Timer::Standby { .. } => {}
        }
    }
}

/// Lower bound of the probe interval: a zero interval would let a driver loop without time
/// advancing.
const SHORTEST_PROBE: Duration = Duration::from_millis(1);
