//! Round-trip times and the retransmission time-out (RFC 6298), in whole nanoseconds.
//!
//! The sender decides which acknowledgements may be measured (Karn's rule); this module only
//! processes samples.

use super::{Backoff, RtoConfig};
use crate::time::{Duration, Instant};

/// SRTT, RTTVAR and the resulting time-out.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    config: RtoConfig,
    srtt: Option<Duration>,
    rttvar: Duration,
    min_rtt: Option<Duration>,
    recent: Recent,
    /// The time-out without back-off, within its bounds.
    base: Duration,
    /// Time-outs since the last sample.
    backoffs: u32,
}

impl RttEstimator {
    pub(crate) fn new(config: RtoConfig) -> Self {
        let mut this = Self {
            config,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: None,
            recent: Recent::default(),
            base: FLOOR,
            backoffs: 0,
        };
        this.base = this.bounded(config.initial);
        this
    }

    /// Processes a sample (RFC 6298 sections 2.2 and 2.3), one of `expected` per round trip. It
    /// ends the back-off (section 5, Karn).
    ///
    /// RTTVAR rises with each sample, so that the time-out keeps up with a filling queue. It falls
    /// by at most a quarter per round trip, however many samples there are (RFC 7323 appendix G).
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration, expected: u32) {
        self.srtt = Some(match self.srtt {
            None => {
                self.rttvar = rtt / 2;
                rtt
            }
            Some(srtt) => {
                // RFC 6298 section 2.3: RTTVAR is updated first, with the SRTT before this sample.
                let error = if srtt > rtt { srtt - rtt } else { rtt - srtt };
                // beta is 1/4. When RTTVAR falls, beta is divided by the number of samples in a
                // round trip (RFC 7323 appendix G).
                let share = if error < self.rttvar { 4 * u64::from(expected.max(1)) } else { 4 };
                self.rttvar = self.rttvar.mul_ratio(share - 1, share) + error / share;
                // alpha is 1/8.
                srtt.mul_ratio(7, 8) + rtt / 8
            }
        });
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.recent.sample(now, rtt);
        let srtt = self.srtt.unwrap_or(rtt);
        self.base = self.bounded(srtt + (self.rttvar * 4).max(self.config.granularity));
        self.backoffs = 0;
    }

    /// RFC 4015 section 3 step 8: `rtt` is the first sample after a spurious time-out, and `before`
    /// holds SRTT and RTTVAR before it. The new time-out is longer than the one that was too short.
    pub(crate) fn resume(&mut self, before: (Duration, Duration), rtt: Duration) {
        let srtt = before.0.max(rtt);
        self.srtt = Some(srtt);
        self.rttvar = before.1.max(rtt / 2);
        self.base = self.bounded(srtt + (self.rttvar * 4).max(self.config.granularity));
    }

    /// Doubles the time-out after an expiry (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        match self.config.backoff {
            Backoff::Double => self.backoffs = (self.backoffs + 1).min(MAX_SHIFT),
            Backoff::Constant => {}
        }
    }

    /// Called after a retransmitted SYN, which gives no sample: the time-out for data is the
    /// initial one, at least 3 s (RFC 6298 section 5.7).
    pub(crate) fn restart_after_lost_syn(&mut self) {
        self.backoffs = 0;
        self.base = self.bounded(self.config.initial.max(AFTER_LOST_SYN));
    }

    /// The current time-out, back-off included.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        if self.backoffs == 0 { self.base } else { self.interval(self.backoffs) }
    }

    /// The time-out after `backoffs` doublings, independent of the counted ones; the persist timer
    /// counts its own.
    pub(crate) fn interval(&self, backoffs: u32) -> Duration {
        self.bounded(self.base * (1 << backoffs.min(MAX_SHIFT)))
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    pub(crate) fn rttvar(&self) -> Duration {
        self.rttvar
    }

    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Smallest round-trip time of the last 5 to 10 s: the path without the queues that this
    /// connection builds.
    pub(crate) fn recent_rtt(&self) -> Option<Duration> {
        self.recent.least()
    }

    #[inline]
    fn bounded(&self, rto: Duration) -> Duration {
        rto.max(self.config.min).min(self.config.max).max(FLOOR)
    }
}

/// The timestamp clock (RFC 7323 section 5.4): milliseconds.
#[inline]
pub(crate) fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Smallest recent round-trip time: of the current period and of the previous one.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    since: Instant,
    now: Option<Duration>,
    before: Option<Duration>,
}

impl Recent {
    fn sample(&mut self, now: Instant, rtt: Duration) {
        let age = now.saturating_since(self.since);
        if age >= SPAN {
            // After a gap of two periods, the previous minimum is out of date.
            self.before = self.now.take().filter(|_| age < SPAN * 2);
            self.since = now;
        }
        self.now = Some(self.now.map_or(rtt, |least| least.min(rtt)));
    }

    fn least(&self) -> Option<Duration> {
        self.now.into_iter().chain(self.before).min()
    }
}

/// Length of a period: long compared with a round trip, short compared with changes of the path.
const SPAN: Duration = Duration::from_secs(5);
/// Lower bound of every time-out, whatever the configuration says: a zero time-out would let a
/// driver loop without time advancing.
const FLOOR: Duration = Duration::from_micros(1);
/// RFC 6298 section 5.7.
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// Enough doublings to raise 1 us above any upper bound.
const MAX_SHIFT: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(RtoConfig {
            initial: Duration::from_secs(3),
            min: Duration::from_millis(1),
            max: Duration::from_secs(16),
            granularity: Duration::ZERO,
            backoff: Backoff::Double,
        })
    }

    #[test]
    fn first_sample_sets_three_times_the_round_trip() {
        let mut rtt = estimator();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
        rtt.sample(Instant::ZERO, Duration::from_millis(100), 1);
        assert_eq!(rtt.rto(), Duration::from_millis(300));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn later_samples_are_smoothed() {
        let mut rtt = estimator();
        rtt.sample(Instant::ZERO, Duration::from_millis(100), 1);
        rtt.sample(Instant::ZERO, Duration::from_millis(180), 1);
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(110)));
        assert_eq!(rtt.rttvar(), Duration::from_nanos(57_500_000));
        assert_eq!(rtt.rto(), Duration::from_millis(340));
        assert_eq!(rtt.min_rtt(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn back_off_doubles_up_to_the_cap_and_ends_with_a_sample() {
        let mut rtt = estimator();
        let mut seen = std::vec::Vec::new();
        for _ in 0..4 {
            rtt.back_off();
            seen.push(rtt.rto().as_millis());
        }
        assert_eq!(seen, [6_000, 12_000, 16_000, 16_000]);
        rtt.sample(Instant::ZERO, Duration::from_millis(100), 1);
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn the_least_round_trip_is_forgotten_after_a_while() {
        let mut rtt = estimator();
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let ms = Duration::from_millis;
        for (s, sample, least) in
            [(0, 100, 100), (4, 300, 100), (6, 250, 100), (11, 280, 250), (12, 260, 250), (40, 400, 400)]
        {
            rtt.sample(at(s), ms(sample), 1);
            assert_eq!(rtt.recent_rtt(), Some(ms(least)), "after {s} s");
        }
        assert_eq!(rtt.min_rtt(), Some(ms(100)));
    }

    /// RFC 6298 section 2.3: with a steady round-trip time the granularity remains as the margin.
    #[test]
    fn a_steady_round_trip_keeps_the_margin() {
        let granularity = Duration::from_millis(200);
        let mut rtt = RttEstimator::new(RtoConfig { granularity, ..estimator().config });
        (0..100).for_each(|_| rtt.sample(Instant::ZERO, Duration::from_millis(600), 1));
        assert_eq!(rtt.rto(), Duration::from_millis(800));
    }

    /// RFC 7323 appendix G: the memory is counted in round trips, however many samples each has.
    #[test]
    fn the_variance_outlasts_a_round_trip_of_many_samples() {
        let mut rtt = estimator();
        let mut round = |spike: u64| {
            let samples = (0..50).map(|n| if n == 0 { spike } else { 100 });
            samples.for_each(|ms| rtt.sample(Instant::ZERO, Duration::from_millis(ms), 50));
            rtt.rttvar()
        };
        round(100);
        let after = round(600);
        assert!(after > Duration::from_millis(100), "{after}");
        let (low, high) = (after.mul_ratio(7, 10), after.mul_ratio(8, 10));
        assert!((low..high).contains(&round(100)), "a quarter less in a round trip");
    }

    #[test]
    fn constant_back_off_stays() {
        let mut rtt = RttEstimator::new(RtoConfig { backoff: Backoff::Constant, ..estimator().config });
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }
}
