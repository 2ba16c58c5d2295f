//! Timestamps (RFC 7323 sections 3 to 5): round-trip measurement and protection against wrapped
//! sequence numbers (PAWS).
//!
//! The timestamp clock counts milliseconds of the driver's clock, without an offset.

use crate::segment::{SeqNumber, Timestamps};
use crate::tcp::rtt::timestamp;
use crate::time::{Duration, Instant};

/// State once both sides have offered timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    /// TS.Recent.
    recent: u32,
    /// When TS.Recent was taken.
    taken: Instant,
    /// Last.ACK.sent.
    last_ack_sent: SeqNumber,
}

impl Stamps {
    pub(super) fn new(now: Instant, value: u32, irs: SeqNumber) -> Self {
        Self { recent: value, taken: now, last_ack_sent: irs }
    }

    /// R1 of RFC 7323 section 5.3: whether a segment is older than one that was accepted.
    #[inline]
    pub(super) fn is_old(&self, now: Instant, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) < 0 && now.saturating_since(self.taken) < OUTDATED
    }

    /// Whether the segment is newer than the last accepted one (RFC 6191).
    pub(super) fn is_news(&self, now: Instant, value: u32) -> bool {
        value != self.recent && !self.is_old(now, value)
    }

    /// Whether a clock of at most 1000 ticks per second can show this value after TS.Recent (RFC
    /// 7323 section 5.4).
    pub(super) fn is_plausible(&self, now: Instant, value: u32) -> bool {
        let ticks = u64::from(value.wrapping_sub(self.recent));
        ticks <= (now.saturating_since(self.taken) + JITTER).as_millis()
    }

    /// R3 of RFC 7323 section 5.3: updates TS.Recent.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, value: u32, seq: SeqNumber) {
        if seq.le(self.last_ack_sent) {
            self.recent = value;
            self.taken = now;
        }
    }

    /// The option of a segment that acknowledges `ack`.
    #[inline]
    pub(super) fn stamp(&mut self, now: Instant, ack: SeqNumber) -> Timestamps {
        self.last_ack_sent = ack;
        Timestamps { value: clock(now), echo: self.recent }
    }
}

/// TSval.
#[inline]
pub(super) fn clock(now: Instant) -> u32 {
    timestamp(now)
}

/// Round-trip time of an echoed timestamp; `None` if the echo lies in the future.
#[inline]
pub(super) fn round_trip(now: Instant, echo: u32) -> Option<Duration> {
    let ticks = clock(now).wrapping_sub(echo);
    (ticks < 1 << 31).then(|| Duration::from_millis(u64::from(ticks.max(1))))
}

/// Age after which TS.Recent is ignored. RFC 7323 section 5.5 uses 24 days, half of the range of a
/// millisecond clock. Some peers count microseconds: this is half of their range, as on Linux, and
/// long enough for every old duplicate to disappear.
const OUTDATED: Duration = Duration::from_secs(2147);
/// Tolerance for the difference of two segments' delays.
const JITTER: Duration = Duration::from_secs(1);
