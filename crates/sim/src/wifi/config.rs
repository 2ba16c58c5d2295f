//! Options of a channel, and their validation.

use anabranch_core::time::Duration;

use super::energy::PowerConfig;
use super::phy::{PhyConfig, Rate};
use super::propagation::{Locking, Thresholds};
use crate::air::error::ConfigError;

/// A channel and the radios on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WifiConfig {
    /// Physical layer of all stations.
    pub phy: PhyConfig,
    /// MAC of all stations.
    pub mac: MacConfig,
    /// Propagation model: which stations receive and sense each other.
    pub propagation: Thresholds,
    /// Power consumption of a radio.
    pub power: PowerConfig,
    /// Energy in joules after which a station goes down for good; `None` for unlimited energy.
    /// Detected when the state of its radio changes next.
    pub initial_energy_j: Option<f64>,
}

impl WifiConfig {
    /// The MAC of the standard, unicast data at 2 Mbit/s and all other frames at 1 Mbit/s, with a
    /// range of `range` metres; frames are sensed 2.2 times as far.
    pub const fn dsss(range: f64) -> Self {
        Self {
            phy: PhyConfig::dsss(Rate::Mbps2),
            mac: MacConfig::standard(),
            propagation: Thresholds::wavelan_914_mhz(range),
            power: PowerConfig::ns2(),
            initial_energy_j: None,
        }
    }

    /// As [`WifiConfig::dsss`], with the differences of ns-2.35's `Mac/802_11` and
    /// `Phy/WirelessPhy`, and its energy model with 1000 J. The rates are not the defaults of ns-2
    /// (1 Mbit/s for both) but those that most of its users set.
    pub const fn ns2(range: f64) -> Self {
        let propagation = Thresholds { locking: Locking::First, ..Thresholds::wavelan_914_mhz(range) };
        Self { mac: MacConfig::ns2(), propagation, initial_energy_j: Some(1000.0), ..Self::dsss(range) }
    }

    /// The options with another data rate.
    pub const fn with_data_rate(self, data_rate: Rate) -> Self {
        Self { phy: PhyConfig { data_rate, ..self.phy }, ..self }
    }

    /// The options with RTS and CTS before unicast data of more than `rts_threshold` bytes.
    pub const fn with_rts_threshold(self, rts_threshold: u16) -> Self {
        Self { mac: MacConfig { rts_threshold, ..self.mac }, ..self }
    }

    /// Validates the options.
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

/// Options of the MAC; names and defaults of IEEE Std 802.11-2007, Annex D and 15.3.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacConfig {
    /// aCWmin: initial contention window in slots, 1 to `cw_max`.
    pub cw_min: u16,
    /// aCWmax: largest contention window in slots, at most 32767.
    pub cw_max: u16,
    /// dot11RTSThreshold: RTS and CTS precede unicast MPDUs with more bytes than this; 0 for all,
    /// 2347 for none.
    pub rts_threshold: u16,
    /// dot11ShortRetryLimit: number of failures of a frame, or of RTS for it, after which it is
    /// given up, 1 to 255. A CTS resets the count (802.11-2020, 10.3.4.4).
    pub short_retry_limit: u8,
    /// dot11LongRetryLimit: the limit for a frame longer than `rts_threshold`, 1 to 255.
    pub long_retry_limit: u8,
    /// When EIFS replaces DIFS.
    pub eifs: Eifs,
    /// Channel access of the first frame after an idle time.
    pub first_access: FirstAccess,
    /// Range from which a backoff is drawn.
    pub window: Window,
    /// Time for which a station waits for a CTS or an acknowledgement.
    pub response_timeout: ResponseTimeout,
    /// Time before a transmission within which the station no longer notices that another frame
    /// begins, at most a slot. The upper bounds of aCCATime and aRxTxTurnaroundTime add up to a
    /// slot; within it, stations with unaligned slots still collide.
    pub unaware: Duration,
}

/// Signals after which a station waits for EIFS (9.2.3.4; 10.3.2.3.7 of the 2020 edition): once,
/// from the time at which the channel is clear, and only until a frame is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Eifs {
    /// None, as in Bianchi's model.
    Off,
    /// Frames of which the PLCP header was received (PHY-RXSTART.indication) but not the rest. Of
    /// frames that begin at the same time, none counts as received.
    #[default]
    Frames,
    /// All signals that were sensed but not received. As in ns-2, the wait is a NAV, and DIFS
    /// follows it.
    Signals,
}

/// Channel access of a station that gets a frame and has no backoff in progress (9.2.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FirstAccess {
    /// Sends when the channel has been clear for DIFS; draws a backoff only if the channel becomes
    /// busy before that.
    #[default]
    Immediate,
    /// Waits for DIFS and a backoff, as in ns-2.
    Backoff,
}

/// Range of the backoff (9.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// 0 to CW slots.
    #[default]
    Inclusive,
    /// 0 to CW - 1 slots, as in ns-2.
    Exclusive,
}

/// CTSTimeout and ACKTimeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResponseTimeout {
    /// SIFS, a slot and aPHY-RX-START-Delay; the wait is extended for a frame whose header has
    /// arrived by then (9.2.5.7, 9.2.8).
    #[default]
    FrameStart,
    /// SIFS, the whole response and 2 µs, as in ns-2.
    FrameEnd,
}

impl MacConfig {
    /// The MAC of the standard, without RTS.
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

    /// The MAC of ns-2.35: RTS before all unicast data, a backoff before every frame, EIFS after
    /// every signal that was not received.
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
