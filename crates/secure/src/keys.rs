//! Keys and their text format.
//!
//! A key is one line of text: its kind, a colon, and its bytes in hexadecimal. A key file has one
//! key per line; empty lines and lines that begin with `#` are ignored.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use curve25519_dalek::constants::X25519_BASEPOINT;

#[cfg(feature = "std")]
use crate::octets::NoEntropy;
use crate::octets::{Hex, KEY, Secret, from_hex};
use crate::signature::{SigningKey, VerifyingKey};

/// An X25519 private key. `Debug` does not show it, and drop overwrites it.
#[derive(Clone)]
pub struct SecretKey(Secret);

/// The public key of a [`SecretKey`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; KEY]);

/// A pre-shared key. `Debug` does not show it, and drop overwrites it.
#[derive(Clone)]
pub struct SharedKey(Secret);

impl SecretKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The host provides no entropy.
    #[cfg(feature = "std")]
    pub fn generate() -> Result<Self, NoEntropy> {
        Secret::random().map(Self)
    }

    /// Creates a key from these bytes, which X25519 clamps.
    pub fn from_octets(octets: [u8; KEY]) -> Self {
        Self(Secret::new(&octets))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(X25519_BASEPOINT.mul_clamped(*self.octets()).to_bytes())
    }

    pub(crate) const fn octets(&self) -> &[u8; KEY] {
        self.0.octets()
    }
}

impl SharedKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The host provides no entropy.
    #[cfg(feature = "std")]
    pub fn generate() -> Result<Self, NoEntropy> {
        Secret::random().map(Self)
    }

    /// Creates a key from these bytes.
    pub fn from_octets(octets: [u8; KEY]) -> Self {
        Self(Secret::new(&octets))
    }

    pub(crate) const fn octets(&self) -> &[u8; KEY] {
        self.0.octets()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey of {}", self.public())
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", kind::PUBLIC, Hex(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        match text.parse()? {
            KeyText::Public(key) => Ok(key),
            other => Err(BadKey::Other { wanted: kind::PUBLIC, is: other.kind() }),
        }
    }
}

/// The words before the colon.
mod kind {
    pub(super) const SECRET: &str = "x25519-secret";
    pub(super) const PUBLIC: &str = "x25519";
    pub(super) const SHARED: &str = "psk";
    pub(super) const SIGNING: &str = "ed25519-secret";
    pub(super) const VERIFYING: &str = "ed25519";
}

/// A key of any kind, as parsed from a file.
#[derive(Clone, Debug)]
pub enum KeyText {
    /// `x25519-secret:…`
    Secret(SecretKey),
    /// `x25519:…`
    Public(PublicKey),
    /// `psk:…`
    Shared(SharedKey),
    /// `ed25519-secret:…`
    Signing(SigningKey),
    /// `ed25519:…`
    Verifying(VerifyingKey),
}

/// A text that is not a key, or a key of the wrong kind. The error does not repeat the text, which
/// may be a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// The word before the colon is unknown.
    #[error("not a key: expected x25519:, x25519-secret:, psk:, ed25519: or ed25519-secret: at the start")]
    Kind,
    /// The text after the colon is not 64 hexadecimal digits.
    #[error("not a key: expected 64 hexadecimal digits after the colon")]
    Digits,
    /// The bytes are not a point of the curve.
    #[error("not a valid Ed25519 public key")]
    Point,
    /// The key has another kind.
    #[error("expected a key of kind `{wanted}`, found `{is}`")]
    Other {
        /// The required kind.
        wanted: &'static str,
        /// The actual kind.
        is: &'static str,
    },
}

impl KeyText {
    /// The word before the colon.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Secret(_) => kind::SECRET,
            Self::Public(_) => kind::PUBLIC,
            Self::Shared(_) => kind::SHARED,
            Self::Signing(_) => kind::SIGNING,
            Self::Verifying(_) => kind::VERIFYING,
        }
    }

    /// True if the key must not be disclosed.
    pub const fn is_secret(&self) -> bool {
        match self {
            Self::Secret(_) | Self::Shared(_) | Self::Signing(_) => true,
            Self::Public(_) | Self::Verifying(_) => false,
        }
    }

    /// The public key of a private key; `None` for other kinds.
    pub fn public(&self) -> Option<Self> {
        match self {
            Self::Secret(key) => Some(Self::Public(key.public())),
            Self::Signing(key) => Some(Self::Verifying(key.verifying())),
            Self::Public(_) | Self::Shared(_) | Self::Verifying(_) => None,
        }
    }

    /// The line for a key file. The type does not implement `Display`, so that no secret is printed
    /// by mistake.
    pub fn to_line(&self) -> String {
        let line = |octets: &[u8]| format!("{}:{}", self.kind(), Hex(octets));
        match self {
            Self::Secret(key) => line(key.octets()),
            Self::Public(key) => line(&key.0),
            Self::Shared(key) => line(key.octets()),
            Self::Signing(key) => line(key.octets()),
            Self::Verifying(key) => line(&key.octets()),
        }
    }

    /// Parses all keys of a key file.
    ///
    /// # Errors
    /// The number of the first invalid line, counted from 1, and the reason.
    pub fn all(text: &str) -> Result<Vec<Self>, (usize, BadKey)> {
        let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
        let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        keys.map(|(number, line)| line.parse().map_err(|error| (number, error))).collect()
    }
}

impl FromStr for KeyText {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let (word, digits) = text.trim().split_once(':').ok_or(BadKey::Kind)?;
        let octets = || from_hex(digits).ok_or(BadKey::Digits);
        let secret = || Secret::from_hex(digits).ok_or(BadKey::Digits);
        Ok(match word {
            kind::SECRET => Self::Secret(SecretKey(secret()?)),
            kind::PUBLIC => Self::Public(PublicKey(octets()?)),
            kind::SHARED => Self::Shared(SharedKey(secret()?)),
            kind::SIGNING => Self::Signing(SigningKey::new(secret()?.octets())),
            kind::VERIFYING => Self::Verifying(VerifyingKey::from_octets(&octets()?).ok_or(BadKey::Point)?),
            _ => return Err(BadKey::Kind),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7748 section 6.1.
    #[test]
    fn a_public_key_is_that_of_the_standard() {
        let private = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
        let public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
        let key: KeyText = format!("x25519-secret:{private}").parse().unwrap();
        assert_eq!(key.public().unwrap().to_line(), format!("x25519:{public}"));
    }

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        let secret = SecretKey::generate().unwrap();
        let signing = SigningKey::generate().unwrap();
        let keys = [
            KeyText::Public(secret.public()),
            KeyText::Secret(secret),
            KeyText::Shared(SharedKey::generate().unwrap()),
            KeyText::Verifying(signing.verifying()),
            KeyText::Signing(signing),
        ];
        let file = keys.iter().map(|key| format!("# a key\n\n {} \n", key.to_line())).collect::<String>();
        let read = KeyText::all(&file).unwrap();
        let lines = |keys: &[KeyText]| keys.iter().map(KeyText::to_line).collect::<Vec<_>>();
        assert_eq!(lines(&read), lines(&keys));
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_line_and_without_its_text() {
        let bad = |text: &str| KeyText::all(text).unwrap_err();
        assert_eq!(bad("# one\nx25519:00"), (2, BadKey::Digits));
        assert_eq!(bad(&format!("\n\nrsa:{}", "0".repeat(64))), (3, BadKey::Kind));
        assert_eq!(bad("secret"), (1, BadKey::Kind));
        assert_eq!(bad(&format!("x25519:{}", "é".repeat(32))), (1, BadKey::Digits));
        let secret = SecretKey::generate().unwrap();
        let line = KeyText::Secret(secret.clone()).to_line();
        let error = line.parse::<PublicKey>().unwrap_err();
        assert!(!error.to_string().contains(&line[20..]));
        assert!(!format!("{secret:?}").contains(&line[14..]));
    }
}
