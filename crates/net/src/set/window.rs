//! The receive window that a machine wants, carried out on a socket.
//!
//! A machine's limit moves with every byte that it holds; the kernel's clamp is for what lasts.
//! Lowered for a moment it would cost round trips to open the window again (`rcv_ssthresh`), and
//! nothing is lost by waiting: while the limit is 0 nobody reads, so that the window closes by
//! itself.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anabranch_core::time::{Duration, Instant};

use crate::buffers;

/// Bounds what the kernel may hold for us unread on a socket that is not connected yet, bytes of
/// payload.
///
/// SO_RCVBUF is exact, but a host that allows less than is wanted (`net.core.rmem_max`, 208 KiB
/// unless somebody has raised it) cuts it without a word, and the kernel no longer tunes what was
/// set: a long path would be slower than with nothing set at all. There the kernel tunes, and a
/// clamp on the window is the bound.
pub(super) fn bound(socket: impl AsFd, octets: u32) -> io::Result<()> {
    if octets <= most() {
        // What it is told is doubled for the structures around the payload.
        buffers::set_receive_buffer(socket, 2 * u64::from(octets)).map(drop)
    } else {
        buffers::set_window_clamp(socket, u64::from(octets))
    }
}

/// The most that SO_RCVBUF may be told on this host, bytes.
fn most() -> u32 {
    static MOST: OnceLock<u32> = OnceLock::new();
    *MOST.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
        // Some kernels do not show it in a namespace: then the usual value.
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(212_992)
    })
}

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

    /// What the machine wants now, bytes.
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
