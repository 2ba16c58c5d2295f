//! Errors of the bounds.

use thiserror::Error;

/// Why the model has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A chain without hops, where sender and receiver are the same node.
    #[error("a chain needs at least one hop")]
    NoHops,
    /// The loss is not a probability, or nothing would ever arrive.
    #[error("the loss of a hop must lie from 0 up to, not including, 1, not {value}")]
    Loss {
        /// The given value.
        value: f64,
    },
}
