//! The choice between predictive striping and turns by the measured rate of delivery.
//!
//! Turns are faster where all paths share one radio channel and its MAC gives up early, predictive
//! striping is faster nearly everywhere else, and the sender cannot know where it is. So it tries,
//! but only where the measurements of predictive striping do not exclude turns, since a trial of
//! the wrong policy costs time: all sessions must run empty before single chunks can be measured.
//!
//! The test of the trial is one chunk alone. Where the paths share a channel, it takes as long as
//! the path needs, and predictive striping delivers hardly more than one chunk after another.
//! Where each path has a channel of its own, all sessions together deliver more, and the trial
//! ends. Each verdict holds for the sessions that were open then: if one is lost or opens, a trial
//! may be repeated. Only turns that were faster in a measurement go on.

use alloc::vec::Vec;

use super::Sender;
use super::decision::{Evidence, StripingChoice, StripingDecision, StripingReason};
use super::turns::{self, Turns};
use crate::rates::{rate_of, time_of};
use crate::set::striping::StripingPolicy;
use crate::set::tcp_manager::{State, TcpManager};
use crate::time::{Duration, Instant};

/// Number of bytes delivered in one measurement of turns, and at least in that of predictive
/// striping.
const SPAN: u64 = 16 * turns::CHUNK;
/// Number of bytes that predictive striping delivers before it is measured.
const START: u64 = 16 * turns::CHUNK;
/// Number of bytes that turns deliver before the first measurement, while they find their interval.
const WARM_UP: u64 = 24 * turns::CHUNK;
/// Number of measurements that the rest of the file must last before turns are tried.
const REST: u64 = 4;
/// Number of times that the slowest session may deliver a chunk in the rest of the transfer at
/// least, before turns are tried: the sessions run empty first.
const LATENCIES: u64 = 8;
/// Largest rate of delivery, and of the fastest session, in bytes per second at which turns are
/// tried. One chunk after another is not faster over two hops of IEEE 802.15.4 at 250 kbit/s.
const FASTEST: u64 = 60_000 / 8;
/// Ratio of the rates of the fastest and the slowest session at which turns are tried at most: in
/// turns each session carries the same.
const SIMILAR: u64 = 4;
/// Ratio of a chunk in the time of opening a session to the rate of delivery, at which turns are
/// tried at least. A chunk alone takes longer than the few small packets of an opening.
const SOON: u64 = 3;
/// Ratio of the sum of the sessions' rates to the rate of delivery at which turns are tried at
/// least, in percent. Sessions that do not disturb each other deliver that sum.
const DISTURBED: u64 = 115;
/// Smallest rate of a chunk alone with which turns go on, in percent of that of predictive
/// striping. Turns are faster than single chunks.
const ALONE: u64 = 90;
/// Number of sessions that deliver a chunk alone before turns are given up for their slowness.
const TESTS: usize = 2;
/// Part of the rest of the transfer that may pass before the chunk alone is acknowledged, in
/// percent, apart from the usual latency of a chunk.
const PAUSE: u64 = 20;
/// Ratio by which predictive striping must have been faster in two measurements, in percent.
const FASTER: u64 = 105;
/// Ratio by which it must have been faster in one, in percent.
const MUCH_FASTER: u64 = 133;
/// Number of trials in a transfer. One that has no verdict may be repeated.
const TRIALS: u32 = 2;

/// The policy in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// Predictive striping is measured.
    #[default]
    Predictive,
    /// Turns wait for the acknowledgement of a chunk alone.
    Trial {
        /// When the trial began.
        since: Instant,
        /// When it ends without a verdict.
        until: Instant,
    },
    /// Turns go on while they are faster.
    Turns,
    /// Predictive striping, since turns were slower.
    Decided,
}

/// State of the choice.
#[derive(Debug, Default)]
pub(super) struct Adaptive {
    stage: Stage,
    /// Rate of predictive striping when the trial began, in bytes per second.
    before: u64,
    /// Consecutive measurements in which turns were slower.
    slower: u32,
    /// Whether turns were not slower in a measurement.
    proved: bool,
    /// When the current measurement began, and the number of bytes that the node held then.
    since: Option<(Instant, u64)>,
    /// Number of bytes that the node holds when the next measurement begins.
    from: Option<u64>,
    /// [`Sender::generation`] of the sessions that are measured, and the number of those open.
    generation: u64,
    open: usize,
    trials: u32,
    /// The decisions so far. Each reason excludes turns in one of them at most.
    decisions: Vec<StripingDecision>,
}

/// What the sender has measured with the sessions that are open.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Number of bytes that the node holds, and of those that are not assigned.
    held: u64,
    rest: u64,
    sessions: usize,
    /// Rates of the slowest and the fastest session, and the sum of all, in bytes per second.
    slowest: u64,
    fastest: u64,
    sum: u64,
    /// Longest latency of a chunk.
    latency: Duration,
    /// Shortest time in which a session has opened.
    opening: Duration,
    /// Highest rate of a chunk in turns in bytes per second, and the number of sessions that have
    /// delivered one of the longest.
    alone: (u64, usize),
}

impl Measured {
    /// What excludes a trial after this number of trials, in place of predictive striping that
    /// delivers at this rate; `None` if nothing does.
    fn excludes(&self, rate: u64, trials: u32) -> Option<Evidence> {
        let time = time_of(self.rest, rate);
        let number = |n: usize| n as f64;
        let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
        let soon = time_of(turns::CHUNK, SOON * rate);
        let gates = [
            (self.sessions > 1, StripingReason::Sessions, number(self.sessions), 2.0),
            (self.rest >= REST * SPAN, StripingReason::Rest, self.rest as f64, (REST * SPAN) as f64),
            (rate <= FASTEST, StripingReason::FileRate, bits(rate), bits(FASTEST)),
            (self.fastest <= FASTEST, StripingReason::SessionRate, bits(self.fastest), bits(FASTEST)),
            (
                self.fastest <= SIMILAR * self.slowest,
                StripingReason::Spread,
                ratio(self.fastest, self.slowest),
                SIMILAR as f64,
            ),
            (
                self.sum * 100 >= rate * DISTURBED,
                StripingReason::Sum,
                ratio(self.sum, rate),
                ratio(DISTURBED, 100),
            ),
            (
                rate_of(turns::CHUNK, self.opening) >= SOON * rate,
                StripingReason::Opening,
                self.opening.as_secs_f64(),
                soon.as_secs_f64(),
            ),
            (
                time >= self.latency * LATENCIES,
                StripingReason::TimeLeft,
                time.as_secs_f64(),
                (self.latency * LATENCIES).as_secs_f64(),
            ),
            (trials < TRIALS, StripingReason::Trials, f64::from(trials), f64::from(TRIALS - 1)),
        ];
        let failed = gates.into_iter().find(|(holds, ..)| !holds);
        failed.map(|(_, reason, measured, limit)| Evidence { reason, measured, limit })
    }

    /// How long turns may take for their first chunk in place of predictive striping that delivers
    /// at this rate.
    fn patience(&self, rate: u64) -> Duration {
        self.latency + time_of(self.rest, rate).mul_ratio(PAUSE, 100)
    }
}

/// A rate in bytes per second in bit/s.
fn bits(rate: u64) -> f64 {
    rate as f64 * 8.0
}

impl Adaptive {
    /// Chooses the stage after an acknowledgement. Returns whether the policy changes.
    fn measure(&mut self, now: Instant, measured: &Measured) -> bool {
        let held = measured.held;
        match self.stage {
            Stage::Predictive => {
                let Some((span, octets)) = self.span(now, held, START) else { return false };
                // The mean since the start. A pause of the node lowers it, but not the rate of the
                // fastest session, which must be as low.
                let rate = rate_of(octets, span);
                if let Some(evidence) = measured.excludes(rate, self.trials) {
                    let is_known = |d: &StripingDecision| {
                        (d.choice, d.reason) == (StripingChoice::Excluded, evidence.reason)
                    };
                    if !self.decisions.iter().any(is_known) {
                        self.note(now, StripingChoice::Excluded, evidence);
                    }
                    return false;
                }
                self.trials += 1;
                self.before = rate;
                let evidence =
                    Evidence { reason: StripingReason::FileRate, measured: bits(rate), limit: bits(FASTEST) };
                self.note(now, StripingChoice::Trial, evidence);
                self.enter(Stage::Trial { since: now, until: now + measured.patience(rate) })
            }
            Stage::Trial { .. } => {
                let (rate, sessions) = measured.alone;
                let is_fast = rate * 100 >= self.before * ALONE;
                // One chunk may have been lost on its way.
                if sessions == 0 || !is_fast && sessions < TESTS {
                    return false;
                }
                let limit = bits(self.before) * ALONE as f64 / 100.0;
                let evidence = Evidence { reason: StripingReason::ChunkAlone, measured: bits(rate), limit };
                if is_fast {
                    self.note(now, StripingChoice::Turns, evidence);
                    self.stage = Stage::Turns;
                    return false;
                }
                self.note(now, StripingChoice::Predictive, evidence);
                self.enter(Stage::Decided)
            }
            Stage::Turns => {
                let Some((span, octets)) = self.span(now, held, WARM_UP) else { return false };
                let rate = rate_of(octets, span);
                self.since = Some((now, held));
                let is_slower = self.before * 100 > rate * FASTER;
                self.slower = if is_slower { self.slower + 1 } else { 0 };
                self.proved |= !is_slower;
                let is_decided = self.slower > 1 || self.before * 100 > rate * MUCH_FASTER;
                if is_decided {
                    let limit = bits(self.before) * 100.0 / FASTER as f64;
                    let evidence =
                        Evidence { reason: StripingReason::TurnsRate, measured: bits(rate), limit };
                    self.note(now, StripingChoice::Predictive, evidence);
                    self.enter(Stage::Decided);
                }
                is_decided
            }
            Stage::Decided => false,
        }
    }

    /// Length of the current measurement and the bytes delivered in it, once it is long enough. It
    /// begins after `skipped` bytes.
    fn span(&mut self, now: Instant, held: u64, skipped: u64) -> Option<(Duration, u64)> {
        let from = *self.from.get_or_insert(held + skipped);
        let Some((began, before)) = self.since else {
            self.since = (held >= from).then_some((now, held));
            return None;
        };
        (held >= before + SPAN && now > began).then(|| (now.saturating_since(began), held - before))
    }

    /// Changes the policy.
    fn enter(&mut self, stage: Stage) -> bool {
        self.stage = stage;
        self.slower = 0;
        self.proved &= stage == Stage::Turns;
        self.since = None;
        self.from = None;
        true
    }

    /// Sessions were lost or opened, and this number is open. Turns that were faster in a
    /// measurement go on, as the channel is the same, unless a single session is left. Returns
    /// whether the policy changes.
    fn renew(&mut self, now: Instant, open: usize) -> bool {
        let before = core::mem::replace(&mut self.open, open);
        let goes_on = self.stage == Stage::Turns && self.proved && open > 1;
        let changes = !goes_on && matches!(self.stage, Stage::Trial { .. } | Stage::Turns);
        if changes {
            let (measured, limit) = (open as f64, before as f64);
            let evidence = Evidence { reason: StripingReason::Renewal, measured, limit };
            self.note(now, StripingChoice::NoVerdict, evidence);
        }
        self.enter(if goes_on { Stage::Turns } else { Stage::Predictive });
        changes
    }

    fn note(&mut self, at: Instant, choice: StripingChoice, evidence: Evidence) {
        let Evidence { reason, measured, limit } = evidence;
        self.decisions.push(StripingDecision { at, choice, reason, measured, limit });
    }
}

impl Sender {
    /// The policy by which chunks are assigned now.
    pub(super) fn policy(&self) -> StripingPolicy {
        match (self.config.striping, self.adaptive.stage) {
            (StripingPolicy::Adaptive, Stage::Trial { .. } | Stage::Turns) => StripingPolicy::Turns,
            (StripingPolicy::Adaptive, Stage::Predictive | Stage::Decided) => StripingPolicy::Predictive,
            (policy, _) => policy,
        }
    }

    /// What [`StripingPolicy::Adaptive`] has decided so far, first to last. Each reason excludes
    /// turns in one decision at most, the first. Empty with other policies, and before 37 kB were
    /// delivered.
    pub fn decisions(&self) -> &[StripingDecision] {
        &self.adaptive.decisions
    }

    /// When a trial of turns ends without a verdict.
    pub(super) fn trial_timeout(&self) -> Option<Instant> {
        match self.adaptive.stage {
            Stage::Trial { until, .. } => Some(until),
            Stage::Predictive | Stage::Turns | Stage::Decided => None,
        }
    }

    pub(super) fn end_trial(&mut self, now: Instant) {
        if let Stage::Trial { since, until } = self.adaptive.stage
            && until <= now
        {
            let [measured, limit] = [now, until].map(|at| at.saturating_since(since).as_secs_f64());
            let evidence = Evidence { reason: StripingReason::Wait, measured, limit };
            self.adaptive.note(now, StripingChoice::NoVerdict, evidence);
            self.adaptive.enter(Stage::Predictive);
            self.turns = Turns::new(now, 0);
        }
    }

    /// Chooses the policy anew after an acknowledgement.
    pub(super) fn adapt(&mut self, now: Instant) {
        if self.config.striping != StripingPolicy::Adaptive {
            return;
        }
        let is_open = |s: &TcpManager| s.state == State::Opened;
        let sessions = || self.sessions.iter().enumerate().filter(|(_, s)| is_open(s));
        let rates = || sessions().map(|(_, s)| s.estimate.rate().unwrap_or(0));
        let leader = sessions().max_by_key(|(_, s)| s.estimate.rate()).map_or(0, |(i, _)| i);
        let measured = Measured {
            held: self.acknowledged.octets(),
            rest: self.unassigned.octets(),
            sessions: sessions().count(),
            slowest: rates().min().unwrap_or(0),
            fastest: rates().max().unwrap_or(0),
            sum: rates().sum(),
            latency: sessions().filter_map(|(_, s)| s.estimate.latency()).max().unwrap_or(Duration::ZERO),
            opening: sessions().filter_map(|(_, s)| s.establishment).min().unwrap_or(Duration::MAX),
            alone: self.turns.alone(),
        };
        let stage = self.adaptive.stage;
        let is_same = core::mem::replace(&mut self.adaptive.generation, self.generation) == self.generation;
        let changes = if is_same {
            self.adaptive.measure(now, &measured)
        } else {
            self.adaptive.renew(now, measured.sessions)
        };
        if stage != Stage::Turns && self.adaptive.stage == Stage::Turns {
            // With the latencies of full queues, a gateway that dies would hold up the turns of all
            // for minutes, as its silence would be usual.
            self.sessions.iter_mut().for_each(|s| s.estimate.forget_latency());
        }
        if changes {
            // The fastest session has the best chance to deliver a chunk alone faster than all.
            self.turns = Turns::new(now, leader);
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::set::{Energy, Gateway, TransferId};

    use super::super::{Phase, SenderConfig};
    use super::*;
    use crate::set::tcp_manager::{Ending, Notice};

    /// Three sessions of a mesh: their rates do not add up.
    const SHARED: Measured = Measured {
        held: 0,
        rest: 300_000,
        sessions: 3,
        slowest: 1_500,
        fastest: 2_200,
        sum: 5_200,
        latency: Duration::from_millis(2_000),
        opening: Duration::from_millis(80),
        alone: (0, 0),
    };
    /// Rate of predictive striping in bytes per second.
    const BEFORE: u64 = 3_400;
    /// Time of opening in seconds at which turns are tried at that rate, at most.
    const SOONEST: f64 = turns::CHUNK as f64 / (SOON * BEFORE) as f64;

    /// Delivers chunks of [`turns::CHUNK`] at this rate in bytes per second until the policy
    /// changes. Returns their number, or `None` if none of a hundred spans changed it.
    fn deliver(adaptive: &mut Adaptive, at: &mut (Instant, u64), rate: u64, with: Measured) -> Option<u64> {
        (1..=100 * SPAN / turns::CHUNK).find(|_| {
            at.0 += time_of(turns::CHUNK, rate);
            at.1 += turns::CHUNK;
            adaptive.measure(at.0, &Measured { held: at.1, ..with })
        })
    }

    /// A choice whose trial has begun.
    fn in_trial() -> (Adaptive, (Instant, u64)) {
        let (mut adaptive, mut at) = (Adaptive::default(), (Instant::ZERO, 0));
        let chunks = deliver(&mut adaptive, &mut at, BEFORE, SHARED);
        assert_eq!(chunks, Some((START + SPAN) / turns::CHUNK + 1));
        assert!(matches!(adaptive.stage, Stage::Trial { .. }));
        (adaptive, at)
    }

    fn alone(rate: u64) -> Measured {
        Measured { alone: (rate, TESTS), ..SHARED }
    }

    #[test]
    fn turns_are_tried_only_where_nothing_excludes_them() {
        let s = SHARED;
        for (with, rate, reason, measured, limit) in [
            (Measured { sessions: 1, ..s }, BEFORE, StripingReason::Sessions, 1.0, 2.0),
            (Measured { rest: REST * SPAN - 1, ..s }, BEFORE, StripingReason::Rest, 74_239.0, 74_240.0),
            (
                Measured { sum: 100_000, opening: Duration::from_millis(5), ..s },
                FASTEST * 11 / 10,
                StripingReason::FileRate,
                66_000.0,
                60_000.0,
            ),
            (
                Measured { slowest: 7_000, fastest: 8_000, ..s },
                BEFORE,
                StripingReason::SessionRate,
                64_000.0,
                60_000.0,
            ),
            (Measured { slowest: 500, ..s }, BEFORE, StripingReason::Spread, 4.4, 4.0),
            (Measured { sum: BEFORE, ..s }, BEFORE, StripingReason::Sum, 1.0, 1.15),
            (
                Measured { opening: Duration::from_millis(200), ..s },
                BEFORE,
                StripingReason::Opening,
                0.2,
                SOONEST,
            ),
            (
                Measured { latency: Duration::from_secs(20), ..s },
                BEFORE,
                StripingReason::TimeLeft,
                88.2,
                160.0,
            ),
        ] {
            let mut adaptive = Adaptive::default();
            assert_eq!(deliver(&mut adaptive, &mut (Instant::ZERO, 0), rate, with), None, "{with:?}");
            let [decision] = adaptive.decisions[..] else { panic!("{:?}", adaptive.decisions) };
            assert_eq!((decision.choice, decision.reason), (StripingChoice::Excluded, reason), "{decision}");
            let is_near = |found: f64, value: f64| (found - value).abs() < value / 100.0;
            assert!(is_near(decision.measured, measured) && is_near(decision.limit, limit), "{decision:?}");
        }
        let (adaptive, _) = in_trial();
        let [decision] = adaptive.decisions[..] else { panic!("{:?}", adaptive.decisions) };
        assert_eq!((decision.choice, decision.reason), (StripingChoice::Trial, StripingReason::FileRate));
    }

    #[test]
    fn a_chunk_alone_decides_the_trial() {
        for (rate, is_kept) in [(BEFORE * 85 / 100, false), (BEFORE * 95 / 100, true)] {
            let (mut adaptive, at) = in_trial();
            assert_eq!(adaptive.measure(at.0, &Measured { held: at.1, ..alone(rate) }), !is_kept);
            assert_eq!(adaptive.stage, if is_kept { Stage::Turns } else { Stage::Decided });
        }
        // A single one may have been lost.
        let (mut adaptive, at) = in_trial();
        assert!(!adaptive.measure(at.0, &Measured { held: at.1, alone: (BEFORE / 10, 1), ..SHARED }));
        assert!(matches!(adaptive.stage, Stage::Trial { .. }));
    }

    #[test]
    fn turns_go_on_until_two_measurements_are_slower() {
        let (mut adaptive, mut at) = in_trial();
        let with = alone(4_300);
        assert_eq!(deliver(&mut adaptive, &mut at, 5_000, with), None);
        let chunks = deliver(&mut adaptive, &mut at, BEFORE * 9 / 10, with);
        // The measurement that the rate changes in may still be fast.
        assert!(chunks.is_some_and(|chunks| (17..=48).contains(&chunks)), "{chunks:?}");
        assert_eq!(adaptive.stage, Stage::Decided);
        assert_eq!(deliver(&mut adaptive, &mut at, 100, with), None);
    }

    #[test]
    fn turns_that_are_much_slower_end_after_one_measurement() {
        let (mut adaptive, mut at) = in_trial();
        let chunks = deliver(&mut adaptive, &mut at, BEFORE * 7 / 10, alone(4_300));
        assert!(chunks.is_some_and(|chunks| chunks * turns::CHUNK <= WARM_UP + SPAN + 2 * turns::CHUNK));
    }

    /// A lost session ends a trial without a verdict, and no turns that have proved right.
    #[test]
    fn a_lost_session_is_no_verdict() {
        let (mut adaptive, mut at) = in_trial();
        assert!(adaptive.renew(at.0, 2));
        assert!(deliver(&mut adaptive, &mut at, BEFORE, SHARED).is_some(), "no second trial");
        adaptive.measure(at.0, &Measured { held: at.1, ..alone(4_300) });
        assert_eq!(deliver(&mut adaptive, &mut at, 5_000, alone(4_300)), None);
        assert!(!adaptive.renew(at.0, 2));
        assert_eq!(adaptive.stage, Stage::Turns);
        // The rate of fewer sessions still compares.
        assert!(deliver(&mut adaptive, &mut at, 1_000, alone(4_300)).is_some());
    }

    #[test]
    fn turns_without_a_measurement_or_another_session_end_when_a_session_is_lost() {
        for (is_measured, open, goes_on) in [(false, 2, false), (true, 2, true), (true, 1, false)] {
            let (mut adaptive, mut at) = in_trial();
            adaptive.measure(at.0, &Measured { held: at.1, ..alone(4_300) });
            if is_measured {
                assert_eq!(deliver(&mut adaptive, &mut at, 5_000, alone(4_300)), None);
            }
            assert_eq!(adaptive.renew(at.0, open), !goes_on, "{is_measured} {open}");
            assert_eq!(adaptive.stage, if goes_on { Stage::Turns } else { Stage::Predictive });
        }
    }

    /// A sender in a trial, with two open sessions.
    fn sender_in_trial() -> Sender {
        let config = SenderConfig { striping: StripingPolicy::Adaptive, ..SenderConfig::default() };
        let node = "[fd00::1]:5683".parse().expect("an address");
        let file = bytes::Bytes::from_static(&[7; 100_000]);
        let mut sender = Sender::new(Instant::ZERO, config, node, TransferId(1), file);
        sender.phase = Phase::Sessions;
        for id in 1..=2 {
            let address = "[fd00::2]:5684".parse().expect("an address");
            let gateway =
                Gateway { id, address, key: None, energy: Energy::High, hops: 1, neighbours: Vec::new() };
            sender.call(Instant::ZERO, gateway, None);
            open(&mut sender, usize::from(id) - 1);
        }
        sender.adapt(Instant::ZERO);
        sender.adaptive.stage = Stage::Trial { since: Instant::ZERO, until: Instant::FAR_FUTURE };
        sender
    }

    fn open(sender: &mut Sender, index: usize) {
        sender.sessions[index].state = State::Opened;
        sender.sessions[index].establishment = Some(Duration::from_millis(80));
        sender.handle_notice(Instant::ZERO, index, Notice::Opened);
    }

    #[test]
    fn a_session_that_is_open_again_before_the_next_acknowledgement_was_lost() {
        let mut sender = sender_in_trial();
        sender.adapt(Instant::ZERO);
        assert!(matches!(sender.adaptive.stage, Stage::Trial { .. }), "nothing has changed");
        sender.sessions[1].state = State::Closed(Ending::Silent);
        sender.lose(Instant::ZERO, 1);
        let gateway = sender.sessions[1].gateway.clone();
        sender.call(Instant::ZERO, gateway, None);
        open(&mut sender, 1);
        assert_eq!(sender.sessions.len(), 2);
        sender.adapt(Instant::ZERO);
        assert_eq!(sender.adaptive.stage, Stage::Predictive);
        let decision = sender.decisions().last().expect("one");
        assert_eq!((decision.choice, decision.reason), (StripingChoice::NoVerdict, StripingReason::Renewal));
        assert_eq!((decision.measured, decision.limit), (2.0, 2.0));
    }

    /// A call that fails is no session that was lost.
    #[test]
    fn a_gateway_that_does_not_answer_ends_no_trial() {
        let mut sender = sender_in_trial();
        let gateway = Gateway { id: 3, ..sender.sessions[0].gateway.clone() };
        sender.call(Instant::ZERO, gateway, None);
        sender.sessions[2].state = State::Closed(Ending::Silent);
        sender.lose(Instant::ZERO, 2);
        sender.adapt(Instant::ZERO);
        assert!(matches!(sender.adaptive.stage, Stage::Trial { .. }));
    }

    /// A pause of the node lowers the mean, on a network where sessions are fast.
    #[test]
    fn a_pause_does_not_make_a_fast_network_a_slow_one() {
        let fast = Measured { slowest: 90_000, fastest: 100_000, sum: 290_000, ..SHARED };
        let mut adaptive = Adaptive::default();
        assert_eq!(deliver(&mut adaptive, &mut (Instant::ZERO, 0), BEFORE, fast), None);
    }
}
