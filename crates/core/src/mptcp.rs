//! Multipath TCP (RFC 8684, version 1) as a sans-IO state machine: one connection over several
//! subflows.
//!
//! A [`Connection`] owns its subflows, each a [`crate::tcp::Connection`], and has the same
//! interface as one TCP connection. `docs/reference/mptcp.md` lists what is not implemented.
//!
//! Code map:
//!
//! * [`Connection`] handles the handshake, the options and the subflows' life cycle.
//! * `send` and `receive` are the two halves of the data level.
//! * `scheduler` decides which subflow sends which data.
//! * `silence` tells when a subflow has not answered for too long.
//! * `keys` derives tokens, initial data sequence numbers and HMACs.
//! * [`prediction`] computes how many packets a path delivers before the next slower path delivers
//!   its first.
//! * [`travel`] computes how long packets take over a path.

mod config;
mod connection;
mod info;
mod keys;
mod pace;
mod receive;
pub mod scheduler;
mod send;
mod silence;
mod subflow;

pub mod prediction;
pub mod travel;

pub use config::{Config, Reinjection};
pub use connection::{Connection, Secrets, join_token};
pub use info::{Event, Info, JoinError, PathFacts, PathId, SubflowId, SubflowInfo};
pub use keys::token_of;
pub use scheduler::{CustomScheduler, SchedulerKind};
