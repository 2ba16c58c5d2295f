//! The controller (Figure 6, erratum B8). It is defined on reals and uses floating point.

use core::ops::RangeInclusive;

/// Constants of the controller per cycle; each is 0 or more.
///
/// The output is added to the size (Figure 5 line 7), so the loop has one integration more than the
/// controller. With `z` for one cycle, the roots of the loop are those of
/// `z^3 + (kp + ki + kd - 2) z^2 + (1 - kp - 2 kd) z + kd`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gains {
    /// Factor of the error.
    pub kp: f64,
    /// Factor of the sum of all errors.
    pub ki: f64,
    /// Factor of the difference between this error and the last.
    pub kd: f64,
}

impl Gains {
    /// Section 3.2. The loop is stable but badly damped: an overshoot of 52 %, and 159 cycles until
    /// 2 % remain (erratum B8).
    pub const PAPER: Self = Self { kp: 0.05, ki: 0.01, kd: 0.04 };

    /// The recommended gains: an overshoot of 0.5 %, and 12 cycles. They follow from three
    /// conditions.
    ///
    /// * With four times all gains the size must not oscillate: the fast root, near `1 - 4 kp`,
    ///   must not be negative. Hence `kp` is 1/4.
    /// * Two integrators in series always overshoot after a step, because the errors sum to 0 in
    ///   the end. The overshoot depends on `ki / kp^2`, which is four times as large with a quarter
    ///   of the gains. It must be below 2 % there, so that the size enters the 2 % band once and
    ///   stays. That allows `ki` up to 0.00035; 0.0003 is used.
    /// * `kd` acts on the difference of a value that is already a difference: the loop gets slower
    ///   without better damping, and errors of the reports pass through at once. Hence `kd` is 0.
    pub const DAMPED: Self = Self { kp: 0.25, ki: 0.0003, kd: 0.0 };

    /// All gains multiplied by `factor`.
    pub fn times(self, factor: f64) -> Self {
        Self { kp: self.kp * factor, ki: self.ki * factor, kd: self.kd * factor }
    }
}

/// The controller of one buffer's size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Controller {
    gains: Gains,
    sum: f64,
    last: Option<f64>,
}

impl Controller {
    /// A controller at rest.
    pub const fn new(gains: Gains) -> Self {
        Self { gains, sum: 0.0, last: None }
    }

    /// Returns the size after this cycle: the current size plus the controller's output, within
    /// `range`. All values are finite and in bytes. The first cycle has no difference from a
    /// previous error.
    ///
    /// While the range limits the output, the sum of errors is frozen (erratum B8), except for
    /// errors of opposite sign. A sum that no error may reduce would hold the size at the end of
    /// the range forever.
    pub fn next(&mut self, set_point: f64, size: f64, range: RangeInclusive<f64>) -> f64 {
        let (least, most) = range.into_inner();
        let error = set_point - size;
        let sum = self.sum + error;
        let change = error - self.last.replace(error).unwrap_or(error);
        let Gains { kp, ki, kd } = self.gains;
        let wanted = size + kp * error + ki * sum + kd * change;
        let cut = (wanted > most && error > 0.0) || (wanted < least && error < 0.0);
        if !cut {
            self.sum = sum;
        }
        wanted.min(most).max(least)
    }
}
