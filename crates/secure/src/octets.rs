//! The octets of keys: where they come from and how they are shown.

use std::fmt;

use snow::resolvers::{CryptoResolver, DefaultResolver};

/// Octets of each key.
pub(crate) const KEY: usize = 32;

/// The host gives no random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host has no random numbers to give")]
pub struct NoEntropy;

/// Random octets for a key.
pub(crate) fn random() -> Result<[u8; KEY], NoEntropy> {
    let mut octets = [0; KEY];
    let mut random = DefaultResolver.resolve_rng().ok_or(NoEntropy)?;
    random.try_fill_bytes(&mut octets).map_err(|_| NoEntropy)?;
    Ok(octets)
}

/// Octets in hexadecimal.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Octets from hexadecimal, if they are just so many.
pub(crate) fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut octets = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let digit = |d: u8| char::from(d).to_digit(16);
        *octet = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(octets)
}
