//! Applies a machine's receive limit to a socket.
//!
//! A machine's limit changes with every byte that it buffers, but the kernel's clamp suits slow
//! changes: after it was lowered for a moment, the window would need round trips to grow again
//! (`rcv_ssthresh`). Waiting is safe: while the limit is 0 the socket is not read, so the window
//! closes by itself.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anabranch_core::time::{Duration, Instant};

use crate::buffers;

/// Limits the unread bytes that the kernel may hold for a socket that is not connected yet, in
/// bytes of payload.
///
/// SO_RCVBUF is exact, but the kernel silently reduces it to `net.core.rmem_max` (208 KiB by
/// default) and stops tuning the buffer. A long path would then be slower than without any setting.
/// In that case the kernel's tuning stays on, and a window clamp is the limit.
pub(super) fn bound(socket: impl AsFd, octets: u32) -> io::Result<()> {
    if octets <= most() {
        // Doubled, because the limit includes the overhead of the payload.
        buffers::set_receive_buffer(socket, 2 * u64::from(octets)).map(drop)
    } else {
        buffers::set_window_clamp(socket, u64::from(octets))
    }
}

/// Largest value that SO_RCVBUF accepts on this host, in bytes.
fn most() -> u32 {
    static MOST: OnceLock<u32> = OnceLock::new();
    *MOST.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
        // Some kernels do not show it in a network namespace; then the default is assumed.
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(212_992)
    })
}

/// Period over which the largest limit is applied.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// The window clamp of one socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clamp {
    /// Value last set in the kernel.
    applied: u32,
    /// The machine's current limit.
    limit: u32,
    /// Largest limit in this period.
    largest: u32,
    period_end: Instant,
}

impl Clamp {
    /// Creates a clamp with a window as large as the receive buffer allows.
    pub(super) fn new(now: Instant, receive_buffer: u32) -> Self {
        let (applied, limit) = (receive_buffer, receive_buffer);
        Self { applied, limit, largest: 0, period_end: now + PERIOD }
    }

    /// The machine's current limit in bytes.
    pub(super) fn wanted(&self) -> u32 {
        self.limit
    }

    /// Sets the machine's limit.
    pub(super) fn set(&mut self, limit: u32) {
        self.limit = limit;
        self.largest = self.largest.max(limit);
    }

    /// Returns the clamp to set now, if it has changed.
    pub(super) fn look(&mut self, now: Instant) -> Option<u32> {
        let wanted = if now >= self.period_end {
            self.period_end = now + PERIOD;
            std::mem::replace(&mut self.largest, self.limit).max(self.limit)
        } else {
            // Raise at once, but lower only at the end of a period.
            self.limit.max(self.applied)
        };
        // A change of less than a quarter is ignored.
        if wanted.abs_diff(self.applied) <= self.applied / 4 {
            return None;
        }
        self.applied = wanted;
        Some(wanted)
    }

    /// When [`Clamp::look`] may return a change without an event.
    pub(super) fn next_look(&self) -> Option<Instant> {
        (self.limit < self.applied - self.applied / 4).then_some(self.period_end)
    }

    /// Sets the clamp in the kernel. If this fails, the window stays larger, within the receive
    /// buffer.
    pub(super) fn apply(socket: impl AsFd, octets: u32) {
        // A connected socket refuses a clamp of 0 (tcp(7)).
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
    fn a_buffer_that_the_host_does_not_allow_is_left_to_the_kernel_under_a_clamp() {
        let socket = || std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let (small, large) = (socket(), socket());
        bound(&small, 50_000).expect("a socket");
        assert_eq!(buffers::receive_buffer(&small).expect("a socket"), 100_000);
        let before = buffers::receive_buffer(&large).expect("a socket");
        bound(&large, most() + 1).expect("a socket");
        assert_eq!(buffers::receive_buffer(&large).expect("a socket"), before, "the kernel tunes it");
        assert_eq!(buffers::window_clamp(&large).expect("a socket"), u64::from(most()) + 1);
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
