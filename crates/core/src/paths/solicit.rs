//! Solicitation by a node without a path: DIS (RFC 6550 sections 6.2 and 8.3).

use super::Config;
use crate::time::{Duration, Instant};

/// Largest number of doublings of the time between two DISs.
const DOUBLINGS: u32 = 6;

/// The DIS timer. The RFC leaves the times to the implementation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solicit {
    due: Option<Instant>,
    sent: u32,
}

impl Solicit {
    /// Starts the timer when the node has no path. A random delay spreads nodes that boot together.
    pub(super) fn begin(&mut self, now: Instant, config: &Config, random: u32) {
        if config.dis_interval.is_zero() || self.due.is_some() {
            return;
        }
        *self = Self { due: Some(now + share(config.dis_delay, random)), sent: 0 };
    }

    /// Stops the timer when the node has a path.
    pub(super) fn stop(&mut self) {
        self.due = None;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns true if a DIS must be sent now.
    pub(super) fn handle_timeout(&mut self, now: Instant, config: &Config, random: u32) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        let wait = config.dis_interval * (1 << self.sent.min(DOUBLINGS));
        self.due = Some(now + wait + share(wait / 4, random));
        self.sent += 1;
        true
    }
}

/// A random part of a time.
fn share(whole: Duration, random: u32) -> Duration {
    whole.mul_ratio(u64::from(random), 1 << 32)
}
