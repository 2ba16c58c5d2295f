//! Values derived from keys (RFC 8684 sections 3.1, 3.2 and 3.4.1) with the algorithms of version
//! 1: SHA-256 and HMAC-SHA256.

use core::net::IpAddr;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::segment::{AddressId, DataSeqNumber, Key, Token};

/// A key with its token and initial data sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) key: Key,
    pub(crate) token: Token,
    /// Initial data sequence number.
    pub(crate) idsn: DataSeqNumber,
}

impl Identity {
    pub(crate) fn new(key: Key) -> Self {
        let hash: [u8; 32] = Sha256::digest(key.0.to_be_bytes()).into();
        let mut head = [0; 4];
        let mut tail = [0; 8];
        head.copy_from_slice(&hash[..4]);
        tail.copy_from_slice(&hash[24..]);
        Self { key, token: Token(u32::from_be_bytes(head)), idsn: DataSeqNumber(u64::from_be_bytes(tail)) }
    }
}

/// The token of a connection whose key is `key` (RFC 8684 section 3.1).
pub fn token_of(key: Key) -> Token {
    Identity::new(key).token
}

/// Keys or nonces of both hosts; first that of the host whose HMAC it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered<T> {
    pub(crate) of: T,
    pub(crate) other: T,
}

/// HMAC of a host that opens or answers a subflow.
pub(crate) fn join_hmac(keys: Ordered<Key>, nonces: Ordered<u32>) -> [u8; 32] {
    let message = [nonces.of.to_be_bytes(), nonces.other.to_be_bytes()].concat();
    hmac(keys, &message)
}

/// The leftmost 64 bits of an HMAC, for a SYN/ACK.
pub(crate) fn leftmost_64(hmac: &[u8; 32]) -> u64 {
    let mut head = [0; 8];
    head.copy_from_slice(&hmac[..8]);
    u64::from_be_bytes(head)
}

/// The leftmost 160 bits of an HMAC, for the third segment.
pub(crate) fn leftmost_160(hmac: &[u8; 32]) -> [u8; 20] {
    let mut head = [0; 20];
    head.copy_from_slice(&hmac[..20]);
    head
}

/// The rightmost 64 bits of the HMAC over an address, for an ADD_ADDR.
pub(crate) fn address_hmac(keys: Ordered<Key>, id: AddressId, address: IpAddr, port: Option<u16>) -> u64 {
    let port = port.unwrap_or(0).to_be_bytes();
    let hmac = match address {
        IpAddr::V4(address) => hmac(keys, &[&[id.0], &address.octets()[..], &port].concat()),
        IpAddr::V6(address) => hmac(keys, &[&[id.0], &address.octets()[..], &port].concat()),
    };
    let mut tail = [0; 8];
    tail.copy_from_slice(&hmac[24..]);
    u64::from_be_bytes(tail)
}

fn hmac(keys: Ordered<Key>, message: &[u8]) -> [u8; 32] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&keys.of.0.to_be_bytes());
    key[8..].copy_from_slice(&keys.other.0.to_be_bytes());
    // A key up to the length of a block is padded with zeros (RFC 2104), so every length is
    // accepted.
    let mut block = [0; 64];
    block[..16].copy_from_slice(&key);
    let mut mac = <Hmac<Sha256> as Mac>::new(&block.into());
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 has no test with a key of 16 bytes; this is the construction of RFC 2104 by hand.
    #[test]
    fn hmac_is_that_of_rfc_2104() {
        let keys = Ordered { of: Key(0x0102_0304_0506_0708), other: Key(0x1112_1314_1516_1718) };
        let mut key = [0_u8; 64];
        key[..8].copy_from_slice(&keys.of.0.to_be_bytes());
        key[8..16].copy_from_slice(&keys.other.0.to_be_bytes());
        let inner = Sha256::digest([&key.map(|k| k ^ 0x36)[..], b"text"].concat());
        let outer = Sha256::digest([&key.map(|k| k ^ 0x5c)[..], &inner[..]].concat());
        assert_eq!(hmac(keys, b"text"), <[u8; 32]>::from(outer));
    }

    #[test]
    fn token_and_first_number_are_ends_of_the_hash() {
        // SHA-256 of eight zero bytes: af5570f5 a1810b7a f78caf4b c70a660f 0df51e42 baf91d4d
        // e5b2328d e0e83dfc.
        let identity = Identity::new(Key(0));
        assert_eq!(identity.token, Token(0xaf55_70f5));
        assert_eq!(identity.idsn, DataSeqNumber(0xe5b2_328d_e0e8_3dfc));
    }
}
