//! Tests of the companions' commands: a companion is found, is started with the same arguments, or
//! is reported as missing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anabranch_testkit::executable;
use tempfile::TempDir;

/// Copies the program to a folder of its own, so that no companion of the build is beside it.
fn alone() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    executable::copy(assert_cmd::cargo::cargo_bin!("anabranch"), &folder.path().join("anabranch"));
    folder
}

/// A companion that prints its arguments, and exits with 42.
fn companion(folder: &Path, name: &str) {
    executable::script("#!/bin/sh\nprintf '%s|' \"$@\"\nexit 42\n", &folder.join(name));
}

fn run(folder: &Path, path: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(folder.join("anabranch"));
    // The script's shell is given by its absolute path.
    command.args(arguments).env("PATH", path).output().expect("the program starts")
}

#[test]
fn the_companion_gets_the_arguments_and_has_the_exit_code() {
    let folder = alone();
    companion(folder.path(), "anabranch-lab");
    for arguments in [
        &["lab", "list"][..],
        &["lab", "run", "set", "--set", "loss=2 %", "--json"],
        &["sweep", "--help"],
        &["plan", "set", "-h", "--", "--version"],
        &["completions", "bash"],
        &["lab"],
        &["help", "lab", "run"],
        &["sweep", "--", "-w.toml"],
    ] {
        let run = run(folder.path(), Path::new("/nowhere"), arguments);
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert_eq!((run.status.code(), said), (Some(42), arguments.join("|") + "|"));
    }
}

#[test]
fn a_small_program_gets_the_arguments_behind_its_name() {
    let folder = alone();
    for name in ["sense", "sink", "cache", "multipath", "tune"] {
        companion(folder.path(), &format!("anabranch-{name}"));
        for (given, passed) in [
            (&[name, "--check", "--", "-x"][..], "--check|--|-x|"),
            (&[name, "--help"], "--help|"),
            (&["help", name], "--help|"),
        ] {
            let run = run(folder.path(), Path::new("/nowhere"), given);
            let said = String::from_utf8_lossy(&run.stdout).into_owned();
            assert_eq!((run.status.code(), &*said), (Some(42), passed), "{given:?}");
        }
        let run = run(folder.path(), Path::new("/nowhere"), &[name]);
        // The script prints one separator if it has no arguments.
        assert_eq!((run.status.code(), &run.stdout[..]), (Some(42), &b"|"[..]));
    }
}

#[test]
fn the_companion_may_be_on_the_path() {
    let (folder, elsewhere) = (alone(), tempfile::tempdir().expect("a folder"));
    companion(elsewhere.path(), "anabranch-lab");
    let run = run(folder.path(), elsewhere.path(), &["lab", "list"]);
    assert_eq!((run.status.code(), &run.stdout[..]), (Some(42), &b"lab|list|"[..]));
}

#[test]
fn a_companion_that_is_missing_is_named_with_the_command_that_builds_it() {
    let folder = alone();
    for (command, program, package) in [
        ("sweep", "anabranch-lab", "anabranch-lab-cli"),
        ("sink", "anabranch-sink", "anabranch-deploy"),
        ("cache", "anabranch-cache", "anabranch-host"),
    ] {
        let run = run(folder.path(), Path::new("/nowhere"), &[command, "x.toml"]);
        assert_eq!((run.status.code(), &run.stdout[..]), (Some(3), &b""[..]));
        let said = String::from_utf8_lossy(&run.stderr);
        let needs = format!("error: `anabranch {command}` needs the companion program {program}");
        assert!(said.starts_with(&needs), "{said}");
        assert!(said.contains(&format!("cargo build --release -p {package}`")), "{said}");
    }
}

#[test]
fn this_program_and_what_cannot_be_executed_are_no_companions() {
    let folder = alone();
    let missing = |folder: &Path, path: &str| {
        let mut command = Command::new(folder.join("anabranch"));
        let run = command.args(["lab", "list"]).env("PATH", path).current_dir(folder).output();
        let run = run.expect("the program starts");
        assert_eq!(run.status.code(), Some(3), "{}", String::from_utf8_lossy(&run.stderr));
    };
    let beside = folder.path().join("anabranch-lab");
    std::os::unix::fs::symlink("anabranch", &beside).expect("a link");
    missing(folder.path(), "");
    fs::remove_file(&beside).expect("it is ours");
    fs::write(&beside, "no program").expect("a file");
    missing(folder.path(), "");
    fs::remove_file(&beside).expect("it is ours");
    fs::create_dir(&beside).expect("a folder");
    missing(folder.path(), "");
    // A companion in the working folder is not used.
    let work = alone();
    fs::create_dir(work.path().join("here")).expect("a folder");
    companion(&work.path().join("here"), "anabranch-lab");
    let mut command = Command::new(work.path().join("anabranch"));
    let run = command.args(["lab", "list"]).env("PATH", ":.").current_dir(work.path().join("here")).output();
    assert_eq!(run.expect("the program starts").status.code(), Some(3));
}

#[test]
fn a_companion_that_does_not_start_is_named() {
    let folder = alone();
    executable::script("#!/no/such/shell\n", &folder.path().join("anabranch-lab"));
    let run = run(folder.path(), Path::new("/nowhere"), &["lab"]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{said}");
    assert!(said.contains("cannot start") && said.contains("hint: "), "{said}");
}

#[test]
fn the_help_lists_the_commands_of_the_companions() {
    let folder = alone();
    let run = run(folder.path(), Path::new("/nowhere"), &["--help"]);
    let said = String::from_utf8_lossy(&run.stdout);
    for command in [
        "push",
        "gateway",
        "node",
        "sense",
        "sink",
        "cache",
        "multipath",
        "tune",
        "key",
        "run",
        "view",
        "emulate",
        "sweep",
        "lab",
        "plan",
        "completions",
    ] {
        assert!(said.contains(&format!("\n  {command} ")), "{command}: {said}");
    }
}
