//! The controlled phase: a rate that rises (Algorithm 2 lines 5 to 10).

use super::{MOST_RATE, TICK, intervals};
use crate::rdca::config::{Acceleration, SenderConfig, Withhold};
use crate::time::{Duration, Instant};

/// A rate that rises.
#[derive(Clone, Debug)]
pub(super) struct Rise {
    /// Octets per second.
    pub rate: u32,
    /// Up to when it has risen.
    raised: Instant,
    /// Since when nothing speaks against it.
    calm: Instant,
    /// The rate at which the network was in trouble; 0: it never was.
    ceiling: u32,
}

/// A span in which it rises at one speed.
struct Stretch {
    every: Duration,
    step: u64,
    ends: Instant,
    /// The rate at which it ends, too.
    below: u64,
}

impl Rise {
    /// From `rate` on.
    pub(super) const fn new(now: Instant, rate: u32) -> Self {
        Self { rate, raised: now, calm: now, ceiling: 0 }
    }

    /// A new rate; the ceiling stays.
    pub(super) fn set(&mut self, now: Instant, rate: u32) {
        *self = Self { ceiling: self.ceiling, ..Self::new(now, rate) };
    }

    /// There was trouble at this rate.
    pub(super) fn beware(&mut self, ceiling: u32) {
        self.ceiling = ceiling;
    }

    /// How long nothing has spoken against it.
    pub(super) fn calm_for(&self, now: Instant) -> Duration {
        now.saturating_since(self.calm)
    }

    /// A loss was reported.
    pub(super) fn withhold(&mut self, now: Instant, config: &SenderConfig, rtt: Duration) {
        match config.withhold {
            Withhold::Interval => self.raised += config.raise_every,
            Withhold::RoundTrip => {
                self.raised = self.raised.max(now + rtt);
                self.calm = now;
            }
        }
    }

    /// The rate was not used until now, and does not rise for it.
    pub(super) fn skip(&mut self, now: Instant) {
        self.raised = self.raised.max(now);
    }

    /// The same, where nothing could be sent: that was no calm either.
    pub(super) fn pause(&mut self, now: Instant) {
        self.calm += now.saturating_since(self.raised);
        self.skip(now);
    }

    /// The rise up to `now`, one stretch after the other.
    pub(super) fn advance(&mut self, now: Instant, config: &SenderConfig) {
        let doublings = config.acceleration.map_or(0, |acceleration| acceleration.doublings);
        // A turn for each stage, for what is slower, before and after it, and for a rest.
        for _ in 0..u64::from(doublings) + 5 {
            let Stretch { every, step, ends, below } = self.stretch(config);
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

    fn stretch(&self, config: &SenderConfig) -> Stretch {
        let every = config.raise_every.max(TICK);
        let rate = u64::from(self.rate);
        let mut below = u64::MAX;
        if let Some(caution) = config.caution {
            let share = |percent: u8| u64::from(self.ceiling) * u64::from(percent) / 100;
            let (low, high) = (share(caution.from_percent), share(caution.to_percent));
            let ends = self.calm + caution.lasts;
            if self.raised < ends && rate < low {
                below = low;
            } else if self.raised < ends && rate < high {
                let every = every * u64::from(caution.slower.max(1));
                return Stretch { every, step: u64::from(config.raise_step), ends, below: high };
            }
        }
        let Acceleration { after, doublings } =
            config.acceleration.unwrap_or(Acceleration { after: Duration::MAX, doublings: 0 });
        let (after, last) = (after.max(TICK), u64::from(doublings.min(16)));
        let stage = intervals(self.raised, self.calm, after).min(last);
        let ends = if stage < last { self.calm + after * (stage + 1) } else { Instant::FAR_FUTURE };
        Stretch { every, step: u64::from(config.raise_step) << stage, ends, below }
    }
}
