//! Rates in bytes per second, in whole bytes and nanoseconds.

use crate::time::Duration;

/// Number of bytes that a rate in bytes per second carries in `span`.
pub(crate) fn octets_in(rate: u64, span: Duration) -> u64 {
    saturating_ratio(rate, span.as_nanos(), 1_000_000_000)
}

/// Rate in bytes per second of `octets` in `span`.
pub(crate) fn rate_of(octets: u64, span: Duration) -> u64 {
    saturating_ratio(octets, 1_000_000_000, span.as_nanos())
}

/// Time for `octets` at a rate in bytes per second.
pub(crate) fn time_of(octets: u64, rate: u64) -> Duration {
    Duration::from_nanos(saturating_ratio(octets, 1_000_000_000, rate))
}

/// `a * b / c`, computed in 128 bits; saturates.
fn saturating_ratio(a: u64, b: u64, c: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c.max(1))).unwrap_or(u64::MAX)
}
