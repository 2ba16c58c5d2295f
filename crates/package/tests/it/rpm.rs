//! The RPM packages, as rpm(8) reads and installs them.

use std::fs;
use std::process::Command;

use anabranch_testkit::debian::find_or_install;

use crate::{Release, said};

#[test]
fn rpm_reads_and_installs_the_packages() {
    let Some(rpm) = find_or_install("rpm", "rpm") else { return };
    let release = Release::new("1.2.3", "rpm");
    let small = release.file("anabranch-1.2.3", ".rpm");
    let lab = release.file("anabranch-lab-1.2.3", ".rpm");
    let query =
        |package: &std::path::Path, what: &str| said(Command::new(&rpm).args(["-qp", what]).arg(package));
    for package in [&small, &lab] {
        let checked = said(Command::new(&rpm).arg("-Kv").arg(package));
        assert!(checked.contains("digest: OK") && !checked.contains("BAD"), "{checked}");
    }
    assert!(query(&lab, "--requires").lines().any(|line| line == "anabranch = 1.2.3-1"));
    assert!(query(&small, "--requires").contains("libc.so.6(GLIBC_2."));
    let services = ["cache", "gateway", "multipath", "node", "sense", "sink"];
    let files = services.map(|name| format!("/etc/anabranch/{name}.toml\n"));
    // The unit of `tune` is a template, whose instances the scripts do not know.
    assert_eq!(query(&small, "--configfiles"), files.concat() + "/etc/anabranch/tune.toml\n");
    let scripts = query(&small, "--scripts");
    for unit in services.map(|name| format!("anabranch-{name}.service")) {
        assert_eq!(scripts.matches(&unit).count(), 3, "restarted, stopped, disabled: {scripts}");
    }
    // Into an empty root: there is no shell for the scripts, and nothing of what is required.
    let folder = tempfile::tempdir().expect("a folder");
    let install = ["--install", "--nodeps", "--noscripts", "--ignoreos"];
    said(Command::new(&rpm).arg("--root").arg(folder.path()).args(install).args([&small, &lab]));
    let program = folder.path().join("usr/bin/anabranch-gateway");
    assert!(said(Command::new(program).arg("--version")).starts_with("anabranch-gateway "));
    said(Command::new(&rpm).arg("--root").arg(folder.path()).args([
        "--erase",
        "--noscripts",
        "anabranch-lab",
        "anabranch",
    ]));
    assert!(!folder.path().join("usr/bin/anabranch-gateway").exists());
    assert!(fs::read_dir(folder.path().join("etc/anabranch")).map_or(true, |mut left| left.next().is_none()));
}
