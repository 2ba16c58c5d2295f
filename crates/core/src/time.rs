//! Time in the core: integer nanoseconds since the driver's epoch.
//!
//! The core never reads a clock. The driver (simulator, emulator, operating system, node loop)
//! passes an [`Instant`] to every call and chooses the epoch.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// A span of time in whole nanoseconds. Saturates at [`Duration::MAX`] (about 584 years).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A point in time in whole nanoseconds since the driver's epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Duration {
    /// Zero length.
    pub const ZERO: Self = Self(0);
    /// The longest representable span; sums saturate here.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// A span of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// A span of `s` seconds, rounded to the nearest nanosecond; negative values and NaN become
    /// zero.
    pub fn from_secs_f64(s: f64) -> Self {
        // `as` saturates and maps NaN to zero, as the documentation promises.
        Self((s * 1e9 + 0.5) as u64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The span in seconds as a real number, for reports and for controllers that a paper defines
    /// on reals.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * num / den`, computed in 128 bits so that the product cannot overflow; saturates.
    pub const fn mul_ratio(self, num: u64, den: u64) -> Self {
        let wide = self.0 as u128 * num as u128 / den as u128;
        if wide > u64::MAX as u128 { Self::MAX } else { Self(wide as u64) }
    }

    /// Whether the span is [`Duration::ZERO`].
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// A point in time that is never reached: the "no deadline" value.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The point `n` nanoseconds after the epoch.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch as a real number, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`, or zero if `earlier` lies in the future.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Duration;
    /// Saturates at zero: no span is negative.
    fn sub(self, d: Duration) -> Duration {
        self.saturating_sub(d)
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Duration(self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Duration::from_secs(1) - Duration::from_secs(2), Duration::ZERO);
        assert_eq!(Duration::MAX.mul_ratio(3, 2), Duration::MAX);
    }

    #[test]
    fn reals_round_to_the_nearest_nanosecond() {
        assert_eq!(Duration::from_secs_f64(0.025), Duration::from_millis(25));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }
}
