//! Options of a channel, and their validation.

use anabranch_core::time::Duration;

use super::energy::PowerConfig;
use super::phy::PhyConfig;
use crate::air::error::ConfigError;
use crate::air::propagation::{LogDistance, Propagation, UnitDisk};

/// A channel and the radios on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioConfig {
    /// Physical layer of all stations.
    pub phy: PhyConfig,
    /// MAC of all stations.
    pub mac: MacConfig,
    /// Propagation model: which stations receive and sense each other.
    pub propagation: Propagation,
    /// Power consumption of a radio.
    pub power: PowerConfig,
    /// Sleep of the stations; `None` if all of them listen all the time.
    pub csl: Option<CslConfig>,
}

impl RadioConfig {
    /// O-QPSK at 250 kbit/s with a range of `range` metres: a unit disk with equal ranges for
    /// reception, interference and carrier sense, without losses, and the power consumption of a
    /// CC2420.
    pub fn o_qpsk(range: f64) -> Self {
        Self {
            phy: PhyConfig::o_qpsk(),
            mac: MacConfig::default(),
            propagation: Propagation::UnitDisk(UnitDisk::new(range)),
            power: PowerConfig::cc2420(),
            csl: None,
        }
    }

    /// As [`RadioConfig::o_qpsk`] for SUN FSK at 100 kbit/s, with the power consumption of an
    /// AT86RF215.
    pub fn sun_fsk(range: f64) -> Self {
        Self { phy: PhyConfig::sun_fsk(), power: PowerConfig::at86rf215(), ..Self::o_qpsk(range) }
    }

    /// Replaces the unit disk by path loss over distance.
    pub fn with_log_distance(self, model: LogDistance) -> Self {
        Self { propagation: Propagation::LogDistance(model), ..self }
    }

    /// Validates the options.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.phy.check()?;
        self.mac.check()?;
        self.propagation.check()?;
        self.csl.iter().try_for_each(|csl| csl.check(&self.phy))?;
        self.power.check()
    }
}

/// Options of the MAC; names and defaults of IEEE Std 802.15.4-2020, Table 8-94.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacConfig {
    /// macMinBE: initial backoff exponent.
    pub min_be: u8,
    /// macMaxBE: largest backoff exponent, 3 to 8.
    pub max_be: u8,
    /// macMaxCsmaBackoffs: number of busy CCAs after which one more is a failure, 0 to 5.
    pub max_csma_backoffs: u8,
    /// macMaxFrameRetries: number of retransmissions of a frame without an acknowledgement. The
    /// standard allows 7, some stacks 15.
    pub max_frame_retries: u8,
    /// Longest random delay before each of these retransmissions, uniform from 0, in addition to
    /// the backoff of CSMA-CA. The standard has none. On multihop paths it keeps a retransmission
    /// from colliding with the forwarding of the next hop.
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
    /// macCslPeriod of each station, unless [`super::Radio::set_csl_period`] sets another; zero if
    /// stations never sleep.
    pub period: Duration,
    /// macCslMaxPeriod: the longest period of any station. It is the length of the wake-up sequence
    /// of a sender that does not know when its receiver samples.
    pub max_period: Duration,
    /// Duration of a channel sample, at least a CCA.
    pub sample: Duration,
    /// macCslFramePendingWait: time for which a receiver stays awake for an announced frame, from
    /// the end of its acknowledgement.
    pub frame_pending_wait: Duration,
    /// Largest deviation of a station's clock in parts per million. Each station draws its own
    /// deviation from a uniform distribution.
    pub clock_accuracy_ppm: u16,
    /// Whether senders learn from acknowledgements when their receivers sample, and then send a
    /// short wake-up sequence.
    pub synchronized: bool,
}

impl CslConfig {
    /// CSL with this period and the defaults: samples of the length of a CCA, the shortest
    /// macCslFramePendingWait of the standard, clocks within 20 ppm, synchronised transmissions.
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

    /// The longest period: the standard encodes it in 16 bits, in units of 10 symbols.
    pub fn longest_period(phy: &PhyConfig) -> Duration {
        phy.csl_unit() * u64::from(u16::MAX)
    }

    /// The shortest macCslFramePendingWait: macLifsPeriod plus the longest frame.
    pub fn least_wait(phy: &PhyConfig) -> Duration {
        phy.lifs + phy.airtime(phy.max_psdu)
    }

    /// Rounds a period to whole units of 10 symbols, as the standard encodes it; only zero becomes
    /// zero.
    #[must_use]
    pub fn in_units(period: Duration, phy: &PhyConfig) -> Duration {
        let unit = phy.csl_unit();
        let units = (period + unit / 2).as_nanos() / unit.as_nanos();
        unit * if period.is_zero() { 0 } else { units.max(1) }
    }

    /// Validates the period of a station.
    pub fn check_period(&self, period: Duration) -> Result<(), ConfigError> {
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
