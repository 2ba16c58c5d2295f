//! RDCA over UDP: senders and a sink, built on the machines of [`anabranch_core::rdca`] and the
//! sessions of [`anabranch_secure::datagram`].
//!
//! [`Sense`] and [`Collector`] are sans-IO: they add records, their numbers and their times to the
//! machines. [`run_sense`] and [`run_sink`] drive them over a socket.
//! `docs/reference/sense-protocol.md` specifies what is sent.

mod collector;
mod driver;
mod ledger;

pub use self::collector::{Collector, CollectorCounters, Item, Mark, Taken, What, Why};
pub use self::driver::{Created, Intake, Outlet, bind, outlet, run_sense, run_sink, unix_millis};
pub use self::ledger::{Ledger, Runs, Source};
pub use anabranch_sense::record::{RECORD_HEADER, Record};
pub use anabranch_sense::sender_config;
pub use anabranch_sense::sense::{Sense, SenseEvent};
use anabranch_sense::since_start;

/// Default port of a sink.
pub const SINK_PORT: u16 = 47_300;
/// Default length limit of a datagram in bytes: an IPv6 packet of 1280 bytes, which every link
/// carries.
pub const DATAGRAM: u16 = 1232;
