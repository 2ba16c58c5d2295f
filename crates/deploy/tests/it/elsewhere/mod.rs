//! Compares manifests with other programs: `pycose` and `cbor2` verify ours, and we verify theirs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::deployed::world::*;

/// A file of this folder.
fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/elsewhere").join(name)
}

/// A Python with the packages of `requirements.txt`; prints why and returns `None` if that is not
/// available.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PYTHON.get_or_init(install).as_deref().inspect_err(|why| println!("SKIPPED: {why}")).ok()
}

/// Installs the packages, unless an earlier run did.
fn install() -> Result<PathBuf, String> {
    let wanted = fs::read_to_string(here("requirements.txt")).expect("it is here");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cose");
    let (program, mark) = (folder.join("bin/python"), folder.join("installed"));
    if program.exists() && fs::read_to_string(&mark).is_ok_and(|is| is == wanted) {
        return Ok(program);
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return Err("manifests of other programs need python3 and its module venv".to_owned());
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let install = Command::new(&program).args(install).arg(here("requirements.txt")).output();
    let install = install.expect("it was just made");
    if !install.status.success() {
        let said = String::from_utf8_lossy(&install.stderr).into_owned();
        return Err(format!("pip cannot install what manifests of other programs need: {said}"));
    }
    fs::write(mark, wanted).expect("the folder is ours");
    Ok(program)
}

fn run(python: &Path, arguments: &[&str]) -> String {
    let run = Command::new(python).arg(here("envelopes.py")).args(arguments).output().expect("it is there");
    assert!(run.status.success(), "{arguments:?}: {}", text(&run.stderr));
    text(&run.stdout).to_owned()
}

#[test]
fn pycose_verifies_our_manifests_and_we_verify_those_of_pycose() {
    let Some(python) = python() else { return };
    let folder = folder(3_000);
    let path = folder.path();
    let ours =
        |arguments: &[&str]| -> Output { command(path, arguments).output().expect("the program starts") };
    assert!(ours(&["key", "new", "release", "--kind", "signing"]).status.success());
    let key = |name: &str, kind: &str| -> String {
        let text = fs::read_to_string(path.join(name)).expect("it was made");
        let line = text.lines().find_map(|line| line.strip_prefix(kind)).expect("a key");
        line.to_owned()
    };

    // Our manifest, read by the other programs.
    let create = ["manifest", "create", "file", "--key", "release.key", "--vendor", "example.com"];
    for (sequence, expires) in [("0", None), ("18446744073709551614", Some("2030-01-01T00:00:01Z"))] {
        let expiry = expires.map_or_else(Vec::new, |moment| vec!["--expires", moment]);
        let made = ours(&[&create[..], &["--class", "sensor", "--sequence", sequence], &expiry].concat());
        assert!(made.status.success(), "{}", text(&made.stderr));
        let manifest = path.join("file.suit").display().to_string();
        let said: Value =
            serde_json::from_str(&run(python, &["read", &manifest, &key("release.pub", "ed25519:")]))
                .expect("one JSON object");
        let shown: Value = serde_json::from_slice(&ours(&["manifest", "show", "file.suit", "--json"]).stdout)
            .expect("one JSON object");
        for field in ["sequence", "vendor", "class", "component", "bytes", "sha256"] {
            assert_eq!(said[field], shown[field], "{field}");
        }
        assert_eq!(said["sha256"], sha256(&contents(3_000)));
        assert_eq!(said["use_before"].as_u64(), expires.map(|_| 1_893_456_001));
        // `uuid.uuid5` of the names.
        assert_eq!(said["vendor"], "cfbff0d1-9375-5685-968c-48ce8b15ae17");
        assert_eq!(said["class"], "57f55ecb-eaa3-5765-960e-e1e1418a661b");
    }

    // Their manifests, read by our programs.
    let envelopes = path.join("envelopes").display().to_string();
    fs::create_dir(&envelopes).expect("room");
    let file = path.join("file").display().to_string();
    run(python, &["write", &key("release.key", "ed25519-secret:"), &file, &envelopes]);
    let (mut good, mut bad) = (0, 0);
    for entry in fs::read_dir(&envelopes).expect("it was made") {
        let name = entry.expect("it can be read").file_name().into_string().expect("text");
        let manifest = format!("envelopes/{name}");
        let run = ours(&["manifest", "verify", &manifest, "file", "--signers", "release.pub"]);
        let is_good = name.starts_with("good-");
        assert_eq!(run.status.success(), is_good, "{name}: {}", text(&run.stderr));
        *(if is_good { &mut good } else { &mut bad }) += 1;
    }
    assert_eq!((good, bad), (8, 14));
}

/// The bytes to sign in the draft's examples equal ours. The examples are signed with ES256, which
/// our programs do not have.
#[test]
fn pycose_verifies_the_examples_of_the_draft_as_we_read_them() {
    let Some(python) = python() else { return };
    let examples = here("../../../../secure/src/manifest/examples.txt").display().to_string();
    assert_eq!(run(python, &["draft", &examples]), "6\n");
}
