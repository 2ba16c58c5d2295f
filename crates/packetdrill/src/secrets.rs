//! Tokens, initial numbers and HMACs of Multipath TCP, implemented a second time to check the
//! first.

use std::net::IpAddr;

use anabranch_core::segment::{AddAddr, DataSeqNumber, Key, Token};
use sha2::{Digest, Sha256};

/// The most significant 32 bits of the hash of a key (RFC 8684 section 3.2).
pub fn token(key: Key) -> Token {
    let [a, b, c, d, ..] = hash(&[&key.0.to_be_bytes()]);
    Token(u32::from_be_bytes([a, b, c, d]))
}

/// The initial data sequence number: the least significant 64 bits of the hash of a key (RFC 8684
/// section 3.1). The first byte has the next number.
pub fn initial(key: Key) -> DataSeqNumber {
    DataSeqNumber(last_64(&hash(&[&key.0.to_be_bytes()])))
}

/// HMAC of the host with key and nonce `of` towards `other` (RFC 8684 section 3.2).
pub fn join(of: (Key, u32), other: (Key, u32)) -> [u8; 32] {
    hmac(of.0, other.0, &[of.1.to_be_bytes(), other.1.to_be_bytes()].concat())
}

/// The HMAC of an announced address, truncated to the last 64 bits (RFC 8684 section 3.4.1).
pub fn address(of: Key, other: Key, add: &AddAddr) -> u64 {
    let mut message = vec![add.id.0];
    match add.address {
        IpAddr::V4(address) => message.extend(address.octets()),
        IpAddr::V6(address) => message.extend(address.octets()),
    }
    message.extend(add.port.unwrap_or(0).to_be_bytes());
    last_64(&hmac(of, other, &message))
}

/// RFC 2104 with SHA-256 and both keys.
fn hmac(of: Key, other: Key, message: &[u8]) -> [u8; 32] {
    let mut key = [0; 64];
    key[..8].copy_from_slice(&of.0.to_be_bytes());
    key[8..16].copy_from_slice(&other.0.to_be_bytes());
    let inner = hash(&[&key.map(|octet| octet ^ 0x36), message]);
    hash(&[&key.map(|octet| octet ^ 0x5c), &inner])
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    Sha256::digest(parts.concat()).into()
}

fn last_64(hash: &[u8; 32]) -> u64 {
    let mut tail = [0; 8];
    tail.copy_from_slice(&hash[24..]);
    u64::from_be_bytes(tail)
}
