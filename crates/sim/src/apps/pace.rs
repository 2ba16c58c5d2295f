//! When a source makes its packets.

use std::borrow::Cow;

use anabranch_core::time::{Duration, Instant};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::Ctx;
use crate::random::Stream;

/// How packets follow upon each other. The words are those of `kind` of a traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// One packet in each interval.
    #[serde(rename = "cbr")]
    Constant,
    /// A Poisson process.
    #[default]
    Poisson,
}

impl Spacing {
    /// Packets that a source makes at most which has that much time, the first at once; `None` if chance decides.
    pub(crate) fn most_packets(self, time: Duration, interval: Duration) -> Option<u32> {
        match self {
            Self::Poisson => None,
            Self::Constant => {
                let intervals = time.as_nanos() / interval.as_nanos().max(1);
                Some(u32::try_from(intervals).unwrap_or(u32::MAX).saturating_add(1))
            }
        }
    }

    /// From one packet to the next.
    pub(crate) fn wait(self, interval: Duration, random: &mut Stream) -> Duration {
        match self {
            Self::Poisson => Duration::from_secs_f64(interval.as_secs_f64() * random.exponential()),
            Self::Constant => interval.max(Duration::from_nanos(1)),
        }
    }
}

/// When a source makes its packets.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Mean time from one packet to the next; no time counts as a nanosecond.
    interval: Duration,
    /// How they follow upon each other.
    pub(super) spacing: Spacing,
    /// Packets at most.
    pub(super) packets: u32,
    /// The last packet is made no later.
    pub(super) until: Option<Instant>,
    /// The purpose of the random numbers: two sources of a node must not share one.
    pub(super) purpose: Cow<'static, str>,
    /// There since the start.
    random: Option<Stream>,
}

impl Pace {
    /// `packets` packets at most, the first at once.
    pub(super) fn new(interval: Duration, spacing: Spacing, packets: u32) -> Self {
        Self { interval, spacing, packets, until: None, purpose: Cow::Borrowed("packets"), random: None }
    }

    /// When a source that starts now makes its first packet; `None` if that is too late for any.
    pub(super) fn start(&mut self, ctx: &Ctx<'_>) -> Option<Instant> {
        self.random = Some(ctx.stream(&self.purpose));
        self.until.is_none_or(|until| ctx.now() <= until).then_some(ctx.now())
    }

    /// When the next packet is made after one at `at`, the one after `made` packets; `None` after the last, and before the
    /// start. Only a Poisson process draws a random number.
    pub(super) fn next(&mut self, at: Instant, made: usize) -> Option<Instant> {
        let random = self.random.as_mut()?;
        let next = at + self.spacing.wait(self.interval, random);
        (made < self.packets as usize && self.until.is_none_or(|until| next <= until)).then_some(next)
    }
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
        // Of 100,000 exponential intervals the mean is within 1.5 % with all but certainty.
        assert!((mean / 0.01 - 1.0).abs() < 0.015, "{mean}");
        let until = Some(begin + Duration::from_secs(10));
        let timely = times(&Pace { until, ..many }, begin);
        assert_eq!(timely[..], all[..timely.len()], "an end changes no packet before it");
        assert!(all[timely.len()] > begin + Duration::from_secs(10));
    }
}
