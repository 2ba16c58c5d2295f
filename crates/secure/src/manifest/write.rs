//! Writes envelopes and manifests.

use alloc::vec::Vec;
use core::convert::Infallible;

use minicbor::Encoder;
use minicbor::data::Tag;
use minicbor::encode::Error;
use sha2::{Digest, Sha256};

use super::{Manifest, label};
use crate::signature::SigningKey;

type Written = Result<(), Error<Infallible>>;

/// Reporting policy of a condition: all records, as in the examples of the draft. Nothing is
/// reported here.
const POLICY: u8 = 15;

fn cbor(write: impl FnOnce(&mut Encoder<Vec<u8>>) -> Written) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    write(&mut encoder).expect("a vector takes everything");
    encoder.into_writer()
}

/// A SUIT_Digest.
fn digest(sha256: &[u8]) -> Vec<u8> {
    cbor(|e| e.array(2)?.i64(label::SHA256)?.bytes(sha256)?.ok())
}

/// The bytes that an Ed25519 signature covers: COSE's Sig_structure (RFC 9052, section 4.4).
pub(super) fn statement(protected: &[u8], payload: &[u8]) -> Vec<u8> {
    // Without minicbor and in one allocation: a small node has no memory to spare.
    let mut statement = Vec::with_capacity(protected.len() + payload.len() + super::STATEMENT_OVERHEAD);
    statement.extend_from_slice(b"\x84\x6aSignature1");
    for octets in [protected, &[], payload] {
        let n = octets.len();
        match n {
            0..=23 => statement.push(0x40 | n as u8),
            24..=255 => statement.extend_from_slice(&[0x58, n as u8]),
            // No part of an envelope is longer than 65535 bytes.
            _ => statement.extend_from_slice(&[0x59, (n >> 8) as u8, n as u8]),
        }
        statement.extend_from_slice(octets);
    }
    statement
}

/// The envelope with this manifest, signed by each of `keys`.
pub(super) fn envelope(content: &[u8], keys: &[&SigningKey]) -> Vec<u8> {
    let manifest = cbor(|e| e.bytes(content)?.ok());
    // The digest covers the byte string with its head (section 8.3 of the draft).
    let digest = digest(&Sha256::digest(&manifest));
    let authentication = cbor(|e| {
        e.array(1 + keys.len() as u64)?.bytes(&digest)?;
        for key in keys {
            e.bytes(&block(&digest, key))?;
        }
        e.ok()
    });
    let mut envelope = cbor(|e| {
        e.tag(Tag::new(label::ENVELOPE))?.map(2)?;
        e.u64(label::AUTHENTICATION)?.bytes(&authentication)?.u64(label::MANIFEST)?.ok()
    });
    envelope.extend_from_slice(&manifest);
    envelope
}

/// A COSE_Sign1 over the SUIT_Digest beside it.
fn block(digest: &[u8], key: &SigningKey) -> Vec<u8> {
    let protected = cbor(|e| e.map(1)?.u64(label::ALGORITHM)?.i64(label::EDDSA)?.ok());
    let signature = key.sign_octets(&statement(&protected, digest));
    cbor(|e| {
        e.tag(Tag::new(label::SIGN1))?.array(4)?.bytes(&protected)?;
        e.map(0)?.null()?.bytes(&signature.0)?.ok()
    })
}

impl Manifest<'_> {
    /// Returns the envelope with this manifest and one signature, encoded deterministically.
    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
        envelope(&self.octets(), &[key])
    }

    pub(super) fn octets(&self) -> Vec<u8> {
        let common = cbor(|e| {
            e.map(2)?.u64(label::COMPONENTS)?.array(1)?.array(1)?.bytes(self.component)?;
            e.u64(label::SHARED)?.bytes(&self.shared())?.ok()
        });
        let validate = cbor(|e| e.array(2)?.u64(label::IMAGE)?.u8(POLICY)?.ok());
        cbor(|e| {
            e.map(4)?.u64(label::VERSION)?.u8(1)?.u64(label::SEQUENCE)?.u64(self.sequence)?;
            e.u64(label::COMMON)?.bytes(&common)?.u64(label::VALIDATE)?.bytes(&validate)?.ok()
        })
    }

    /// The shared sequence: parameters, and the conditions that make a device check them.
    fn shared(&self) -> Vec<u8> {
        let expires = u64::from(self.use_before.is_some());
        cbor(|e| {
            e.array(6 + 2 * expires)?.u64(label::OVERRIDE)?.map(4 + expires)?;
            e.u64(label::VENDOR)?.bytes(&self.vendor)?.u64(label::CLASS)?.bytes(&self.class)?;
            e.u64(label::IMAGE)?.bytes(&digest(&self.file.sha256))?;
            if let Some(end) = self.use_before {
                e.u64(label::USE_BEFORE)?.u64(end)?;
            }
            e.u64(label::SIZE)?.u64(self.file.length)?;
            e.u64(label::VENDOR)?.u8(POLICY)?.u64(label::CLASS)?.u8(POLICY)?;
            if self.use_before.is_some() {
                e.u64(label::USE_BEFORE)?.u8(POLICY)?;
            }
            e.ok()
        })
    }
}
