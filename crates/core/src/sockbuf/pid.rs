//! The controller (Figure 6, erratum B8). It is defined on reals, and computes with them.

use core::ops::RangeInclusive;

/// The constants of the controller, per cycle; each is 0 or more.
///
/// What the controller gives is added to the size (Figure 5 line 7), so the loop integrates once
/// more than the controller does. With `z` one cycle the roots of the loop are those of
/// `z^3 + (kp + ki + kd - 2) z^2 + (1 - kp - 2 kd) z + kd`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gains {
    /// Of the error.
    pub kp: f64,
    /// Of the sum of all errors.
    pub ki: f64,
    /// Of the difference between this error and the last.
    pub kd: f64,
}

impl Gains {
    /// Section 3.2. The loop is stable, but badly damped: an overshoot of 52 %, and 159 cycles
    /// until 2 % are left (erratum B8).
    pub const PAPER: Self = Self { kp: 0.05, ki: 0.01, kd: 0.04 };

    /// Ours: an overshoot of 0.5 %, and 12 cycles. They follow from three conditions.
    ///
    /// * All gains four times as large shall not swing: the fast root, near `1 - 4 kp`, is not
    ///   negative. So `kp` is 1/4.
    /// * Two integrators in a row cannot but overshoot after a step, since the errors add up to 0
    ///   in the end. By how much depends on `ki / kp^2`, which is four times as large with a
    ///   quarter of the gains: there it shall be below 2 %, so that the size comes within 2 % once
    ///   and stays. That allows `ki` up to 0.00035; we take 0.0003.
    /// * `kd` works on the difference of what is already a difference: the loop gets slower, not
    ///   better damped, and errors in the reports come through at once. So it is 0.
    pub const DAMPED: Self = Self { kp: 0.25, ki: 0.0003, kd: 0.0 };

    /// All gains so many times as large.
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
    /// At rest.
    pub const fn new(gains: Gains) -> Self {
        Self { gains, sum: 0.0, last: None }
    }

    /// The size after this cycle: the present one and the controller's output, within `range`. All
    /// are bytes and finite. In the first cycle there is no difference from a last error.
    ///
    /// While the range cuts the output, the sum of errors is frozen (erratum B8), except for errors
    /// that lead back: a sum that no error may lessen would hold the size at the end of the range
    /// for ever.
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
