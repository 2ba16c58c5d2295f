//! Multipath TCP (RFC 8684, version 1): one connection over several subflows, as a sans-IO state
//! machine.
//!
//! A [`Connection`] owns its subflows, each a [`crate::tcp::Connection`], and is used as one. What
//! is not implemented is listed in `docs/reference/mptcp.md`.
//!
//! Code map: [`Connection`] is the handshake, the options and the life of subflows; `send` and
//! `receive` are the two halves on the level of data; `scheduler` decides which subflow takes what;
//! `keys` is the cryptography; [`prediction`] is how many packets a path delivers before the next
//! slower one delivers its first; [`travel`] is how long packets take over a path.

mod config;
mod connection;
mod info;
mod keys;
mod pace;
mod receive;
pub mod scheduler;
mod send;
mod subflow;

pub mod prediction;
pub mod travel;

pub use config::{Config, Reinjection};
pub use connection::{Connection, Secrets, join_token};
pub use info::{Event, Info, JoinError, PathFacts, PathId, SubflowId, SubflowInfo};
pub use scheduler::{CustomScheduler, SchedulerKind};
