//! The receive window that a machine wants, carried out on a socket.
//!
//! A machine's limit moves with every octet that it holds; the kernel's clamp is for what lasts. Lowered for a moment it
//! would cost round trips to open the window again (`rcv_ssthresh`), and nothing is lost by waiting: while the limit is 0
//! nobody reads, so that the window closes by itself.

use std::os::fd::AsFd;

use anabranch_core::time::{Duration, Instant};

use crate::buffers;

/// For so long the largest limit counts.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// The clamp of one socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clamp {
    /// What the kernel has been told.
    applied: u32,
    /// What the machine wants now.
    limit: u32,
    /// The largest limit of this period.
    largest: u32,
    period_end: Instant,
}

impl Clamp {
    /// The window is as large as the receive buffer allows.
    pub(super) fn new(now: Instant, receive_buffer: u32) -> Self {
        let (applied, limit) = (receive_buffer, receive_buffer);
        Self { applied, limit, largest: 0, period_end: now + PERIOD }
    }

    /// What the machine wants now, octets.
    pub(super) fn wanted(&self) -> u32 {
        self.limit
    }

    /// A machine wants at most `limit`.
    pub(super) fn set(&mut self, limit: u32) {
        self.limit = limit;
        self.largest = self.largest.max(limit);
    }

    /// The clamp to set now, if any.
    pub(super) fn look(&mut self, now: Instant) -> Option<u32> {
        let wanted = if now >= self.period_end {
            self.period_end = now + PERIOD;
            std::mem::replace(&mut self.largest, self.limit).max(self.limit)
        } else {
            self.limit.max(self.applied)
        };
        // A quarter more or less is no news.
        if wanted.abs_diff(self.applied) <= self.applied / 4 {
            return None;
        }
        self.applied = wanted;
        Some(wanted)
    }

    /// When [`Clamp::look`] may have news though nothing happens.
    pub(super) fn next_look(&self) -> Option<Instant> {
        (self.limit < self.applied - self.applied / 4).then_some(self.period_end)
    }

    /// Tells the kernel. One that refuses leaves the window larger, which its buffer bounds.
    pub(super) fn apply(socket: impl AsFd, octets: u32) {
        let _ = buffers::set_window_clamp(socket, u64::from(octets.max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_lasts_is_applied_and_what_passes_is_not() {
        let mut clamp = Clamp::new(at(0), 64_000);
        let mut said = |ms, limit| {
            clamp.set(limit);
            clamp.look(at(ms))
        };
        assert_eq!(said(10, 0), None, "it may pass");
        assert_eq!(said(20, 60_000), None);
        assert_eq!(said(100, 3_000), None, "60 000 was in this period");
        assert_eq!(said(150, 4_000), None);
        assert_eq!(said(200, 2_000), Some(4_000), "the largest of the last period");
        assert_eq!(said(210, 30_000), Some(30_000), "up at once");
        assert_eq!(clamp.next_look(), None);
        clamp.set(1_000);
        assert_eq!(clamp.next_look(), Some(at(300)));
        assert_eq!((clamp.look(at(300)), clamp.look(at(400))), (None, Some(1_000)), "said once is enough");
    }
}
