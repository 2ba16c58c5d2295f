//! What decides over frames that overlap, as numbers.

use crate::air::modulation::Coding;
use crate::air::propagation::{Capture, CcaMode, Propagation};
use crate::math::from_decibels;

/// What decides over frames that overlap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rules {
    Disk {
        /// Least ratio of powers with which a frame survives; infinite without capture.
        survives: f64,
        /// Least ratio with which a receiver that is locked on nothing locks on a frame amid other
        /// signals.
        joins: f64,
        /// Least ratio with which a later frame takes over a receiver.
        takes: f64,
        /// In metres, where powers are inverse distances; `None` where they are milliwatts.
        range: Option<f64>,
    },
    /// All of these numbers are ratios of powers, or milliwatts.
    Sinr {
        noise: f64,
        locks: f64,
        takes: f64,
        /// Least ratio to all interference with which a frame survives; 0 if there is none.
        rejects: f64,
        busy: f64,
        coding: Coding,
    },
}

impl Rules {
    pub(crate) fn of(propagation: &Propagation, coding: Coding) -> Self {
        match propagation {
            Propagation::UnitDisk(disk) => {
                let (survives, takes) = match disk.capture {
                    Capture::Off => (f64::INFINITY, f64::INFINITY),
                    Capture::First(ratio) => (ratio, f64::INFINITY),
                    Capture::Any(ratio) => (ratio, ratio),
                };
                Self::Disk { survives, joins: survives, takes, range: Some(disk.range) }
            }
            Propagation::LogDistance(model) => {
                let noise = from_decibels(model.noise_floor_dbm);
                Self::Sinr {
                    noise,
                    locks: from_decibels(model.preamble_sinr_db),
                    takes: model.capture_sinr_db.map_or(f64::INFINITY, from_decibels),
                    rejects: model.co_channel_rejection_db.map_or(0.0, from_decibels),
                    busy: match model.cca_mode {
                        CcaMode::Carrier => f64::INFINITY,
                        CcaMode::Energy | CcaMode::EnergyOrCarrier => {
                            from_decibels(model.cca_threshold_dbm) - noise
                        }
                    },
                    coding,
                }
            }
        }
    }
}
