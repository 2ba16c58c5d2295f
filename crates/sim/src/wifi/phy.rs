//! The physical layer: times and sizes of DSSS and HR/DSSS.
//!
//! Sources: IEEE Std 802.11-2007, clauses 15 (1 and 2 Mbit/s) and 18 (5.5 and 11 Mbit/s, short
//! preamble), clause 7 (sizes) and 9.2.10 (interframe spaces). `docs/reference/wifi.md` lists the
//! source of each value.

use anabranch_core::time::Duration;

use crate::air::error::ConfigError;

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// Data, unicast or broadcast.
    Data,
    /// Request to send, 20 bytes.
    Rts,
    /// Clear to send, 14 bytes.
    Cts,
    /// Acknowledgement, 14 bytes.
    Ack,
}

/// Data rate of an MPDU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Deserialize, serde::Serialize)]
#[serde(try_from = "anabranch_units::Rate", into = "anabranch_units::Rate")]
pub enum Rate {
    /// 1 Mbit/s, DBPSK.
    Mbps1,
    /// 2 Mbit/s, DQPSK.
    Mbps2,
    /// 5.5 Mbit/s, CCK.
    Mbps5_5,
    /// 11 Mbit/s, CCK.
    Mbps11,
}

impl Rate {
    /// All rates, the slowest first.
    pub const ALL: [Self; 4] = [Self::Mbps1, Self::Mbps2, Self::Mbps5_5, Self::Mbps11];

    /// In units of 500 kbit/s, as the standard counts rates.
    pub const fn half_mbps(self) -> u8 {
        match self {
            Self::Mbps1 => 2,
            Self::Mbps2 => 4,
            Self::Mbps5_5 => 11,
            Self::Mbps11 => 22,
        }
    }

    /// In bit/s.
    pub const fn bit_per_s(self) -> u64 {
        self.half_mbps() as u64 * 500_000
    }

    /// The rate with this number of bit/s.
    ///
    /// # Errors
    /// If it is not 1, 2, 5.5 or 11 Mbit/s.
    pub fn from_bit_per_s(rate: u64) -> Result<Self, ConfigError> {
        let found = Self::ALL.into_iter().find(|known| known.bit_per_s() == rate);
        found.ok_or(ConfigError::Range("rate", "1, 2, 5.5 and 11 Mbit/s"))
    }
}

impl TryFrom<anabranch_units::Rate> for Rate {
    type Error = ConfigError;

    fn try_from(rate: anabranch_units::Rate) -> Result<Self, ConfigError> {
        Self::from_bit_per_s(rate.0)
    }
}

impl From<Rate> for anabranch_units::Rate {
    fn from(rate: Rate) -> Self {
        Self(rate.bit_per_s())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Rate {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WifiRate".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<anabranch_units::Rate>()
    }
}

/// Preamble and header before each MPDU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Preamble {
    /// 144 bits of preamble and 48 bits of PLCP header at 1 Mbit/s: 192 µs.
    Long,
    /// 72 bits of preamble at 1 Mbit/s and 48 bits of PLCP header at 2 Mbit/s: 96 µs. Not with
    /// frames at 1 Mbit/s (18.2.2.2).
    Short,
}

/// Times and sizes of the PHY, the same for all stations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhyConfig {
    /// Rate of unicast data.
    pub data_rate: Rate,
    /// Rate of RTS, CTS, ACK and broadcast data.
    pub basic_rate: Rate,
    /// Preamble of every frame.
    pub preamble: Preamble,
    /// aSlotTime in whole microseconds.
    pub slot: Duration,
    /// aSIFSTime in whole microseconds.
    pub sifs: Duration,
    /// Largest MPDU in bytes, including header and FCS; at most [`MAX_MPDU`].
    pub max_mpdu: u16,
}

/// Largest possible MPDU in bytes: the upper bound of dot11FragmentationThreshold, and so the
/// longest frame without fragmentation.
pub const MAX_MPDU: u16 = 2346;
/// Bytes of an RTS, including the FCS (7.2.1.1).
pub const RTS_LEN: u16 = 20;
/// Bytes of a CTS, including the FCS (7.2.1.2).
pub const CTS_LEN: u16 = 14;
/// Bytes of an acknowledgement, including the FCS (7.2.1.3).
pub const ACK_LEN: u16 = 14;

impl PhyConfig {
    /// Unicast data at this rate, all other frames at 1 Mbit/s, long preambles.
    pub const fn dsss(data_rate: Rate) -> Self {
        Self {
            data_rate,
            basic_rate: Rate::Mbps1,
            preamble: Preamble::Long,
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            max_mpdu: MAX_MPDU,
        }
    }

    /// Refuses values that are impossible for a PHY.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_MPDU).contains(&self.max_mpdu) {
            return Err(ConfigError::Range("max_mpdu", "1 to 2346 bytes"));
        }
        if self.basic_rate > self.data_rate {
            return Err(ConfigError::Range("basic_rate", "1 Mbit/s to data_rate"));
        }
        if self.preamble == Preamble::Short && self.basic_rate == Rate::Mbps1 {
            return Err(ConfigError::Range("basic_rate with short preambles", "2 to 11 Mbit/s"));
        }
        // The Duration field counts microseconds, at most 32,767.
        let micros = |time: Duration| {
            time.as_nanos().is_multiple_of(1000) && (1..=1000).contains(&(time.as_nanos() / 1000))
        };
        if !micros(self.slot) || !micros(self.sifs) {
            return Err(ConfigError::Range("slot, sifs", "1 to 1000 whole microseconds"));
        }
        Ok(())
    }

    /// Duration of preamble and PLCP header, which is also aPHY-RX-START-Delay.
    #[inline]
    pub const fn plcp(&self) -> Duration {
        match self.preamble {
            Preamble::Long => Duration::from_micros(144 + 48),
            Preamble::Short => Duration::from_micros(72 + 24),
        }
    }

    /// Duration of a frame with an MPDU of `mpdu_len` bytes, including preamble and header; in
    /// whole microseconds, rounded up as in the PLCP header (18.2.3.5).
    #[inline]
    pub const fn airtime(&self, mpdu_len: u16, rate: Rate) -> Duration {
        let micros = (mpdu_len as u64 * 16).div_ceil(rate.half_mbps() as u64);
        Duration::from_nanos(self.plcp().as_nanos() + micros * 1000)
    }

    /// Rate of unicast or broadcast data.
    pub(super) const fn rate(&self, broadcast: bool) -> Rate {
        if broadcast { self.basic_rate } else { self.data_rate }
    }

    /// Duration of an acknowledgement, which is also that of a CTS.
    #[inline]
    pub const fn ack_time(&self) -> Duration {
        self.airtime(ACK_LEN, self.basic_rate)
    }

    /// DIFS: SIFS plus two slots (9.2.10).
    #[inline]
    pub fn difs(&self) -> Duration {
        self.sifs + self.slot * 2
    }

    /// EIFS: SIFS, an acknowledgement at 1 Mbit/s, and DIFS (9.2.10).
    #[inline]
    pub fn eifs(&self) -> Duration {
        self.sifs + self.airtime(ACK_LEN, Rate::Mbps1) + self.difs()
    }

    /// Duration field of unicast data: the time of what follows.
    pub(super) fn after_data(&self) -> Duration {
        self.sifs + self.ack_time()
    }

    /// Duration field of a CTS for data of `mpdu_len` bytes.
    pub(super) fn after_cts(&self, mpdu_len: u16) -> Duration {
        self.sifs + self.airtime(mpdu_len, self.data_rate) + self.after_data()
    }

    /// Duration field of an RTS for data of `mpdu_len` bytes.
    pub(super) fn after_rts(&self, mpdu_len: u16) -> Duration {
        self.sifs + self.ack_time() + self.after_cts(mpdu_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_the_standard() {
        let phy = PhyConfig::dsss(Rate::Mbps11);
        phy.check().unwrap();
        let micros = |d: Duration| d.as_nanos() / 1000;
        assert_eq!([phy.difs(), phy.eifs(), phy.ack_time()].map(micros), [50, 364, 304]);
        assert_eq!(micros(phy.airtime(RTS_LEN, Rate::Mbps1)), 352);
        // 1024 bytes at 11 Mbit/s take 744.7 µs.
        assert_eq!(micros(phy.airtime(1024, Rate::Mbps11)), 192 + 745);
        assert_eq!(micros(phy.airtime(1, Rate::Mbps5_5)), 192 + 2);
        assert_eq!(micros(phy.after_rts(1000)), 10 + 304 + 10 + 192 + 728 + 10 + 304);
        let short = PhyConfig { preamble: Preamble::Short, basic_rate: Rate::Mbps2, ..phy };
        short.check().unwrap();
        assert_eq!(micros(short.ack_time()), 96 + 56);
    }

    #[test]
    fn what_no_phy_can_be_is_refused() {
        let good = PhyConfig::dsss(Rate::Mbps2);
        for bad in [
            PhyConfig { basic_rate: Rate::Mbps11, ..good },
            PhyConfig { preamble: Preamble::Short, ..good },
            PhyConfig { max_mpdu: 0, ..good },
            PhyConfig { max_mpdu: 2347, ..good },
            PhyConfig { slot: Duration::ZERO, ..good },
            PhyConfig { sifs: Duration::from_nanos(10_500), ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert_eq!(Rate::from_bit_per_s(5_500_000), Ok(Rate::Mbps5_5));
        let error = Rate::from_bit_per_s(54_000_000).unwrap_err();
        assert_eq!(error.to_string(), "rate must be in the range of 1, 2, 5.5 and 11 Mbit/s");
    }
}
