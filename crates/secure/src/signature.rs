//! Detached Ed25519 signatures over files, for a node that hands on nothing that its owner has not signed.
//!
//! What is signed is not the file but its length and SHA-256, behind a text that no other program signs: the signature can be
//! checked before the first octet has come, and the octets against the digest as they come.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use ed25519_dalek::Signer;

use crate::octets::{Hex, KEY, from_hex};
#[cfg(feature = "std")]
use crate::octets::{NoEntropy, Secret};

/// Octets of a signature.
const SIGNATURE: usize = 64;

/// What a file is: its length and its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileDigest {
    /// Octets.
    pub length: u64,
    /// SHA-256 of them all.
    pub sha256: [u8; 32],
}

impl FileDigest {
    /// What is signed.
    fn statement(&self) -> [u8; STATEMENT.len() + 8 + 32] {
        let mut statement = [0; STATEMENT.len() + 8 + 32];
        statement[..STATEMENT.len()].copy_from_slice(STATEMENT);
        statement[STATEMENT.len()..STATEMENT.len() + 8].copy_from_slice(&self.length.to_be_bytes());
        statement[STATEMENT.len() + 8..].copy_from_slice(&self.sha256);
        statement
    }
}

const STATEMENT: &[u8; 28] = b"anabranch file signature, 1\n";

/// A signature (RFC 8032).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature(pub [u8; SIGNATURE]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hex(&self.0), f)
    }
}

/// A text that is no signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a signature is 128 hexadecimal digits")]
pub struct BadSignature;

impl FromStr for Signature {
    type Err = BadSignature;

    fn from_str(text: &str) -> Result<Self, BadSignature> {
        from_hex(text).map(Self).ok_or(BadSignature)
    }
}

/// Who signs: an Ed25519 private key. It is not shown by `Debug`.
///
/// It stays in one place while it is moved, and is overwritten there when it goes.
#[derive(Clone)]
pub struct SigningKey(Box<ed25519_dalek::SigningKey>);

/// Whose signatures are believed: an Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl SigningKey {
    /// A new one.
    ///
    /// # Errors
    /// The host has no entropy to give.
    #[cfg(feature = "std")]
    pub fn generate() -> Result<Self, NoEntropy> {
        Secret::random().map(|secret| Self::new(secret.octets()))
    }

    /// Of these octets.
    pub fn from_octets(octets: [u8; KEY]) -> Self {
        Self::new(&octets)
    }

    pub(crate) fn new(octets: &[u8; KEY]) -> Self {
        Self(Box::new(ed25519_dalek::SigningKey::from_bytes(octets)))
    }

    #[cfg(test)]
    pub(crate) fn place(&self) -> *const ed25519_dalek::SigningKey {
        &raw const *self.0
    }

    /// What others may know.
    pub fn verifying(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// Signs a file.
    pub fn sign(&self, file: &FileDigest) -> Signature {
        self.sign_octets(&file.statement())
    }

    /// Signs a statement that says itself what it is.
    pub(crate) fn sign_octets(&self, statement: &[u8]) -> Signature {
        Signature(self.0.sign(statement).to_bytes())
    }

    pub(crate) fn octets(&self) -> &[u8; KEY] {
        self.0.as_bytes()
    }
}

impl VerifyingKey {
    /// Of these octets; `None` if they are no point of the curve.
    pub fn from_octets(octets: &[u8; KEY]) -> Option<Self> {
        ed25519_dalek::VerifyingKey::from_bytes(octets).ok().map(Self)
    }

    /// Whether this key's owner has signed `file`.
    pub fn has_signed(&self, file: &FileDigest, signature: &Signature) -> bool {
        self.has_signed_octets(&file.statement(), signature)
    }

    pub(crate) fn has_signed_octets(&self, statement: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(statement, &signature).is_ok()
    }

    pub(crate) fn octets(&self) -> [u8; KEY] {
        self.0.to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey of {:?}", self.verifying())
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", Hex(self.0.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signer_s_signature_of_this_very_file_holds() {
        let (mine, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let file = FileDigest { length: 129_000, sha256: [7; 32] };
        let signature = mine.sign(&file);
        assert!(mine.verifying().has_signed(&file, &signature));
        assert!(!other.verifying().has_signed(&file, &signature));
        assert!(!mine.verifying().has_signed(&FileDigest { length: 129_001, ..file }, &signature));
        assert!(!mine.verifying().has_signed(&FileDigest { sha256: [8; 32], ..file }, &signature));
        for bit in 0..512 {
            let mut flipped = signature;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!mine.verifying().has_signed(&file, &flipped), "bit {bit}");
        }
    }
}
