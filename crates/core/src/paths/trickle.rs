//! The trickle timer (RFC 6206).

use super::Config;
use crate::time::{Duration, Instant};

/// Transmission times: soon after a change, and less and less often while nothing changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trickle {
    /// I, t and the end of the interval, once the timer runs.
    running: Option<Interval>,
    /// c: number of consistent messages heard in this interval.
    heard: u8,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    doublings: u8,
    /// The transmission time; `None` after it has passed.
    speak: Option<Instant>,
    end: Instant,
}

impl Trickle {
    /// Handles an inconsistency: restarts the interval at Imin, unless it is already Imin (section
    /// 4.2, rule 6).
    pub(super) fn reset(&mut self, now: Instant, config: &Config, random: u32) {
        if self.running.is_none_or(|interval| interval.doublings > 0) {
            self.begin(now, config, 0, random);
        }
    }

    /// Counts a consistent message (rule 3).
    pub(super) fn heard_consistent(&mut self) {
        self.heard = self.heard.saturating_add(1);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.running.map(|interval| interval.speak.unwrap_or(interval.end))
    }

    /// Returns true if the node must send now.
    pub(super) fn handle_timeout(&mut self, now: Instant, config: &Config, random: u32) -> bool {
        let Some(interval) = &mut self.running else { return false };
        let mut speaks = false;
        if interval.speak.is_some_and(|at| at <= now) {
            interval.speak = None;
            // Rule 4: stay silent if enough neighbours have sent the same information. k = 0
            // disables the suppression.
            speaks = config.redundancy == 0 || self.heard < config.redundancy;
        }
        let (end, doublings) = (interval.end, interval.doublings);
        if end <= now {
            self.begin(now, config, (doublings + 1).min(config.doublings), random);
        }
        speaks
    }

    /// Begins an interval (rule 2): t is in its second half.
    fn begin(&mut self, now: Instant, config: &Config, doublings: u8, random: u32) {
        let length: Duration = config.interval_min * (1 << u32::from(doublings));
        let half = length / 2;
        let speak = now + half + half.mul_ratio(u64::from(random), 1 << 32);
        self.running = Some(Interval { doublings, speak: Some(speak), end: now + length });
        self.heard = 0;
    }
}
