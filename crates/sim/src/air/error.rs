//! What is refused.

use thiserror::Error;

/// Why there can be no such radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is out of its range.
    #[error("{0} must be in the range of {1}")]
    Range(&'static str, &'static str),
    /// No acknowledgement could arrive in time.
    #[error("ack_wait must be at least the turnaround and the time of an acknowledgement on air")]
    AckWait,
    /// A station is nowhere.
    #[error("the position of station {0} must be within 10,000 km of the origin")]
    Position(u32),
}

/// Why a frame is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The frame before has not come to its end.
    #[error("the station has a frame under way")]
    Busy,
    /// The station is down.
    #[error("the station is down")]
    Down,
    /// There is nothing to send.
    #[error("a frame has at least one byte")]
    Empty,
    /// It exceeds what the PHY can carry.
    #[error("a frame of {len} bytes exceeds the limit of the PHY, {max} bytes")]
    TooLong {
        /// Octets of its PSDU.
        len: u16,
        /// Octets that the PHY allows.
        max: u16,
    },
    /// The sender or the destination does not exist, or both are the same.
    #[error("there is no such station to send to")]
    NoSuchStation,
}
