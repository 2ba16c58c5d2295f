//! The delay trend over 16 trip times (Algorithm 1 lines 3, 5 and 6; errata H6, H18).

use super::config::TrendTest;

/// Number of trip times in a decision.
pub(super) const WINDOW: usize = 16;

/// The last trip times of one sender in microseconds. Integers suffice, because the test compares
/// squares.
#[derive(Clone, Debug)]
pub struct Trend {
    trips: [i32; WINDOW],
    /// Index of the next trip time, which is the oldest one once the array is full.
    at: u8,
    len: u8,
    /// Sixteen times the sum of squared deviations after the previous packet; for the test as
    /// printed in the paper.
    spread: Option<u128>,
}

impl Default for Trend {
    fn default() -> Self {
        Self::new()
    }
}

impl Trend {
    /// Creates an empty trend.
    pub const fn new() -> Self {
        Self { trips: [0; WINDOW], at: 0, len: 0, spread: None }
    }

    /// Adds a trip time and returns whether the delay is rising. A constant offset between the
    /// clocks has no effect. The first 15 trip times give no decision (erratum H18).
    pub fn observe(&mut self, trip: i32, test: TrendTest) -> bool {
        self.trips[usize::from(self.at)] = trip;
        self.at = (self.at + 1) % WINDOW as u8;
        self.len = (self.len + 1).min(WINDOW as u8);
        if usize::from(self.len) < WINDOW {
            return false;
        }
        match test {
            TrendTest::VarianceRose => {
                let spread = self.spread();
                let before = self.spread.replace(spread);
                before.is_some_and(|before| spread > before)
            }
            TrendTest::Halves { k_percent } => self.halves_differ(k_percent),
        }
    }

    /// Removes all trip times.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    fn spread(&self) -> u128 {
        let sum: i128 = self.trips.iter().map(|t| i128::from(*t)).sum();
        let squares: i128 = self.trips.iter().map(|t| i128::from(*t).pow(2)).sum();
        (WINDOW as i128 * squares - sum * sum) as u128
    }

    /// N and O are the sums of the newest and the oldest 8 trip times. Q is eight times the sum of
    /// the squared deviations from the mean of the own half. The difference of the means is (N -
    /// O)/8, the pooled variance Q/(8 * 14), and the standard error of the difference the square
    /// root of a quarter of that. Squared and multiplied out, the test is 7 (N - O)^2 > k^2 Q.
    fn halves_differ(&self, k_percent: u16) -> bool {
        let half = |from: usize| {
            let trip = move |i: usize| i128::from(self.trips[(usize::from(self.at) + from + i) % WINDOW]);
            (0..WINDOW / 2).map(trip)
        };
        let (oldest, newest): (i128, i128) = (half(0).sum(), half(WINDOW / 2).sum());
        let squares: i128 = self.trips.iter().map(|t| i128::from(*t).pow(2)).sum();
        let q = 8 * squares - newest * newest - oldest * oldest;
        let rise = newest - oldest;
        rise > 0 && 7 * rise * rise * 10_000 > i128::from(k_percent).pow(2) * q
    }
}
