use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::signature::SigningKey;

const FILE: FileDigest = FileDigest { length: 129_000, sha256: [7; 32] };

fn manifest() -> Manifest<'static> {
    Manifest {
        sequence: 3,
        vendor: [1; 16],
        class: [2; 16],
        component: b"firmware",
        file: FILE,
        use_before: Some(1_800_000_000),
    }
}

fn key() -> SigningKey {
    SigningKey::from_octets([5; 32])
}

#[test]
fn what_is_signed_is_read_as_it_was_and_by_its_signer_alone() {
    for use_before in [None, Some(0), Some(u64::MAX)] {
        let manifest = Manifest { use_before, ..manifest() };
        let octets = manifest.sign(&key());
        let envelope = Envelope::read(&octets).unwrap();
        assert_eq!(*envelope.manifest(), manifest);
        assert!(envelope.is_signed_by(&key().verifying()));
        assert!(!envelope.is_signed_by(&SigningKey::from_octets([6; 32]).verifying()));
    }
}

/// An octet that was changed, left out or added anywhere is noticed: there is nothing that is neither signed nor checked.
#[test]
fn no_octet_may_be_changed_left_out_or_added() {
    let octets = manifest().sign(&key());
    assert!(octets.len() < 400, "{}", octets.len());
    let holds = |octets: &[u8]| {
        Envelope::read(octets).is_ok_and(|envelope| envelope.is_signed_by(&key().verifying()))
    };
    assert!(holds(&octets));
    for at in 0..octets.len() {
        for bit in 0..8 {
            let mut changed = octets.clone();
            changed[at] ^= 1 << bit;
            // EdDSA and Ed25519 are the same with this key, but the header is signed.
            assert!(!holds(&changed), "bit {bit} of {at}");
        }
        let mut shorter = octets.clone();
        shorter.remove(at);
        assert!(!holds(&shorter), "without {at}");
        assert_eq!(Envelope::read(&octets[..at]).ok(), None, "{at} octets");
        let mut longer = octets.clone();
        longer.insert(at, octets[at]);
        assert!(!holds(&longer), "{at} twice");
    }
    let longer = [&octets[..], &[0]].concat();
    assert_eq!(Envelope::read(&longer), Err(BadEnvelope::Malformed("the envelope")));
    let long = Manifest { component: &[b'c'; MAX_COMPONENT], ..manifest() }.sign(&key());
    assert!(Envelope::read(&long).is_ok() && long.len() < MAX_ENVELOPE);
    assert_eq!(Envelope::read(&[0; MAX_ENVELOPE + 1]), Err(BadEnvelope::TooLong));
    for component in [&[][..], &[b'c'; MAX_COMPONENT + 1]] {
        let octets = Manifest { component, ..manifest() }.sign(&key());
        assert!(matches!(Envelope::read(&octets), Err(BadEnvelope::Unsupported(..))));
    }
}

#[test]
fn a_file_is_admitted_to_its_device_in_time_and_after_no_later_one() {
    let device = Device { vendor: [1; 16], class: [2; 16], component: b"firmware" };
    let admits = |file: FileDigest, device: Device<'_>, highest: Option<(u64, u8)>, now| {
        let highest = highest.map(|(sequence, sha256)| Highest { sequence, sha256: [sha256; 32] });
        manifest().admits(&file, Some(&device), highest.as_ref(), now)
    };
    let now = 1_799_999_999;
    for highest in [None, Some((0, 9)), Some((2, 9)), Some((3, 7))] {
        assert_eq!(admits(FILE, device, highest, now), Ok(()), "{highest:?}");
    }
    for highest in [(3, 9), (4, 7), (u64::MAX, 9)] {
        assert_eq!(admits(FILE, device, Some(highest), now), Err(NotAdmitted::Rollback), "{highest:?}");
    }
    for other in [
        Device { vendor: [2; 16], ..device },
        Device { class: [1; 16], ..device },
        Device { component: b"radio", ..device },
        Device { component: b"", ..device },
    ] {
        assert_eq!(admits(FILE, other, None, now), Err(NotAdmitted::OtherDevice), "{other:?}");
    }
    for now in [1_800_000_000, u64::MAX] {
        assert_eq!(admits(FILE, device, None, now), Err(NotAdmitted::Expired));
    }
    for other in [FileDigest { length: 129_001, ..FILE }, FileDigest { sha256: [8; 32], ..FILE }] {
        assert_eq!(admits(other, device, None, now), Err(NotAdmitted::OtherFile));
    }
    let lasting = Manifest { use_before: None, ..manifest() };
    assert_eq!(lasting.admits(&FILE, None, None, u64::MAX), Ok(()));
}

/// Signatures of the draft's examples are by ES256, which nobody here makes.
#[test]
fn the_examples_of_the_draft_are_read_or_refused_by_name() {
    use BadEnvelope::Unsupported;
    let expected = [
        Err(Unsupported("member of the manifest", 9)),
        Ok(1),
        Err(Unsupported("member of the envelope", 20)),
        Err(Unsupported("command", 15)),
        Err(Unsupported("number of components", 3)),
        Err(Unsupported("number of components", 2)),
    ];
    let lines = include_str!("examples.txt").lines().filter(|line| !line.starts_with('#'));
    let mut examples = lines.zip(expected);
    for (n, (line, expected)) in examples.by_ref().enumerate() {
        let octets: Vec<u8> =
            (0..line.len() / 2).map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).unwrap()).collect();
        let read = Envelope::read(&octets);
        assert_eq!(read.map(|envelope| envelope.manifest().sequence), expected, "example {n}");
        let Ok(envelope) = read else { continue };
        let manifest = envelope.manifest();
        assert_eq!(manifest.file.length, 34_768);
        assert_eq!(manifest.component, [0]);
        let uuid =
            |uuid: Uuid| uuid.iter().fold(String::new(), |text, octet| alloc::format!("{text}{octet:02x}"));
        assert_eq!(uuid(manifest.vendor), "fa6b4a53d5ad5fdfbe9de663e4d41ffe");
        assert_eq!(uuid(manifest.class), "1492af1425695e48bf429b2d51f2ab45");
        assert!(!envelope.is_signed_by(&key().verifying()));
    }
    assert!(examples.next().is_none());
}

proptest! {
    #[test]
    fn any_manifest_is_read_as_it_was_written(
        (sequence, vendor, class) in (any::<u64>(), any::<Uuid>(), any::<Uuid>()),
        component in vec(any::<u8>(), 1..=MAX_COMPONENT),
        (length, sha256, use_before) in (any::<u64>(), any::<[u8; 32]>(), any::<Option<u64>>()),
    ) {
        let file = FileDigest { length, sha256 };
        let manifest = Manifest { sequence, vendor, class, component: &component, file, use_before };
        let octets = manifest.sign(&key());
        prop_assert!(octets.len() <= MAX_ENVELOPE);
        let envelope = Envelope::read(&octets).unwrap();
        prop_assert_eq!(*envelope.manifest(), manifest);
        prop_assert!(envelope.is_signed_by(&key().verifying()));
    }

    /// Whatever somebody puts into a manifest and signs anew: it is read or refused.
    #[test]
    fn no_octets_make_it_panic(at in 0..280_usize, octets in vec(any::<u8>(), 0..12), cut in 0..12_usize) {
        let mut changed = manifest().sign(&key());
        let at = at.min(changed.len() - cut);
        changed.splice(at..at + cut, octets);
        if let Err(error) = Envelope::read(&changed) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
