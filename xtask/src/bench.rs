//! `cargo xtask bench`: fetches what counts instructions, then `cargo bench`.
//!
//! The counts need valgrind and the program gungraun-runner in the version of the library. The first comes
//! from Debian's or Ubuntu's packages, if we may install them; the second goes into the target folder and
//! nowhere else. What cannot be had is said, and that benchmark skips itself.

use crate::cargo;
use crate::failure::Failure;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The version of gungraun in the workspace's manifest; a test compares them.
const RUNNER_VERSION: &str = "0.20.0";

/// `bench [ARGS...]`: ARGS go to cargo bench.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let mut command = cargo::command(&["bench", "--workspace", "--locked"]);
    command.args(args);
    if has_valgrind()
        && let Some(runner) = runner()
    {
        command.env("GUNGRAUN_RUNNER", runner);
    }
    cargo::run(command)
}

/// Valgrind is there, or has just been installed.
fn has_valgrind() -> bool {
    let starts = || succeeds(Command::new("valgrind").arg("--version"));
    if starts() {
        return true;
    }
    eprintln!("installing valgrind with apt-get");
    let install = |args: &[&str]| succeeds(Command::new("apt-get").args(args));
    let installed =
        install(&["update"]) && install(&["install", "--yes", "--no-install-recommends", "valgrind"]);
    if installed && starts() {
        return true;
    }
    eprintln!("SKIPPED: instruction counts need valgrind; as root, `apt-get install valgrind`");
    false
}

/// Where gungraun-runner is, installed if need be.
fn runner() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let tools = cargo::root().join(target).join("tools");
    let program = tools.join("bin/gungraun-runner");
    let mark = tools.join(format!("gungraun-runner-{RUNNER_VERSION}"));
    if program.exists() && mark.exists() {
        return Some(program);
    }
    let version = format!("={RUNNER_VERSION}");
    let mut install = cargo::command(&["install", "gungraun-runner", "--locked", "--version", &version]);
    install.arg("--root").arg(&tools);
    if cargo::run(install).is_ok() && std::fs::write(&mark, "").is_ok() {
        return Some(program);
    }
    eprintln!(
        "SKIPPED: instruction counts need gungraun-runner {RUNNER_VERSION}, which could not be installed"
    );
    None
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_is_as_old_as_the_library() {
        let manifest = std::fs::read_to_string(cargo::root().join("Cargo.toml")).expect("it is here");
        let line = manifest.lines().find(|line| line.starts_with("gungraun ")).expect("it is a dependency");
        assert!(line.contains(&format!("\"={RUNNER_VERSION}\"")), "{line}");
    }
}
