//! What can be set, and what is refused.

use anabranch_core::time::Duration;

use super::energy::PowerConfig;
use super::phy::{PhyConfig, Rate};
use super::propagation::{Locking, Thresholds};
use crate::air::error::ConfigError;

/// A channel and the radios on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WifiConfig {
    /// The physical layer, of all stations.
    pub phy: PhyConfig,
    /// The MAC, of all stations.
    pub mac: MacConfig,
    /// Who hears whom.
    pub propagation: Thresholds,
    /// What a radio draws.
    pub power: PowerConfig,
    /// Joules that a station has before it goes down for good; `None`: no end of them. Found out
    /// when its radio next changes its state.
    pub initial_energy_j: Option<f64>,
}

impl WifiConfig {
    /// The standard's MAC, data at 2 Mbit/s and all else at 1 Mbit/s, within so many metres; sensed
    /// 2.2 times as far.
    pub const fn dsss(range: f64) -> Self {
        Self {
            phy: PhyConfig::dsss(Rate::Mbps2),
            mac: MacConfig::standard(),
            propagation: Thresholds::wavelan_914_mhz(range),
            power: PowerConfig::ns2(),
            initial_energy_j: None,
        }
    }

    /// As [`WifiConfig::dsss`] with what differs in ns-2.35's `Mac/802_11` and `Phy/WirelessPhy`,
    /// and its energy model with 1000 J. The rates are not its defaults (1 Mbit/s for both), but
    /// those that most of its users set.
    pub const fn ns2(range: f64) -> Self {
        let propagation = Thresholds { locking: Locking::First, ..Thresholds::wavelan_914_mhz(range) };
        Self { mac: MacConfig::ns2(), propagation, initial_energy_j: Some(1000.0), ..Self::dsss(range) }
    }

    /// Data at another rate.
    pub const fn with_data_rate(self, data_rate: Rate) -> Self {
        Self { phy: PhyConfig { data_rate, ..self.phy }, ..self }
    }

    /// RTS and CTS before all data for one station that is longer than so many octets.
    pub const fn with_rts_threshold(self, rts_threshold: u16) -> Self {
        Self { mac: MacConfig { rts_threshold, ..self.mac }, ..self }
    }

    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.phy.check()?;
        self.mac.check(&self.phy)?;
        self.propagation.check()?;
        self.power.check()?;
        if self.initial_energy_j.is_some_and(|joules| !(joules > 0.0 && joules <= 1e12)) {
            return Err(ConfigError::Range("initial_energy_j", "more than 0 to 1e12 J"));
        }
        Ok(())
    }
}

/// The MAC's constants; names and defaults of IEEE Std 802.11-2007, Annex D and 15.3.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacConfig {
    /// aCWmin: the contention window to begin with, in slots; 1 to `cw_max`.
    pub cw_min: u16,
    /// aCWmax: the greatest contention window; at most 32767.
    pub cw_max: u16,
    /// dot11RTSThreshold: MPDUs for one station that are longer are sent after RTS and CTS; 0: all,
    /// 2347: none.
    pub rts_threshold: u16,
    /// dot11ShortRetryLimit: a frame is given up when it, or an RTS for it, has failed this often;
    /// 1 to 255. A CTS begins the count anew (802.11-2020, 10.3.4.4).
    pub short_retry_limit: u8,
    /// dot11LongRetryLimit: the same for a frame longer than `rts_threshold`; 1 to 255.
    pub long_retry_limit: u8,
    /// When EIFS takes the place of DIFS.
    pub eifs: Eifs,
    /// What a station does with its first frame after a pause.
    pub first_access: FirstAccess,
    /// From what the backoff is drawn.
    pub window: Window,
    /// How long it waits for a CTS or an acknowledgement.
    pub response_timeout: ResponseTimeout,
    /// How long before it sends a station no longer notices that others begin: aCCATime and
    /// aRxTxTurnaroundTime at their greatest make a slot, from which stations whose slots do not
    /// begin together still collide. At most a slot.
    pub unaware: Duration,
}

/// After which signals a station waits for EIFS (9.2.3.4; 10.3.2.3.7 of the edition of 2020): once,
/// from when the channel is clear, and only until a frame is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Eifs {
    /// None: as Bianchi's model has it.
    Off,
    /// Frames of which it has received the PLCP header, at which the PHY says
    /// PHY-RXSTART.indication, and not all the rest. Of frames that begin together it has received
    /// none.
    #[default]
    Frames,
    /// All that it has sensed and not received. The wait is a NAV, and DIFS follows it: ns-2.
    Signals,
}

/// What a station does that gets a frame with no backoff left over (9.2.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FirstAccess {
    /// It sends once the channel has been clear for DIFS, and draws a backoff only if it is busy
    /// before.
    #[default]
    Immediate,
    /// It waits for DIFS and a backoff: ns-2.
    Backoff,
}

/// The backoffs that there are (9.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// 0 to CW slots.
    #[default]
    Inclusive,
    /// 0 to CW - 1 slots: ns-2.
    Exclusive,
}

/// CTSTimeout and ACKTimeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResponseTimeout {
    /// SIFS, a slot and aPHY-RX-START-Delay; a frame whose header has come by then is waited for
    /// (9.2.5.7, 9.2.8).
    #[default]
    FrameStart,
    /// SIFS, the whole of the response and 2 µs: ns-2.
    FrameEnd,
}

impl MacConfig {
    /// The standard's; never an RTS.
    pub const fn standard() -> Self {
        Self {
            cw_min: 31,
            cw_max: 1023,
            rts_threshold: 2347,
            short_retry_limit: 7,
            long_retry_limit: 4,
            eifs: Eifs::Frames,
            first_access: FirstAccess::Immediate,
            window: Window::Inclusive,
            response_timeout: ResponseTimeout::FrameStart,
            unaware: Duration::from_micros(20),
        }
    }

    /// That of ns-2.35: an RTS before all data for one station, a backoff before every frame, EIFS
    /// after everything.
    pub const fn ns2() -> Self {
        Self {
            rts_threshold: 0,
            eifs: Eifs::Signals,
            first_access: FirstAccess::Backoff,
            window: Window::Exclusive,
            response_timeout: ResponseTimeout::FrameEnd,
            unaware: Duration::ZERO,
            ..Self::standard()
        }
    }

    fn check(&self, phy: &PhyConfig) -> Result<(), ConfigError> {
        if self.cw_min == 0 || self.cw_min > self.cw_max || self.cw_max > 32_767 {
            return Err(ConfigError::Range("cw_min, cw_max", "1 to cw_max, and to 32767"));
        }
        if self.short_retry_limit == 0 || self.long_retry_limit == 0 {
            return Err(ConfigError::Range("short_retry_limit, long_retry_limit", "1 to 255"));
        }
        if self.unaware > phy.slot {
            return Err(ConfigError::Range("unaware", "0 to a slot"));
        }
        Ok(())
    }
}

impl Default for MacConfig {
    fn default() -> Self {
        Self::standard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = WifiConfig::dsss(100.0);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(WifiConfig::ns2(250.0).check(), Ok(()));
        let mac = good.mac;
        for mac in [
            MacConfig { cw_min: 0, ..mac },
            MacConfig { cw_min: 63, cw_max: 31, ..mac },
            MacConfig { cw_max: 40_000, ..mac },
            MacConfig { short_retry_limit: 0, ..mac },
            MacConfig { long_retry_limit: 0, ..mac },
            MacConfig { unaware: Duration::from_micros(21), ..mac },
        ] {
            assert!(WifiConfig { mac, ..good }.check().is_err(), "{mac:?}");
        }
        for range in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(WifiConfig::dsss(range).check().is_err(), "{range}");
        }
        let radio = good.propagation;
        for propagation in [
            Thresholds { carrier_sense_range: 99.0, ..radio },
            Thresholds { carrier_sense_range: f64::NAN, ..radio },
            Thresholds { frequency: 0.0, ..radio },
            Thresholds { transmit_power: -1.0, ..radio },
            Thresholds { capture: 0.5, ..radio },
            Thresholds { capture: f64::NAN, ..radio },
            Thresholds { loss: 1.5, ..radio },
        ] {
            assert!(WifiConfig { propagation, ..good }.check().is_err(), "{propagation:?}");
        }
        let power = PowerConfig { idle: f64::NAN, ..good.power };
        assert!(WifiConfig { power, ..good }.check().is_err());
        for joules in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(WifiConfig { initial_energy_j: Some(joules), ..good }.check().is_err(), "{joules}");
        }
    }
}
