//! The trickle timer (RFC 6206).

use super::Config;
use crate::time::{Duration, Instant};

/// When a node speaks: soon after something has changed, and ever more rarely when nothing does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trickle {
    /// I, t and the end of the interval, once it runs.
    running: Option<Interval>,
    /// c, consistent messages heard in this interval.
    heard: u8,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    doublings: u8,
    /// When to speak; `None` when that is over.
    speak: Option<Instant>,
    end: Instant,
}

impl Trickle {
    /// An inconsistency: the interval begins anew at Imin, unless it is there already (section 4.2,
    /// rule 6).
    pub(super) fn reset(&mut self, now: Instant, config: &Config, random: u32) {
        if self.running.is_none_or(|interval| interval.doublings > 0) {
            self.begin(now, config, 0, random);
        }
    }

    /// Rule 3.
    pub(super) fn heard_consistent(&mut self) {
        self.heard = self.heard.saturating_add(1);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.running.map(|interval| interval.speak.unwrap_or(interval.end))
    }

    /// True if the node is to speak now.
    pub(super) fn handle_timeout(&mut self, now: Instant, config: &Config, random: u32) -> bool {
        let Some(interval) = &mut self.running else { return false };
        let mut speaks = false;
        if interval.speak.is_some_and(|at| at <= now) {
            interval.speak = None;
            // Rule 4.
            speaks = config.redundancy == 0 || self.heard < config.redundancy;
        }
        let (end, doublings) = (interval.end, interval.doublings);
        if end <= now {
            self.begin(now, config, (doublings + 1).min(config.doublings), random);
        }
        speaks
    }

    /// Rule 2: t is in the second half of the interval.
    fn begin(&mut self, now: Instant, config: &Config, doublings: u8, random: u32) {
        let length: Duration = config.interval_min * (1 << u32::from(doublings));
        let half = length / 2;
        let speak = now + half + half.mul_ratio(u64::from(random), 1 << 32);
        self.running = Some(Interval { doublings, speak: Some(speak), end: now + length });
        self.heard = 0;
    }
}
