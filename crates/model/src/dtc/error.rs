//! What the bounds cannot answer.

use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A chain of no hops: sender and receiver are one.
    #[error("a chain needs at least one hop")]
    NoHops,
    /// A loss that is no probability, or with which nothing ever arrives.
    #[error("the loss of a hop must lie from 0 up to, not including, 1, not {value}")]
    Loss {
        /// What it was.
        value: f64,
    },
}
