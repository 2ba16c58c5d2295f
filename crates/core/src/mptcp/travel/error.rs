//! What the models of a path cannot answer.

use alloc::boxed::Box;

use thiserror::Error;

use crate::mptcp::prediction::ScheduleError;

/// Why there is no answer. Quantities are named as their fields are.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A quantity lies outside its range.
    #[error("{what} must lie between {low} and {high}, not {value}")]
    OutOfRange {
        /// The quantity, by the name of its field.
        what: &'static str,
        /// What it was.
        value: f64,
        /// The smallest legal value.
        low: f64,
        /// The largest legal value.
        high: f64,
    },
    /// A list that must have something in it is empty.
    #[error("{what} must not be empty")]
    Empty {
        /// The list, by the name of its field.
        what: &'static str,
    },
    /// A queue without limit that is filled as fast as it is served, or faster.
    #[error("utilisation must be below 1 for a queue without capacity, not {utilisation:.3}")]
    Unstable {
        /// lambda / mu.
        utilisation: f64,
    },
    /// The mean over attempts that gain the channel was asked for, and none does.
    #[error("busy must be below 1 in some period: the channel is never gained")]
    NeverGained,
    /// One of a path's transmitters is at fault.
    #[error("{direction} hop {hop}: {error}")]
    Hop {
        /// `forward` or `reverse`.
        direction: &'static str,
        /// The hop in its direction, counted from 1.
        hop: usize,
        /// What is wrong with it.
        error: Box<ModelError>,
    },
    /// Section VII has no answer.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Nothing if `value` lies in `low..=high`; no range contains NaN.
pub(super) fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<(), ModelError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(ModelError::OutOfRange { what, value, low, high })
    }
}
