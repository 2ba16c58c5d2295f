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
    /// How stations sleep; `None` if all of them listen all the time.
    pub csl: Option<CslConfig>,
}

impl RadioConfig {
    /// O-QPSK at 250 kbit/s within so many metres: a unit disk whose interference and carrier sense
    /// reach as far as its frames, without losses, and the powers of a CC2420.
    pub fn o_qpsk(range: f64) -> Self {
        Self {
            phy: PhyConfig::o_qpsk(),
            mac: MacConfig::default(),
            propagation: Propagation::UnitDisk(UnitDisk::new(range)),
            power: PowerConfig::cc2420(),
            csl: None,
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
        self.csl.iter().try_for_each(|csl| csl.check(&self.phy))?;
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
    /// macMaxFrameRetries: how often a frame without acknowledgement is sent again. The standard
    /// allows 7, some stacks 15.
    pub max_frame_retries: u8,
    /// Before each of these retries a delay, uniform from nothing to this, beside that of the CSMA.
    /// The standard has none; on paths of several hops it keeps a retry out of the way of the next
    /// hop's frame.
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

/// Coordinated sampled listening (CSL): stations sleep and sample the channel once in a period.
/// Names of IEEE Std 802.15.4-2020, section 6.12.2 and Table 8-98.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CslConfig {
    /// macCslPeriod of each station, unless [`super::Radio::set_csl_period`] gives it another; zero
    /// if it never sleeps.
    pub period: Duration,
    /// macCslMaxPeriod: no station has a longer period. This is how long the wake-up sequence is of
    /// a sender that does not know when its receiver samples.
    pub max_period: Duration,
    /// How long a channel sample lasts, at least a CCA.
    pub sample: Duration,
    /// macCslFramePendingWait: how long a receiver stays awake for the frame that was announced to
    /// it, from the end of its acknowledgement.
    pub frame_pending_wait: Duration,
    /// How far the clock of a station is off at most, in parts per million. Each station draws its
    /// own deviation, evenly.
    pub clock_accuracy_ppm: u16,
    /// Senders learn from acknowledgements when their receivers sample, and send a short wake-up
    /// sequence then.
    pub synchronized: bool,
}

impl CslConfig {
    /// This period, and for the rest the defaults: samples of a CCA, the shortest
    /// macCslFramePendingWait of the standard, clocks within 20 ppm, synchronized transmissions.
    pub fn new(period: Duration, phy: &PhyConfig) -> Self {
        Self {
            period,
            max_period: period,
            sample: phy.cca,
            frame_pending_wait: Self::least_wait(phy),
            clock_accuracy_ppm: 20,
            synchronized: true,
        }
    }

    /// The longest period: the standard counts it with 16 bits, in units of 10 symbols.
    pub fn longest_period(phy: &PhyConfig) -> Duration {
        phy.csl_unit() * u64::from(u16::MAX)
    }

    /// The shortest macCslFramePendingWait: macLifsPeriod and the longest frame.
    pub fn least_wait(phy: &PhyConfig) -> Duration {
        phy.lifs + phy.airtime(phy.max_psdu)
    }

    /// A period as the standard can say it, in whole units of 10 symbols: the nearest one, and zero
    /// for zero only.
    #[must_use]
    pub fn in_units(period: Duration, phy: &PhyConfig) -> Duration {
        let unit = phy.csl_unit();
        let units = (period + unit / 2).as_nanos() / unit.as_nanos();
        unit * if period.is_zero() { 0 } else { units.max(1) }
    }

    /// Refuses a period that stations cannot have.
    pub(crate) fn check_period(&self, period: Duration) -> Result<(), ConfigError> {
        if period.is_zero() {
            return Ok(());
        }
        if period > self.max_period {
            return Err(ConfigError::Range("period", "0 to `max_period` (macCslMaxPeriod)"));
        }
        if self.sample >= period {
            return Err(ConfigError::Range("sample", "at least a CCA, and less than the period"));
        }
        Ok(())
    }

    fn check(&self, phy: &PhyConfig) -> Result<(), ConfigError> {
        if self.max_period > Self::longest_period(phy) {
            return Err(ConfigError::Range("max_period", "0 to 65535 times 10 symbols (macCslMaxPeriod)"));
        }
        if self.sample < phy.cca {
            return Err(ConfigError::Range("sample", "at least a CCA, and less than the period"));
        }
        if !(Self::least_wait(phy)..=phy.symbol * u64::from(u16::MAX)).contains(&self.frame_pending_wait) {
            return Err(ConfigError::Range(
                "frame_pending_wait",
                "macLifsPeriod and the longest frame, to 65535 symbols",
            ));
        }
        if self.clock_accuracy_ppm > 500 {
            return Err(ConfigError::Range("clock_accuracy_ppm", "0 to 500"));
        }
        self.check_period(self.period)
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
        let csl = CslConfig::new(Duration::from_millis(125), &good.phy);
        assert_eq!(RadioConfig { csl: Some(csl), ..good }.check(), Ok(()));
        for bad in [
            CslConfig { sample: Duration::from_millis(125), ..csl },
            CslConfig { sample: Duration::from_micros(127), ..csl },
            CslConfig { max_period: Duration::from_millis(124), ..csl },
            // 65536 times 160 µs.
            CslConfig { max_period: Duration::from_micros(10_485_760), ..csl },
            CslConfig { frame_pending_wait: Duration::from_millis(4), ..csl },
            CslConfig { frame_pending_wait: Duration::from_secs(2), ..csl },
            CslConfig { clock_accuracy_ppm: 501, ..csl },
        ] {
            assert!(RadioConfig { csl: Some(bad), ..good }.check().is_err(), "{bad:?}");
        }
        let power = PowerConfig { off: f64::NAN, ..good.power };
        assert!(RadioConfig { power, ..good }.check().is_err());
        for range in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(RadioConfig::o_qpsk(range).check().is_err(), "{range}");
        }
    }
}
