//! The round-trip time without a queue: the minimum of ten seconds. ProbeRTT empties the queue
//! after five seconds without a lower value.

use super::{Bbr, PROBE_RTT_CWND_GAIN, State};
use crate::tcp::congestion::RateSample;
use crate::time::{Duration, Instant};

/// The two filters, and the end of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// BBR.min_rtt and BBR.min_rtt_stamp.
    value: Option<Duration>,
    stamp: Instant,
    /// BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp.
    probe_value: Option<Duration>,
    probe_stamp: Instant,
    /// BBR.probe_rtt_expired.
    expired: bool,
    /// BBR.probe_rtt_done_stamp.
    done_at: Option<Instant>,
    /// BBR.probe_rtt_round_done.
    round_done: bool,
    /// BBR.idle_restart.
    pub(super) idle_restart: bool,
}

impl MinRtt {
    pub(super) fn value(&self) -> Option<Duration> {
        self.value
    }

    /// Starts the filters. The round-trip time of the handshake serves until the first samples.
    pub(super) fn begin(&mut self, now: Instant, srtt: Option<Duration>) {
        (self.stamp, self.probe_stamp) = (now, now);
        self.value = srtt.or(self.value);
    }

    /// UpdateMinRTT().
    fn update(&mut self, now: Instant, sample: &RateSample) {
        self.expired = now > self.probe_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (self.expired || self.probe_value.is_none_or(|least| rtt < least))
        {
            (self.probe_value, self.probe_stamp) = (Some(rtt), now);
        }
        let expired = now > self.stamp + MIN_RTT_FILTER_LEN;
        if let Some(rtt) = self.probe_value
            && (expired || self.value.is_none_or(|least| rtt < least))
        {
            (self.value, self.stamp) = (Some(rtt), self.probe_stamp);
        }
    }
}

impl Bbr {
    /// UpdateMinRTT() and CheckProbeRTT().
    pub(super) fn check_probe_rtt(&mut self, now: Instant, sample: &RateSample) {
        self.min_rtt.update(now, sample);
        // After an idle time the queue of this flow is empty anyway, so ProbeRTT is not necessary.
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.min_rtt.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.min_rtt.done_at = None;
            self.stop_probing();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        self.min_rtt.idle_restart = false;
    }

    /// ProbeRTTCwnd().
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(self.min_pipe_cwnd())
    }

    /// HandleProbeRTT(). `limits_itself` marks the samples as application-limited.
    fn handle_probe_rtt(&mut self, now: Instant) {
        if self.min_rtt.done_at.is_none() {
            if self.in_flight <= self.probe_rtt_cwnd() {
                self.min_rtt.done_at = Some(now + PROBE_RTT_DURATION);
                self.min_rtt.round_done = false;
                self.start_round();
            }
            return;
        }
        self.min_rtt.round_done |= self.round.start;
        if self.min_rtt.round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// CheckProbeRTTDone().
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.min_rtt.done_at.is_some_and(|at| now > at) {
            self.min_rtt.probe_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// ExitProbeRTT().
    fn exit_probe_rtt(&mut self, now: Instant) {
        self.bounds.reset_short_term();
        if self.full.reached {
            // The queue is already empty, so DOWN ends at once.
            self.start_down(now);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }
}

/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
