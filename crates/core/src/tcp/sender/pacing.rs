//! Pacing: data leaves in small quanta at the rate of the congestion control, or at a rate derived
//! from window and round-trip time. Acknowledgements, probes, and the first retransmission of a
//! recovery or time-out are not delayed.

use super::Sender;
use crate::time::{Duration, Instant};

/// State of the pacer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// When the next quantum may be sent.
    next: Instant,
    /// Bytes left of the current quantum.
    left: u32,
    /// When waiting data may be sent.
    wake: Option<Instant>,
}

impl Pacing {
    /// Allows the next quantum at once.
    fn release(&mut self) {
        (self.next, self.left, self.wake) = (Instant::ZERO, 0, None);
    }

    /// No data waits.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.wake = None;
    }

    /// Records bytes sent at `rate` bytes per second.
    fn sent(&mut self, now: Instant, bytes: u32, rate: u64, mss: u32) {
        if self.next <= now {
            self.left = quantum(rate, mss);
            // A driver that wakes slightly late must not slow the connection down, so the schedule
            // continues from the planned time.
            if now.saturating_since(self.next) > LATE {
                self.next = now;
            }
        }
        self.left = self.left.saturating_sub(bytes);
        let nanos = u64::from(bytes) * 1_000_000_000 / rate.max(1);
        self.next += Duration::from_nanos(nanos).min(LONGEST);
    }
}

impl Sender {
    /// Pacing rate in bytes per second; `None` is not paced. Without a rate from the controller it
    /// is that of Linux: two windows per round trip in early slow start, 1.2 windows afterwards.
    fn pacing_rate(&self) -> Option<u64> {
        if let Some(rate) = self.congestion.pacing_rate() {
            return Some(rate.max(1));
        }
        let srtt = self.rtt.srtt().filter(|_| self.config.pacing)?.as_nanos().max(1);
        let window = self.cwnd().max(self.in_flight());
        let percent = if self.cwnd() < self.congestion.ssthresh() / 2 { 200 } else { 120 };
        let rate = u128::from(window) * percent * 10_000_000 / u128::from(srtt);
        Some(rate.clamp(1, u64::MAX.into()) as u64)
    }

    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.config.pacing || self.flight.rate.is_some()
    }

    /// Whether data allowed by the windows has to wait for the pacer.
    #[inline]
    fn waits(&self, now: Instant) -> bool {
        self.is_paced() && now < self.pacing.next && self.pacing.left == 0
    }

    /// As [`Sender::waits`]; if so, sets the wake-up time.
    #[inline]
    pub(super) fn is_held(&mut self, now: Instant) -> bool {
        let held = self.waits(now);
        if held {
            self.pacing.wake = Some(self.pacing.next);
        }
        held
    }

    /// The part of `room` bytes of the window that may be sent now.
    pub(super) fn paced_room(&self, now: Instant, room: u32) -> u32 {
        if !self.is_paced() {
            return room;
        }
        let Some(rate) = self.pacing_rate() else { return room };
        let most = if now < self.pacing.next { self.pacing.left } else { quantum(rate, self.mss) };
        // A quantum ends with the segment that exhausts it.
        room.min(most.next_multiple_of(self.mss))
    }

    /// Sets a wake-up for the owner of a subflow that has, or may have, more data than it has
    /// written.
    #[inline]
    pub(super) fn hold_owner(&mut self, now: Instant) {
        if (self.more || self.copies) && self.map.is_some() && self.unsent() == 0 {
            self.is_held(now);
        }
    }

    /// Charges sent data to the pacer.
    #[inline]
    pub(super) fn pace(&mut self, now: Instant, bytes: u32) {
        if self.is_paced()
            && let Some(rate) = self.pacing_rate()
        {
            self.pacing.sent(now, bytes, rate, self.mss);
        }
    }

    /// Retransmissions after a time-out are not delayed.
    pub(super) fn stop_waiting(&mut self) {
        self.pacing.release();
    }

    /// When [`Sender::handle_timers`] or a poll is due.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.deadline().into_iter().chain(self.pacing.wake).min()
    }
}

/// Size of a quantum (draft-ietf-ccwg-bbr, "Send Quantum"): one millisecond of data, which bounds
/// the number of timers. At least one segment, and not two as in the draft, because there is no
/// segmentation offload to feed.
fn quantum(rate: u64, mss: u32) -> u32 {
    ((rate / 1000).min(MOST_AT_ONCE) as u32).max(mss)
}

const MOST_AT_ONCE: u64 = 64 * 1024;
/// Largest delay of a quantum that does not move the schedule.
const LATE: Duration = Duration::from_millis(1);
/// Upper bound of the gap, however low the rate is: the window already bounds the data in the
/// network.
const LONGEST: Duration = Duration::from_secs(1);
