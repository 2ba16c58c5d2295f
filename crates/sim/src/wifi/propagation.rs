//! Propagation: path loss over distance, and thresholds for reception and carrier sense.
//!
//! Source: ns-2.35, `mobile/propagation.cc`, `mobile/tworayground.cc` and `mac/wireless-phy.cc`,
//! whose antennas have a gain of 1 and whose system loss is 1; the formulas are those of Rappaport,
//! Wireless Communications, sections 4.2 and 4.6. Power decreases with distance, so each threshold
//! corresponds to a distance.

use crate::air::error::ConfigError;
use crate::air::medium::Rules;
use crate::air::propagation::{DECODABLE, INTERFERING, Propagate, SENSED, Strength};

/// Path loss model over the distance d.
#[derive(Clone, Copy, PartialEq, Debug, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PathLoss {
    /// Friis: P λ² / (4 π d)².
    FreeSpace,
    /// Friis up to the crossover distance 4 π h² / λ, beyond it P h⁴ / d⁴, for antennas at height
    /// h.
    TwoRay {
        /// Height h of all antennas, in metres.
        height: f64,
    },
}

/// What a receiver does with a frame that begins while other signals are present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Locking {
    /// It locks on the frame if its power exceeds the others by the capture ratio and no other
    /// frame is being received.
    #[default]
    Strong,
    /// The first signal occupies the receiver, even if it is too weak to be received, as in ns-2.
    First,
}

/// Path loss and thresholds: frames are received within `range`, and sensed and disturbing within
/// `carrier_sense_range`. Signals from farther away are ignored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    /// Path loss model.
    pub path_loss: PathLoss,
    /// Carrier frequency in Hz.
    pub frequency: f64,
    /// Transmit power in mW.
    pub transmit_power: f64,
    /// Distance up to which frames are received, in metres. The power at this distance is the
    /// reception threshold.
    pub range: f64,
    /// Distance up to which frames are sensed and disturb others, in metres; at least `range`.
    pub carrier_sense_range: f64,
    /// Factor by which a frame must be stronger than each overlapping frame to survive it; infinite
    /// for no capture.
    pub capture: f64,
    /// What a receiver does with a frame that begins while other signals are present.
    pub locking: Locking,
    /// Loss probability of a link, unless the link has its own.
    pub loss: f64,
}

impl Thresholds {
    /// ns-2's default radio, a 914 MHz WaveLAN, with two-ray ground propagation: 281.8 mW, antennas
    /// at 1.5 m, a capture ratio of 10. Frames are received up to `range`, and sensed 2.2 times as
    /// far (ns-2: 250 m and 550 m).
    pub const fn wavelan_914_mhz(range: f64) -> Self {
        Self {
            path_loss: PathLoss::TwoRay { height: 1.5 },
            frequency: 914e6,
            transmit_power: 281.838_15,
            range,
            carrier_sense_range: 2.2 * range,
            capture: 10.0,
            locking: Locking::Strong,
            loss: 0.0,
        }
    }

    /// As [`Thresholds::wavelan_914_mhz`] at 2.412 GHz, channel 1, with 100 mW.
    pub const fn channel_1(range: f64) -> Self {
        Self { frequency: 2.412e9, transmit_power: 100.0, ..Self::wavelan_914_mhz(range) }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let length = |metres: f64| metres > 0.0 && metres <= 1e7;
        if !length(self.range) || !length(self.carrier_sense_range) {
            return Err(ConfigError::Range("range, carrier_sense_range", "more than 0 to 10,000 km"));
        }
        if self.carrier_sense_range < self.range {
            return Err(ConfigError::Range("carrier_sense_range", "range and more"));
        }
        if !(1e6..=1e12).contains(&self.frequency) {
            return Err(ConfigError::Range("frequency", "1 MHz to 1 THz"));
        }
        if !(1e-6..=1e6).contains(&self.transmit_power) {
            return Err(ConfigError::Range("transmit_power", "1 nW to 1 kW"));
        }
        if let PathLoss::TwoRay { height } = self.path_loss
            && !(0.01..=1000.0).contains(&height)
        {
            return Err(ConfigError::Range("height", "1 cm to 1000 m"));
        }
        if self.capture.is_nan() || self.capture < 1.0 {
            return Err(ConfigError::Range("capture", "1 and more"));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(ConfigError::Range("loss", "0 to 1"));
        }
        Ok(())
    }

    /// Distance in metres up to which two-ray ground equals free space; infinite for free space.
    pub fn crossover(&self) -> f64 {
        match self.path_loss {
            PathLoss::FreeSpace => f64::INFINITY,
            PathLoss::TwoRay { height } => 4.0 * std::f64::consts::PI * height * height / self.wavelength(),
        }
    }

    /// Received power in mW at a distance in metres, which counts as at least 1 mm.
    pub fn power(&self, distance: f64) -> f64 {
        let d = distance.max(NEAREST);
        match self.path_loss {
            PathLoss::TwoRay { height } if d > self.crossover() => {
                let ratio = height / d;
                self.transmit_power * (ratio * ratio) * (ratio * ratio)
            }
            PathLoss::TwoRay { .. } | PathLoss::FreeSpace => {
                let ratio = self.wavelength() / (4.0 * std::f64::consts::PI * d);
                self.transmit_power * ratio * ratio
            }
        }
    }

    fn wavelength(&self) -> f64 {
        SPEED_OF_LIGHT / self.frequency
    }

    pub(super) fn rules(&self) -> Rules {
        let joins = match self.locking {
            Locking::Strong => self.capture,
            Locking::First => f64::INFINITY,
        };
        Rules::Disk { survives: self.capture, joins, takes: f64::INFINITY, range: None }
    }
}

impl Propagate for Thresholds {
    fn reach(&self) -> f64 {
        self.carrier_sense_range
    }

    fn signal(&self, distance: f64, _: &mut dyn FnMut() -> f64) -> Option<Strength> {
        // The same formula on both sides, so that a station exactly at the range is within it.
        let power = self.power(distance);
        if power < self.power(self.carrier_sense_range) {
            return None;
        }
        let decodable = if power >= self.power(self.range) { DECODABLE } else { 0 };
        Some(Strength { power, marks: decodable | INTERFERING | SENSED })
    }

    fn is_shadowed(&self) -> bool {
        false
    }

    fn loss(&self) -> f64 {
        self.loss
    }
}

/// Speed of light in m/s, as in ns-2.
const SPEED_OF_LIGHT: f64 = 3e8;
/// Least distance between two stations, in metres.
const NEAREST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The thresholds of ns-2's defaults, RXThresh_ 3.652e-10 W and CSThresh_ 1.559e-11 W,
    /// correspond to 250 m and 550 m.
    #[test]
    fn the_distances_of_ns2_make_its_thresholds() {
        let radio = Thresholds::wavelan_914_mhz(250.0);
        assert!((radio.power(250.0) / 3.652e-7 - 1.0).abs() < 1e-3, "{} mW", radio.power(250.0));
        assert!((radio.power(550.0) / 1.559e-8 - 1.0).abs() < 1e-3, "{} mW", radio.power(550.0));
        assert!((radio.crossover() - 86.14).abs() < 0.01, "{}", radio.crossover());
    }

    #[test]
    fn powers_fall_and_meet_at_the_crossover() {
        for radio in [Thresholds::wavelan_914_mhz(100.0), Thresholds::channel_1(100.0)] {
            let free = Thresholds { path_loss: PathLoss::FreeSpace, ..radio };
            let d = radio.crossover();
            assert!((radio.power(d * 1.000_001) / free.power(d) - 1.0).abs() < 1e-5);
            let powers: Vec<f64> = (1..2000).map(|m| radio.power(f64::from(m))).collect();
            assert!(powers.windows(2).all(|pair| pair[1] < pair[0]));
            assert_eq!(radio.power(10.0), free.power(10.0));
            assert!((radio.power(2000.0) / radio.power(1000.0) - 1.0 / 16.0).abs() < 1e-12);
            assert!((free.power(20.0) / free.power(10.0) - 0.25).abs() < 1e-12);
        }
    }

    #[test]
    fn ranges_are_inclusive() {
        let radio = Thresholds::wavelan_914_mhz(100.0);
        let marks = |d| radio.signal(d, &mut || unreachable!("there is no shadowing")).map(|s| s.marks);
        assert_eq!(marks(100.0), Some(DECODABLE | INTERFERING | SENSED));
        assert_eq!(marks(100.01), Some(INTERFERING | SENSED));
        assert_eq!(marks(radio.carrier_sense_range), Some(INTERFERING | SENSED));
        assert_eq!(marks(220.1), None);
    }
}
