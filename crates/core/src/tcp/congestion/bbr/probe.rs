//! ProbeBW: DOWN empties the queue, CRUISE sends at the delivery rate, REFILL fills the pipe, and
//! UP looks for more bandwidth.

use super::model::BETA;
use super::{Bbr, State, UNBOUNDED, is_too_high, percent};
use crate::tcp::congestion::RateSample;
use crate::time::{Duration, Instant};

/// State of a ProbeBW cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    acks: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_sample: bool,
    /// BBR.bw_probe_up_acked.
    up_acked: u64,
    /// BBR.probe_up_acked_per_inc; `None` is infinity.
    acked_per_inc: Option<u64>,
    /// BBR.bw_probe_up_rounds.
    up_rounds: u32,
    /// BBR.rounds_since_probe_up.
    pub(super) rounds: u32,
    /// BBR.bw_probe_wait.
    wait: Duration,
    /// BBR.cycle_stamp.
    stamp: Instant,
    /// BBR.prev_probe_too_high.
    pub(super) too_high: bool,
    /// BBR.prev_probe_precautionary.
    precautionary: bool,
}

/// BBR.ack_phase: relation of arriving acknowledgements to the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

impl Bbr {
    /// StartProbeBW_DOWN().
    pub(super) fn start_down(&mut self, now: Instant) {
        self.signals.reset();
        self.probe.acked_per_inc = None;
        self.pick_probe_wait();
        self.probe.stamp = now;
        self.probe.acks = AckPhase::Stopping;
        self.start_round();
        self.state = State::Down;
    }

    /// PickProbeWait().
    fn pick_probe_wait(&mut self) {
        // Random waits keep flows that share a bottleneck from probing at the same time.
        self.probe.rounds = self.random_below(2) as u32;
        self.probe.wait = Duration::from_secs(2) + Duration::from_micros(self.random_below(1_000_000));
    }

    /// StartProbeBW_CRUISE().
    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    /// StartProbeBW_REFILL().
    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        (self.probe.up_rounds, self.probe.up_acked) = (0, 0);
        self.probe.precautionary = false;
        self.probe.acks = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// StartProbeBW_UP().
    fn start_up(&mut self, sample: &RateSample) {
        self.probe.acks = AckPhase::Starting;
        self.start_round();
        self.full.reset(sample.delivery_rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// Called when ProbeRTT begins: arriving samples no longer belong to the probe.
    pub(super) fn stop_probing(&mut self) {
        self.probe.acks = AckPhase::Stopping;
        self.start_round();
    }

    /// UpdateProbeBWCyclePhase().
    pub(super) fn update_probe_bw(&mut self, now: Instant, sample: &RateSample) {
        if !self.full.reached || self.adapt_long_term_model(sample) {
            return;
        }
        match self.state {
            State::Down => {
                if self.is_time_to_probe(now) {
                    self.start_refill();
                } else if self.is_time_to_cruise() {
                    self.start_cruise();
                }
            }
            State::Cruise => {
                if self.is_time_to_probe(now) {
                    self.start_refill();
                }
            }
            State::Refill => {
                if self.round.start {
                    self.probe.is_sample = true;
                    self.start_up(sample);
                }
            }
            State::Up => {
                if self.is_time_to_go_down(sample) {
                    self.probe.too_high = false;
                    self.start_down(now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// IsTimeToProbeBW(): after two to three seconds, or after the round trips in which a Reno flow
    /// would have grown by as much. The latter keeps the coexistence with Reno fair at small
    /// windows.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno = (self.target_inflight() / self.mss).min(MOST_ROUNDS);
        now > self.probe.stamp + self.probe.wait || self.probe.rounds >= reno
    }

    /// IsTimeToCruise().
    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom()
            && self.in_flight <= self.inflight(self.max_bw.value())
    }

    /// IsTimeToGoDown().
    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        if self.probe.too_high && self.in_flight >= self.bounds.inflight_longterm {
            self.probe.precautionary = true;
            return true;
        }
        if sample.cwnd_limited && self.cwnd >= self.bounds.inflight_longterm {
            // The bound hides the capacity of the path, so the pipe is not known to be full.
            self.full.reset(sample.delivery_rate);
            return false;
        }
        self.full.now
    }

    /// InflightWithHeadroom().
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let most = self.bounds.inflight_longterm;
        if most == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = (percent(most.into(), HEADROOM) as u32).max(self.mss);
        most.saturating_sub(headroom).max(self.min_pipe_cwnd())
    }

    /// RaiseInflightLongtermSlope().
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.acked_per_inc = Some((u64::from(self.cwnd) / growth).max(self.mss.into()));
    }

    /// ProbeInflightLongtermUpward().
    fn probe_upward(&mut self, sample: &RateSample) {
        if !sample.cwnd_limited || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        self.probe.up_acked += u64::from(sample.newly_acked);
        if let Some(per_inc) = self.probe.acked_per_inc
            && self.probe.up_acked >= per_inc
        {
            let delta = self.probe.up_acked / per_inc;
            self.probe.up_acked -= delta * per_inc;
            let more = delta.saturating_mul(self.mss.into()).min(UNBOUNDED.into()) as u32;
            self.bounds.inflight_longterm =
                self.bounds.inflight_longterm.saturating_add(more).min(UNBOUNDED - 1);
        }
        if self.round.start {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel(); returns whether the state has changed.
    fn adapt_long_term_model(&mut self, sample: &RateSample) -> bool {
        if self.probe.acks == AckPhase::Starting && self.round.start {
            self.probe.acks = AckPhase::Feedback;
        }
        if self.probe.acks == AckPhase::Stopping && self.round.start {
            self.probe.is_sample = false;
            self.probe.acks = AckPhase::Init;
            if self.is_in_probe_bw() {
                // An application-limited cycle does not show the bandwidth, so it must not expire
                // the maximum.
                if !sample.app_limited {
                    self.max_bw.advance();
                }
                if self.probe.precautionary && !self.probe.too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.is_inflight_too_high(sample) || self.bounds.inflight_longterm == UNBOUNDED {
            return false;
        }
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::Up {
            self.probe_upward(sample);
        }
        false
    }

    /// IsInflightTooHigh().
    fn is_inflight_too_high(&self, sample: &RateSample) -> bool {
        is_too_high(sample.lost, sample.tx_in_flight) || (!sample.selective && sample.lost > 0)
    }

    /// HandleInflightTooHigh().
    pub(super) fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: u32, app_limited: bool) {
        self.probe.too_high = true;
        // React only once per probe.
        self.probe.is_sample = false;
        // An application-limited sample does not show the capacity. One probe reduces the bound at
        // most to BBR.Beta of the target.
        if !app_limited {
            let least = percent(self.target_inflight().into(), BETA) as u32;
            self.bounds.inflight_longterm = tx_in_flight.max(least);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }
}

/// BBR.Headroom, in per cent: capacity left unused for other flows.
const HEADROOM: u64 = 15;
/// Largest number of round trips between two probes.
const MOST_ROUNDS: u32 = 63;
