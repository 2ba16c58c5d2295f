//! SUIT envelopes: the input itself, or the input as a part of an envelope with correct lengths and
//! digest.

use std::mem::discriminant;

use anabranch_secure::SigningKey;
use anabranch_secure::manifest::Envelope;
use sha2::{Digest, Sha256};

use crate::probe::Probe;

/// The first byte says which part the rest is: the envelope, the manifest, the common section, or a
/// shared sequence.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((part, rest)) = input.split_first() else { return };
    let part = part % 4;
    let mut octets = rest.to_vec();
    if part == 3 {
        // { 2: [[h'00']], 4: ... }
        octets = [&[0xa2, 2, 0x81, 0x81, 0x41, 0, 4][..], &bytes(&octets)].concat();
    }
    if part >= 2 {
        // { 1: 1, 2: 0, 3: ... }
        octets = [&[0xa3, 1, 1, 2, 0, 3][..], &bytes(&octets)].concat();
    }
    if part >= 1 {
        octets = envelope(&octets);
    }
    let read = Envelope::read(&octets);
    probe.say(|| format!("{read:?}"));
    let envelope = match read {
        Ok(envelope) => envelope,
        Err(error) => return probe.feature((part, discriminant(&error), error.to_string())),
    };
    let manifest = envelope.manifest();
    probe.feature((part, manifest.use_before.is_some(), manifest.component.len() / 16));
    let key = SigningKey::from_octets([7; 32]);
    assert!(!envelope.is_signed_by(&key.verifying()), "nobody has signed it");
    let signed = manifest.sign(&key);
    let again = Envelope::read(&signed).expect("what was read can be written");
    assert_eq!(again.manifest(), manifest);
    assert!(again.is_signed_by(&key.verifying()));
}

/// Encodes a byte string.
fn bytes(octets: &[u8]) -> Vec<u8> {
    let n = octets.len();
    let mut head = match n {
        0..24 => vec![0x40 | n as u8],
        24..256 => vec![0x58, n as u8],
        _ => vec![0x59, (n >> 8) as u8, n as u8],
    };
    head.extend_from_slice(octets);
    head
}

/// An envelope with this manifest and a signature of 64 zeros.
fn envelope(manifest: &[u8]) -> Vec<u8> {
    let manifest = bytes(manifest);
    let digest = [&[0x82, 0x2f][..], &bytes(&Sha256::digest(&manifest))].concat();
    let sign1 = [&[0xd2, 0x84, 0x43, 0xa1, 1, 0x27, 0xa0, 0xf6][..], &bytes(&[0; 64])].concat();
    let authentication = [&[0x82][..], &bytes(&digest), &bytes(&sign1)].concat();
    [&[0xd8, 107, 0xa2, 2][..], &bytes(&authentication), &[3], &manifest].concat()
}
