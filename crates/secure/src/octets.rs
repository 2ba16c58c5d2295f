//! The bytes of keys: generation, hexadecimal form, and overwriting on drop.

use alloc::boxed::Box;
use core::fmt;

#[cfg(feature = "std")]
use snow::resolvers::{CryptoResolver, DefaultResolver};

/// Length of each key in bytes.
pub(crate) const KEY: usize = 32;

/// The host provides no random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the operating system provides no random numbers")]
pub struct NoEntropy;

/// Fills `octets` with random bytes of the operating system.
///
/// # Errors
/// The host provides none.
#[cfg(feature = "std")]
pub fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
    let mut random = DefaultResolver.resolve_rng().ok_or(NoEntropy)?;
    random.try_fill_bytes(octets).map_err(|_| NoEntropy)
}

/// The bytes of a secret key. They are boxed because moving an unboxed value would leave a copy
/// behind. Drop overwrites them.
#[derive(Clone)]
pub(crate) struct Secret(Box<[u8; KEY]>);

impl Secret {
    /// Generates random bytes.
    #[cfg(feature = "std")]
    pub(crate) fn random() -> Result<Self, NoEntropy> {
        let mut secret = Self(Box::new([0; KEY]));
        entropy(&mut secret.0[..])?;
        Ok(secret)
    }

    /// Copies these bytes. The caller overwrites the original.
    pub(crate) fn new(octets: &[u8; KEY]) -> Self {
        let mut secret = Self(Box::new([0; KEY]));
        secret.0.copy_from_slice(octets);
        secret
    }

    /// Parses hexadecimal; `None` unless the length is exact.
    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        let mut secret = Self(Box::new([0; KEY]));
        read_hex(digits, &mut secret.0[..]).then_some(secret)
    }

    pub(crate) const fn octets(&self) -> &[u8; KEY] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        overwrite(&mut self.0);
        #[cfg(test)]
        tests::LEFT.set(*self.0);
    }
}

/// Overwrites the bytes. The value is not read again, so without care the optimiser would remove
/// the write.
fn overwrite(octets: &mut [u8; KEY]) {
    *octets = [0; KEY];
    core::hint::black_box(octets);
}

/// Formats bytes in hexadecimal.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Parses exactly `N` bytes of hexadecimal.
pub(crate) fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut octets = [0; N];
    read_hex(digits, &mut octets).then_some(octets)
}

fn read_hex(digits: &str, octets: &mut [u8]) -> bool {
    let digit = |d: u8| char::from(d).to_digit(16);
    digits.len() == 2 * octets.len()
        && digits.as_bytes().chunks(2).zip(octets).all(|(pair, octet)| {
            let value = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| (high * 16 + low) as u8);
            *octet = value.unwrap_or_default();
            value.is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    std::thread_local! {
        /// Content of the memory of the last dropped key.
        pub(super) static LEFT: core::cell::Cell<[u8; KEY]> = const { core::cell::Cell::new([0xff; KEY]) };
    }

    #[test]
    fn nothing_is_left_of_a_key_that_goes() {
        let secret = Secret::new(&[0xa5; KEY]);
        LEFT.set([0xff; KEY]);
        drop(secret);
        assert_eq!(LEFT.get(), [0; KEY]);
    }

    /// A move of a key does not move its bytes, so no copy remains that is not overwritten.
    #[test]
    fn a_key_that_is_moved_leaves_no_copy() {
        use crate::{KeyText, SecretKey, SharedKey, SigningKey, WhoMay};
        let secret = SecretKey::generate().unwrap();
        let place = secret.octets().as_ptr();
        let who = WhoMay { own: Some(secret), ..WhoMay::default() };
        let boxed = Box::new(who);
        assert_eq!(boxed.own.as_ref().unwrap().octets().as_ptr(), place);
        let shared = SharedKey::generate().unwrap();
        let place = shared.octets().as_ptr();
        let key = Box::new(KeyText::Shared(shared));
        let KeyText::Shared(moved) = &*key else { panic!("it is one") };
        assert_eq!(moved.octets().as_ptr(), place);
        let signing = SigningKey::generate().unwrap();
        let place = signing.place();
        let key = Box::new(KeyText::Signing(signing));
        let KeyText::Signing(moved) = &*key else { panic!("it is one") };
        assert_eq!(moved.place(), place);
    }
}
