//! `cargo xtask bench`: installs the tools that count instructions, then runs `cargo bench`.
//!
//! Counting needs valgrind and the program gungraun-runner in the version of the library. valgrind
//! comes from the packages of Debian or Ubuntu, if the user may install them; gungraun-runner is
//! installed in the target folder only. If a tool is missing, a message says so and the benchmark
//! skips itself.

use crate::cargo;
use crate::failure::Failure;
use crate::tools::{self, Tool};
use std::process::{Command, Stdio};

/// The counting program, in the version of gungraun in the workspace's manifest; a test compares
/// the two.
const RUNNER: Tool =
    Tool { name: "gungraun-runner", version: "0.20.0", arguments: &[], purpose: "counting instructions" };

/// Runs `bench [ARGS...]`; ARGS are passed to cargo bench.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let mut command = cargo::command(&["bench", "--workspace", "--locked"]);
    command.args(args);
    if has_valgrind()
        && let Some(runner) = tools::installed(&RUNNER)
    {
        command.env("GUNGRAUN_RUNNER", runner);
    }
    cargo::run(command)
}

/// Whether valgrind is installed, possibly just now.
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
        assert!(line.contains(&format!("\"={}\"", RUNNER.version)), "{line}");
    }
}
