//! Bit error rates of modulations.
//!
//! Source: IEEE Std 802.15.4-2006, Annex E.4.1.8, for O-QPSK; Proakis, Digital Communications, for
//! FSK.

use anabranch_core::time::Duration;

use crate::math::exp;

/// Modulation, which determines the bit error rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulation {
    /// 16-ary quasi-orthogonal direct-sequence O-QPSK of the 2.4 GHz band.
    OQpsk,
    /// Binary frequency-shift keying with non-coherent detection.
    Fsk2,
}

/// Parameters of a frame's bit errors, besides the signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Coding {
    pub(crate) modulation: Modulation,
    /// In bit/s.
    pub(crate) bit_rate: u64,
}

impl Coding {
    /// Number of bits sent in a time.
    #[inline]
    pub(crate) fn bits(&self, time: Duration) -> f64 {
        time.as_secs_f64() * self.bit_rate as f64
    }
}

impl Modulation {
    /// Bit error rate at a signal-to-noise ratio, given as a ratio of powers.
    ///
    /// Both formulas apply to white noise. Interference is treated as noise, which underestimates
    /// the effect of a frame of the same kind: see
    /// [`super::propagation::LogDistance::co_channel_rejection_db`].
    ///
    /// O-QPSK: 8/15 · 1/16 · Σ (k = 2 to 16) (-1)^k C(16, k) e^(20 SINR (1/k - 1)), the standard's
    /// formula. FSK: 1/2 e^(-SINR / 2), binary orthogonal FSK with an envelope detector and a noise
    /// bandwidth equal to the bit rate, so that SINR is E_b / N_0 (Proakis, Digital Communications,
    /// section 4.5).
    pub fn bit_error_rate(self, sinr: f64) -> f64 {
        match self {
            // Above this the sum is below 1e-16, and its terms cancel to rounding errors.
            Self::OQpsk if sinr > 4.0 => 0.0,
            Self::OQpsk => {
                let sum = OQPSK_TERMS
                    .iter()
                    .fold(0.0, |sum, &(binomial, exponent)| sum + binomial * exp(20.0 * sinr * exponent));
                (8.0 / 15.0 / 16.0 * sum).clamp(0.0, 0.5)
            }
            Self::Fsk2 => 0.5 * exp(-0.5 * sinr),
        }
    }
}

/// (-1)^k C(16, k) and 1/k - 1 for k = 2 to 16.
const OQPSK_TERMS: [(f64, f64); 15] = {
    let mut terms = [(0.0, 0.0); 15];
    let mut binomial = 16.0;
    let mut k = 2;
    while k <= 16 {
        binomial = binomial * (17 - k) as f64 / k as f64;
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        terms[k - 2] = (sign * binomial, 1.0 / k as f64 - 1.0);
        k += 1;
    }
    terms
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_errors_fall_with_the_signal() {
        for modulation in [Modulation::OQpsk, Modulation::Fsk2] {
            let rates: Vec<f64> = (0..100).map(|i| modulation.bit_error_rate(f64::from(i) * 0.05)).collect();
            assert!((rates[0] - 0.5).abs() < 1e-9, "no signal is a coin: {}", rates[0]);
            assert!(rates.windows(2).all(|pair| pair[1] <= pair[0]), "{modulation:?}");
        }
        // At 0 dB, with binomial coefficients and the platform's exponential.
        let binomials =
            [120.0, 560.0, 1820.0, 4368.0, 8008.0, 11440.0, 12870.0, 11440.0, 8008.0, 4368.0, 1820.0]
                .into_iter()
                .chain([560.0, 120.0, 16.0, 1.0]);
        let term = |(k, binomial): (i32, f64)| {
            (-1f64).powi(k) * binomial * (20.0 * (1.0 / f64::from(k) - 1.0)).exp()
        };
        let at_0_db = 8.0 / 15.0 / 16.0 * (2..).zip(binomials).map(term).sum::<f64>();
        assert!((Modulation::OQpsk.bit_error_rate(1.0) / at_0_db - 1.0).abs() < 1e-9, "{at_0_db}");
        assert!((Modulation::Fsk2.bit_error_rate(10.0) - 0.5 * (-5f64).exp()).abs() < 1e-15);
    }
}
