//! Rate limits: at most N messages in any second (RFC 3561 sections 6.3 and 6.11).

use alloc::collections::VecDeque;

use crate::time::{Duration, Instant};

/// The times of the last messages.
#[derive(Clone, Debug)]
pub(super) struct RateLimit {
    limit: usize,
    past: VecDeque<Instant>,
}

impl RateLimit {
    /// Creates a limiter. A limit of 0 would block all messages, so the limit is at least 1.
    pub(super) fn new(limit: u8) -> Self {
        Self { limit: usize::from(limit.max(1)), past: VecDeque::new() }
    }

    /// Permits one more message now, or returns when the next one is permitted.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        while self.past.front().is_some_and(|at| now.saturating_since(*at) >= SPAN) {
            self.past.pop_front();
        }
        match self.past.front() {
            Some(first) if self.past.len() >= self.limit => Err(*first + SPAN),
            _ => {
                self.past.push_back(now);
                Ok(())
            }
        }
    }
}

const SPAN: Duration = Duration::from_secs(1);
