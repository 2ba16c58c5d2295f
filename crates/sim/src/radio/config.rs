//! What can be set, and what is refused.

use anabranch_core::time::Duration;

use super::energy::PowerConfig;
use super::phy::PhyConfig;
use crate::air::error::ConfigError;
use crate::air::propagation::{LogDistance, Propagation, UnitDisk};

/// A channel and the radios on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioConfig {
    /// The physical layer, of all stations.
    pub phy: PhyConfig,
    /// The MAC, of all stations.
    pub mac: MacConfig,
    /// Who hears whom.
    pub propagation: Propagation,
    /// What a radio draws.
    pub power: PowerConfig,
}

impl RadioConfig {
    /// O-QPSK at 250 kbit/s within so many metres: a unit disk whose interference and carrier sense reach as
    /// far as its frames, without losses, and the powers of a CC2420.
    pub fn o_qpsk(range: f64) -> Self {
        Self {
            phy: PhyConfig::o_qpsk(),
            mac: MacConfig::default(),
            propagation: Propagation::UnitDisk(UnitDisk::new(range)),
            power: PowerConfig::cc2420(),
        }
    }

    /// As [`RadioConfig::o_qpsk`] for SUN FSK at 100 kbit/s, with the powers of an AT86RF215.
    pub fn sun_fsk(range: f64) -> Self {
        Self { phy: PhyConfig::sun_fsk(), power: PowerConfig::at86rf215(), ..Self::o_qpsk(range) }
    }

    /// Replaces the unit disk by path loss over distance.
    pub fn with_log_distance(self, model: LogDistance) -> Self {
        Self { propagation: Propagation::LogDistance(model), ..self }
    }

    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.phy.check()?;
        self.mac.check()?;
        self.propagation.check()?;
        self.power.check()
    }
}

/// The MAC's constants; names and defaults of IEEE Std 802.15.4-2020, Table 8-94.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacConfig {
    /// macMinBE: the first backoff exponent.
    pub min_be: u8,
    /// macMaxBE: the greatest backoff exponent, 3 to 8.
    pub max_be: u8,
    /// macMaxCsmaBackoffs: busy channels after which one more is a failure, 0 to 5.
    pub max_csma_backoffs: u8,
    /// macMaxFrameRetries: how often a frame without acknowledgement is sent again. The standard allows 7, some
    /// stacks 15.
    pub max_frame_retries: u8,
    /// Before each of these retries a delay, uniform from nothing to this, beside that of the CSMA. The standard
    /// has none; on paths of several hops it keeps a retry out of the way of the next hop's frame.
    pub retry_delay: Duration,
}

impl Default for MacConfig {
    fn default() -> Self {
        Self { min_be: 3, max_be: 5, max_csma_backoffs: 4, max_frame_retries: 3, retry_delay: Duration::ZERO }
    }
}

impl MacConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if !(3..=8).contains(&self.max_be) || self.min_be > self.max_be {
            return Err(ConfigError::Range("max_be, min_be", "3 to 8, and 0 to max_be"));
        }
        if self.max_csma_backoffs > 5 {
            return Err(ConfigError::Range("max_csma_backoffs", "0 to 5"));
        }
        if self.max_frame_retries > 15 {
            return Err(ConfigError::Range("max_frame_retries", "0 to 15"));
        }
        if self.retry_delay > Duration::from_secs(10) {
            return Err(ConfigError::Range("retry_delay", "0 to 10 s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = RadioConfig::o_qpsk(100.0);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(RadioConfig::sun_fsk(100.0).check(), Ok(()));
        assert_eq!(good.with_log_distance(LogDistance::default()).check(), Ok(()));
        let mac = good.mac;
        for mac in [
            MacConfig { min_be: 6, ..mac },
            MacConfig { max_be: 9, ..mac },
            MacConfig { max_csma_backoffs: 6, ..mac },
            MacConfig { max_frame_retries: 16, ..mac },
            MacConfig { retry_delay: Duration::from_secs(11), ..mac },
        ] {
            assert!(matches!(RadioConfig { mac, ..good }.check(), Err(ConfigError::Range(..))), "{mac:?}");
        }
        let power = PowerConfig { off: f64::NAN, ..good.power };
        assert!(RadioConfig { power, ..good }.check().is_err());
        for range in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(RadioConfig::o_qpsk(range).check().is_err(), "{range}");
        }
    }
}
