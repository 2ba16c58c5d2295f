//! The physical layer: times and sizes of the two PHYs.
//!
//! Sources: IEEE Std 802.15.4-2020, sections 8.4.2 and 11.3 (constants), 12 (O-QPSK), 19 (SUN FSK).
//! `docs/reference/radio.md` lists the source of each value.

use anabranch_core::time::Duration;
use anabranch_wire::ieee802154::{ENH_ACK_LEN, Fcs, WAKEUP_LEN};

use crate::air::error::ConfigError;
use crate::air::modulation::{Coding, Modulation};

/// Times and sizes of a PHY, and the values that the MAC derives from them. All of them can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhyConfig {
    /// The modulation.
    pub modulation: Modulation,
    /// Duration of a symbol, the unit of times in the standard.
    pub symbol: Duration,
    /// Data rate of every byte of a frame, in bit/s.
    pub bit_rate: u64,
    /// Bytes before the PSDU: preamble, SFD and PHR.
    pub header: u16,
    /// aMaxPhyPacketSize: largest PSDU in bytes, including the FCS.
    pub max_psdu: u16,
    /// aUnitBackoffPeriod.
    pub backoff_period: Duration,
    /// Duration of a CCA.
    pub cca: Duration,
    /// aTurnaroundTime from reception to transmission: before a frame, and before an
    /// acknowledgement (AIFS).
    pub turnaround: Duration,
    /// macAckWaitDuration, from the end of a frame.
    pub ack_wait: Duration,
    /// Frame check sequence: 2 bytes, or 4 bytes, which is the default of SUN PHYs.
    pub fcs: Fcs,
    /// PSDU of an immediate acknowledgement in bytes, including the FCS.
    pub ack_psdu: u16,
    /// macSifsPeriod.
    pub sifs: Duration,
    /// macLifsPeriod.
    pub lifs: Duration,
    /// aMaxSifsFrameSize: a larger PSDU, in bytes, is followed by LIFS.
    pub max_sifs_frame: u16,
}

impl PhyConfig {
    /// O-QPSK in the 2.4 GHz band: 250 kbit/s, symbols of 16 µs and 4 bits.
    pub const fn o_qpsk() -> Self {
        Self {
            modulation: Modulation::OQpsk,
            symbol: symbols(1, 16),
            bit_rate: 250_000,
            // Preamble 4, SFD 1, PHR 1.
            header: 6,
            max_psdu: 127,
            backoff_period: symbols(20, 16),
            cca: symbols(8, 16),
            turnaround: symbols(12, 16),
            // aUnitBackoffPeriod 20 + aTurnaroundTime 12 + SHR 10 + six bytes 12.
            ack_wait: symbols(54, 16),
            fcs: Fcs::Crc16,
            ack_psdu: Fcs::Crc16.ack_len() as u16,
            sifs: symbols(12, 16),
            lifs: symbols(40, 16),
            max_sifs_frame: 18,
        }
    }

    /// SUN FSK at 100 kbit/s with two levels: symbols of 10 µs and 1 bit. The turnaround of this
    /// PHY is 1 ms; with a CCA of 8 symbols it gives a unit backoff period of 1.08 ms. The preamble
    /// is the shortest one, 4 bytes, so an acknowledgement takes 15 bytes. The FCS has 4 bytes
    /// (section 7.2.11). With [`PhyConfig::with_fcs`] it has 2 bytes, which the PHR of this PHY
    /// allows for each frame.
    pub const fn sun_fsk() -> Self {
        Self {
            modulation: Modulation::Fsk2,
            symbol: symbols(1, 10),
            bit_rate: 100_000,
            // Preamble 4, SFD 2, PHR 2.
            header: 8,
            max_psdu: 2047,
            backoff_period: symbols(108, 10),
            cca: symbols(8, 10),
            turnaround: symbols(100, 10),
            // aUnitBackoffPeriod 108 + aTurnaroundTime 100 + SHR 48 + six bytes 48.
            ack_wait: symbols(304, 10),
            fcs: Fcs::Crc32,
            ack_psdu: Fcs::Crc32.ack_len() as u16,
            // 12 and 40 symbols are shorter than the turnaround, which is therefore the lower bound
            // of both.
            sifs: symbols(100, 10),
            lifs: symbols(100, 10),
            max_sifs_frame: 18,
        }
    }

    /// The PHY with another FCS in frames and acknowledgements.
    #[must_use]
    pub const fn with_fcs(self, fcs: Fcs) -> Self {
        Self { fcs, ack_psdu: fcs.ack_len() as u16, ..self }
    }

    /// Refuses values that are impossible for a PHY.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { bit_rate, max_psdu, ack_psdu, backoff_period, cca, symbol, .. } = *self;
        if !(1..=1_000_000_000).contains(&bit_rate) {
            return Err(ConfigError::Range("bit_rate", "1 bit/s to 1 Gbit/s"));
        }
        if max_psdu == 0 || ack_psdu == 0 {
            return Err(ConfigError::Range("max_psdu, ack_psdu", "at least 1 byte"));
        }
        if backoff_period.is_zero() || cca.is_zero() || symbol.is_zero() {
            return Err(ConfigError::Range("backoff_period, cca, symbol", "more than nothing"));
        }
        let longest = Duration::from_secs(1);
        let all = [symbol, backoff_period, cca, self.turnaround, self.ack_wait, self.sifs, self.lifs];
        if all.into_iter().any(|time| time > longest) {
            return Err(ConfigError::Range("times of the PHY", "at most 1 s"));
        }
        if self.ack_wait < self.turnaround + self.airtime(ack_psdu) {
            return Err(ConfigError::AckWait);
        }
        Ok(())
    }

    /// Duration of a frame with a PSDU of `psdu` bytes, including preamble and header, rounded up
    /// to the nanosecond.
    #[inline]
    pub fn airtime(&self, psdu: u16) -> Duration {
        let bits = (u64::from(self.header) + u64::from(psdu)) * 8;
        Duration::from_nanos((bits * 1_000_000_000).div_ceil(self.bit_rate))
    }

    /// Interframe space after a PSDU of `psdu` bytes.
    #[inline]
    pub fn interframe_space(&self, psdu: u16) -> Duration {
        if psdu > self.max_sifs_frame { self.lifs } else { self.sifs }
    }

    /// Ten symbols: the unit of times in coordinated sampled listening.
    pub(super) fn csl_unit(&self) -> Duration {
        self.symbol * 10
    }

    /// PSDU of a wake-up frame in bytes, including the FCS.
    pub fn wakeup_psdu(&self) -> u16 {
        (WAKEUP_LEN + self.fcs.len()) as u16
    }

    /// PSDU of an enhanced acknowledgement with the CSL IE in bytes, including the FCS.
    pub fn enh_ack_psdu(&self) -> u16 {
        (ENH_ACK_LEN + self.fcs.len()) as u16
    }

    /// Time for which a sender waits for an acknowledgement with a PSDU of this length, from the
    /// end of its frame. For an immediate acknowledgement this is macAckWaitDuration. For an
    /// enhanced one it is macEnhAckWaitDuration, which bounds the arrival of the header, plus the
    /// duration of the rest.
    pub(super) fn ack_wait(&self, psdu: u16) -> Duration {
        match psdu == self.ack_psdu {
            true => self.ack_wait,
            false => self.ack_wait + self.airtime(psdu),
        }
    }

    /// Parameters of the bit error rate.
    pub(super) fn coding(&self) -> Coding {
        Coding { modulation: self.modulation, bit_rate: self.bit_rate }
    }
}

const fn symbols(n: u64, micros: u64) -> Duration {
    Duration::from_micros(n * micros)
}

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
        assert_eq!(phy.airtime(phy.ack_psdu), Duration::from_micros(15 * 80));
        let short = phy.with_fcs(Fcs::Crc16);
        short.check().unwrap();
        assert_eq!(short.airtime(short.ack_psdu), Duration::from_micros(13 * 80));
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
}
