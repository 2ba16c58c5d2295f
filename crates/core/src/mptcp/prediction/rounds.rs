//! The rounds of section VII: cases 1 to 4 with their sub-cases, over all sequences of losses.

use alloc::vec::Vec;

use super::reading::{CaseTwo, Growth, Halving, Reading, Recovery, RoundTime, TimeoutCase};
use super::window::Transitions;
use super::{MAX_STATES, MAX_WINDOW, Path, SLICES};

/// Expected number of packets in `time` seconds, for valid arguments.
pub(super) fn expected(path: &Path, time: f64, reading: Reading) -> f64 {
    let mut walk = Walk::new(path, time, reading);
    walk.reach(State { w: path.cwnd, ssthresh: path.ssthresh, probability: 1.0, mass: time });
    // The processed states determine the rate; the others must not influence it.
    let (mut packets, mut rest, mut followed) = (0.0, 0.0, 0);
    for slice in (0..SLICES).rev() {
        walk.slice = slice;
        while let Some(state) = walk.take() {
            if followed == MAX_STATES || state.probability < LEAST_PROBABILITY {
                rest += walk.steady(&state, packets);
            } else {
                followed += 1;
                packets += walk.follow(&state);
            }
        }
    }
    packets + rest
}

/// States of lower probability are not processed, but continue at the mean rate of the others.
const LEAST_PROBABILITY: f64 = 1e-4;

/// The beginning of a round, merged over all ways that lead to it.
#[derive(Clone, Copy)]
struct State {
    w: u32,
    ssthresh: u32,
    probability: f64,
    /// Sum of probability times remaining time.
    mass: f64,
}

impl State {
    /// Mean remaining time in seconds.
    fn time(&self) -> f64 {
        self.mass / self.probability
    }
}

/// Durations of a round of one size in seconds, and the probabilities of its ends.
#[derive(Clone, Copy)]
struct Round {
    w: u32,
    ends: Transitions,
    /// T(r) - T(r+1) without loss, with fast retransmit, with time-out.
    clean: f64,
    repaired: f64,
    timed_out: f64,
    /// The upper limits of cases 2 and 3.
    case_two: f64,
    case_three: f64,
}

/// States by slices of the remaining time, last slice first. Every round takes time, so the
/// successors of a state lie in its own slice or in one that is still to come.
struct Walk<'a> {
    path: &'a Path,
    reading: Reading,
    /// T(1), seconds.
    time: f64,
    /// Tolerance for rounding errors of times.
    slack: f64,
    slices_per_second: f64,
    /// The current slice.
    slice: usize,
    states: Vec<(State, usize)>,
    /// First and last state of each slice; [`NONE`] if it is empty.
    queues: [(usize, usize); SLICES],
    /// Free list of processed states.
    free: usize,
    /// Sorted by window.
    rounds: Vec<Round>,
}

/// Index that denotes no state.
const NONE: usize = usize::MAX;

impl<'a> Walk<'a> {
    fn new(path: &'a Path, time: f64, reading: Reading) -> Self {
        // At time 0 there is one state, which ends at once, so any number other than a division by
        // zero will do.
        let slices_per_second = if time > 0.0 { SLICES as f64 / time } else { 0.0 };
        Self {
            path,
            reading,
            time,
            slack: time * 1e-12,
            slices_per_second,
            slice: SLICES - 1,
            states: Vec::new(),
            queues: [(NONE, NONE); SLICES],
            free: NONE,
            rounds: Vec::new(),
        }
    }

    /// Processes one round from `state`; returns its weighted number of packets. Possible next
    /// rounds are added to their slices.
    fn follow(&mut self, state: &State) -> f64 {
        let time = state.time();
        let p = state.probability;
        if !self.reaches(time, self.path.t_first) {
            return 0.0; // Case 1.
        }
        let round = self.round(state.w);
        if !self.reaches(time, round.case_two) {
            return p * self.last_round(state.w, time);
        }
        let half = match self.reading.halving {
            Halving::AtLeastOne => (state.w / 2).max(1),
            Halving::Floor => state.w / 2,
        };
        let w = self.grown(state.w, state.ssthresh);
        self.branch(w, state.ssthresh, p * round.ends.no_loss, time - round.clean);
        self.branch(half, half, p * round.ends.fast_retransmit, time - round.repaired);
        // Case 3-3 ends here: there is no time for the time-out.
        if self.reaches(time, round.case_three) {
            self.branch(self.path.w_min, half, p * round.ends.timeout, time - round.timed_out);
        }
        p * f64::from(state.w)
    }

    /// Contribution of a state that continues at the mean rate so far, with `packets` up to this
    /// slice; at the beginning, as if there were no losses.
    fn steady(&mut self, state: &State, packets: f64) -> f64 {
        let time = state.time();
        if !self.reaches(time, self.path.t_first) {
            return 0.0;
        }
        let round = self.round(state.w);
        if !self.reaches(time, round.case_two) {
            return state.probability * self.last_round(state.w, time);
        }
        let walked = self.time - time;
        let rate = if walked > self.time / 8.0 { packets / walked } else { f64::from(state.w) / round.clean };
        state.probability * time * rate
    }

    /// Case 2: the last round.
    fn last_round(&self, w: u32, time: f64) -> f64 {
        match self.reading.case_two {
            CaseTwo::Window => f64::from(w),
            CaseTwo::InTime if self.path.t_next <= 0.0 => f64::from(w),
            CaseTwo::InTime => {
                let further = (time - self.path.t_first) / self.path.t_next + 1e-9;
                // `as` rounds down and saturates.
                f64::from((further as u32).saturating_add(1).min(w))
            }
        }
    }

    /// Equation (12): the window of the next round.
    fn grown(&self, w: u32, ssthresh: u32) -> u32 {
        let slow_start = w < ssthresh;
        match self.reading.growth {
            Growth::Limited if slow_start => (2 * w).min(ssthresh).min(self.path.w_max),
            Growth::Limited => (w + 1).min(self.path.w_max),
            Growth::Unlimited if slow_start => (2 * w).min(MAX_WINDOW),
            Growth::Unlimited => (w + 1).min(MAX_WINDOW),
        }
    }

    fn reaches(&self, time: f64, limit: f64) -> bool {
        time >= limit - self.slack
    }

    /// The round of `w` packets; computed once.
    fn round(&mut self, w: u32) -> Round {
        match self.rounds.binary_search_by_key(&w, |round| round.w) {
            Ok(at) => self.rounds[at],
            Err(at) => {
                let round = Round::of(w, self.path, self.reading);
                self.rounds.insert(at, round);
                round
            }
        }
    }

    fn branch(&mut self, w: u32, ssthresh: u32, probability: f64, time: f64) {
        // Case 1 of the next round, or an impossible branch.
        if w > 0 && probability > 0.0 && self.reaches(time, self.path.t_first) {
            self.reach(State { w, ssthresh, probability, mass: probability * time });
        }
    }

    /// Adds a state to its slice, or its probability to an equal one there.
    fn reach(&mut self, mut state: State) {
        // In congestion avoidance the threshold has no effect: the next threshold follows from the
        // window.
        if state.w >= state.ssthresh {
            state.ssthresh = 0;
        }
        // `as` rounds down, and maps negative rounding errors to 0.
        let slice = ((state.time() * self.slices_per_second) as usize).min(self.slice);
        let (first, last) = self.queues[slice];
        let mut at = first;
        while at != NONE {
            let (other, next) = &mut self.states[at];
            if (other.w, other.ssthresh) == (state.w, state.ssthresh) {
                other.probability += state.probability;
                other.mass += state.mass;
                return;
            }
            at = *next;
        }
        let at = if self.free == NONE {
            self.states.push((state, NONE));
            self.states.len() - 1
        } else {
            let at = self.free;
            self.free = self.states[at].1;
            self.states[at] = (state, NONE);
            at
        };
        if last == NONE {
            self.queues[slice] = (at, at);
        } else {
            self.states[last].1 = at;
            self.queues[slice].1 = at;
        }
    }

    /// Takes the next state of the slice.
    fn take(&mut self) -> Option<State> {
        let (first, last) = self.queues[self.slice];
        if first == NONE {
            return None;
        }
        let (state, next) = self.states[first];
        self.queues[self.slice] = if first == last { (NONE, NONE) } else { (next, last) };
        self.states[first].1 = self.free;
        self.free = first;
        Some(state)
    }
}

impl Round {
    fn of(w: u32, path: &Path, reading: Reading) -> Self {
        let ends = Transitions::of(w, path.loss, reading);
        // T^m, the time to deliver m packets; m may be a mean.
        let deliver = |m: f64| path.t_first + (m - 1.0) * path.t_next;
        let half = path.rtt / 2.0;
        let acknowledged = match reading.round_time {
            RoundTime::Acknowledged => half,
            RoundTime::Printed => 0.0,
        };
        let all = deliver(f64::from(w));
        let again = match reading.recovery {
            Recovery::Conditional => deliver(ends.repeated),
            Recovery::Unconditional => {
                ends.reparable * path.t_first + (ends.reparable_packets - ends.reparable) * path.t_next
            }
        };
        let clean = all + acknowledged;
        let timed_out = all + path.rto;
        Self {
            w,
            ends,
            clean,
            repaired: clean + again + acknowledged,
            timed_out,
            case_two: all + half + path.t_first,
            case_three: match reading.timeout_case {
                TimeoutCase::Spent => timed_out + path.t_first,
                TimeoutCase::Printed => path.rto + half,
            },
        }
    }
}
