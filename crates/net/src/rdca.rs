//! RDCA over UDP: senders and a sink, built on the machines of [`anabranch_core::rdca`] and the
//! sessions of [`anabranch_secure::datagram`].
//!
//! [`Sense`] and [`Collector`] are sans-IO: they add records, their numbers and their times to the
//! machines. [`run_sense`] and [`run_sink`] drive them over a socket.
//! `docs/reference/sense-protocol.md` specifies what is sent.

mod collector;
mod driver;
mod ledger;
mod record;
mod sense;

pub use self::collector::{Collector, CollectorCounters, Item, Mark, Taken, What, Why};
pub use self::driver::{Created, Intake, Outlet, bind, outlet, run_sense, run_sink, unix_millis};
pub use self::ledger::{Ledger, Runs, Source};
pub use self::record::{RECORD_HEADER, Record};
pub use self::sense::{Sense, SenseEvent};

use anabranch_core::rdca::{
    Acceleration, Confirmation, LossCredit, Release, Restart, SenderConfig, SinkConfig, StartEnds,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::datagram::OVERHEAD;

/// Default port of a sink.
pub const SINK_PORT: u16 = 47_300;
/// Default length limit of a datagram in bytes: an IPv6 packet of 1280 bytes, which every link
/// carries.
pub const DATAGRAM: u16 = 1232;

/// Options of a sender whose UDP datagrams have at most `datagram` bytes and whose queue has
/// `packets` packets. It never gives up.
pub fn sender_config(datagram: u16, packets: u16) -> SenderConfig {
    SenderConfig {
        datagram: datagram.saturating_sub(OVERHEAD as u16),
        queue_packets: packets,
        unsent_packets: (packets / 4).max(1),
        release: Release::Confirmed,
        restart: Restart::Resend,
        request_tries: u8::MAX,
        probe_tries: u8::MAX,
        // A link that returns is noticed within this time.
        longest_wait: Duration::from_secs(2),
        // The session has just proved that the sink answers.
        request_wait: Duration::from_millis(300),
        // From 100 packets a second on, 1,000 more with each second.
        start_rtt: Duration::from_millis(20),
        start_every: Duration::from_millis(50),
        start_ends: StartEnds::Delay,
        acceleration: Some(Acceleration { after: Duration::from_millis(250), doublings: 9, part: Some(16) }),
        ..SenderConfig::default()
    }
}

/// Options of a sink for this number of senders and of packets held out of order.
pub fn sink_config(senders: usize, held_packets: usize) -> SinkConfig {
    SinkConfig {
        senders,
        held_packets,
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

/// The time of the machines as the time of their sessions.
fn since_start(now: Instant) -> std::time::Duration {
    std::time::Duration::from_nanos(now.as_nanos())
}
