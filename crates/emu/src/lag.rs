//! Measures how late events are.

use anabranch_core::time::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Minimum interval between two warnings.
const QUIET: Duration = Duration::from_secs(1);

/// Larger lags are counted as this value.
const LARGEST: Duration = Duration::from_secs(3600);

/// A histogram of lags, and a limit.
#[derive(Debug)]
pub struct Lag {
    limit: Duration,
    /// Lags in ns.
    seen: Histogram<u64>,
    over_limit: u64,
    /// Time of the last warning.
    spoken: Option<Instant>,
}

/// The lags of a whole emulation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LagReport {
    /// Number of measured batches. A batch is all events that were due in one iteration of the
    /// loop.
    pub batches: u64,
    /// Median lag in seconds.
    pub median_s: f64,
    /// 99th percentile of the lag in seconds.
    pub p99_s: f64,
    /// Largest lag in seconds.
    pub max_s: f64,
    /// The limit in seconds.
    pub limit_s: f64,
    /// Number of batches with a lag above the limit.
    pub over_limit: u64,
}

/// A lag compared with the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Within the limit.
    Fine,
    /// Above the limit; a warning was given within the last second.
    KnownLate,
    /// Above the limit; a warning is due.
    Late,
}

impl Lag {
    /// Creates an empty histogram.
    pub fn new(limit: Duration) -> Self {
        let seen = Histogram::new_with_bounds(1, LARGEST.as_nanos(), 3).expect("the bounds are legal");
        Self { limit, seen, over_limit: 0, spoken: None }
    }

    /// Records that events due at `due` are executed now.
    pub fn record(&mut self, due: Instant, now: Instant) -> Verdict {
        let lag = now.saturating_since(due);
        self.seen.saturating_record(lag.as_nanos());
        if lag <= self.limit {
            return Verdict::Fine;
        }
        self.over_limit += 1;
        if self.spoken.is_some_and(|spoken| now < spoken + QUIET) {
            return Verdict::KnownLate;
        }
        self.spoken = Some(now);
        Verdict::Late
    }

    /// The limit.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Statistics of all lags so far.
    pub fn report(&self) -> LagReport {
        // The histogram has a resolution of three digits and returns the upper end of a bucket.
        let max = self.seen.max();
        let seconds = |nanos: u64| Duration::from_nanos(nanos.min(max)).as_secs_f64();
        LagReport {
            batches: self.seen.len(),
            median_s: seconds(self.seen.value_at_quantile(0.5)),
            p99_s: seconds(self.seen.value_at_quantile(0.99)),
            max_s: seconds(max),
            limit_s: self.limit.as_secs_f64(),
            over_limit: self.over_limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excess_is_spoken_of_once_a_second() {
        let mut lag = Lag::new(Duration::from_millis(50));
        let ms = |n| Instant::ZERO + Duration::from_millis(n);
        assert_eq!(lag.record(ms(10), ms(60)), Verdict::Fine);
        assert_eq!(lag.record(ms(10), ms(61)), Verdict::Late);
        assert_eq!(lag.record(ms(1000), ms(1060)), Verdict::KnownLate);
        assert_eq!(lag.record(ms(1000), ms(1061)), Verdict::Late);
        let report = lag.report();
        assert_eq!((report.batches, report.over_limit), (4, 3));
        assert!((report.max_s - 0.061).abs() < 1e-4, "{report:?}");
        assert!((report.median_s - 0.051).abs() < 1e-4, "{report:?}");
    }

    #[test]
    fn no_lag_is_a_report_too() {
        let report = Lag::new(Duration::from_millis(1)).report();
        assert_eq!((report.batches, report.max_s, report.p99_s), (0, 0.0, 0.0));
    }
}
