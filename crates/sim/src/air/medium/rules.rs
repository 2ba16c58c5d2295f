//! Numeric rules for overlapping frames.

use crate::air::modulation::Coding;
use crate::air::propagation::{Capture, CcaMode, Propagation};
use crate::math::from_decibels;

/// Rules for overlapping frames.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rules {
    Disk {
        /// Least ratio of powers with which a frame survives; infinite without capture.
        survives: f64,
        /// Least ratio with which an unlocked receiver locks on a frame among other signals.
        joins: f64,
        /// Least ratio with which a later frame takes over a receiver.
        takes: f64,
        /// In metres, if powers are inverse distances; `None` if they are milliwatts.
        range: Option<f64>,
    },
    /// All values are ratios of powers, or milliwatts.
    Sinr {
        noise: f64,
        locks: f64,
        takes: f64,
        /// Least ratio to all interference with which a frame survives; 0 without co-channel
        /// rejection.
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
