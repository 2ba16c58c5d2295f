//! The linear loop: its characteristic equation, and where its roots lie.

use super::{Gains, ModelError};

/// A complex number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// Absolute value.
    pub fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }
}

/// `[a2, a1, a0]` of `z^3 + a2 z^2 + a1 z + a0 = 0`, where `z` is one cycle.
///
/// The controller is `C = kp + ki z/(z - 1) + kd (z - 1)/z` (Figure 6 line 6). The size accumulates
/// its output, `B = C e/(z - 1)` (Figure 5 line 7). Multiplying `1 + C/(z - 1) = 0` by
/// `z (z - 1)^2` yields the polynomial.
///
/// # Errors
/// A gain is negative or not finite.
pub fn characteristic(gains: Gains) -> Result<[f64; 3], ModelError> {
    let Gains { kp, ki, kd } = gains;
    for value in [kp, ki, kd] {
        if !value.is_finite() || value < 0.0 {
            return Err(ModelError::Gain { value });
        }
    }
    Ok([kp + ki + kd - 2.0, 1.0 - kp - 2.0 * kd, kd])
}

/// The three roots, the one with the largest absolute value first. With `kd = 0` one root is 0,
/// since no last error is stored.
///
/// # Errors
/// As [`characteristic`].
pub fn roots(gains: Gains) -> Result<[Complex; 3], ModelError> {
    let [a2, a1, a0] = characteristic(gains)?;
    let at = |z: f64| ((z + a2) * z + a1) * z + a0;
    // As kd is not negative, a root lies between 0 and Cauchy's lower bound of all roots.
    let (mut low, mut high) = (-1.0 - a2.abs().max(a1.abs()).max(a0), 0.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if at(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let real = high;
    // The remaining factor is z^2 + p z + q.
    let p = a2 + real;
    let q = a1 + real * p;
    let square = p * p / 4.0 - q;
    let pair = if square < 0.0 {
        let im = (-square).sqrt();
        [Complex { re: -p / 2.0, im }, Complex { re: -p / 2.0, im: -im }]
    } else {
        let root = square.sqrt();
        [Complex { re: root - p / 2.0, im: 0.0 }, Complex { re: -root - p / 2.0, im: 0.0 }]
    };
    let mut roots = [pair[0], pair[1], Complex { re: real, im: 0.0 }];
    roots.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    Ok(roots)
}

/// True if the linear loop converges from any state, by Jury's criterion: all roots lie inside the
/// unit circle.
///
/// # Errors
/// As [`characteristic`].
pub fn stable(gains: Gains) -> Result<bool, ModelError> {
    let [a2, a1, a0] = characteristic(gains)?;
    // At z = 1 the polynomial equals ki, which is used directly to avoid rounding errors.
    let ends = gains.ki > 0.0 && 1.0 - a2 + a1 - a0 > 0.0;
    Ok(ends && a0 < 1.0 && 1.0 - a0 * a0 > (a1 - a0 * a2).abs())
}

/// The factor by which all gains can be multiplied until the loop is no longer [`stable`]; it is
/// stable for every smaller factor. At most 10^6; `None` without `ki` or `kp`, where the loop is
/// never stable.
///
/// # Errors
/// As [`characteristic`].
pub fn margin(gains: Gains) -> Result<Option<f64>, ModelError> {
    characteristic(gains)?;
    if gains.ki == 0.0 || gains.kp == 0.0 {
        return Ok(None);
    }
    let (mut low, mut high) = (0.0, MOST_MARGIN);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if stable(gains.times(middle))? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(low))
}

/// Sufficient for the interval to shrink to two adjacent numbers.
const HALVINGS: usize = 200;
const MOST_MARGIN: f64 = 1e6;
