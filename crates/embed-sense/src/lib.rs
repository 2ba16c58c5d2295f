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

use anabranch_core::rdca::SenderConfig;
use anabranch_core::time::Instant;
use anabranch_secure::datagram::OVERHEAD;

/// Options of a sender whose UDP datagrams have at most `datagram` bytes and whose queue has
/// `packets` packets. It never gives up.
pub fn sender_config(datagram: u16, packets: u16) -> SenderConfig {
    SenderConfig::deployed(datagram.saturating_sub(OVERHEAD as u16), packets)
}

/// The time of the machines as the time of their sessions.
pub fn since_start(now: Instant) -> core::time::Duration {
    core::time::Duration::from_nanos(now.as_nanos())
}
