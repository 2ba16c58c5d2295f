//! Security of deployed SET: keys, Noise handshakes, records and signatures for SET over networks
//! that its users do not trust.
//!
//! Sans-IO: bytes in, bytes out. There is no clock, no socket and no file here; entropy is the
//! host's. A [`Guard`] stands between the socket of one stream and the machine that it belongs to.
//! The machine speaks plaintext and knows nothing of it.
//!
//! What is on the wire, byte by byte: `docs/explanation/set-security.md`.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

#[cfg(feature = "std")]
mod frames;
#[cfg(feature = "std")]
mod gateway;
mod greeting;
#[cfg(feature = "std")]
mod guard;
mod keys;
mod layout;
#[cfg(feature = "manifest")]
pub mod manifest;
#[cfg(feature = "std")]
mod node;
mod octets;
#[cfg(feature = "std")]
mod record;
#[cfg(feature = "std")]
mod roster;
#[cfg(feature = "std")]
mod sender;
mod signature;
pub mod small;

#[cfg(feature = "std")]
pub use self::gateway::Doorkeeper;
#[cfg(feature = "std")]
pub use self::guard::{Guard, Refused};
pub use self::keys::{BadKey, KeyText, PublicKey, SecretKey, SharedKey};
pub use self::layout::OVERHEAD;
#[cfg(feature = "std")]
pub use self::node::{NodeKeys, WhoMay};
pub use self::octets::NoEntropy;
#[cfg(feature = "std")]
pub use self::record::{MAX_PLAIN, TransferKeys};
#[cfg(feature = "std")]
pub use self::roster::{Ledger, Peer};
#[cfg(feature = "std")]
pub use self::sender::{Acquaintance, SenderKeys};
pub use self::signature::{BadSignature, FileDigest, Signature, SigningKey, VerifyingKey};
