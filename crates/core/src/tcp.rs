//! TCP (RFC 9293) as a sans-IO state machine.

mod config;
mod connection;

pub use config::{
    Backoff, Config, CongestionAlgorithm, DelayedAck, InitialWindow, Nagle, Recovery, RtoConfig, SackRole,
};
pub use connection::{CloseReason, Connection, Event, Info, State, WriteError, reset_for};
