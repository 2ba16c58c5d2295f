//! Starting cargo from the workspace's root.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace, whatever directory xtask was started in.
pub(crate) fn root() -> PathBuf {
    // What cargo says now comes first: with a target directory that several work trees share, what
    // it said at compile time may be another tree.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = Path::new(&here);
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder of what is built.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root().join(target)
}

/// A cargo command with the given arguments, to be run in the root: the cargo that started xtask.
pub(crate) fn command(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// A program of this workspace, to be run in the root: built first, unless the variable
/// ANABRANCH_BUILT names a folder that has it.
pub(crate) fn program(package: &str, name: &str, args: &[&str]) -> Command {
    program_as("dev", package, name, args)
}

/// The same, built with another profile.
pub(crate) fn program_as(profile: &str, package: &str, name: &str, args: &[&str]) -> Command {
    match std::env::var_os("ANABRANCH_BUILT") {
        None => {
            let run = ["run", "--quiet", "--profile", profile, "--locked", "--package", package];
            command(&[&run[..], &["--bin", name, "--"], args].concat())
        }
        Some(folder) => {
            let mut command = Command::new(root().join(folder).join(name));
            command.args(args).current_dir(root());
            command
        }
    }
}

/// The program `anabranch`.
pub(crate) fn anabranch(args: &[&str]) -> Command {
    program("anabranch-cli", "anabranch", args)
}

/// The program that generates the schema and manual pages.
pub(crate) fn manual(args: &[&str]) -> Command {
    program("anabranch-manual", "anabranch-manual", args)
}

/// Builds everything that the suite runs.
pub(crate) fn build_tests() -> Result<(), Failure> {
    run(command(&["test", "--workspace", "--locked", "--no-run", "--quiet"]))
}

/// Runs `command`, its output going straight through.
pub(crate) fn run(mut command: Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| cannot_start(&command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Job(format!("{} ended with {status}", said(&command))))
    }
}

/// Runs `command` and returns what it printed on stdout; stderr goes straight through.
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>, Failure> {
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| cannot_start(&command, &error))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Failure::Job(format!("{} ended with {}", said(&command), output.status)))
    }
}

/// The failure of a command that did not even start.
pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    Failure::Job(format!("cannot start {}: {error}", said(command)))
}

/// The command as one would type it.
fn said(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words =
        std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy().into_owned());
    format!("`{}`", words.collect::<Vec<_>>().join(" "))
}
