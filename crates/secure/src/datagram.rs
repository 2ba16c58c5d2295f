//! Security of RDCA over UDP: handshakes, protected messages, and changes of addresses.
//!
//! [`Initiator`] is the sender's side, for hosts and small nodes; it needs only `alloc`.
//! [`Responder`] is the sink's side, for all senders. Both are sans-IO: time is a duration since
//! any fixed moment of a monotonic clock, entropy is a function, datagrams are byte slices.
//!
//! `docs/reference/sense-protocol.md` specifies the formats. What was learned elsewhere: the cookie
//! before any state and sessions that belong to no address from WireGuard, the challenge of a new
//! address from RFC 9000 section 8.2, the replay window from RFC 6479.

#[cfg(feature = "std")]
mod cookie;
mod initiator;
mod name;
mod proof;
#[cfg(feature = "std")]
mod responder;
mod session;
mod window;

pub use self::initiator::{Initiator, InitiatorCounters};
pub use self::name::{BadName, Name};
#[cfg(feature = "std")]
pub use self::proof::{AnyBegun, AnyProof};
pub use self::proof::{Clear, Forward, Handshake, Known, Proof, Shared};
#[cfg(feature = "std")]
pub use self::responder::{Accepts, Credential, PeerNumber, Received, Refusal, Responder, ResponderCounters};
pub use self::session::{Keys, NotOpen};

/// Largest number of bytes that [`Initiator::seal`] adds to a message: header and tag.
pub const OVERHEAD: usize = SEALED_HEADER + crate::layout::TAG;
/// Version of the protocol.
const VERSION: u8 = 1;

/// The first byte of a datagram.
mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const COOKIE: u8 = 2;
    pub(super) const WELCOME: u8 = 3;
    pub(super) const UNKNOWN: u8 = 4;
    pub(super) const SEALED: u8 = 5;
}

/// The third byte of a HELLO.
mod pattern {
    pub(super) const CLEAR: u8 = 0;
    pub(super) const KNOWN: u8 = 1;
    pub(super) const SHARED: u8 = 2;
    pub(super) const FORWARD: u8 = 3;
}

/// The first byte of a message that is not RDCA's.
mod inner {
    pub(super) const CHALLENGE: u8 = 1;
    pub(super) const RESPONSE: u8 = 2;
}

/// Length of type, version, pattern and session number in a HELLO, and of the same part of other
/// handshake datagrams.
const HEAD: usize = 8;
const COOKIE: usize = 16;
/// Offset of the body of a HELLO.
const HELLO_BODY: usize = HEAD + COOKIE;
/// Length of type, session number and packet number.
const SEALED_HEADER: usize = 9;
/// Length of the random part of a challenge.
const CHALLENGE: usize = 8;

/// The 4 bytes at `at`, as a number.
fn number(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Compares tags in a time that does not depend on their content.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (a, b)| core::hint::black_box(all | (a ^ b)));
    one.len() == other.len() && differences == 0
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests;
