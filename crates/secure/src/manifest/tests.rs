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

/// Any changed, missing or added byte is detected: every byte is signed or checked.
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
            // EdDSA and Ed25519 are equivalent for this key, but the header is signed.
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

/// Attempts of a signer, or of a thief of the key, to confuse the reader. Each manifest is signed
/// as it is.
#[test]
fn nothing_is_read_in_two_ways() {
    use BadEnvelope::{Malformed, Twice, Unsupported};
    let good = manifest().octets();
    let read = |content: &[u8]| {
        let octets = write::envelope(content, &[&key()]);
        Envelope::read(&octets).map(|envelope| envelope.manifest().sequence)
    };
    assert_eq!(read(&good), Ok(3));
    // { 1: 1, 2: 3, 3: common, 7: validate }: heads of two bytes, then the common section.
    assert_eq!(good[..6], [0xa4, 1, 1, 2, 3, 3]);
    let with = |from: usize, to: usize, octets: &[u8]| {
        let mut content = good.clone();
        content.splice(from..to, octets.iter().copied());
        content
    };
    let manifest = Err(Malformed("the manifest"));
    for (what, content, expected) in [
        ("a number twice", with(0, 5, &[0xa5, 1, 1, 2, 3, 2, 9]), manifest),
        ("keys out of order", with(1, 5, &[2, 3, 1, 1]), manifest),
        ("a number in two octets", with(4, 5, &[0x18, 3]), manifest),
        ("a number in nine octets", with(4, 5, &[0x1b, 0, 0, 0, 0, 0, 0, 0, 3]), manifest),
        ("a negative number", with(4, 5, &[0x22]), manifest),
        ("a bignum", with(4, 5, &[0xc2, 0x41, 3]), manifest),
        ("a float", with(4, 5, &[0xf9, 0x42, 0]), manifest),
        ("a map of 2^64 - 1", with(0, 1, &[0xbb, 255, 255, 255, 255, 255, 255, 255, 255]), manifest),
        ("a string of 2^64 - 1", with(6, 8, &[0x5b, 255, 255, 255, 255, 255, 255, 255, 255]), manifest),
        ("a map without an end", with(0, 1, &[0xbf]), manifest),
        ("an octet more", [&good[..], &[0]].concat(), manifest),
        ("an octet less", good[..good.len() - 1].to_vec(), manifest),
        ("another version", with(2, 3, &[2]), Err(Unsupported("manifest version", 2))),
        ("a key of two octets", with(3, 4, &[0x18, 2]), manifest),
        // install: override parameters, with another digest or vendor.
        (
            "another vendor later",
            [&with(0, 1, &[0xa5])[..], &[20, 0x55, 0x82, 20, 0xa1, 1, 0x50], &[9; 16]].concat(),
            Err(Twice("vendor identifier")),
        ),
        (
            "another size later",
            [&with(0, 1, &[0xa5])[..], &[20, 0x46, 0x82, 20, 0xa1, 14, 0x18, 99]].concat(),
            Err(Twice("image size")),
        ),
        (
            "a command of the update procedure",
            [&with(0, 1, &[0xa5])[..], &[20, 0x43, 0x82, 22, 15]].concat(),
            Err(Unsupported("command", 22)),
        ),
    ] {
        assert_eq!(read(&content), expected, "{what}");
    }
}

/// One trusted signature is enough at any position; an untrusted signature does not invalidate it.
#[test]
fn each_of_several_signatures_counts_for_its_signer() {
    let others: Vec<SigningKey> = (10..15).map(|octet| SigningKey::from_octets([octet; 32])).collect();
    for place in 0..=others.len() {
        let mut keys: Vec<&SigningKey> = others.iter().collect();
        let own = key();
        keys.insert(place, &own);
        let octets = write::envelope(&manifest().octets(), &keys);
        let envelope = Envelope::read(&octets).unwrap();
        assert!(keys.iter().all(|key| envelope.is_signed_by(&key.verifying())), "{place}");
        assert!(!envelope.is_signed_by(&SigningKey::from_octets([6; 32]).verifying()));
    }
    let none = write::envelope(&manifest().octets(), &[]);
    assert_eq!(Envelope::read(&none), Err(BadEnvelope::Missing("signature")));
    // As many signatures as fit, and one more.
    let own = key();
    let fits = |n: usize| Envelope::read(&write::envelope(&manifest().octets(), &vec![&own; n])).is_ok();
    assert!(fits(8) && !fits(12));
}

/// `suit_validator` parses our envelopes. The signature covers what it takes for the payload.
#[test]
fn another_reader_of_suit_finds_the_same_in_our_envelopes() {
    use suit_validator::SuitError;
    use suit_validator::crypto::SuitCrypto;
    use suit_validator::handler::{GenericStartHandler, PairView, SuitSharedSequenceHandler};
    use suit_validator::suit_manifest::{SuitCondition, SuitEnvelope, SuitManifest, SuitSharedCommand};

    struct Ed25519(VerifyingKey);
    impl SuitCrypto for Ed25519 {
        fn verify_cose(&self, block: &[u8], digest: &[u8]) -> Result<(), SuitError> {
            let mut decoder = minicbor::Decoder::new(block);
            assert_eq!(decoder.tag()?.as_u64(), 18);
            assert_eq!((decoder.array()?, decoder.bytes()?), (Some(4), &[0xa1, 1, 0x27][..]));
            assert_eq!(decoder.map()?, Some(0));
            decoder.null()?;
            let signature = Signature(decoder.bytes()?.try_into().unwrap());
            let statement = write::statement(&[0xa1, 1, 0x27], digest);
            let holds = self.0.has_signed_octets(&statement, &signature);
            if holds { Ok(()) } else { Err(SuitError::invalid_digest()) }
        }
    }
    struct Shared(Vec<i64>);
    impl SuitSharedSequenceHandler for Shared {
        fn on_conditions<'a>(
            &mut self,
            all: impl Iterator<Item = PairView<'a, SuitCondition>>,
        ) -> Result<(), SuitError> {
            self.0.extend(all.map(|condition| condition.op()));
            Ok(())
        }

        fn on_commands<'a>(
            &mut self,
            all: impl Iterator<Item = PairView<'a, SuitSharedCommand<'a>>>,
        ) -> Result<(), SuitError> {
            for command in all {
                let SuitSharedCommand::OverrideParameters(set) = command.get()? else { panic!() };
                assert_eq!(set.vendor_identifier, Some(&[1; 16][..]));
                assert_eq!(set.class_identifier, Some([2; 16]));
                assert_eq!(set.image_size, Some(FILE.length));
                assert_eq!(set.image_digest.unwrap().get()?.bytes, FILE.sha256);
                self.0.push(command.op());
            }
            Ok(())
        }
    }
    let other = SigningKey::from_octets([6; 32]);
    for sequence in [0, 3, u64::MAX] {
        let octets = Manifest { sequence, use_before: None, ..manifest() }.sign(&key());
        let read = core::cell::Cell::new(false);
        let on_envelope = |envelope: &SuitEnvelope<'_>| {
            let manifest = envelope.manifest.get().unwrap();
            assert_eq!((manifest.version, manifest.sequence_number), (1, sequence));
            let common = manifest.common.get().unwrap();
            let mut shared = Shared(Vec::new());
            common.shared_seq.unwrap().get().unwrap().decode_and_dispatch(&mut shared).unwrap();
            assert_eq!(shared.0, [1, 2, 20]);
            read.set(true);
        };
        let mut handler = GenericStartHandler { on_envelope, on_manifest: |_: &SuitManifest<'_>| panic!() };
        suit_validator::suit_decode(&octets, &mut handler, &mut Ed25519(key().verifying())).unwrap();
        assert!(read.get());
        suit_validator::suit_decode(&octets, &mut handler, &mut Ed25519(other.verifying())).unwrap_err();
    }
}

/// The draft's examples are signed with ES256, which this crate does not support.
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

    /// Whatever a signer puts into a manifest is parsed or refused, without a panic.
    #[test]
    fn no_octets_make_it_panic(at in 0..280_usize, octets in vec(any::<u8>(), 0..12), cut in 0..12_usize) {
        let mut changed = manifest().octets();
        let at = at.min(changed.len() - cut);
        changed.splice(at..at + cut, octets.iter().copied());
        for signed in [write::envelope(&changed, &[&key()]), {
            let mut envelope = manifest().sign(&key());
            envelope.splice(at..at + cut, octets);
            envelope
        }] {
            match Envelope::read(&signed) {
                // A parsed manifest is written again unchanged, except for optional elements that
                // the profile allows.
                Ok(envelope) => prop_assert!(Envelope::read(&envelope.manifest().sign(&key())).is_ok()),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// Bytes after the signature within the COSE_Sign1 are not signed, so they are refused.
#[test]
fn nothing_follows_the_signature_in_its_block() {
    let octets = manifest().sign(&key());
    // Tag 107, a map, and the wrapper: its head, an array of the digest and of one block.
    let block = octets.windows(2).position(|pair| pair == [0xd2, 0x84]).expect("a COSE_Sign1");
    let [head, length] = [block - 2, block - 1];
    assert_eq!(octets[head], 0x58, "a byte string with a length of one octet");
    let end = block + usize::from(octets[length]);
    let mut longer = octets.clone();
    longer.insert(end, 0);
    longer[length] += 1;
    // The wrapper grows too.
    let wrapper = 2 + octets[..head].iter().skip(2).position(|octet| *octet == 0x58).expect("its head");
    longer[wrapper + 1] += 1;
    assert_eq!(Envelope::read(&longer).err(), Some(BadEnvelope::Malformed("a COSE_Sign1")));
}
