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

use anabranch_core::rdca::{Confirmation, LossCredit, SinkConfig};
use anabranch_core::time::Duration;

/// Default port of a sink.
pub const SINK_PORT: u16 = 47_300;
/// Default length limit of a datagram in bytes: an IPv6 packet of 1280 bytes, which every link
/// carries.
pub const DATAGRAM: u16 = 1232;

/// Memory for each packet out of order in bytes.
const HELD: usize = 1500;

/// Options of a sink for this number of senders. Packets out of order and incomplete records take
/// about `memory` bytes at most.
pub fn sink_config(senders: usize, memory: usize) -> SinkConfig {
    SinkConfig {
        senders,
        held_packets: (memory / HELD).max(64),
        held_bytes: memory,
        reorder_packets: 1024,
        // Hosts that share their processors delay packets by this much without a queue.
        least_waiting: Duration::from_millis(50),
        // Channels may lose a fifth of all packets.
        lossy: 300,
        credit: LossCredit::Calm,
        confirmation: Confirmation::Stored,
        ..SinkConfig::default()
    }
}
