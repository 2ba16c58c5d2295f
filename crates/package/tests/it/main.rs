//! The packages of a release, judged by the programs that install them: dpkg, rpm, skopeo, systemd.
//!
//! They are made of the programs that the tests have built, so nothing is compiled for them.

mod deb;
mod oci;
mod rpm;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::prelude::*;
use tempfile::TempDir;

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is here")
}

/// Where cargo puts programs: they stand beside ours.
fn bin() -> PathBuf {
    let bin = assert_cmd::cargo::cargo_bin!("anabranch-package").parent().expect("a folder").to_owned();
    let programs = [
        "anabranch",
        "anabranch-lab",
        "anabranch-manual",
        "anabranch-cache",
        "anabranch-multipath",
        "anabranch-gateway",
        "anabranch-key",
    ];
    for name in programs {
        assert!(
            bin.join(name).exists(),
            "{name} is not built: `cargo build --workspace --bins --profile test`"
        );
    }
    bin
}

/// A release in a folder of its own.
struct Release(TempDir);

impl Release {
    /// Of this version, in these formats.
    fn new(version: &str, formats: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = folder.path().join("made");
        let mut manual = Command::new(bin().join("anabranch-manual"));
        manual.arg("packages").arg(&made).assert().success();
        let mut write = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-package"));
        write.arg("--root").arg(root()).arg("--bin").arg(bin()).arg("--made").arg(&made);
        write.arg("--out").arg(folder.path().join("out"));
        write
            .args(["--version", version, "--formats", formats, "--date", "1700000000", "--level", "1"])
            .assert()
            .success();
        Self(folder)
    }

    /// The one file whose name begins and ends so.
    #[track_caller]
    fn file(&self, start: &str, end: &str) -> PathBuf {
        let out = self.0.path().join("out");
        let listing = fs::read_dir(&out).expect("it is there").flatten();
        let names = listing.filter_map(|entry| entry.file_name().into_string().ok());
        let found: Vec<String> =
            names.filter(|name| name.starts_with(start) && name.ends_with(end)).collect();
        assert_eq!(found.len(), 1, "{start}…{end}: {found:?}");
        out.join(&found[0])
    }
}

/// What a command prints.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let Output { status, stdout, stderr } = &output;
    let (out, err) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}{err}");
    out.into_owned()
}

#[test]
fn the_same_files_are_the_same_packages() {
    let [a, b] = [(), ()].map(|()| Release::new("1.2.3", "deb,rpm,archive,oci,sbom"));
    let sums = |release: &Release| fs::read_to_string(release.file("SHA256SUMS", "")).expect("text");
    assert_eq!(sums(&a), sums(&b));
    // sha256sum reads the file, and finds every package as it says.
    let out = a.0.path().join("out");
    let checked =
        said(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out));
    assert_eq!(checked.lines().count(), fs::read_dir(&out).expect("it is there").count() - 1);
    assert!(checked.lines().all(|line| line.ends_with(": OK")), "{checked}");
}

#[test]
fn an_archive_has_everything_below_one_folder() {
    let release = Release::new("1.2.3", "archive");
    let archive = release.file("anabranch-lab-1.2.3", ".tar.gz");
    let listed = said(Command::new("tar").arg("-tzf").arg(archive));
    assert!(listed.lines().all(|line| line.starts_with("anabranch-lab-1.2.3/")), "{listed}");
    for file in [
        "usr/bin/anabranch-lab",
        "usr/share/anabranch/scenarios/three-gateways.toml",
        "usr/share/man/man1/anabranch-sweep.1.gz",
    ] {
        assert!(listed.lines().any(|line| line == format!("anabranch-lab-1.2.3/{file}")), "{file}: {listed}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut write = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-package"));
    write.arg("--root").arg(root()).arg("--bin").arg(folder.path()).arg("--made").arg(folder.path());
    let output = write.arg("--out").arg(folder.path().join("out")).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("anabranch-cache: No such file or directory"), "{said}");
    assert!(!folder.path().join("out").exists());
}
