//! The controlled phase: a rate that rises (Algorithm 2 lines 5 to 10).

use super::{MOST_RATE, TICK, intervals};
use crate::rdca::config::{Acceleration, Caution, SenderConfig, Withhold};
use crate::time::{Duration, Instant};

/// A rate that rises.
#[derive(Clone, Debug)]
pub(super) struct Rise {
    /// Bytes per second.
    pub rate: u32,
    /// The rate after the last cut.
    from: u32,
    /// Up to when it has risen.
    raised: Instant,
    /// Since when nothing speaks against it.
    calm: Instant,
    /// The rate at which the network was in trouble; 0: it never was.
    ceiling: u32,
    /// When a path broke last; [`Instant::FAR_FUTURE`]: never.
    broke: Instant,
}

/// Nanoseconds.
const SECOND: u128 = 1_000_000_000;

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
        Self { rate, from: rate, raised: now, calm: now, ceiling: 0, broke: Instant::FAR_FUTURE }
    }

    /// A new rate; the ceiling stays.
    pub(super) fn set(&mut self, now: Instant, rate: u32) {
        *self = Self { ceiling: self.ceiling, broke: self.broke, ..Self::new(now, rate) };
    }

    /// There was trouble at this rate.
    pub(super) fn beware(&mut self, ceiling: u32) {
        self.ceiling = ceiling;
    }

    /// A path broke at `now`, at this rate.
    pub(super) fn broken(&mut self, now: Instant, ceiling: u32) {
        self.beware(ceiling);
        self.broke = now;
    }

    /// Whether the last trouble is a broken path, or losses that follow one.
    fn breaks(&self, caution: &Caution) -> bool {
        self.calm >= self.broke && self.calm.saturating_since(self.broke) < caution.after_break
    }

    /// How long nothing has spoken against it.
    pub(super) fn calm_for(&self, now: Instant) -> Duration {
        now.saturating_since(self.calm)
    }

    /// A loss was reported, of packets that wait or not.
    pub(super) fn withhold(&mut self, now: Instant, config: &SenderConfig, rtt: Duration, delayed: bool) {
        match config.withhold {
            Withhold::RoundTrip if delayed => {
                self.raised = self.raised.max(now + rtt);
                self.calm = now;
            }
            Withhold::Interval | Withhold::RoundTrip => self.raised += config.raise_every,
        }
    }

    /// The rate was not used until now: it does not rise for it, and that was no calm.
    pub(super) fn pause(&mut self, now: Instant) {
        self.calm += now.saturating_since(self.raised);
        self.raised = self.raised.max(now);
    }

    /// The same, where nothing could be sent: nobody knows what the network carries by now.
    pub(super) fn anew(&mut self, now: Instant) {
        self.pause(now);
        self.calm = now;
    }

    /// The rise up to `now`, one stretch after the other.
    pub(super) fn advance(&mut self, now: Instant, config: &SenderConfig, rtt: Duration) {
        let doublings = config.acceleration.map_or(0, |acceleration| acceleration.doublings);
        // A turn for each stage, for what is slower, before and after it, and for a rest.
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
        // A channel that broke down is tried slowly at first when the caution is over.
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
        // What a rise has done is known a round trip later. The paper's interval is the same for
        // all.
        let (after, last) = (after.max(rtt).max(TICK), u64::from(doublings.min(16)));
        let stage = intervals(self.raised, since, after).min(last);
        let ends = if stage < last { since + after * (stage + 1) } else { Instant::FAR_FUTURE };
        let (every, step) = self.speed(config, stage);
        Stretch { every, step, ends, below }
    }

    /// How many bytes per second the rate rises in how long.
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
