//! Configuration and send errors of radios.

use thiserror::Error;

/// Reason why a configuration is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is out of its range.
    #[error("{0} must be in the range of {1}")]
    Range(&'static str, &'static str),
    /// An acknowledgement could not arrive in time.
    #[error("ack_wait must be at least the turnaround and the time of an acknowledgement on air")]
    AckWait,
    /// The position of a station is out of range.
    #[error("the position of station {0} must be within 10,000 km of the origin")]
    Position(u32),
}

/// Reason why a frame is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The previous frame is not finished.
    #[error("the station has a frame under way")]
    Busy,
    /// The station is down.
    #[error("the station is down")]
    Down,
    /// There is nothing to send.
    #[error("a frame has at least one byte")]
    Empty,
    /// The frame exceeds the maximum of the PHY.
    #[error("a frame of {len} bytes exceeds the limit of the PHY, {max} bytes")]
    TooLong {
        /// Length of its PSDU in bytes.
        len: u16,
        /// Maximum of the PHY in bytes.
        max: u16,
    },
    /// The sender or the destination does not exist, or both are the same station.
    #[error("there is no such station to send to")]
    NoSuchStation,
}
