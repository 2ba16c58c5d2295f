//! The rate increase of the controlled phase (Algorithm 2 lines 5 to 10).

use super::{MOST_RATE, TICK, intervals};
use crate::rdca::config::{Acceleration, Caution, SenderConfig, Withhold};
use crate::time::{Duration, Instant};

/// A rate that increases with time.
#[derive(Clone, Debug)]
pub(super) struct Rise {
    /// The current rate in bytes per second.
    pub rate: u32,
    /// The rate after the last reduction.
    from: u32,
    /// The time up to which the increase was applied.
    raised: Instant,
    /// Time since when there was no sign of congestion.
    calm: Instant,
    /// The rate at which the network was disturbed; 0 if it never was.
    ceiling: u32,
    /// When a path last broke; [`Instant::FAR_FUTURE`] if never.
    broke: Instant,
}

/// Nanoseconds per second.
const SECOND: u128 = 1_000_000_000;

/// A time span in which the rate increases at one speed.
struct Stretch {
    every: Duration,
    step: u64,
    ends: Instant,
    /// The span also ends at this rate.
    below: u64,
}

impl Rise {
    /// Starts an increase at `rate`.
    pub(super) const fn new(now: Instant, rate: u32) -> Self {
        Self { rate, from: rate, raised: now, calm: now, ceiling: 0, broke: Instant::FAR_FUTURE }
    }

    /// Sets a new rate; the ceiling stays.
    pub(super) fn set(&mut self, now: Instant, rate: u32) {
        *self = Self { ceiling: self.ceiling, broke: self.broke, ..Self::new(now, rate) };
    }

    /// Sets the rate at which the network was disturbed.
    pub(super) fn beware(&mut self, ceiling: u32) {
        self.ceiling = ceiling;
    }

    /// Notes that a path broke at `now`, at this rate.
    pub(super) fn broken(&mut self, now: Instant, ceiling: u32) {
        self.beware(ceiling);
        self.broke = now;
    }

    /// Whether the last disturbance was a broken path, or losses that followed one.
    fn breaks(&self, caution: &Caution) -> bool {
        self.calm >= self.broke && self.calm.saturating_since(self.broke) < caution.after_break
    }

    /// Time since the last sign of congestion.
    pub(super) fn calm_for(&self, now: Instant) -> Duration {
        now.saturating_since(self.calm)
    }

    /// Delays the increase after a reported loss; `delayed` tells whether packets are queued on the
    /// path.
    pub(super) fn withhold(&mut self, now: Instant, config: &SenderConfig, rtt: Duration, delayed: bool) {
        match config.withhold {
            Withhold::RoundTrip | Withhold::Delayed if delayed => {
                self.raised = self.raised.max(now + rtt);
                self.calm = now;
            }
            Withhold::Interval | Withhold::RoundTrip => self.raised += config.raise_every,
            Withhold::Delayed => {}
        }
    }

    /// Notes that the rate was not used until `now`: unused time neither increases the rate nor
    /// counts as calm.
    pub(super) fn pause(&mut self, now: Instant) {
        self.calm += now.saturating_since(self.raised);
        self.raised = self.raised.max(now);
    }

    /// Restarts the calm time after a period in which nothing could be sent: the capacity of the
    /// network is unknown now.
    pub(super) fn anew(&mut self, now: Instant) {
        self.pause(now);
        self.calm = now;
    }

    /// Applies the increase up to `now`, one span after the other.
    pub(super) fn advance(&mut self, now: Instant, config: &SenderConfig, rtt: Duration) {
        let doublings = config.acceleration.map_or(0, |acceleration| acceleration.doublings);
        // One iteration for each stage, for the slower range, before and after it, and for a
        // remainder.
        for _ in 0..u64::from(doublings) + 5 {
            let Stretch { every, step, ends, below } = self.stretch(config, rtt);
            if now < self.raised + every {
                return;
            }
            let rate = u64::from(self.rate);
            let enough = below.saturating_sub(rate).div_ceil(step.max(1));
            let steps = intervals(now.min(ends), self.raised, every).min(enough).max(1);
            self.rate = rate.saturating_add(step.saturating_mul(steps)).min(u64::from(MOST_RATE)) as u32;
            self.raised += every * steps;
        }
    }

    fn stretch(&self, config: &SenderConfig, rtt: Duration) -> Stretch {
        let rate = u64::from(self.rate);
        // After a broken path, the acceleration restarts at its slowest stage when the cautious
        // time ends.
        let (mut below, mut since) = (u64::MAX, self.calm);
        if let Some(caution) = config.caution {
            let share = |percent: u8| u64::from(self.ceiling) * u64::from(percent) / 100;
            let (low, high) = (share(caution.from_percent), share(caution.to_percent));
            let breaks = self.breaks(&caution);
            let ends = self.calm + if breaks { caution.after_break } else { caution.lasts };
            if breaks {
                since = ends;
            }
            if self.raised < ends && rate < low {
                below = low;
            } else if self.raised < ends && rate < high {
                let (every, step) = self.speed(config, 0);
                let every = every * u64::from(caution.slower.max(1));
                return Stretch { every, step, ends, below: high };
            }
        }
        let Acceleration { after, doublings, .. } =
            config.acceleration.unwrap_or(Acceleration { after: Duration::MAX, doublings: 0, part: None });
        // The effect of an increase is known only one round trip later. The paper uses one interval
        // for all senders.
        let (after, last) = (after.max(rtt).max(TICK), u64::from(doublings.min(16)));
        let stage = intervals(self.raised, since, after).min(last);
        let ends = if stage < last { since + after * (stage + 1) } else { Instant::FAR_FUTURE };
        let (every, step) = self.speed(config, stage);
        Stretch { every, step, ends, below }
    }

    /// Returns the interval between two increases and the increase in bytes per second.
    fn speed(&self, config: &SenderConfig, stage: u64) -> (Duration, u64) {
        let every = config.raise_every.max(TICK);
        match config.acceleration.and_then(|acceleration| acceleration.part) {
            None => (every, u64::from(config.raise_step) << stage),
            Some(part) => {
                let second = (u64::from(self.from) << stage) / u64::from(part.max(1));
                let second = second.min(u64::from(self.rate) / 2).max(1);
                let step = (u128::from(second) * u128::from(every.as_nanos()) / SECOND).max(1);
                (Duration::from_nanos((step * SECOND / u128::from(second)) as u64), step as u64)
            }
        }
    }
}
