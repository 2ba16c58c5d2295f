//! exp, ln, sin, cos and decibels from IEEE 754 basic operations only, for random numbers and the
//! radio. The results have the same bits on every machine, whereas the functions of platforms
//! differ in the last bit. They are exact to about 1e-15 of the result, which the tests verify
//! against the platform's functions.

use std::ops::RangeInclusive;

/// ln x for a positive normal number x.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh z with z = (m - 1)/(m + 1), |z| <= 0.1716: eleven terms reach 1e-18.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let series = (0..11).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * z * series
}

/// e to the power of x; 0 below -700, and not meant for x above 700.
pub fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    // x = n ln 2 + r with |r| <= ln 2 / 2; fourteen terms of the series of e^r reach 1e-17. The
    // product n ln 2 is subtracted in two parts, so that r keeps its last bits.
    let n = (x * std::f64::consts::LOG2_E).round();
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let series = (1..=14).rev().fold(1.0, |sum, k| 1.0 + sum * r / f64::from(k));
    series * f64::from_bits(((n as i64 + 1023) as u64) << 52)
}

/// Sine and cosine of an angle in radians, -1e6 to 1e6.
pub fn sin_cos(angle: f64) -> (f64, f64) {
    let quarters = (angle * std::f64::consts::FRAC_2_PI).round();
    // Pi/2 in three parts, whose products with a small integer are exact; the rest is at most pi/4.
    let x = ((angle - quarters * HALF_PI[0]) - quarters * HALF_PI[1]) - quarters * HALF_PI[2];
    let square = -x * x;
    // x - x^3/3! + ... and 1 - x^2/2! + ...; nine terms reach 1e-19.
    let term = |sum: f64, k: i32| 1.0 + sum * square / f64::from(k * (k + 1));
    let sine = x * (1..=9).rev().fold(1.0, |sum, i| term(sum, 2 * i));
    let cosine = (1..=9).rev().fold(1.0, |sum, i| term(sum, 2 * i - 1));
    match (quarters as i64).rem_euclid(4) {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// The least of the sorted values that is not exceeded by this fraction of them.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Jain's fairness index (Jain, Chiu and Hawe 1984): 1 if all shares are equal, 1/n if one of n has
/// everything. `None` if all shares are 0.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Shapes of Pareto distributions with a mean, at some distance from those without.
pub(crate) const PARETO_SHAPES: RangeInclusive<f64> = 1.01..=100.0;
/// Error for other shapes.
pub(crate) const NO_PARETO_SHAPE: &str = "expected 1.01 to 100: there is no mean up to 1";

/// The least value of a Pareto distribution with this mean and shape.
pub(crate) fn pareto_least(mean: f64, shape: f64) -> f64 {
    mean * (shape - 1.0) / shape
}

/// A ratio of powers in decibels.
pub fn decibels(ratio: f64) -> f64 {
    ln(ratio) * (10.0 / std::f64::consts::LN_10)
}

/// The ratio for a value in decibels; milliwatts for dBm.
pub fn from_decibels(db: f64) -> f64 {
    exp(db * (std::f64::consts::LN_10 / 10.0))
}

/// The upper 32 bits of ln 2; its product with a small integer is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
/// The rest of ln 2.
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The upper 33 bits of pi/2, the next 33 bits, and the rest.
const HALF_PI: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_7e-21];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_the_platform_says() {
        for i in -6990..7000 {
            let x = f64::from(i) * 0.1 + 0.01;
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-15, "exp {x}");
            let y = x.exp();
            assert!((ln(y) - x).abs() <= 4e-16 * x.abs().max(1.0), "ln {y}");
        }
        // The arguments of the logarithm in exponential draws: (0, 1].
        for i in 1..=10_000 {
            let x = f64::from(i) / 10_000.0;
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "ln {x}");
        }
        assert_eq!((exp(0.0), ln(1.0)), (1.0, 0.0));
        assert_eq!(exp(-1e9), 0.0);
        for i in -40_000..40_000 {
            let x = f64::from(i) * 0.037;
            let ((sine, cosine), exact) = (sin_cos(x), x.sin_cos());
            assert!((sine - exact.0).abs() < 4e-16 && (cosine - exact.1).abs() < 4e-16, "sin, cos {x}");
        }
        assert!((decibels(2.0) - 3.0103).abs() < 1e-4);
        assert!((from_decibels(-30.0) - 0.001).abs() < 1e-17);
    }

    #[test]
    fn jains_index_is_1_of_equal_rates_and_1_over_n_of_one() {
        assert_eq!(jain(&[2.0; 5]), Some(1.0));
        assert_eq!(jain(&[0.0, 3.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * 14)
        assert!((jain(&[1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-15);
        assert_eq!((jain(&[0.0]), jain(&[])), (None, None));
    }
}
