//! RDCA's sender over a protected session, for hosts and for C programs with little memory.
//!
//! The crate is sans-IO like the core: its user carries datagrams and tells the time.
//! `docs/reference/sense-protocol.md` specifies what is sent.
//!
//! * [`sense`] joins [`anabranch_core::rdca::Sender`], the sessions of
//!   [`anabranch_secure::datagram`] and the records of [`record`].
//! * [`node`] is a sender with a pre-shared key, or none ([`guard`]), whose memory [`sizes`] knows
//!   in advance.
//! * [`api`] contains the types of `include/anabranch_sense.h`.
//! * `c`, with the feature of that name, contains its functions and the panic handler.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod api;
#[cfg(feature = "c")]
mod c;
pub mod guard;
pub mod node;
pub mod record;
pub mod sense;
pub mod sizes;

use anabranch_core::rdca::{Acceleration, Release, Restart, SenderConfig, StartEnds};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::datagram::OVERHEAD;

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

/// The time of the machines as the time of their sessions.
pub fn since_start(now: Instant) -> core::time::Duration {
    core::time::Duration::from_nanos(now.as_nanos())
}
