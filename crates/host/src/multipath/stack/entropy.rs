//! Numbers that an attacker cannot predict, derived from one secret.

use std::net::SocketAddr;

use anabranch_core::segment::SeqNumber;
use anabranch_core::time::Instant;
use sha2::{Digest, Sha256};

/// A generator: SHA-256 of a secret and a counter.
pub(super) struct Entropy {
    seed: [u8; 32],
    drawn: u64,
}

impl std::fmt::Debug for Entropy {
    /// Does not print the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entropy").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

impl Entropy {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// The next number.
    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.digest(b"draw", &self.drawn.to_be_bytes())
    }

    /// The initial sequence number of a subflow (RFC 6528 section 3): a clock of 4 µs, and a secret
    /// offset for each pair of addresses.
    pub(super) fn iss(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> SeqNumber {
        let offset = self.digest(b"iss", format!("{local} {remote}").as_bytes());
        SeqNumber((now.as_nanos() / 4000) as u32) + offset as u32
    }

    fn digest(&self, purpose: &[u8], message: &[u8]) -> u64 {
        let hash =
            Sha256::new().chain_update(self.seed).chain_update(purpose).chain_update(message).finalize();
        hash.iter().take(8).fold(0, |number, octet| number << 8 | u64::from(*octet))
    }
}
