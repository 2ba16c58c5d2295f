//! Who hears whom, and how strongly.
//!
//! Sources: Rappaport, Wireless Communications, section 4.9 (log-distance path loss with
//! shadowing); the unit disk with three ranges is that of ns-2. Nothing here changes during a run:
//! there is no fading, and a pair of stations keeps its shadowing wherever they move.

use std::fmt;

use super::error::ConfigError;
use crate::math::{decibels, exp, from_decibels};

/// A model of propagation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Propagation {
    /// By distance alone.
    UnitDisk(UnitDisk),
    /// By received power.
    LogDistance(LogDistance),
}

/// A frame is received if its sender is within range, no other signal from within the interference
/// range of the receiver overlaps it, and the link does not lose it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UnitDisk {
    /// How far frames are received, in metres.
    pub range: f64,
    /// How far they disturb others, in metres; not below `range`.
    pub interference_range: f64,
    /// How far a CCA hears them, in metres.
    pub carrier_sense_range: f64,
    /// Probability that a link loses a frame or an acknowledgement, unless the link has its own.
    pub loss: f64,
    /// What overlapping frames do to each other.
    pub capture: Capture,
}

/// What becomes of frames that overlap at a receiver, under a unit disk.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Capture {
    /// All are lost.
    #[default]
    Off,
    /// The frame on which the receiver is locked survives if every other sender is this many times
    /// as far away.
    First(f64),
    /// As "first"; also, a later frame takes over if all other senders are this many times as far
    /// away.
    Any(f64),
}

/// Path loss of `reference_loss_db + 10 exponent log10(d / 1 m)`, shadowing, and bit errors by
/// SINR.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogDistance {
    /// Path-loss exponent.
    pub exponent: f64,
    /// Path loss at 1 m, in dB.
    pub reference_loss_db: f64,
    /// Standard deviation of the shadowing in dB: one normal deviate for both directions of a pair,
    /// for all of the run, cut at four deviations.
    pub shadowing_db: f64,
    /// Transmit power, in dBm.
    pub tx_power_dbm: f64,
    /// Noise in the receiver's band, its noise figure included, in dBm.
    pub noise_floor_dbm: f64,
    /// A receiver locks on no frame that is weaker, in dBm, and a CCA takes no weaker frame for a
    /// carrier. This is no data sheet's sensitivity, at which most frames arrive: it must be so low
    /// that bit errors decide.
    pub sensitivity_dbm: f64,
    /// SINR in dB at its start below which a receiver does not lock on a frame; low enough for bit
    /// errors to decide.
    pub preamble_sinr_db: f64,
    /// Energy at which a CCA finds the channel busy, in dBm; above the noise.
    pub cca_threshold_dbm: f64,
    /// What a CCA listens for.
    pub cca_mode: CcaMode,
    /// SINR in dB, everything else on air being interference, with which a later frame takes over a
    /// receiver that is locked on another; `None`: it stays with the first.
    pub capture_sinr_db: Option<f64>,
    /// Co-channel rejection: a frame is lost if at any moment the ratio of its power to that of all
    /// other frames, in dB, is below this. `None`: interference does what noise of the same power
    /// does, which flatters receivers of O-QPSK: at an SINR of 1 dB 99 % of the frames of 127
    /// octets arrive. Data sheets and measurements of 2.4 GHz radios need about 3 dB between frames
    /// of the same kind.
    pub co_channel_rejection_db: Option<f64>,
    /// A signal that is weaker at a station is nothing there, in dBm: the bound on who costs what.
    pub weakest_dbm: f64,
}

/// What a clear channel assessment listens for (IEEE Std 802.15.4-2020, section 10.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CcaMode {
    /// CCA mode 1: energy above the threshold.
    Energy,
    /// CCA mode 2: a frame that could be received.
    Carrier,
    /// CCA mode 3: either.
    #[default]
    EnergyOrCarrier,
}

impl UnitDisk {
    /// One range for all three, no losses, no capture.
    pub const fn new(range: f64) -> Self {
        Self {
            range,
            interference_range: range,
            carrier_sense_range: range,
            loss: 0.0,
            capture: Capture::Off,
        }
    }
}

impl Default for LogDistance {
    /// The 2.4 GHz band indoors: exponent 3, 40.2 dB at 1 m (free space at 2.44 GHz), 4 dB of
    /// shadowing, and a CC2420 (SWRS041): 0 dBm, CCA at -77 dBm. The noise is such that 1 % of the
    /// frames of 20 octets fail at the sensitivity of its data sheet, -95 dBm, which is how the
    /// standard defines that. A receiver locks from an SINR of -5 dB on, as ns-3's `LrWpanPhy`
    /// does; at -4 dB one frame of 20 octets in 4000 arrives.
    fn default() -> Self {
        Self {
            exponent: 3.0,
            reference_loss_db: 40.2,
            shadowing_db: 4.0,
            tx_power_dbm: 0.0,
            noise_floor_dbm: -95.5,
            sensitivity_dbm: -100.5,
            preamble_sinr_db: -5.0,
            cca_threshold_dbm: -77.0,
            cca_mode: CcaMode::EnergyOrCarrier,
            capture_sinr_db: None,
            co_channel_rejection_db: None,
            weakest_dbm: -108.0,
        }
    }
}

impl LogDistance {
    /// Below 1 GHz with SUN FSK at 100 kbit/s: 31.2 dB at 1 m (free space at 868 MHz), 14 dBm, and
    /// the noise of a receiver that does what the standard asks of one without FEC: at -88 dBm 10 %
    /// of the frames of 250 octets fail. A receiver locks from an SINR of 0 dB on; no frame of 20
    /// octets survives at 5 dB.
    pub fn sun_fsk() -> Self {
        Self {
            reference_loss_db: 31.2,
            tx_power_dbm: 14.0,
            noise_floor_dbm: -100.6,
            sensitivity_dbm: -100.6,
            preamble_sinr_db: 0.0,
            cca_threshold_dbm: -78.0,
            weakest_dbm: -110.0,
            ..Self::default()
        }
    }
}

/// Who is heard how far and how strongly: what [`super::geometry`] asks of a model.
pub(crate) trait Propagate: fmt::Debug + Send + Sync {
    /// Metres beyond which nothing is heard.
    fn reach(&self) -> f64;

    /// What a station hears of another at this distance in metres; `shadowing` is called for the
    /// normal deviate of a pair that has some.
    fn signal(&self, distance: f64, shadowing: &mut dyn FnMut() -> f64) -> Option<Strength>;

    /// Pairs have shadowing.
    fn is_shadowed(&self) -> bool;

    /// Probability that a link loses a frame, unless the link has its own.
    fn loss(&self) -> f64;
}

impl Propagation {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::UnitDisk(disk) => disk.check(),
            Self::LogDistance(model) => model.check(),
        }
    }
}

impl Propagate for Propagation {
    fn reach(&self) -> f64 {
        match self {
            Self::UnitDisk(disk) => disk.interference_range.max(disk.carrier_sense_range),
            Self::LogDistance(m) => {
                let margin =
                    m.tx_power_dbm - m.reference_loss_db - m.weakest_dbm + SHADOWING_CUT * m.shadowing_db;
                exp(margin.max(0.0) * std::f64::consts::LN_10 / (10.0 * m.exponent)).max(1.0)
            }
        }
    }

    fn signal(&self, distance: f64, shadowing: &mut dyn FnMut() -> f64) -> Option<Strength> {
        match self {
            Self::UnitDisk(disk) => disk.signal(distance),
            Self::LogDistance(model) => model.signal(distance, shadowing),
        }
    }

    fn is_shadowed(&self) -> bool {
        matches!(self, Self::LogDistance(model) if model.shadowing_db > 0.0)
    }

    fn loss(&self) -> f64 {
        match self {
            Self::UnitDisk(disk) => disk.loss,
            Self::LogDistance(_) => 0.0,
        }
    }
}

/// How a station hears another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Strength {
    /// Milliwatts; under a unit disk the inverse of the distance.
    pub(crate) power: f64,
    /// Which of [`DECODABLE`], [`INTERFERING`] and [`SENSED`] it is.
    pub(crate) marks: u8,
}

/// A receiver can lock on it; then it is [`INTERFERING`], too.
pub(crate) const DECODABLE: u8 = 1;
/// It disturbs other frames.
pub(crate) const INTERFERING: u8 = 2;
/// A CCA hears it, whatever its energy.
pub(crate) const SENSED: u8 = 4;

impl UnitDisk {
    fn check(&self) -> Result<(), ConfigError> {
        let length = |metres: f64| metres > 0.0 && metres <= 1e7;
        if !length(self.range) || !length(self.interference_range) || !length(self.carrier_sense_range) {
            return Err(ConfigError::Range("range", "more than 0 to 10,000 km"));
        }
        if self.interference_range < self.range {
            return Err(ConfigError::Range("interference_range", "range and more"));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(ConfigError::Range("loss", "0 to 1"));
        }
        match self.capture {
            Capture::First(ratio) | Capture::Any(ratio) if !(1.0..=1e6).contains(&ratio) => {
                Err(ConfigError::Range("capture", "1 to 1,000,000"))
            }
            Capture::Off | Capture::First(_) | Capture::Any(_) => Ok(()),
        }
    }

    fn signal(&self, distance: f64) -> Option<Strength> {
        let mark = |range: f64, mark: u8| if distance <= range { mark } else { 0 };
        let marks = mark(self.range, DECODABLE)
            | mark(self.interference_range, INTERFERING)
            | mark(self.carrier_sense_range, SENSED);
        (marks != 0).then(|| Strength { power: 1.0 / distance.max(NEAREST), marks })
    }
}

impl LogDistance {
    fn check(&self) -> Result<(), ConfigError> {
        let levels = [self.tx_power_dbm, self.noise_floor_dbm, self.sensitivity_dbm, self.weakest_dbm];
        let more = [self.cca_threshold_dbm, self.preamble_sinr_db, self.capture_sinr_db.unwrap_or(0.0)];
        if !levels.into_iter().chain(more).all(|db| (-250.0..=100.0).contains(&db)) {
            return Err(ConfigError::Range("levels", "-250 to 100 dB"));
        }
        if !(1.0..=10.0).contains(&self.exponent) {
            return Err(ConfigError::Range("exponent", "1 to 10"));
        }
        if !(0.0..=200.0).contains(&self.reference_loss_db) {
            return Err(ConfigError::Range("reference_loss_db", "0 to 200 dB"));
        }
        if !(0.0..=20.0).contains(&self.shadowing_db) {
            return Err(ConfigError::Range("shadowing_db", "0 to 20 dB"));
        }
        if self.co_channel_rejection_db.is_some_and(|db| !(-20.0..=40.0).contains(&db)) {
            return Err(ConfigError::Range("co_channel_rejection_db", "-20 to 40 dB"));
        }
        if self.cca_threshold_dbm <= self.noise_floor_dbm {
            return Err(ConfigError::Range("cca_threshold_dbm", "more than noise_floor_dbm"));
        }
        if self.weakest_dbm > self.sensitivity_dbm {
            return Err(ConfigError::Range("weakest_dbm", "sensitivity_dbm and less"));
        }
        Ok(())
    }

    fn signal(&self, distance: f64, shadowing: &mut dyn FnMut() -> f64) -> Option<Strength> {
        let mut dbm =
            self.tx_power_dbm - self.reference_loss_db - self.exponent * decibels(distance.max(1.0));
        if self.shadowing_db > 0.0 {
            dbm += self.shadowing_db * shadowing().clamp(-SHADOWING_CUT, SHADOWING_CUT);
        }
        if dbm < self.weakest_dbm {
            return None;
        }
        let mut marks = INTERFERING;
        if dbm >= self.sensitivity_dbm {
            marks |= DECODABLE | if self.cca_mode == CcaMode::Energy { 0 } else { SENSED };
        }
        Some(Strength { power: from_decibels(dbm), marks })
    }
}

/// Standard deviations beyond which shadowing is cut, so that there is a distance beyond which
/// nobody hears.
const SHADOWING_CUT: f64 = 4.0;
/// Two stations are never nearer than this, in metres.
const NEAREST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    fn unshadowed() -> f64 {
        unreachable!("there is no shadowing")
    }

    #[test]
    fn path_loss_by_hand() {
        let model = LogDistance { shadowing_db: 0.0, ..LogDistance::default() };
        let at = |d| decibels(model.signal(d, &mut unshadowed).expect("near").power);
        assert!((at(1.0) + 40.2).abs() < 1e-9);
        assert!((at(10.0) + 70.2).abs() < 1e-9);
        let reach = Propagation::LogDistance(model).reach();
        assert!((reach - 10f64.powf(67.8 / 30.0)).abs() < 1e-9, "{reach}");
        assert!(model.signal(reach * 0.999, &mut unshadowed).is_some());
        assert!(model.signal(reach * 1.001, &mut unshadowed).is_none());
    }

    #[test]
    fn three_disks() {
        let disk = UnitDisk { interference_range: 150.0, carrier_sense_range: 200.0, ..UnitDisk::new(100.0) };
        let marks = |d| disk.signal(d).map(|s| s.marks);
        assert_eq!(marks(100.0), Some(DECODABLE | INTERFERING | SENSED));
        assert_eq!(marks(150.0), Some(INTERFERING | SENSED));
        assert_eq!(marks(200.0), Some(SENSED));
        assert_eq!(marks(200.1), None);
    }
}
