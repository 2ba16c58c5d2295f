//! Errors of the model.

use thiserror::Error;

/// Why the model has no answer. Gateways are numbered from 1, as in the program's `gw1`, `gw2`, ...
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The transfer has no gateways, so there is no path.
    #[error("a transfer needs at least one gateway")]
    NoGateways,
    /// The requested number of gateways exceeds that of the transfer.
    #[error("{asked} gateways were asked for, the transfer has {present}")]
    TooManyGateways {
        /// The requested number.
        asked: usize,
        /// The number of gateways of the transfer.
        present: usize,
    },
    /// A quantity must be greater than zero.
    #[error("{what} must be above zero, not {value}")]
    NotPositive {
        /// Name of the quantity.
        what: &'static str,
        /// The given value.
        value: f64,
    },
    /// A quantity must be finite and not negative.
    #[error("{what} must be a number of at least zero, not {value}")]
    Negative {
        /// Name of the quantity.
        what: &'static str,
        /// The given value.
        value: f64,
    },
    /// A quantity is outside its defined range.
    #[error("{what} must lie between {low} and {high}, not {value}")]
    OutOfRange {
        /// Name of the quantity.
        what: &'static str,
        /// The given value.
        value: f64,
        /// Smallest valid value.
        low: f64,
        /// Largest valid value.
        high: f64,
    },
    /// The window that the gateway advertises to the wired side is zero, so no data ever moves. The
    /// printed translation of section 4.6 yields this for a small receive window (S14).
    #[error("gateway {gateway} would advertise a window of zero segments: the transfer never ends")]
    ZeroWindow {
        /// Number of the gateway, counted from 1.
        gateway: usize,
    },
    /// The number of handshake losses is so large that the doubled timeout overflows.
    #[error("the time-outs of gateway {gateway}'s handshake double beyond any finite time")]
    Endless {
        /// Number of the gateway, counted from 1.
        gateway: usize,
    },
}

/// Returns `value` if it is finite and greater than zero.
pub(super) fn positive(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(ModelError::NotPositive { what, value }) }
}

/// Returns `value` if it is finite and not negative.
pub(super) fn not_negative(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(ModelError::Negative { what, value }) }
}

/// Returns `value` if it lies in `low..=high`.
pub(super) fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<f64, ModelError> {
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::OutOfRange { what, value, low, high })
    }
}
