//! Trip times between two clocks that are not synchronised (erratum H17).

use anabranch_wire::rdca::TimeStamp;

use crate::time::{Duration, Instant};

/// The local time as a 32-bit time stamp in microseconds for datagrams.
pub(super) fn time_stamp(now: Instant) -> TimeStamp {
    TimeStamp((now.as_nanos() / 1000) as u32)
}

/// Converts microseconds to a duration.
pub(super) fn micros(n: u32) -> Duration {
    Duration::from_micros(u64::from(n))
}

/// Converts a duration to microseconds, saturating at the 32 bits of a datagram's field.
pub(super) fn as_micros(span: Duration) -> u32 {
    (span.as_nanos() / 1000).min(u64::from(u32::MAX)) as u32
}

/// The trip time of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trip {
    /// Microseconds above the trip time of the stream's first packet. It contains the drift of the
    /// clocks but not their offset.
    pub relative: i32,
    /// Time above the recent minimum: the queueing delay.
    pub waiting: Duration,
    /// Trip time as defined in the paper, valid for synchronised clocks; never negative.
    pub time: Duration,
}

/// The minimum over the current time span and the previous one. Routes change, and clocks drift and
/// jump, so a minimum over all time would become wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    /// [`i64::MAX`] if there is no value.
    before: i64,
    present: i64,
    began: Instant,
}

impl Least {
    /// Creates the minimum with a first `value` at `now`.
    pub(super) const fn new(now: Instant, value: i64) -> Self {
        Self { before: i64::MAX, present: value, began: now }
    }

    /// Adds a value and returns the minimum since the start of the previous span.
    pub(super) fn observe(&mut self, now: Instant, value: i64, span: Duration) -> i64 {
        let since = now.saturating_since(self.began);
        if since >= span {
            let before = if since < span * 2 { self.present } else { i64::MAX };
            *self = Self { before, ..Self::new(now, value) };
        }
        self.present = self.present.min(value);
        self.get()
    }

    pub(super) fn get(&self) -> i64 {
        self.before.min(self.present)
    }
}

/// The trip times of one sender.
#[derive(Clone, Debug)]
pub(super) struct Trips {
    first: i32,
    last: i32,
    /// Arrival time of the last packet.
    came: Instant,
    /// The last trip time minus the first one in microseconds; 64 bits, since the clocks drift.
    relative: i64,
    /// The recent minimum of `relative`.
    least: Least,
}

impl Trips {
    /// State before the first packet.
    pub(super) const NONE: Self = Self {
        first: 0,
        last: 0,
        came: Instant::ZERO,
        relative: 0,
        least: Least::new(Instant::ZERO, i64::MAX),
    };

    pub(super) fn is_none(&self) -> bool {
        self.least.get() == i64::MAX
    }

    /// State after the first packet, which was sent at `sent` and had already been queued for
    /// `waiting`.
    pub(super) fn new(now: Instant, sent: TimeStamp, waiting: Duration) -> Self {
        let first = time_stamp(now).since(sent);
        let least = Least::new(now, -i64::from(as_micros(waiting)));
        Self { first, last: first, came: now, relative: 0, least }
    }

    pub(super) fn observe(&mut self, now: Instant, sent: TimeStamp, span: Duration) -> Trip {
        let trip = time_stamp(now).since(sent);
        let rise = trip.wrapping_sub(self.last);
        // A packet cannot be delayed longer than its predecessor by more than the time between
        // their arrivals. A larger step means that the sender's clock was set back. Counted as
        // queueing delay it would persist, because the minimum trip time is kept for longer behind
        // a long queue.
        if i64::from(rise) > i64::from(as_micros(now.saturating_since(self.came))) + OVERTAKEN {
            self.first = self.first.wrapping_add(rise);
        } else {
            self.relative += i64::from(rise);
        }
        (self.last, self.came) = (trip, now);
        let least = self.least.observe(now, self.relative, span);
        Trip {
            relative: self.relative.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            waiting: Duration::from_micros(self.relative.abs_diff(least)),
            time: Duration::from_micros((i64::from(self.first) + self.relative).max(0) as u64),
        }
    }
}

/// Upper limit of round-trip times, because a datagram may claim any value.
pub(super) const LONGEST_RTT: Duration = Duration::from_secs(60);
/// The largest time in microseconds by which a packet of a sender overtakes another.
const OVERTAKEN: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(3);

    /// Queueing delays of packets with trip times of `ms` milliseconds, one every 100 ms. The
    /// sender's clock has an offset of `offset` microseconds and a drift.
    fn waits(ms: &[u64], offset: u32, drift_ppm: i64) -> std::vec::Vec<u64> {
        let mut trips: Option<Trips> = None;
        let wait = |(i, ms): (usize, &u64)| {
            let sent = i as u64 * 100_000;
            let clock = (sent as i64 + sent as i64 * drift_ppm / 1_000_000) as u32;
            let now = Instant::ZERO + Duration::from_micros(sent + ms * 1000);
            let sent = TimeStamp(clock.wrapping_add(offset));
            let trips = trips.get_or_insert_with(|| Trips::new(now, sent, Duration::ZERO));
            trips.observe(now, sent, SPAN).waiting.as_millis()
        };
        ms.iter().enumerate().map(wait).collect()
    }

    #[test]
    fn h17_an_offset_makes_no_difference() {
        for offset in [0, 7, 1 << 31, u32::MAX - 3] {
            assert_eq!(waits(&[50, 60, 45, 48], offset, 0), [0, 10, 0, 3]);
        }
    }

    #[test]
    fn h17_clocks_that_drift_apart_for_ten_hours_make_no_queue() {
        for drift in [-500, -100, 100, 500] {
            let waits = waits(&[50; 360_000], 1 << 30, drift);
            // A drift of 500 ppm over two spans.
            let most = if drift.abs() == 100 { 0 } else { 3 };
            assert!(waits.iter().all(|ms| *ms <= most), "{drift} ppm");
        }
    }

    #[test]
    fn the_time_itself_is_that_of_synchronised_clocks() {
        let now = Instant::ZERO + Duration::from_secs(5000);
        let sent = time_stamp(Instant::ZERO + Duration::from_millis(4_999_900));
        let mut trips = Trips::new(now, sent, Duration::ZERO);
        assert_eq!(trips.observe(now, sent, SPAN).time.as_millis(), 100);
    }

    #[test]
    fn a_step_of_route_or_clock_is_no_queue_for_long() {
        let steps = [50; 20].into_iter().chain([200; 80]).chain([50; 20]);
        let waits = waits(&steps.collect::<std::vec::Vec<_>>(), 0, 0);
        assert_eq!((waits[19], waits[20], waits[40]), (0, 150, 150));
        assert!(waits[85..].iter().all(|ms| *ms == 0), "{waits:?}");
    }

    #[test]
    fn a_stream_that_begins_under_a_queue_knows_of_it() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut trips = Trips::new(at(100), TimeStamp(0), Duration::from_millis(60));
        let mut waiting = |now, sent| trips.observe(at(now), TimeStamp(sent), SPAN).waiting.as_millis();
        assert_eq!((waiting(100, 0), waiting(190, 100_000), waiting(240, 200_000)), (60, 50, 0));
    }
}
