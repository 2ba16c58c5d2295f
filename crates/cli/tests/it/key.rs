//! Tests of `anabranch key`: keys in files, and signatures.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

fn key(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).arg("key").args(arguments).output().expect("the program starts")
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).expect("the program writes text")
}

#[test]
fn keys_are_made_once_and_only_their_owner_can_read_them() {
    let folder = TempDir::new().expect("a temporary folder");
    let run = key(folder.path(), &["new", "a", "b"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert_eq!(text(&run.stdout).lines().count(), 2);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("it is there");
    let mode = fs::metadata(folder.path().join("a.key")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_ne!(read("a.pub"), read("b.pub"));
    assert_eq!(text(&key(folder.path(), &["public", "a.key"]).stdout), read("a.pub"));

    let before = read("a.key");
    let again = key(folder.path(), &["new", "a"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("keys are never overwritten"), "{}", text(&again.stderr));
    assert_eq!(read("a.key"), before);

    let none = key(folder.path(), &["public", "a.pub"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no secret key"), "{}", text(&none.stderr));
    let psk = key(folder.path(), &["new", "both", "--kind", "psk"]);
    assert_eq!((psk.status.code(), text(&psk.stdout)), (Some(0), ""));
    assert!(read("both.key").contains("\npsk:") && !folder.path().join("both.pub").exists());
}

#[test]
fn a_signature_holds_for_one_file_and_one_signer() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path();
    assert_eq!(key(path, &["new", "mine", "theirs", "--kind", "signing"]).status.code(), Some(0));
    fs::write(path.join("firmware"), vec![7; 300_000]).expect("it can be written");
    let signed = key(path, &["sign", "firmware", "--key", "mine.key"]);
    assert_eq!((signed.status.code(), text(&signed.stdout)), (Some(0), "firmware.sig\n"));

    let verify = |signer: &str| key(path, &["verify", "firmware", "--key", signer]);
    assert_eq!(verify("mine.pub").status.code(), Some(0));
    assert_eq!(verify("theirs.pub").status.code(), Some(1));
    let mut changed = vec![7; 300_000];
    changed[299_999] = 8;
    fs::write(path.join("firmware"), changed).expect("it can be written");
    let run = verify("mine.pub");
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("invalid signature"), "{}", text(&run.stderr));
    for (arguments, hint) in [
        (&["sign", "firmware", "--key", "mine.pub"][..], "makes a signing key"),
        (&["verify", "firmware", "--key", "mine.key"], "name a NAME.pub"),
        (&["verify", "firmware", "--key", "mine.pub", "--signature", "firmware"], "128 hexadecimal digits"),
        (
            &["sign", "firmware", "--key", "mine.key", "--out", "./mine.key"][..],
            "would overwrite the key mine.key",
        ),
        (&["sign", "firmware", "--key", "mine.key", "--out", "firmware"], "would overwrite the file to sign"),
        (&["sign", "absent", "--key", "mine.key"], "give a file"),
    ] {
        let run = key(path, arguments);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        assert!(text(&run.stderr).contains(hint), "{arguments:?}: {}", text(&run.stderr));
    }
}

/// Each of the three programs reports missing keys; no secret is ever printed.
#[test]
fn nobody_goes_without_keys_by_mistake() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path();
    assert_eq!(key(path, &["new", "a"]).status.code(), Some(0));
    fs::write(path.join("file"), "x").expect("it can be written");
    fs::write(path.join("broken"), "# a key\n\nx25519:12\n").expect("it can be written");
    let secret = fs::read_to_string(path.join("a.key")).expect("it is there");
    let secret = secret.lines().last().and_then(|line| line.split(':').nth(1)).expect("its digits");
    for (arguments, said) in [
        (&["node", "--out", "got"][..], "--insecure"),
        (&["gateway"], "--insecure"),
        (&["push", "file", "--to", "127.0.0.1"], "--insecure"),
        (&["node", "--out", "got", "--key", "a.key"], "--senders"),
        (
            &["node", "--out", "got", "--key", "a.pub", "--senders", "a.pub"],
            "expected a key of kind `x25519-secret`",
        ),
        (
            &["node", "--out", "got", "--key", "a.key", "--senders", "a.key"],
            "expected a key of kind `x25519`",
        ),
        (&["gateway", "--key", "a.key", "--senders", "broken"], "broken:3:"),
        (&["gateway", "--key", "a.key", "--senders", "absent"], "cannot read absent"),
        (&["push", "file", "--to", "127.0.0.1", "--key", "a.key"], "--node-key"),
        (&["push", "file", "--to", "127.0.0.1", "--via", "127.0.0.1=x25519:00", "--insecure"], "64 hex"),
        (&["push", "file", "--key", "a.key"], "--to"),
    ] {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        let run = command.current_dir(path).args(arguments).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains(said), "{arguments:?}: {}", text(&run.stderr));
        assert!(!text(&run.stderr).contains(secret));
    }
}
