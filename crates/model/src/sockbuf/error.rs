//! Errors of the model.

use thiserror::Error;

/// Why the model has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A gain is negative or not finite.
    #[error("gains must be finite and not negative, not {value}")]
    Gain {
        /// The given value.
        value: f64,
    },
    /// A lag is negative or not finite.
    #[error("the lag must be finite and not negative, not {cycles} cycles")]
    Lag {
        /// The given value in cycles.
        cycles: f64,
    },
    /// The range is empty, or the step begins or ends outside it.
    #[error("a step from {from} to {to} does not lie in a range from {least} to {most}")]
    Range {
        /// The initial size.
        from: f64,
        /// The set-point.
        to: f64,
        /// Lower limit of the range.
        least: f64,
        /// Upper limit of the range.
        most: f64,
    },
}
