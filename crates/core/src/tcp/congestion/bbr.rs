//! BBR version 3 (draft-ietf-ccwg-bbr): rate and window follow a model of the path. The model
//! consists of the delivery rate, the round-trip time without a queue, and the data in flight that
//! causes little loss.
//!
//! * [`model`]: delivery rate, aggregated acknowledgements, and loss signals.
//! * [`probe`]: the states of ProbeBW, which look for more bandwidth every two to three seconds.
//! * [`min_rtt`]: the round-trip time without a queue, and ProbeRTT, which empties the queue to
//!   measure it.
//!
//! Names are those of the draft. Choices that it leaves open: there is no segmentation offload to
//! feed, so the offload budget is the pacing quantum, one segment at low rates; extra_acked is the
//! maximum of the last 5 to 10 round trips. ECN is not implemented. All arithmetic uses integers:
//! bytes, bytes per second, and gains in per cent.

mod min_rtt;
mod model;
mod probe;

use self::min_rtt::MinRtt;
use self::model::{Aggregation, Bounds, FullPipe, MaxBandwidth, Signals};
use self::probe::Probe;
use super::{Controller, LostSegment, RateSample, Repair, Start, View, Windows};
use crate::rates::rate_of;
use crate::time::{Duration, Instant};

/// The model of the path and the state of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    state: State,
    cwnd: u32,
    mss: u32,
    /// C.InitialCwnd.
    initial_cwnd: u32,
    /// C.pacing_rate, in bytes per second.
    rate: u64,
    /// BBR.bw, in bytes per second.
    bw: u64,
    max_bw: MaxBandwidth,
    bounds: Bounds,
    signals: Signals,
    full: FullPipe,
    round: Round,
    aggregation: Aggregation,
    min_rtt: MinRtt,
    probe: Probe,
    /// BBR.drain_start_round.
    drain_start_round: u64,
    /// BBR.prior_cwnd: the window before a recovery or ProbeRTT.
    prior_cwnd: u32,
    /// A recovery, or the recovery from a time-out, is in progress.
    recovering: bool,
    /// A time-out has expired, and its losses were not reported yet.
    timed_out: bool,
    undo: Undo,
    /// Whether the first sample has arrived.
    sampled: bool,
    /// C.delivered and C.inflight of the last sample or loss.
    delivered: u64,
    in_flight: u32,
    /// Number of separate runs of segments lost in this loss round (for BBRStartupFullLossCnt).
    loss_ranges: u32,
    random: u64,
}

/// BBR.state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// Round trips counted in delivered packets.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// BBR.round_count.
    count: u64,
    /// BBR.round_start: the current sample is the first of a round trip.
    start: bool,
    /// BBR.next_round_delivered.
    end: u64,
}

/// State restored after a spurious recovery.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// BBR.undo_state: Startup or ProbeBW_UP, if the loss has ended that state.
    state: Option<State>,
    bounds: Bounds,
}

impl Bbr {
    pub(crate) fn new(start: Start) -> Self {
        let mut this = Self {
            state: State::Startup,
            cwnd: start.cwnd,
            mss: start.mss.max(1),
            initial_cwnd: start.cwnd,
            rate: 0,
            bw: 0,
            max_bw: MaxBandwidth::default(),
            bounds: Bounds::default(),
            signals: Signals::default(),
            full: FullPipe::default(),
            round: Round::default(),
            aggregation: Aggregation::default(),
            min_rtt: MinRtt::default(),
            probe: Probe::default(),
            drain_start_round: 0,
            prior_cwnd: 0,
            recovering: false,
            timed_out: false,
            undo: Undo { state: None, bounds: Bounds::default() },
            sampled: false,
            delivered: 0,
            in_flight: 0,
            loss_ranges: 0,
            random: u64::from(start.seed),
        };
        this.init_pacing_rate(None);
        this
    }

    /// InitPacingRate(): the initial window per round trip, or per millisecond before the first
    /// measurement.
    fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        let srtt = srtt.filter(|srtt| !srtt.is_zero()).unwrap_or(Duration::from_millis(1));
        self.rate = percent(rate_of(self.initial_cwnd.into(), srtt), STARTUP_PACING_GAIN);
    }

    /// BBR.pacing_gain, in per cent.
    fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => 50,
            State::Down => 90,
            State::Cruise | State::Refill | State::ProbeRtt => 100,
            State::Up => 125,
        }
    }

    /// BBR.cwnd_gain, in per cent.
    fn cwnd_gain(&self) -> u64 {
        match self.state {
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => 200,
            State::Up => 225,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
        }
    }

    fn is_in_probe_bw(&self) -> bool {
        match self.state {
            State::Down | State::Cruise | State::Refill | State::Up => true,
            State::Startup | State::Drain | State::ProbeRtt => false,
        }
    }

    /// IsProbingBW().
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn start_round(&mut self) {
        self.round.end = self.delivered;
    }

    /// UpdateRound().
    fn update_round(&mut self, sample: &RateSample) {
        self.round.start = sample.prior_delivered >= self.round.end;
        if self.round.start {
            self.start_round();
            self.round.count += 1;
            self.probe.rounds = self.probe.rounds.saturating_add(1);
        }
    }

    /// BBR.MinPipeCwnd: four segments keep data in flight with a peer that acknowledges every
    /// second segment.
    fn min_pipe_cwnd(&self) -> u32 {
        self.mss.saturating_mul(4)
    }

    /// BDPMultiple(): `gain` per cent of the bandwidth-delay product at `bw`.
    fn bdp_multiple(&self, bw: u64, gain: u64) -> u32 {
        let Some(min_rtt) = self.min_rtt.value() else { return self.initial_cwnd };
        let bytes = u128::from(bw) * u128::from(min_rtt.as_nanos()) / 1_000_000_000;
        (bytes.saturating_mul(gain.into()) / 100).min(MOST_IN_FLIGHT.into()) as u32
    }

    /// QuantizationBudget().
    fn quantized(&self, in_flight: u32) -> u32 {
        // C.send_quantum: 1 ms at the pacing rate, at most 64 KiB.
        let budget = (self.rate / 1000).min(64 * 1024) as u32;
        let least = in_flight.max(budget).max(self.min_pipe_cwnd());
        if self.state == State::Up { least.saturating_add(2 * self.mss) } else { least }
    }

    /// Inflight(): the bandwidth-delay product at `bw`, with room for a quantum.
    fn inflight(&self, bw: u64) -> u32 {
        self.quantized(self.bdp_multiple(bw, 100))
    }

    /// TargetInflight().
    fn target_inflight(&self) -> u32 {
        self.bdp_multiple(self.bw, 100).min(self.cwnd)
    }

    /// SaveCwnd().
    fn save_cwnd(&mut self) {
        let fresh = !self.recovering && self.state != State::ProbeRtt;
        self.prior_cwnd = if fresh { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// RestoreCwnd().
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// SaveStateUponLoss().
    fn save_state(&mut self) {
        self.save_cwnd();
        self.undo = Undo { state: None, bounds: self.bounds };
    }

    /// NoteLoss().
    fn note_loss(&mut self) {
        if !self.signals.is_loss_in_round {
            self.signals.loss_round_delivered = self.delivered;
            self.save_state();
        }
        self.signals.is_loss_in_round = true;
    }

    /// Called at the end of a recovery, or of the recovery from a time-out.
    fn leave_recovery(&mut self) {
        self.timed_out = false;
        if core::mem::take(&mut self.recovering) {
            self.restore_cwnd();
        }
    }

    fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// CheckStartupDone().
    fn check_startup_done(&mut self, sample: &RateSample) {
        self.check_startup_loss(sample);
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
            self.drain_start_round = self.round.count;
        }
    }

    /// CheckStartupHighLoss(), at the end of a round trip in a recovery.
    fn check_startup_loss(&mut self, sample: &RateSample) {
        let round = self.signals.loss_round_start;
        let ranges = if round { core::mem::take(&mut self.loss_ranges) } else { self.loss_ranges };
        if self.full.reached || !sample.recovering {
            return;
        }
        let high = if sample.selective {
            round && ranges >= STARTUP_FULL_LOSS_COUNT && is_too_high(sample.lost, sample.tx_in_flight)
        } else {
            ranges > 0
        };
        if high {
            self.undo.state = Some(State::Startup);
            (self.full.reached, self.full.now) = (true, true);
            self.bounds.inflight_longterm = self.bdp_multiple(self.bw, 100).max(self.signals.inflight_latest);
        }
    }

    /// CheckDrainDone().
    fn check_drain_done(&mut self, now: Instant) {
        if self.state == State::Drain
            && (self.in_flight <= self.inflight(self.bw) || self.round.count > self.drain_start_round + 3)
        {
            self.start_down(now);
        }
    }

    /// SetPacingRateWithGain().
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = percent(percent(self.bw, gain), 100 - PACING_MARGIN_PERCENT);
        // In Startup the estimate is still growing, so a lower value must not reduce the rate.
        if self.full.reached || rate > self.rate {
            self.rate = rate;
        }
    }

    /// SetCwnd().
    fn set_cwnd(&mut self, view: &View, sample: &RateSample) {
        let wanted =
            self.bdp_multiple(self.bw, self.cwnd_gain()).saturating_add(self.aggregation.extra_acked());
        let max_inflight = self.quantized(wanted);
        let grown = self.cwnd.saturating_add(sample.newly_acked);
        if self.full.reached {
            self.cwnd = grown.min(max_inflight);
        // In Startup the model underestimates the path. It limits the growth but must not shrink
        // the window.
        } else if self.cwnd < max_inflight || sample.total_delivered < u64::from(self.initial_cwnd) {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = self.cwnd.min(self.volume_cap()).min(view.limit.max(view.mss)).min(MOST_IN_FLIGHT);
    }

    /// BoundCwndForModel().
    fn volume_cap(&self) -> u32 {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => UNBOUNDED,
        };
        cap.min(self.bounds.inflight_shortterm).max(self.min_pipe_cwnd())
    }

    /// A pseudo-random number below `n` from a linear congruential generator. The sequence depends
    /// only on the connection's seed, so runs are reproducible.
    fn random_below(&mut self, n: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % n
    }
}

impl Controller for Bbr {
    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    fn wants_samples(&self) -> bool {
        true
    }

    #[inline]
    fn pacing_rate(&self) -> Option<u64> {
        Some(self.rate)
    }

    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn on_rtt(&mut self, now: Instant, view: &View, _rtt: Duration) {
        if !self.sampled && view.srtt.is_some() {
            self.init_pacing_rate(view.srtt);
            self.min_rtt.begin(now, view.srtt.filter(|srtt| !srtt.is_zero()));
        }
    }

    /// UpdateOnACK().
    fn on_sample(&mut self, now: Instant, view: &View, sample: &RateSample) {
        self.mss = view.mss.max(1);
        (self.delivered, self.in_flight) = (sample.total_delivered, sample.in_flight);
        if !core::mem::replace(&mut self.sampled, true) {
            self.min_rtt.begin(now, None);
            self.aggregation.restart(now);
        }
        if !sample.recovering {
            self.leave_recovery();
        }
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample);
        self.aggregation.update(now, self.bw, sample, self.cwnd, (self.round.count, self.full.reached));
        self.full.check(self.round.start, sample);
        self.check_startup_done(sample);
        self.check_drain_done(now);
        self.update_probe_bw(now, sample);
        self.check_probe_rtt(now, sample);
        self.signals.advance(sample);
        self.bw = self.max_bw.value().min(self.bounds.bw_shortterm);
        self.set_pacing_rate(self.pacing_gain());
        self.set_cwnd(view, sample);
    }

    /// HandleLostPacket().
    fn on_lost(&mut self, now: Instant, view: &View, lost: &LostSegment) {
        (self.delivered, self.in_flight) = (lost.delivered, lost.in_flight);
        if core::mem::take(&mut self.timed_out) {
            // OnEnterRTO(): one segment may be sent.
            self.cwnd = lost.in_flight.saturating_add(view.mss);
        }
        self.note_loss();
        self.loss_ranges = self.loss_ranges.saturating_add(u32::from(lost.apart));
        if self.probe.is_sample && is_too_high(lost.lost, lost.tx_in_flight) {
            self.handle_inflight_too_high(now, inflight_at_loss(lost), lost.app_limited);
        }
    }

    /// OnEnterFastRecovery(). Without SACK no other call reports the loss.
    fn on_loss(&mut self, _now: Instant, view: &View) {
        self.save_state();
        self.recovering = true;
        if view.repair != Repair::Sack {
            self.note_loss();
            self.loss_ranges = self.loss_ranges.saturating_add(1);
        }
    }

    /// The draft leaves marks to a later version. Its reaction to a loss is weaker than RFC 3168
    /// section 5 requires for a mark, so data must not be sent as ECT.
    fn answers_marks(&self) -> bool {
        false
    }

    fn on_recovered(&mut self, _now: Instant, _view: &View) {
        self.leave_recovery();
    }

    /// OnEnterRTO().
    fn on_timeout(&mut self, _now: Instant, view: &View) {
        self.save_state();
        self.recovering = true;
        self.timed_out = true;
        self.cwnd = view.mss;
    }

    /// HandleSpuriousLossDetection().
    fn on_spurious(&mut self, _now: Instant, _view: &View, prior: Windows) {
        self.recovering = false;
        self.timed_out = false;
        self.cwnd = self.cwnd.max(self.prior_cwnd).max(prior.cwnd);
        self.signals.is_loss_in_round = false;
        self.full.reset(0);
        self.bounds.raise(&self.undo.bounds);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill();
            }
            _ => {}
        }
    }

    /// HandleRestartFromIdle().
    fn on_restart(&mut self, now: Instant, _view: &View) {
        self.min_rtt.idle_restart = true;
        self.aggregation.restart(now);
        if self.is_in_probe_bw() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}

/// IsInflightTooHigh() for reported losses: more than BBR.LossThresh, 2 %, of the data in flight.
fn is_too_high(lost: u64, in_flight: u32) -> bool {
    lost.saturating_mul(50) > u64::from(in_flight)
}

/// InflightAtLoss(): data in flight when the losses exceeded the threshold, which may be within the
/// segment.
fn inflight_at_loss(lost: &LostSegment) -> u32 {
    let before = i64::from(lost.tx_in_flight) - i64::from(lost.size);
    let lost_before = lost.lost.min(u64::from(u32::MAX)) as i64 - i64::from(lost.size);
    // The prefix of the segment at which the losses reach 2 %, from lost_before + prefix = 0.02
    // (before + prefix).
    let prefix = (2 * before - 100 * lost_before) / 98;
    (before + prefix).clamp(0, MOST_IN_FLIGHT.into()) as u32
}

fn percent(n: u64, percent: u64) -> u64 {
    (u128::from(n) * u128::from(percent) / 100).min(u64::MAX.into()) as u64
}

/// Infinity for the bounds of the data in flight.
const UNBOUNDED: u32 = u32::MAX;
/// Sequence comparisons need the data in flight to be well below half of the sequence space.
const MOST_IN_FLIGHT: u32 = 1 << 30;
/// BBR.StartupPacingGain, in per cent.
const STARTUP_PACING_GAIN: u64 = 277;
/// BBR.ProbeRTTCwndGain, in per cent.
const PROBE_RTT_CWND_GAIN: u64 = 50;
/// BBR.PacingMarginPercent: pacing slightly below the estimate keeps the queue at the bottleneck
/// short.
const PACING_MARGIN_PERCENT: u64 = 1;
/// BBRStartupFullLossCnt.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;

#[cfg(test)]
mod tests;
