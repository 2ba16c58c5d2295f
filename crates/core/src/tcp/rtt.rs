//! Round-trip times and the retransmission time-out (RFC 6298), in whole nanoseconds.
//!
//! Which acknowledgements may be measured (Karn's rule) is the sender's affair; here only samples arrive.

use super::{Backoff, RtoConfig};
use crate::time::Duration;

/// SRTT, RTTVAR and the time-out that follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    config: RtoConfig,
    srtt: Option<Duration>,
    rttvar: Duration,
    min_rtt: Option<Duration>,
    /// The time-out without back-off, within its bounds.
    base: Duration,
    /// Time-outs since the last sample.
    backoffs: u32,
}

impl RttEstimator {
    pub(crate) fn new(config: RtoConfig) -> Self {
        let mut this =
            Self { config, srtt: None, rttvar: Duration::ZERO, min_rtt: None, base: FLOOR, backoffs: 0 };
        this.base = this.bounded(config.initial);
        this
    }

    /// A measurement (RFC 6298 sections 2.2 and 2.3); ends the back-off (section 5, Karn).
    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.srtt = Some(match self.srtt {
            None => {
                self.rttvar = rtt / 2;
                rtt
            }
            Some(srtt) => {
                let error = if srtt > rtt { srtt - rtt } else { rtt - srtt };
                self.rttvar = self.rttvar.mul_ratio(3, 4) + error / 4;
                srtt.mul_ratio(7, 8) + rtt / 8
            }
        });
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        let srtt = self.srtt.unwrap_or(rtt);
        self.base = self.bounded(srtt + (self.rttvar * 4).max(GRANULARITY));
        self.backoffs = 0;
    }

    /// A time-out passed (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        match self.config.backoff {
            Backoff::Double => self.backoffs = (self.backoffs + 1).min(MAX_SHIFT),
            Backoff::Constant => {}
        }
    }

    /// Data begins after a SYN was sent again: no sample may come from it, and the time-out is the initial
    /// one, at least 3 s (RFC 6298 section 5.7).
    pub(crate) fn restart_after_lost_syn(&mut self) {
        self.backoffs = 0;
        self.base = self.bounded(self.config.initial.max(AFTER_LOST_SYN));
    }

    /// The present time-out, back-off included.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        if self.backoffs == 0 { self.base } else { self.interval(self.backoffs) }
    }

    /// The time-out after `backoffs` doublings, whatever has passed; the persist timer counts its own.
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

    #[inline]
    fn bounded(&self, rto: Duration) -> Duration {
        rto.max(self.config.min).min(self.config.max).max(FLOOR)
    }
}

/// No time-out is shorter, whatever the configuration says: time must move on.
const FLOOR: Duration = Duration::from_micros(1);
/// G of RFC 6298 section 2: the clock counts nanoseconds.
const GRANULARITY: Duration = Duration::from_nanos(1);
/// RFC 6298 section 5.7.
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// Enough doublings to take 1 us past any cap.
const MAX_SHIFT: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(RtoConfig {
            initial: Duration::from_secs(3),
            min: Duration::from_millis(1),
            max: Duration::from_secs(16),
            backoff: Backoff::Double,
        })
    }

    #[test]
    fn first_sample_sets_three_times_the_round_trip() {
        let mut rtt = estimator();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
        rtt.sample(Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn later_samples_are_smoothed() {
        let mut rtt = estimator();
        rtt.sample(Duration::from_millis(100));
        rtt.sample(Duration::from_millis(180));
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
        rtt.sample(Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn constant_back_off_stays() {
        let mut rtt = RttEstimator::new(RtoConfig { backoff: Backoff::Constant, ..estimator().config });
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }
}
