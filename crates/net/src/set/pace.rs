//! Rate limits by token buckets.
//!
//! [`Bucket`] is a single bucket, [`intake`] limits what a gateway reads for its nodes and their
//! mesh, and [`outflow`] limits what a sender hands to gateways. All count bytes of TCP payload.

pub(super) mod intake;
pub(super) mod outflow;

use anabranch_core::time::{Duration, Instant};

/// A full segment of a wired connection. A smaller quantum would cause more headers.
const SEGMENT: u64 = 1460;
/// One bit in units of credit: what a bucket of 1 bit/s gains in a second, counted in nanoseconds.
const BIT: i128 = 1_000_000_000;

/// A token bucket. Its credit is counted in bits times nanoseconds, so that rounding loses no time.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// Rate in bits per second.
    rate: u64,
    /// Capacity in bytes.
    burst: u64,
    /// Current credit; negative after [`Bucket::charge`].
    credit: i128,
    at: Instant,
}

impl Bucket {
    /// Creates a full bucket of `rate` bits per second, at least 1. Its capacity is 50 ms at that
    /// rate, or two quanta.
    pub(super) fn new(now: Instant, rate: u64) -> Self {
        Self::with_burst(now, rate, (rate / 8 / 20).max(2 * quantum(rate)))
    }

    /// Creates a full bucket with a capacity of `burst` bytes.
    pub(super) fn with_burst(now: Instant, rate: u64, burst: u64) -> Self {
        Self { rate: rate.max(1), burst, credit: credit(burst), at: now }
    }

    /// Bytes per turn.
    pub(super) fn quantum(&self) -> u64 {
        quantum(self.rate)
    }

    fn refill(&mut self, now: Instant) {
        let passed = i128::from(now.saturating_since(self.at).as_nanos());
        self.at = self.at.max(now);
        self.credit = (self.credit + passed * i128::from(self.rate)).min(credit(self.burst));
    }

    /// Number of bytes available now.
    pub(super) fn available(&mut self, now: Instant) -> u64 {
        self.refill(now);
        u64::try_from(self.credit / (8 * BIT)).unwrap_or(0)
    }

    /// True if the bucket is full.
    pub(super) fn is_full(&mut self, now: Instant) -> bool {
        self.available(now) >= self.burst
    }

    /// Takes `octets`. Returns false and takes nothing if they are not available.
    pub(super) fn take(&mut self, now: Instant, octets: u64) -> bool {
        let there = self.available(now) >= octets;
        if there {
            self.credit -= credit(octets);
        }
        there
    }

    /// Takes `octets` even if they are not available; the credit becomes negative.
    pub(super) fn charge(&mut self, now: Instant, octets: u64) {
        self.refill(now);
        self.credit -= credit(octets);
    }

    /// Returns bytes that were taken and not used.
    pub(super) fn give_back(&mut self, octets: u64) {
        self.credit = (self.credit + credit(octets)).min(credit(self.burst));
    }

    /// When `octets` will be available, if no bytes are taken until then.
    pub(super) fn when(&mut self, now: Instant, octets: u64) -> Instant {
        self.refill(now);
        let lacking = (credit(octets) - self.credit).max(0);
        let nanos = (lacking + i128::from(self.rate) - 1) / i128::from(self.rate);
        now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
    }
}

fn credit(octets: u64) -> i128 {
    i128::from(octets) * 8 * BIT
}

/// Bytes per turn: 5 ms at the rate, so that many senders share fairly, but at least a segment.
fn quantum(rate: u64) -> u64 {
    (rate / 8 / 200).max(SEGMENT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::ZERO + Duration::from_nanos(nanos)
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::with_burst(at(0), 8_000, 500);
        assert!(bucket.take(at(0), 500) && !bucket.take(at(0), 1));
        assert_eq!(bucket.when(at(0), 100), at(100_000_000));
        assert!(!bucket.take(at(99_999_999), 100) && bucket.take(at(100_000_000), 100));
        bucket.charge(at(100_000_000), 1_000);
        assert_eq!(bucket.available(at(1_000_000_000)), 0, "a debt is paid first");
        assert_eq!(bucket.available(at(1_200_000_000)), 100);
        assert_eq!(bucket.available(at(60_000_000_000)), 500, "no more than the burst");
        assert_eq!(bucket.available(at(50_000_000_000)), 500, "a clock that falls is no harm");
    }

    #[test]
    fn a_rate_that_divides_nothing_does_not_drift() {
        let mut bucket = Bucket::with_burst(at(0), 7, 10);
        bucket.charge(at(0), 10);
        let mut taken = 0;
        for i in 1..=800_000u64 {
            taken += u64::from(bucket.take(at(i * 1_000_003), 1));
        }
        assert_eq!(taken, 800_000 * 1_000_003 * 7 / 8 / 1_000_000_000);
    }

    proptest! {
        /// Over any interval, the bucket grants at most rate and burst; in the long run it grants
        /// the rate.
        #[test]
        fn never_too_much_and_in_the_long_run_enough(
            rate in 1_000u64..1_000_000_000,
            asks in prop::collection::vec((0u64..40_000_000, 1u64..100_000), 1..200),
        ) {
            let mut bucket = Bucket::new(at(0), rate);
            let burst = bucket.burst;
            let (mut now, mut taken) = (0u64, vec![(0u64, 0u64)]);
            for (pause, octets) in asks {
                now += pause;
                let octets = octets.min(burst);
                if bucket.take(at(now), octets) {
                    let sum = taken.last().map_or(0, |(_, sum)| *sum);
                    taken.push((now, sum + octets));
                }
            }
            for (i, (from, _)) in taken.iter().enumerate().skip(1) {
                let before = taken[i - 1].1;
                for (to, sum) in &taken[i..] {
                    let most = u128::from(rate) * u128::from(to - from) / 8_000_000_000 + u128::from(burst);
                    prop_assert!(u128::from(sum - before) <= most + 1);
                }
            }
        }

        #[test]
        fn whoever_takes_when_told_gets_the_rate(rate in 10_000u64..1_000_000_000) {
            let mut bucket = Bucket::new(at(0), rate);
            bucket.charge(at(0), bucket.burst);
            let (mut now, mut octets, quantum) = (at(0), 0, bucket.quantum());
            for _ in 0..1_000 {
                now = bucket.when(now, quantum);
                prop_assert!(bucket.take(now, quantum));
                octets += quantum;
            }
            let reached = octets as f64 * 8.0 / now.as_secs_f64();
            prop_assert!((reached / rate as f64 - 1.0).abs() < 0.01, "{reached} of {rate}");
        }
    }
}
