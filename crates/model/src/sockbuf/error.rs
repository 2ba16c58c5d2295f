//! What the model cannot answer.

use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A gain that is negative or no number.
    #[error("gains must be finite and not negative, not {value}")]
    Gain {
        /// What it was.
        value: f64,
    },
    /// A lag that is negative or no number.
    #[error("the lag must be finite and not negative, not {cycles} cycles")]
    Lag {
        /// What it was.
        cycles: f64,
    },
    /// A range without a size in it, or a step from or to what is outside.
    #[error("a step from {from} to {to} does not lie in a range from {least} to {most}")]
    Range {
        /// The size at the beginning.
        from: f64,
        /// The set-point.
        to: f64,
        /// The least size.
        least: f64,
        /// The greatest.
        most: f64,
    },
}
