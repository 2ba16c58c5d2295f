//! The physical layer: times, sizes and bit errors of the two PHYs.
//!
//! Sources: IEEE Std 802.15.4-2020, sections 8.4.2 and 11.3 (constants), 12 (O-QPSK), 19 (SUN FSK), and,
//! for the bit errors of O-QPSK, IEEE Std 802.15.4-2006, Annex E.4.1.8. `docs/radio.md` lists each figure.

use anabranch_core::time::Duration;

use super::error::ConfigError;
use crate::math::exp;

/// How bits are put on the carrier; what the bit-error rate depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulation {
    /// 16-ary quasi-orthogonal direct-sequence O-QPSK of the 2.4 GHz band.
    OQpsk,
    /// Binary frequency-shift keying, detected without a phase reference.
    Fsk2,
}

/// Times and sizes of a PHY, and what the MAC derives from them. All are options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhyConfig {
    /// The modulation.
    pub modulation: Modulation,
    /// Rate of every octet on air, in bit/s.
    pub bit_rate: u64,
    /// Octets on air in front of the PSDU: preamble, SFD and PHR.
    pub header: u16,
    /// aMaxPhyPacketSize: the longest PSDU, in octets, FCS included.
    pub max_psdu: u16,
    /// aUnitBackoffPeriod.
    pub backoff_period: Duration,
    /// How long one CCA listens.
    pub cca: Duration,
    /// aTurnaroundTime, from reception to transmission: before a frame, and before an acknowledgement (AIFS).
    pub turnaround: Duration,
    /// macAckWaitDuration, from the end of a frame.
    pub ack_wait: Duration,
    /// PSDU of an immediate acknowledgement, in octets.
    pub ack_psdu: u16,
    /// macSifsPeriod.
    pub sifs: Duration,
    /// macLifsPeriod.
    pub lifs: Duration,
    /// aMaxSifsFrameSize: a longer PSDU, in octets, is followed by LIFS.
    pub max_sifs_frame: u16,
}

impl PhyConfig {
    /// O-QPSK in the 2.4 GHz band: 250 kbit/s, symbols of 16 µs and 4 bits.
    pub const fn o_qpsk() -> Self {
        Self {
            modulation: Modulation::OQpsk,
            bit_rate: 250_000,
            // Preamble 4, SFD 1, PHR 1.
            header: 6,
            max_psdu: 127,
            backoff_period: symbols(20, 16),
            cca: symbols(8, 16),
            turnaround: symbols(12, 16),
            // aUnitBackoffPeriod 20 + aTurnaroundTime 12 + SHR 10 + six octets 12.
            ack_wait: symbols(54, 16),
            ack_psdu: 5,
            sifs: symbols(12, 16),
            lifs: symbols(40, 16),
            max_sifs_frame: 18,
        }
    }

    /// SUN FSK at 100 kbit/s, two levels: symbols of 10 µs and 1 bit. The turnaround is 1 ms for this PHY, and
    /// with a CCA of 8 symbols it makes the unit backoff period of 1.08 ms. The preamble is the shortest, 4
    /// octets, so that an acknowledgement takes 13 octets on air.
    pub const fn sun_fsk() -> Self {
        Self {
            modulation: Modulation::Fsk2,
            bit_rate: 100_000,
            // Preamble 4, SFD 2, PHR 2.
            header: 8,
            max_psdu: 2047,
            backoff_period: symbols(108, 10),
            cca: symbols(8, 10),
            turnaround: symbols(100, 10),
            // aUnitBackoffPeriod 108 + aTurnaroundTime 100 + SHR 48 + six octets 48.
            ack_wait: symbols(304, 10),
            ack_psdu: 5,
            // 12 and 40 symbols are shorter than the turnaround, which therefore bounds both.
            sifs: symbols(100, 10),
            lifs: symbols(100, 10),
            max_sifs_frame: 18,
        }
    }

    /// Refuses what no PHY can be.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { bit_rate, max_psdu, ack_psdu, backoff_period, cca, .. } = *self;
        if !(1..=1_000_000_000).contains(&bit_rate) {
            return Err(ConfigError::Range("bit_rate", "1 bit/s to 1 Gbit/s"));
        }
        if max_psdu == 0 || ack_psdu == 0 {
            return Err(ConfigError::Range("max_psdu, ack_psdu", "at least 1 octet"));
        }
        if backoff_period.is_zero() || cca.is_zero() {
            return Err(ConfigError::Range("backoff_period, cca", "more than nothing"));
        }
        let longest = Duration::from_secs(1);
        let all = [backoff_period, cca, self.turnaround, self.ack_wait, self.sifs, self.lifs];
        if all.into_iter().any(|time| time > longest) {
            return Err(ConfigError::Range("times of the PHY", "at most 1 s"));
        }
        if self.ack_wait < self.turnaround + self.airtime(ack_psdu) {
            return Err(ConfigError::AckWait);
        }
        Ok(())
    }

    /// Time on air of a PSDU of so many octets, with what goes before it; rounded up to the nanosecond.
    #[inline]
    pub fn airtime(&self, psdu: u16) -> Duration {
        let bits = (u64::from(self.header) + u64::from(psdu)) * 8;
        Duration::from_nanos((bits * 1_000_000_000).div_ceil(self.bit_rate))
    }

    /// Interframe space after a PSDU of so many octets.
    #[inline]
    pub fn interframe_space(&self, psdu: u16) -> Duration {
        if psdu > self.max_sifs_frame { self.lifs } else { self.sifs }
    }

    /// Bits on air in so long a time.
    #[inline]
    pub(super) fn bits(&self, time: Duration) -> f64 {
        time.as_secs_f64() * self.bit_rate as f64
    }
}

impl Modulation {
    /// Bit-error rate at a ratio of signal to interference and noise, which is a ratio of powers.
    ///
    /// O-QPSK: 8/15 · 1/16 · Σ (k = 2 to 16) (-1)^k C(16, k) e^(20 SINR (1/k - 1)), the standard's formula.
    /// FSK: 1/2 e^(-SINR / 2), binary orthogonal FSK with an envelope detector and a noise bandwidth of the bit
    /// rate, so that SINR is E_b / N_0 (Proakis, Digital Communications, section 4.5).
    pub fn bit_error_rate(self, sinr: f64) -> f64 {
        match self {
            // Beyond this the sum is below 1e-16, and its terms cancel to nothing but rounding.
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

const fn symbols(n: u64, micros: u64) -> Duration {
    Duration::from_micros(n * micros)
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
    fn the_times_of_the_standard() {
        let phy = PhyConfig::o_qpsk();
        phy.check().unwrap();
        let micros = [phy.backoff_period, phy.cca, phy.turnaround, phy.ack_wait, phy.lifs, phy.sifs];
        assert_eq!(micros.map(|d| d.as_nanos() / 1000), [320, 128, 192, 864, 640, 192]);
        assert_eq!(phy.airtime(127), Duration::from_micros(133 * 32));
        assert_eq!(phy.airtime(phy.ack_psdu), Duration::from_micros(352));
        assert_eq!((phy.interframe_space(18), phy.interframe_space(19)), (phy.sifs, phy.lifs));
        let phy = PhyConfig::sun_fsk();
        phy.check().unwrap();
        assert_eq!(phy.backoff_period, phy.turnaround + phy.cca);
        assert_eq!(phy.airtime(phy.ack_psdu), Duration::from_micros(13 * 80));
    }

    #[test]
    fn what_no_phy_can_be_is_refused() {
        let good = PhyConfig::o_qpsk();
        for bad in [
            PhyConfig { bit_rate: 0, ..good },
            PhyConfig { max_psdu: 0, ..good },
            PhyConfig { cca: Duration::ZERO, ..good },
            PhyConfig { lifs: Duration::from_secs(2), ..good },
            PhyConfig { ack_wait: Duration::from_micros(543), ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bit_errors_fall_with_the_signal() {
        for modulation in [Modulation::OQpsk, Modulation::Fsk2] {
            let rates: Vec<f64> = (0..100).map(|i| modulation.bit_error_rate(f64::from(i) * 0.05)).collect();
            assert!((rates[0] - 0.5).abs() < 1e-9, "no signal is a coin: {}", rates[0]);
            assert!(rates.windows(2).all(|pair| pair[1] <= pair[0]), "{modulation:?}");
        }
        // At 0 dB, with the binomials and the platform's exponential.
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
