//! Arrival processes: when a source generates its packets.

use std::borrow::Cow;
use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};
use anabranch_units::Span;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use super::sizes::Sizes;
use crate::app::Ctx;
use crate::math::{NO_PARETO_SHAPE, PARETO_SHAPES, pareto_least};
use crate::random::Stream;

/// Arrival process of packets: the `kind` of a traffic.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// One packet in each interval.
    #[serde(rename = "cbr")]
    Constant,
    /// A Poisson process.
    #[default]
    Poisson,
    /// One packet in each interval while the source is on, and none while it is off:
    /// `{ on-off = { on = "500 ms", off = "500 ms" } }`. On and off times are exponentially
    /// distributed.
    OnOff(OnOff),
    /// As "on-off" with Pareto-distributed on and off times. Their tail makes the total traffic of
    /// many sources bursty at all time scales (self-similar):
    /// `{ pareto-on-off = { on = "500 ms", off = "500 ms", shape = 1.5 } }`.
    ParetoOnOff(ParetoOnOff),
    /// Packets with the times and sizes of a CSV file with the columns `time` and `bytes`:
    /// `{ trace = "packets.csv" }`. Times count from the start of the source, in seconds or with a
    /// unit. Sizes are in bytes or with a unit, within the range of `payload`. `payload`,
    /// `interval` and `rate` are not given. A source that was down continues with the packets that
    /// are then due. Not over "mptcp".
    Trace(TraceFile),
    /// The receiver answers each packet, and the source sends the next one some time after the
    /// reply: `{ request-response = { reply = "20 kB", think = "1 s" } }`. Only over UDP and TCP.
    /// `reply` is a size or a distribution, as in `payload`; `think` is the mean of an
    /// exponentially distributed time (1 s). Over UDP an unanswered request is given up after
    /// `timeout` (2 s). Delays are measured from a request to its complete reply, and a packet
    /// counts as delivered when it is answered.
    RequestResponse(RequestResponse),
}

/// A trace file and its content.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct TraceFile {
    /// Name of the file, relative to the scenario.
    pub name: String,
    /// Its rows; empty until the file is read.
    pub schedule: Arc<Schedule>,
}

impl From<String> for TraceFile {
    fn from(name: String) -> Self {
        Self { name, schedule: Arc::default() }
    }
}

impl From<TraceFile> for String {
    fn from(trace: TraceFile) -> Self {
        trace.name
    }
}

/// Requests and replies.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Payload of a reply, at least 20 B: a size or a distribution, as in `payload`.
    pub reply: Sizes,
    /// Mean time from a reply to the next request, exponentially distributed; it also precedes the
    /// first request.
    #[serde(default = "a_second")]
    pub think: Span,
    /// Time after which an unanswered request is given up; a new think time follows. Only over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Span", extend("default" = "2 s")))]
    pub timeout: Option<Span>,
}

fn a_second() -> Span {
    Span(Duration::from_secs(1))
}

/// Means of exponentially distributed on and off times.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct OnOff {
    /// Mean time for which the source is on. The source starts in equilibrium: it is on with the
    /// probability of its share of the time.
    pub on: Span,
    /// Mean time for which the source is off.
    pub off: Span,
}

impl Default for OnOff {
    fn default() -> Self {
        let half = Span(Duration::from_millis(500));
        Self { on: half, off: half }
    }
}

/// Means and shape of Pareto-distributed on and off times.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ParetoOnOff {
    /// Mean time for which the source is on. The source starts in equilibrium: it is on with the
    /// probability of its share of the time.
    pub on: Span,
    /// Mean time for which the source is off.
    pub off: Span,
    /// Index of the tail, more than 1: a time is at least `k` times as long as the shortest one
    /// with a probability of `k` to the power of minus `shape`. Below 2 the variance is infinite.
    pub shape: f64,
}

impl Default for ParetoOnOff {
    fn default() -> Self {
        let OnOff { on, off } = OnOff::default();
        Self { on, off, shape: 1.5 }
    }
}

impl Spacing {
    /// Largest number of packets that a source generates within `time`, the first immediately;
    /// `None` if it is random.
    pub fn most_packets(&self, time: Duration, interval: Duration) -> Option<u32> {
        match self {
            Self::Poisson | Self::RequestResponse(_) => None,
            Self::Trace(trace) => u32::try_from(trace.schedule.until(time)).ok(),
            Self::Constant | Self::OnOff(_) | Self::ParetoOnOff(_) => {
                let intervals = time.as_nanos() / interval.as_nanos().max(1);
                Some(u32::try_from(intervals).unwrap_or(u32::MAX).saturating_add(1))
            }
        }
    }

    /// Mean on and off times, and the shape of their distribution if it is Pareto; `None` if the
    /// source is always on.
    fn periods(&self) -> Option<(Duration, Duration, Option<f64>)> {
        match self {
            Self::Constant | Self::Poisson | Self::Trace(_) | Self::RequestResponse(_) => None,
            Self::OnOff(OnOff { on, off }) => Some((on.0, off.0, None)),
            Self::ParetoOnOff(ParetoOnOff { on, off, shape }) => Some((on.0, off.0, Some(*shape))),
        }
    }

    /// Checks the options for sources with this interval. An error is the key, the reason, and a
    /// hint.
    ///
    /// # Errors
    /// As said.
    pub fn check(&self, interval: Duration) -> Result<(), [&'static str; 3]> {
        let Some((on, off, shape)) = self.periods() else { return Ok(()) };
        if shape.is_some_and(|shape| !PARETO_SHAPES.contains(&shape)) {
            return Err(["shape", NO_PARETO_SHAPE, "1.5 is usual"]);
        }
        let on = on.as_secs_f64();
        let least = shape.map_or(on, |shape| pareto_least(on, shape));
        if least * 1000.0 < interval.as_secs_f64() {
            return Err([
                "on",
                "expected at least a thousandth of the time between two packets, also of the shortest",
                "times on are usually long enough for several packets",
            ]);
        }
        if off.as_secs_f64() > LONGEST {
            return Err(["off", "expected no more than a century", "let it have a `stop`"]);
        }
        Ok(())
    }
}

/// Draws an exponentially distributed time.
pub fn exponential(mean: Duration, random: &mut Stream) -> Duration {
    Duration::from_secs_f64(mean.as_secs_f64() * random.exponential())
}

/// Draws a Pareto-distributed time with this mean and shape.
fn pareto(mean: Duration, shape: f64, random: &mut Stream) -> Duration {
    let least = pareto_least(mean.as_secs_f64(), shape);
    Duration::from_secs_f64((least * random.pareto(shape)).min(LONGEST))
}

/// State of a source's arrival process.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Mean time between two packets; zero counts as a nanosecond.
    interval: Duration,
    /// Arrival process.
    pub(super) spacing: Spacing,
    /// Largest number of packets.
    pub(super) packets: u32,
    /// Time after which no packet is generated.
    pub(super) until: Option<Instant>,
    /// Purpose of the random stream: two sources of a node need different purposes.
    pub(super) purpose: Cow<'static, str>,
    /// Set at the start.
    random: Option<Stream>,
    /// End of the current on time; set at the first packet, if the source is off at times.
    on_until: Option<Instant>,
    /// Start time of the source, and the row of the next packet, for a trace.
    traced: Option<(Instant, usize)>,
}

impl Pace {
    /// At most `packets` packets, the first immediately.
    pub(super) fn new(interval: Duration, spacing: Spacing, packets: u32) -> Self {
        let purpose = Cow::Borrowed("packets");
        Self { interval, spacing, packets, until: None, purpose, random: None, on_until: None, traced: None }
    }

    /// The row of the next packet in its trace; 0 without one.
    pub(super) fn row(&self) -> usize {
        self.traced.map_or(0, |(_, row)| row)
    }

    /// Time of the first packet of a source that starts now; `None` if that is too late.
    pub(super) fn start(&mut self, ctx: &Ctx<'_>) -> Option<Instant> {
        let random = self.random.insert(ctx.stream(&self.purpose));
        if let Spacing::Trace(trace) = &self.spacing {
            let begin = ctx.planned_start();
            let row = trace.schedule.row_from(ctx.now().saturating_since(begin));
            self.traced = Some((begin, row));
            return trace.schedule.time(row).map(|time| begin + time).filter(|first| self.is_timely(*first));
        }
        let (first, on_until) = match (&self.spacing, self.spacing.periods()) {
            (Spacing::RequestResponse(_), _) => (ctx.now() + exponential(self.interval, random), None),
            (_, None) => (ctx.now(), None),
            (_, Some(periods)) => {
                let (first, until) = in_equilibrium(ctx.now(), periods, random);
                (first, Some(until))
            }
        };
        self.on_until = on_until;
        Some(first).filter(|first| self.is_timely(*first))
    }

    fn is_timely(&self, at: Instant) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    /// Time of the next packet after one at `at`, or after a reply at `at`; `made` packets precede
    /// it. `None` after the last packet and before the start. A constant rate draws no random
    /// number.
    pub(super) fn next(&mut self, at: Instant, made: usize) -> Option<Instant> {
        if let (Spacing::Trace(trace), Some((begin, row))) = (&self.spacing, &mut self.traced) {
            *row += 1;
            let next = *begin + trace.schedule.time(*row)?;
            return (made < self.packets as usize && self.is_timely(next)).then_some(next);
        }
        let random = self.random.as_mut()?;
        let interval = self.interval.max(Duration::from_nanos(1));
        let next = match (&self.spacing, self.spacing.periods()) {
            (_, Some(periods)) => in_bursts(at, interval, periods, &mut self.on_until, random),
            (Spacing::Poisson | Spacing::RequestResponse(_), None) => at + exponential(self.interval, random),
            (_, None) => at + interval,
        };
        (made < self.packets as usize && self.is_timely(next)).then_some(next)
    }
}

/// Draws an on or off time.
fn period(mean: Duration, shape: Option<f64>, random: &mut Stream) -> Duration {
    match shape {
        None => exponential(mean, random),
        Some(shape) => pareto(mean, shape, random),
    }
}

/// Start and end of the first on time from `at` on, for a source in equilibrium. The rest of a time
/// that has begun earlier is again exponentially distributed. For Pareto it is a uniform fraction
/// of a time that is drawn in proportion to its length: from a Pareto distribution with a shape
/// that is smaller by one.
fn in_equilibrium(
    at: Instant,
    (on, off, shape): (Duration, Duration, Option<f64>),
    random: &mut Stream,
) -> (Instant, Instant) {
    let is_on = random.bernoulli(on.as_secs_f64() / (on.as_secs_f64() + off.as_secs_f64()));
    let mean = if is_on { on } else { off };
    let left = match shape {
        None => exponential(mean, random),
        Some(shape) => {
            let whole = pareto_least(mean.as_secs_f64(), shape) * random.pareto(shape - 1.0);
            Duration::from_secs_f64((random.uniform() * whole).min(LONGEST))
        }
    };
    match is_on {
        true => (at, at + left),
        false => (at + left, at + left + period(on, shape, random)),
    }
}

/// A century in seconds: more than any run, and a bound for times that have no representation.
const LONGEST: f64 = 3e9;

/// Time at which a source has been on for another interval after `at`, when it was on.
fn in_bursts(
    at: Instant,
    interval: Duration,
    (on, off, shape): (Duration, Duration, Option<f64>),
    on_until: &mut Option<Instant>,
    random: &mut Stream,
) -> Instant {
    let (mut at, mut left) = (at, interval);
    let mut until = on_until.unwrap_or(at);
    // Ends at the end of representable time, too.
    while until.saturating_since(at) < left && at < Instant::FAR_FUTURE {
        left = left - until.saturating_since(at);
        at = until + period(off, shape, random);
        until = at + period(on, shape, random);
    }
    *on_until = Some(until);
    at + left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pace: &Pace, begin: Instant) -> Vec<Instant> {
        let mut pace = Pace { random: Some(Stream::new(1, 0, "test", "pace")), ..pace.clone() };
        let mut made = vec![begin];
        while let Some(next) = pace.next(made[made.len() - 1], made.len()) {
            made.push(next);
        }
        made
    }

    #[test]
    fn a_pace_ends_with_the_last_packet_or_the_end() {
        let interval = Duration::from_millis(10);
        let pace = Pace::new(interval, Spacing::Constant, 5);
        let begin = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(times(&pace, begin), (0..5).map(|i| begin + interval * i).collect::<Vec<_>>());
        let until = Some(begin + Duration::from_millis(20));
        assert_eq!(times(&Pace { until, ..pace.clone() }, begin).len(), 3, "the end is included");
        let many = Pace { packets: 100_000, spacing: Spacing::Poisson, ..pace };
        let all = times(&many, begin);
        let mean = all[all.len() - 1].saturating_since(begin).as_secs_f64() / (all.len() - 1) as f64;
        // The mean of 100,000 exponential intervals is within 1.5 % almost certainly.
        assert!((mean / 0.01 - 1.0).abs() < 0.015, "{mean}");
        let until = Some(begin + Duration::from_secs(10));
        let timely = times(&Pace { until, ..many }, begin);
        assert_eq!(timely[..], all[..timely.len()], "an end changes no packet before it");
        assert!(all[timely.len()] > begin + Duration::from_secs(10));
    }

    fn bursts(spacing: Spacing, seconds: u64, seed: u64) -> Vec<f64> {
        let mut pace = Pace::new(Duration::from_millis(10), spacing.clone(), u32::MAX);
        pace.random = Some(Stream::new(seed, 0, "test", "bursts"));
        pace.until = Some(Instant::ZERO + Duration::from_secs(seconds));
        let periods = spacing.periods().expect("it is off at times");
        let (first, until) =
            in_equilibrium(Instant::ZERO, periods, pace.random.as_mut().expect("it is there"));
        pace.on_until = Some(until);
        let mut made = vec![first];
        while let Some(next) = pace.next(made[made.len() - 1], made.len()) {
            made.push(next);
        }
        made.into_iter().map(|at| at.as_secs_f64()).collect()
    }

    fn on_off(on: u64, off: u64) -> OnOff {
        OnOff { on: Span(Duration::from_millis(on)), off: Span(Duration::from_millis(off)) }
    }

    /// Holds also for on times shorter than an interval: the rest of the interval counts in the
    /// next on time.
    #[test]
    fn a_source_that_is_off_at_times_has_its_share_of_the_rate() {
        for (on, off) in [(500, 500), (200, 1000), (5, 20), (1, 1)] {
            let made = bursts(Spacing::OnOff(on_off(on, off)), 20_000, 1);
            let expected = 20_000.0 * 100.0 * on as f64 / (on + off) as f64;
            assert!(
                (made.len() as f64 / expected - 1.0).abs() < 0.03,
                "{on} {off}: {} of {expected}",
                made.len()
            );
        }
    }

    /// On and off times have no memory: a gap between packets is the interval, or longer by off
    /// times if the source went off within it.
    #[test]
    fn times_off_are_distributed_as_they_should() {
        let made = bursts(Spacing::OnOff(on_off(500, 300)), 20_000, 2);
        let gaps: Vec<f64> = made.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let long: Vec<f64> = gaps.iter().map(|gap| gap - 0.01).filter(|off| *off > 1e-6).collect();
        // It goes off within an interval with probability 1 - exp(-10/500).
        let share = long.len() as f64 / gaps.len() as f64;
        assert!((share / (1.0 - (-0.02_f64).exp()) - 1.0).abs() < 0.03, "{share}");
        for (at, expected) in [(0.1, (-0.1_f64 / 0.3).exp()), (0.6, (-0.6_f64 / 0.3).exp())] {
            let beyond = long.iter().filter(|off| **off > at).count() as f64 / long.len() as f64;
            assert!((beyond / expected - 1.0).abs() < 0.06, "{at}: {beyond} instead of {expected}");
        }
    }

    #[test]
    fn times_of_pareto_have_their_mean_and_tail() {
        let mut random = Stream::new(3, 0, "test", "pareto");
        let mean = Duration::from_millis(500);
        for (shape, tolerance) in [(1.5, 0.15), (2.5, 0.01), (10.0, 0.005)] {
            let drawn: Vec<f64> =
                (0..400_000).map(|_| pareto(mean, shape, &mut random).as_secs_f64()).collect();
            let shortest = 0.5 * (shape - 1.0) / shape;
            assert!(drawn.iter().all(|time| *time > shortest - 1e-9));
            let found = drawn.iter().sum::<f64>() / drawn.len() as f64;
            assert!((found / 0.5 - 1.0).abs() < tolerance, "{shape}: {found}");
            // Hill's estimator of the tail; for a Pareto distribution all values are in the tail.
            let logs = drawn.iter().map(|time| (time / shortest).ln()).sum::<f64>();
            let hill = drawn.len() as f64 / logs;
            assert!((hill / shape - 1.0).abs() < 0.01, "{shape}: {hill}");
        }
    }

    /// The traffic of many such sources is self-similar with the Hurst parameter (3 - shape) / 2
    /// (Taqqu, Willinger and Sherman, "Proof of a fundamental result in self-similar traffic
    /// modeling", 1997). The test uses the variance of arrivals over growing time scales.
    #[test]
    fn many_pareto_sources_together_are_self_similar() {
        for shape in [1.2, 1.6] {
            let OnOff { on, off } = on_off(200, 200);
            let spacing = Spacing::ParetoOnOff(ParetoOnOff { on, off, shape });
            let mut counts = vec![0.0; 40_000];
            for source in 0..100 {
                for at in bursts(spacing.clone(), 4000, source) {
                    if let Some(count) = counts.get_mut((at * 10.0) as usize) {
                        *count += 1.0;
                    }
                }
            }
            let variance = |m: usize| {
                let means: Vec<f64> =
                    counts.chunks_exact(m).map(|c| c.iter().sum::<f64>() / m as f64).collect();
                let mean = means.iter().sum::<f64>() / means.len() as f64;
                means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / means.len() as f64
            };
            // The slope of the logarithm over time scales of 2 s to 128 s is 2H - 2.
            let points: Vec<(f64, f64)> =
                (0..7).map(|k| 20 << k).map(|m| ((m as f64).ln(), variance(m).ln())).collect();
            let n = points.len() as f64;
            let (x, y) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / n, sum.1 + p.1 / n));
            let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
                / points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum::<f64>();
            let hurst = 1.0 + slope / 2.0;
            let expected = (3.0 - shape) / 2.0;
            assert!((hurst - expected).abs() < 0.1, "{shape}: {hurst} instead of {expected}");
        }
    }

    /// As many sources are on at the start as later.
    #[test]
    fn sources_start_in_equilibrium() {
        let OnOff { on, off } = on_off(1000, 3000);
        for spacing in
            [Spacing::OnOff(OnOff { on, off }), Spacing::ParetoOnOff(ParetoOnOff { on, off, shape: 1.8 })]
        {
            // In each half second: a quarter of 100 packets per second of 4000 sources.
            let mut counts = [0.0; 6];
            for source in 0..4000 {
                for at in bursts(spacing.clone(), 3, source) {
                    if let Some(count) = counts.get_mut((at * 2.0) as usize) {
                        *count += 1.0 / (4000.0 * 50.0 * 0.25);
                    }
                }
            }
            assert!(counts.iter().all(|count| (0.94..1.06).contains(count)), "{spacing:?}: {counts:?}");
        }
    }

    #[test]
    fn a_source_that_is_off_for_longer_than_all_time_makes_no_packet() {
        let ages = Span(Duration::from_secs(3_000_000_000));
        let spacing = Spacing::OnOff(OnOff { on: Span(Duration::from_millis(1)), off: ages });
        for seed in 0..100 {
            let mut pace = Pace::new(Duration::from_secs(1), spacing.clone(), u32::MAX);
            pace.random = Some(Stream::new(seed, 0, "test", "ages"));
            pace.until = Some(Instant::ZERO + Duration::from_secs(50));
            pace.on_until = Some(Instant::ZERO);
            assert_eq!(pace.next(Instant::ZERO, 1), None);
        }
    }
}
