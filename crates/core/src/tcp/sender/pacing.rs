//! Pacing: data leaves in small quanta, one behind the other, at the rate that the congestion
//! control says or that the window and the round trip come to. Acknowledgements, probes, the first
//! retransmission of a recovery and of a time-out are not held back.

use super::Sender;
use crate::time::{Duration, Instant};

/// When data may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// When the next quantum may leave.
    next: Instant,
    /// Bytes left of the quantum at hand.
    left: u32,
    /// Data waits until then.
    wake: Option<Instant>,
}

impl Pacing {
    /// The next quantum leaves whenever it wants to.
    fn release(&mut self) {
        (self.next, self.left, self.wake) = (Instant::ZERO, 0, None);
    }

    /// Nothing waits.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.wake = None;
    }

    /// Bytes leave at `rate` bytes per second.
    fn sent(&mut self, now: Instant, bytes: u32, rate: u64, mss: u32) {
        if self.next <= now {
            self.left = quantum(rate, mss);
            // A driver that wakes a little late does not slow the connection down.
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
    /// Bytes per second at which data leaves; `None` is as fast as the window lets it. Without a
    /// rate of the controller it is that of Linux: a window in half a round trip while slow start
    /// has far to go, and 1.2 windows in one later.
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

    /// Whether data that the windows would let go has to wait for its turn.
    #[inline]
    fn waits(&self, now: Instant) -> bool {
        self.is_paced() && now < self.pacing.next && self.pacing.left == 0
    }

    /// As [`Sender::waits`]; if so the sender wakes when it is over.
    #[inline]
    pub(super) fn is_held(&mut self, now: Instant) -> bool {
        let held = self.waits(now);
        if held {
            self.pacing.wake = Some(self.pacing.next);
        }
        held
    }

    /// Of `room` bytes that the window leaves, those that may leave now.
    pub(super) fn paced_room(&self, now: Instant, room: u32) -> u32 {
        if !self.is_paced() {
            return room;
        }
        let Some(rate) = self.pacing_rate() else { return room };
        let most = if now < self.pacing.next { self.pacing.left } else { quantum(rate, self.mss) };
        // A quantum ends with the segment that uses it up.
        room.min(most.next_multiple_of(self.mss))
    }

    /// The owner has, or may have, more than it has written, and it waits for its turn.
    #[inline]
    pub(super) fn hold_owner(&mut self, now: Instant) {
        if (self.more || self.copies) && self.map.is_some() && self.unsent() == 0 {
            self.is_held(now);
        }
    }

    /// Data has left.
    #[inline]
    pub(super) fn pace(&mut self, now: Instant, bytes: u32) {
        if self.is_paced()
            && let Some(rate) = self.pacing_rate()
        {
            self.pacing.sent(now, bytes, rate, self.mss);
        }
    }

    /// What a time-out sends again leaves at once.
    pub(super) fn stop_waiting(&mut self) {
        self.pacing.release();
    }

    /// When [`Sender::handle_timers`] or a poll has something to do.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.deadline().into_iter().chain(self.pacing.wake).min()
    }
}

/// What leaves together (draft-ietf-ccwg-bbr, "Send Quantum"): a millisecond of data, so that
/// timers stay few. One segment at least and not two, as there is no offloading to feed.
fn quantum(rate: u64, mss: u32) -> u32 {
    ((rate / 1000).min(MOST_AT_ONCE) as u32).max(mss)
}

const MOST_AT_ONCE: u64 = 64 * 1024;
/// How late a quantum may leave at the cost of none of the next ones.
const LATE: Duration = Duration::from_millis(1);
/// However low the rate: the window bounds what is in the network.
const LONGEST: Duration = Duration::from_secs(1);
