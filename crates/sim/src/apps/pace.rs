//! When a source makes its packets.

use std::borrow::Cow;

use anabranch_core::time::{Duration, Instant};

use crate::app::Ctx;
use crate::random::Stream;

/// How packets follow upon each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// As a Poisson process.
    #[default]
    Poisson,
    /// Evenly, one in each interval.
    Constant,
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
        let wait = match self.spacing {
            Spacing::Poisson => Duration::from_secs_f64(self.interval.as_secs_f64() * random.exponential()),
            Spacing::Constant => self.interval.max(Duration::from_nanos(1)),
        };
        let next = at + wait;
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
