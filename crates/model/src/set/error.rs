//! What a model cannot answer.

use thiserror::Error;

/// Why the model has no answer. Gateways are counted from 1, as in the program's `gw1`, `gw2`, ...
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The transfer names no gateway: there is no path to compute.
    #[error("a transfer needs at least one gateway")]
    NoGateways,
    /// More gateways were asked for than the transfer has.
    #[error("{asked} gateways were asked for, the transfer has {present}")]
    TooManyGateways {
        /// The number asked for.
        asked: usize,
        /// The number that the transfer describes.
        present: usize,
    },
    /// A quantity that must be a number above zero is not.
    #[error("{what} must be above zero, not {value}")]
    NotPositive {
        /// The quantity, in words.
        what: &'static str,
        /// What it was.
        value: f64,
    },
    /// A quantity that must be zero or more (and a finite number) is not.
    #[error("{what} must be a number of at least zero, not {value}")]
    Negative {
        /// The quantity, in words.
        what: &'static str,
        /// What it was.
        value: f64,
    },
    /// A quantity lies outside the range that its definition gives it.
    #[error("{what} must lie between {low} and {high}, not {value}")]
    OutOfRange {
        /// The quantity, in words.
        what: &'static str,
        /// What it was.
        value: f64,
        /// The smallest legal value.
        low: f64,
        /// The largest legal value.
        high: f64,
    },
    /// The window that the gateway hands on to the wired side is zero, so nothing ever moves: what
    /// the printed translation of section 4.6 does with a small receive window (S14).
    #[error("gateway {gateway} would advertise a window of zero segments: the transfer never ends")]
    ZeroWindow {
        /// The gateway, counted from 1.
        gateway: usize,
    },
    /// So many handshake losses that the time doubles past what a number can hold.
    #[error("the time-outs of gateway {gateway}'s handshake double beyond any finite time")]
    Endless {
        /// The gateway, counted from 1.
        gateway: usize,
    },
}

/// `value` if it is finite and above zero.
pub(super) fn positive(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(ModelError::NotPositive { what, value }) }
}

/// `value` if it is finite and not below zero.
pub(super) fn not_negative(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(ModelError::Negative { what, value }) }
}

/// `value` if it lies in `low..=high`.
pub(super) fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<f64, ModelError> {
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::OutOfRange { what, value, low, high })
    }
}
