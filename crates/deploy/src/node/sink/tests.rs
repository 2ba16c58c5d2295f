//! A node's output without a network.

use std::fs;

use anabranch_core::set::FileIdentity;
use tempfile::TempDir;

use super::*;

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    crate::service::runtime().expect("a runtime").block_on(future)
}

fn offer(octets: &[u8], transfer: u64) -> Offer {
    let digest = Sha256::digest(octets).into();
    let file = Some(FileIdentity { digest, signature: None, discard: false });
    Offer { transfer: TransferId(transfer), length: octets.len() as u64, file }
}

fn output(folder: &TempDir) -> Output {
    Output::new(Some(&folder.path().join("got")), None, None).expect("a folder")
}

/// What an output that has just been started says to `offer`.
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
