//! Security of deployed SET and RDCA: keys, Noise handshakes, encrypted records and datagrams, and
//! signatures, for untrusted networks.
//!
//! The crate is sans-IO: it maps input bytes to output bytes and has no clock, no socket and no
//! file access. The host provides entropy. A [`Guard`] encrypts one stream between its socket and
//! its protocol machine, which handles only plaintext.
//!
//! `docs/explanation/set-security.md` specifies the wire format of SET byte by byte,
//! `docs/reference/sense-protocol.md` that of [`datagram`].

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod datagram;
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
mod noise;
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
pub use self::octets::entropy;
#[cfg(feature = "std")]
pub use self::record::{MAX_PLAIN, TransferKeys};
#[cfg(feature = "std")]
pub use self::roster::{Ledger, Peer};
#[cfg(feature = "std")]
pub use self::sender::{Acquaintance, SenderKeys};
pub use self::signature::{BadSignature, FileDigest, Signature, SigningKey, VerifyingKey};
