//! Trip times between two clocks that nobody has set (erratum H17).

use anabranch_wire::rdca::TimeStamp;

use crate::time::{Duration, Instant};

/// The reading of a clock as datagrams carry it.
pub(super) fn time_stamp(now: Instant) -> TimeStamp {
    TimeStamp((now.as_nanos() / 1000) as u32)
}

/// Microseconds as a span.
pub(super) fn micros(n: u32) -> Duration {
    Duration::from_micros(u64::from(n))
}

/// A span in microseconds, as datagrams carry it.
pub(super) fn as_micros(span: Duration) -> u32 {
    (span.as_nanos() / 1000).min(u64::from(u32::MAX)) as u32
}

/// One packet's trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trip {
    /// Microseconds more than the first packet of the stream took: without the offset of the clocks, with their drift.
    pub relative: i32,
    /// Above the least that was seen, drift allowed for: the time spent waiting.
    pub waiting: Duration,
    /// As the paper has it, for synchronised clocks; never negative.
    pub time: Duration,
}

/// The trip times of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Trips {
    first: i32,
    last: i32,
    /// The last trip time less the first one, microseconds; more than 32 bits, since the clocks drift.
    relative: i64,
    /// The least of those, nanoseconds. It is let rise as fast as the clocks may drift apart: so a clock that is slow does
    /// not look like a queue that grows, and one that is fast lowers it.
    least: i64,
    /// When the last trip time was seen; `None`: none yet.
    seen: Option<Instant>,
}

impl Trips {
    pub(super) fn observe(&mut self, now: Instant, sent: TimeStamp, drift_ppm: u32) -> Trip {
        let trip = time_stamp(now).since(sent);
        let nanos = match self.seen.replace(now) {
            None => {
                (self.first, self.last) = (trip, trip);
                0
            }
            Some(seen) => {
                self.relative += i64::from(trip.wrapping_sub(self.last));
                self.last = trip;
                let drift = now.saturating_since(seen).mul_ratio(u64::from(drift_ppm), 1_000_000);
                let nanos = self.relative.saturating_mul(1000);
                self.least =
                    nanos.min(self.least.saturating_add(drift.as_nanos().min(i64::MAX as u64) as i64));
                nanos
            }
        };
        Trip {
            relative: self.relative.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            waiting: Duration::from_nanos(nanos.abs_diff(self.least)),
            time: Duration::from_micros((i64::from(self.first) + self.relative).max(0) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trips of `ms` milliseconds each 100 ms, from a clock that is off by `offset` microseconds and drifts.
    fn waits(ms: &[u64], offset: u32, drift_ppm: i64) -> std::vec::Vec<u64> {
        let mut trips = Trips::default();
        let wait = |(i, ms): (usize, &u64)| {
            let sent = i as u64 * 100_000;
            let clock = (sent as i64 + sent as i64 * drift_ppm / 1_000_000) as u32;
            let now = Instant::ZERO + Duration::from_micros(sent + ms * 1000);
            trips.observe(now, TimeStamp(clock.wrapping_add(offset)), 200).waiting.as_millis()
        };
        ms.iter().enumerate().map(wait).collect()
    }

    #[test]
    fn h17_an_offset_makes_no_difference() {
        for offset in [0, 7, 1 << 31, u32::MAX - 3] {
            assert_eq!(waits(&[50, 60, 45, 48], offset, 0), [0, 9, 0, 2]);
        }
    }

    #[test]
    fn h17_clocks_that_drift_apart_for_ten_hours_make_no_queue() {
        for drift in [-100, 100] {
            let waits = waits(&[50; 360_000], 1 << 30, drift);
            assert_eq!(waits.iter().max(), Some(&0), "{drift} ppm");
        }
    }

    #[test]
    fn the_time_itself_is_that_of_synchronised_clocks() {
        let mut trips = Trips::default();
        let now = Instant::ZERO + Duration::from_secs(5000);
        let sent = time_stamp(Instant::ZERO + Duration::from_millis(4_999_900));
        assert_eq!(trips.observe(now, sent, 200).time.as_millis(), 100);
    }
}
