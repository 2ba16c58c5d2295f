//! Tests of a node's output without a network.

use std::fs;

use anabranch_core::set::FileIdentity;
use anabranch_secure::manifest::Manifest;
use anabranch_secure::{FileDigest, SigningKey};
use tempfile::TempDir;

use super::*;

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    crate::service::runtime().expect("a runtime").block_on(future)
}

fn offer(octets: &[u8], transfer: u64) -> Offer {
    let digest = Sha256::digest(octets).into();
    let file = Some(FileIdentity { digest, signature: None, discard: false });
    Offer { transfer: TransferId(transfer), length: octets.len() as u64, file, manifest: None }
}

fn output(folder: &TempDir) -> Output {
    Output::new(Some(&folder.path().join("got")), None, None).expect("a folder")
}

/// The verdict of a newly started output on `offer`.
fn begin(folder: &TempDir, offer: &Offer) -> Verdict {
    on_one_thread(output(folder).begin(offer)).expect("a disk")
}

fn receive(folder: &TempDir, offer: &Offer, octets: &'static [u8]) -> io::Result<()> {
    let mut output = output(folder);
    on_one_thread(async {
        output.begin(offer).await?;
        output.write(Bytes::from_static(octets)).await?;
        output.finish().await
    })
}

#[test]
fn what_is_not_the_file_that_was_announced_is_thrown_away() {
    let folder = TempDir::new().expect("a folder");
    let announced = offer(b"what was announced", 1);
    let error = receive(&folder, &announced, b"what was not, alas").expect_err("it is another").to_string();
    for octets in [&b"what was announced"[..], b"what was not, alas"] {
        assert!(error.contains(&hex(&Sha256::digest(octets))), "{error}");
    }
    assert!(!folder.path().join("got").exists());
    assert_eq!(begin(&folder, &announced), Verdict::From(0));
    receive(&folder, &announced, b"what was announced").expect("it is that");
    assert_eq!(fs::read(folder.path().join("got")).expect("it is there"), b"what was announced");
}

#[test]
fn a_file_that_is_there_is_delivered_to_its_transfer_unless_it_was_changed() {
    let folder = TempDir::new().expect("a folder");
    let first = offer(b"the file", 1);
    receive(&folder, &first, b"the file").expect("a disk");
    assert_eq!(begin(&folder, &first), Verdict::From(8));
    for changed in [&b"the life"[..], b"the file and more", b"the"] {
        fs::write(folder.path().join("got"), changed).expect("a disk");
        assert_eq!(begin(&folder, &first), Verdict::From(0), "{changed:?}");
        receive(&folder, &first, b"the file").expect("a disk");
    }
    fs::remove_file(folder.path().join("got")).expect("it is there");
    assert_eq!(begin(&folder, &first), Verdict::From(0));
}

#[test]
fn what_has_come_stays_when_its_sender_goes() {
    let folder = TempDir::new().expect("a folder");
    let first = offer(b"the whole file", 1);
    let mut output = output(&folder);
    on_one_thread(async {
        output.begin(&first).await.expect("a disk");
        output.write(Bytes::from_static(b"the whole")).await.expect("a disk");
        output.abandon();
    });
    assert_eq!(begin(&folder, &offer(b"another", 2)), Verdict::Refuse(RefuseReason::Unfinished, 9));
    assert_eq!(begin(&folder, &first), Verdict::From(9));
    let mut other = offer(b"another", 2);
    other.file.as_mut().expect("it says which").discard = true;
    assert_eq!(begin(&folder, &other), Verdict::From(0));
    assert_eq!(begin(&folder, &first), Verdict::From(0), "that has gone");
}

/// A newly started node of the device `example.com`, `sensor`.
fn device(folder: &TempDir) -> Output {
    let state = folder.path().join("state");
    output(folder)
        .signed_by(vec![signer().verifying()])
        .and_then(|output| output.for_device(OwnDevice::of("example.com", "sensor"), Some(&state)))
        .expect("a folder")
}

fn signer() -> SigningKey {
    SigningKey::from_octets([7; 32])
}

/// An offer of the file with a manifest of this sequence number, which `change` has modified.
fn with_manifest(octets: &[u8], sequence: u64, change: impl FnOnce(&mut Manifest<'_>)) -> Offer {
    let offer = offer(octets, sequence);
    let (vendor, class) = OwnDevice::of("example.com", "sensor").identifiers();
    let sha256 = offer.file.expect("it says which").digest;
    let file = FileDigest { length: offer.length, sha256 };
    let mut manifest = Manifest { sequence, vendor, class, component: b"firmware", file, use_before: None };
    change(&mut manifest);
    Offer { manifest: Some(manifest.sign(&signer()).into()), ..offer }
}

fn deliver(mut output: Output, offer: &Offer, octets: &'static [u8]) -> io::Result<Verdict> {
    on_one_thread(async {
        let verdict = output.begin(offer).await?;
        if verdict == Verdict::From(0) {
            output.write(Bytes::from_static(octets)).await?;
        }
        if matches!(verdict, Verdict::From(_)) {
            output.finish().await?;
        }
        Ok(verdict)
    })
}

#[test]
fn a_device_takes_what_a_manifest_admits_and_says_why_not() {
    let folder = TempDir::new().expect("a folder");
    let refused = |offer: &Offer| match on_one_thread(device(&folder).begin(offer)).expect("a disk") {
        Verdict::Refuse(reason, 0) => reason,
        other => panic!("{other:?}"),
    };
    let good = with_manifest(b"one", 1, |_| ());
    // A signature alone does not suffice, nor does an unsigned file.
    let mut signed = offer(b"one", 1);
    let file = signed.file.as_mut().expect("it says which");
    file.signature = Some(signer().sign(&FileDigest { length: 3, sha256: file.digest }).0);
    assert_eq!(refused(&signed), RefuseReason::Signature);
    assert_eq!(refused(&Offer { file: None, ..good.clone() }), RefuseReason::Signature);
    assert_eq!(refused(&Offer { length: 4, ..good.clone() }), RefuseReason::Signature);
    assert_eq!(refused(&Offer { file: offer(b"two", 1).file, ..good.clone() }), RefuseReason::Signature);
    for at in [0, 60, 200] {
        let mut changed = good.manifest.clone().expect("it has one").to_vec();
        changed[at] ^= 1;
        assert_eq!(
            refused(&Offer { manifest: Some(changed.into()), ..good.clone() }),
            RefuseReason::Signature
        );
    }
    let other = with_manifest(b"one", 1, |manifest| manifest.class = [0; 16]);
    assert_eq!(refused(&other), RefuseReason::WrongDevice);
    let other = with_manifest(b"one", 1, |manifest| manifest.vendor = [0; 16]);
    assert_eq!(refused(&other), RefuseReason::WrongDevice);
    let other = with_manifest(b"one", 1, |manifest| manifest.component = b"radio");
    assert_eq!(refused(&other), RefuseReason::WrongDevice);
    let old = with_manifest(b"one", 1, |manifest| manifest.use_before = Some(1_000_000_000));
    assert_eq!(refused(&old), RefuseReason::Expired);
    let lasting = with_manifest(b"one", 1, |manifest| manifest.use_before = Some(u64::MAX));
    assert_eq!(on_one_thread(device(&folder).begin(&lasting)).expect("a disk"), Verdict::From(0));
    // For a node without a device, a manifest counts as a signature, without any order.
    let plain = || output(&folder).signed_by(vec![signer().verifying()]).expect("a folder");
    assert_eq!(
        deliver(plain(), &with_manifest(b"two", 2, |_| ()), b"two").expect("a disk"),
        Verdict::From(0)
    );
    assert_eq!(deliver(plain(), &good, b"one").expect("a disk"), Verdict::From(0));
    let begun = on_one_thread(plain().begin(&old)).expect("a disk");
    assert_eq!(begun, Verdict::Refuse(RefuseReason::Expired, 0));
}

#[test]
fn no_number_is_lower_than_one_whose_file_was_delivered() {
    let folder = TempDir::new().expect("a folder");
    let (one, two) = (with_manifest(b"one", 1, |_| ()), with_manifest(b"two", 2, |_| ()));
    // The offer is accepted, and other bytes arrive: the file must not be delivered.
    let error = deliver(device(&folder), &two, b"tw0").expect_err("another file");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert_eq!(deliver(device(&folder), &one, b"one").expect("a disk"), Verdict::From(0));
    assert_eq!(deliver(device(&folder), &two, b"two").expect("a disk"), Verdict::From(0));
    let rollback = Verdict::Refuse(RefuseReason::Rollback, 0);
    assert_eq!(deliver(device(&folder), &one, b"one").expect("a disk"), rollback);
    let same = with_manifest(b"too", 2, |_| ());
    assert_eq!(deliver(device(&folder), &same, b"too").expect("a disk"), rollback);
    assert_eq!(fs::read(folder.path().join("got")).expect("it is there"), b"two");
    // The latest file may be sent again, also by another transfer.
    fs::remove_file(folder.path().join("got")).expect("it is there");
    let again = Offer { transfer: TransferId(9), ..two };
    assert_eq!(deliver(device(&folder), &again, b"two").expect("a disk"), Verdict::From(0));
    // To return to an older file, its signer gives it a higher number.
    let back = with_manifest(b"one", 3, |_| ());
    assert_eq!(deliver(device(&folder), &back, b"one").expect("a disk"), Verdict::From(0));
    assert_eq!(deliver(device(&folder), &again, b"two").expect("a disk"), rollback);
}

#[test]
fn a_number_that_cannot_be_stored_keeps_the_file_from_its_place() {
    let folder = TempDir::new().expect("a folder");
    let output = device(&folder);
    let state = folder.path().join("state");
    fs::remove_dir_all(&state).expect("it is there");
    fs::write(&state, "").expect("a disk");
    deliver(output, &with_manifest(b"one", 1, |_| ()), b"one").expect_err("nowhere to store it");
    assert!(!folder.path().join("got").exists());
}

#[test]
fn only_whole_images_that_are_not_older_are_put_into_place() {
    let folder = TempDir::new().expect("a folder");
    let images = || output(&folder).only(Images::Mcuboot).expect("a file");
    let image = |version| &*mcuboot::tests::image(version, &[9; 300], &[]).leak();
    let refusal = |octets: &'static [u8]| {
        let error =
            deliver(images(), &offer(octets, octets.len() as u64), octets).expect_err("no whole image");
        error.get_ref().and_then(|error| error.downcast_ref::<Refusal>()).expect("a reason").reason
    };
    let (old, new) = (image([1, 2, 3]), image([1, 3, 0]));
    assert_eq!(refusal(b"something else"), RefuseReason::Image);
    assert_eq!(refusal(&new[..200]), RefuseReason::Image);
    let mut wrong = new.to_vec();
    wrong[100] ^= 1;
    assert_eq!(refusal(wrong.leak()), RefuseReason::Image);
    assert!(!folder.path().join("got").exists());
    for octets in [old, new, new] {
        deliver(images(), &offer(octets, 1), octets).expect("an image");
    }
    assert_eq!(refusal(old), RefuseReason::Rollback);
    assert_eq!(fs::read(folder.path().join("got")).expect("it is there"), new);
    let unnamed = Offer { file: None, ..offer(new, 2) };
    let begun = on_one_thread(images().begin(&unnamed)).expect("a disk");
    assert_eq!(begun, Verdict::Refuse(RefuseReason::Image, 0));
    let special = Output::new(Some(Path::new("-")), None, None).expect("standard output");
    assert!(special.only(Images::Mcuboot).is_err());
}

/// An unreadable image may have a later version. A link to itself cannot be opened; a folder can be
/// opened but not read.
#[test]
fn an_image_whose_version_cannot_be_read_makes_way_for_none() {
    let image = &*mcuboot::tests::image([1, 2, 3], &[9; 300], &[]).leak();
    let make: [fn(&Path); 2] = [
        |place| std::os::unix::fs::symlink("got", place).expect("a file system with links"),
        |place| fs::create_dir(place).expect("a disk"),
    ];
    for make in make {
        let folder = TempDir::new().expect("a folder");
        let place = folder.path().join("got");
        let output = output(&folder).only(Images::Mcuboot).expect("a file");
        make(&place);
        let error =
            deliver(output, &offer(image, 1), image).expect_err("its version is not known").to_string();
        assert!(error.contains("cannot read the version of the image in "), "{error}");
        assert!(error.contains(&place.display().to_string()), "{error}");
    }
}

/// The number is stored even if the file cannot be put into its place.
#[test]
fn the_number_is_stored_before_the_file_has_its_place() {
    let folder = TempDir::new().expect("a folder");
    let output = device(&folder);
    fs::create_dir(folder.path().join("got")).expect("a disk");
    deliver(output, &with_manifest(b"two", 2, |_| ()), b"two").expect_err("a folder is there");
    fs::remove_dir(folder.path().join("got")).expect("it is empty");
    let older = deliver(device(&folder), &with_manifest(b"one", 1, |_| ()), b"one").expect("a disk");
    assert_eq!(older, Verdict::Refuse(RefuseReason::Rollback, 0));
}

/// Bytes that were passed on cannot be taken back. The sender is not told that its file was
/// delivered, and a command never sees the end of its input.
#[test]
fn a_wrong_file_that_is_handed_on_as_it_comes_is_not_reported_as_delivered() {
    let folder = TempDir::new().expect("a folder");
    let (got, all) = (folder.path().join("got"), folder.path().join("all"));
    let pipe = format!("cat > {}; touch {}", got.display(), all.display());
    for out in [None, Some("/dev/null"), Some("-")] {
        let output = || {
            let pipe = out.is_none().then_some(pipe.as_str());
            Output::new(out.map(Path::new), pipe, None).expect("a folder")
        };
        let error = deliver(output(), &offer(b" ", 1), b"\n").expect_err("it is another");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{out:?}");
        assert!(!all.exists(), "the command was told that this is all");
        assert_eq!(deliver(output(), &offer(b"\n", 1), b"\n").expect("it is that"), Verdict::From(0));
        // No digest was announced, so there is nothing to compare.
        let unnamed = Offer { file: None, ..offer(b" ", 1) };
        assert_eq!(deliver(output(), &unnamed, b"\n").expect("it is any"), Verdict::From(0));
        assert_eq!(all.exists(), out.is_none());
        let _ = fs::remove_file(&all);
    }
    assert_eq!(fs::read(&got).expect("it is there"), b"\n");
}

/// The sender does not know that its file was received, and asks again, now with a manifest: no
/// bytes are sent, and the number is stored.
#[test]
fn a_file_that_came_before_manifests_has_its_number_stored_when_it_is_offered_with_one() {
    let folder = TempDir::new().expect("a folder");
    receive(&folder, &offer(b"two", 2), b"two").expect("a disk");
    let (one, two) = (with_manifest(b"one", 1, |_| ()), with_manifest(b"two", 2, |_| ()));
    assert_eq!(deliver(device(&folder), &two, b"two").expect("a disk"), Verdict::From(3));
    let older = deliver(device(&folder), &one, b"one").expect("a disk");
    assert_eq!(older, Verdict::Refuse(RefuseReason::Rollback, 0));
}
