//! Detached Ed25519 signatures over files, for a node that accepts only files signed by its owner.
//!
//! The signature covers not the file but its length and SHA-256, after a text that no other program
//! signs. The signature can therefore be checked before the first byte arrives, and the bytes
//! against the digest as they arrive.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use ed25519_dalek::Signer;

use crate::octets::{Hex, KEY, from_hex};
#[cfg(feature = "std")]
use crate::octets::{NoEntropy, Secret};

/// Length of a signature in bytes.
const SIGNATURE: usize = 64;

/// Identifies a file by length and SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileDigest {
    /// Length in bytes.
    pub length: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
}

impl FileDigest {
    /// The bytes that are signed.
    fn statement(&self) -> [u8; STATEMENT.len() + 8 + 32] {
        let mut statement = [0; STATEMENT.len() + 8 + 32];
        statement[..STATEMENT.len()].copy_from_slice(STATEMENT);
        statement[STATEMENT.len()..STATEMENT.len() + 8].copy_from_slice(&self.length.to_be_bytes());
        statement[STATEMENT.len() + 8..].copy_from_slice(&self.sha256);
        statement
    }
}

const STATEMENT: &[u8; 28] = b"anabranch file signature, 1\n";

/// An Ed25519 signature (RFC 8032).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature(pub [u8; SIGNATURE]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hex(&self.0), f)
    }
}

/// A text that is not a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a signature: expected 128 hexadecimal digits")]
pub struct BadSignature;

impl FromStr for Signature {
    type Err = BadSignature;

    fn from_str(text: &str) -> Result<Self, BadSignature> {
        from_hex(text).map(Self).ok_or(BadSignature)
    }
}

/// The signer's Ed25519 private key. `Debug` does not show it.
///
/// A move does not copy its bytes, and drop overwrites them.
#[derive(Clone)]
pub struct SigningKey(Box<ed25519_dalek::SigningKey>);

/// The Ed25519 public key of a trusted signer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The host provides no entropy.
    #[cfg(feature = "std")]
    pub fn generate() -> Result<Self, NoEntropy> {
        Secret::random().map(|secret| Self::new(secret.octets()))
    }

    /// Creates a key from these bytes.
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

    /// The public key.
    pub fn verifying(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// Signs a file.
    pub fn sign(&self, file: &FileDigest) -> Signature {
        self.sign_octets(&file.statement())
    }

    /// Signs a statement that identifies its own purpose.
    pub(crate) fn sign_octets(&self, statement: &[u8]) -> Signature {
        Signature(self.0.sign(statement).to_bytes())
    }

    pub(crate) fn octets(&self) -> &[u8; KEY] {
        self.0.as_bytes()
    }
}

impl VerifyingKey {
    /// Creates a key from these bytes; `None` if they are not a point of the curve.
    pub fn from_octets(octets: &[u8; KEY]) -> Option<Self> {
        ed25519_dalek::VerifyingKey::from_bytes(octets).ok().map(Self)
    }

    /// True if `signature` is a valid signature of this key over `file`.
    pub fn has_signed(&self, file: &FileDigest, signature: &Signature) -> bool {
        self.has_signed_octets(&file.statement(), signature)
    }

    pub(crate) fn has_signed_octets(&self, statement: &[u8], signature: &Signature) -> bool {
        #[cfg(feature = "std")]
        {
            let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
            self.0.verify_strict(statement, &signature).is_ok()
        }
        #[cfg(not(feature = "std"))]
        small::holds(&self.0, statement, &signature.0)
    }

    /// The bytes of the key.
    pub fn octets(&self) -> [u8; KEY] {
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

/// The check of `ed25519_dalek`'s `verify_strict`, with two single multiplications in sequence
/// instead of one double multiplication: slower, but with 3 kB less stack.
#[cfg(any(test, not(feature = "std")))]
mod small {
    use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
    use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
    use curve25519_dalek::scalar::Scalar;
    use sha2::{Digest, Sha512};

    use super::SIGNATURE;

    /// Verification as in RFC 8032, section 5.1.7, without cofactors. Points of small order are
    /// refused, since their signatures are valid for many statements.
    pub(super) fn holds(
        key: &ed25519_dalek::VerifyingKey,
        statement: &[u8],
        signature: &[u8; SIGNATURE],
    ) -> bool {
        let (Some(r), Some(s)) = (signature.first_chunk::<32>(), signature.last_chunk::<32>()) else {
            return false;
        };
        let Some(s) = Option::<Scalar>::from(Scalar::from_canonical_bytes(*s)) else { return false };
        if !is_of_large_order(r) || !is_of_large_order(key.as_bytes()) {
            return false;
        }
        let negated = product(&-EdwardsPoint::from(*key), &challenge(r, key.as_bytes(), statement));
        sum(&negated, &product(&ED25519_BASEPOINT_POINT, &s)).as_bytes() == r
    }

    // Separate functions without inlining, so that the stack of each is free before the next one
    // runs.

    #[inline(never)]
    fn is_of_large_order(point: &[u8; 32]) -> bool {
        CompressedEdwardsY(*point).decompress().is_some_and(|point| !point.is_small_order())
    }

    #[inline(never)]
    fn challenge(r: &[u8; 32], key: &[u8; 32], statement: &[u8]) -> Scalar {
        let hash = Sha512::new().chain_update(r).chain_update(key).chain_update(statement).finalize();
        Scalar::from_bytes_mod_order_wide(&hash.into())
    }

    #[inline(never)]
    fn product(point: &EdwardsPoint, scalar: &Scalar) -> EdwardsPoint {
        point * scalar
    }

    #[inline(never)]
    fn sum(a: &EdwardsPoint, b: &EdwardsPoint) -> CompressedEdwardsY {
        (a + b).compress()
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

    /// Both implementations agree on valid signatures, on changed ones, and on those that only a
    /// lax check accepts.
    #[test]
    fn the_small_check_agrees_with_the_library_s() {
        use curve25519_dalek::constants::EIGHT_TORSION;
        use curve25519_dalek::scalar::Scalar;

        let agree = |key: &ed25519_dalek::VerifyingKey, statement: &[u8], signature: [u8; 64]| {
            let theirs = key.verify_strict(statement, &ed25519_dalek::Signature::from_bytes(&signature));
            let ours = small::holds(key, statement, &signature);
            assert_eq!(ours, theirs.is_ok(), "{signature:02x?}");
            ours
        };
        for octet in 0..20 {
            let mine = SigningKey::from_octets([octet; 32]);
            let key = mine.verifying().0;
            let statement = vec![octet; usize::from(octet) * 7];
            let signature = mine.sign_octets(&statement).0;
            assert!(agree(&key, &statement, signature));
            assert!(!agree(&key, b"another", signature));
            for bit in 0..512 {
                let mut flipped = signature;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(!agree(&key, &statement, flipped), "bit {bit}");
            }
            // The same scalar, not reduced: the group order is added.
            let order = -Scalar::ONE;
            let mut carry = 1u16;
            let mut long = signature;
            for (octet, more) in long[32..].iter_mut().zip(order.as_bytes()) {
                carry += u16::from(*octet) + u16::from(*more);
                *octet = carry as u8;
                carry >>= 8;
            }
            assert!(!agree(&key, &statement, long), "a scalar that is not canonical");
        }
        // A key and a point of small order: with the scalar 0 the equation holds for any statement.
        for key in EIGHT_TORSION {
            let Ok(key) = ed25519_dalek::VerifyingKey::from_bytes(key.compress().as_bytes()) else {
                continue;
            };
            for r in EIGHT_TORSION {
                let mut signature = [0; 64];
                signature[..32].copy_from_slice(r.compress().as_bytes());
                assert!(!agree(&key, b"anything", signature));
            }
        }
    }
}
