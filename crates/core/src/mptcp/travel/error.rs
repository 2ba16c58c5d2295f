//! Errors of the path models.

use alloc::boxed::Box;

use thiserror::Error;

use crate::mptcp::prediction::ScheduleError;

/// Why a model has no result. Quantities are named after their fields.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A quantity lies outside its range.
    #[error("{what} must lie between {low} and {high}, not {value}")]
    OutOfRange {
        /// The name of its field.
        what: &'static str,
        /// The rejected value.
        value: f64,
        /// The smallest legal value.
        low: f64,
        /// The largest legal value.
        high: f64,
    },
    /// A required list is empty.
    #[error("{what} must not be empty")]
    Empty {
        /// The name of its field.
        what: &'static str,
    },
    /// An unlimited queue whose arrival rate is not below its service rate.
    #[error("utilisation must be below 1 for a queue without capacity, not {utilisation:.3}")]
    Unstable {
        /// lambda / mu.
        utilisation: f64,
    },
    /// The mean over successful attempts was requested, and there is none.
    #[error("busy must be below 1 in some period: the channel is never gained")]
    NeverGained,
    /// A transmitter of the path has an error.
    #[error("{direction} hop {hop}: {error}")]
    Hop {
        /// `forward` or `reverse`.
        direction: &'static str,
        /// The hop in its direction, counted from 1.
        hop: usize,
        /// The error of that hop.
        error: Box<ModelError>,
    },
    /// An error of the schedule of section VII.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Checks that `value` lies in `low..=high`; NaN never does.
pub(super) fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<(), ModelError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(ModelError::OutOfRange { what, value, low, high })
    }
}
