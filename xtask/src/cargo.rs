//! Starts cargo in the workspace's root.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the workspace, whatever directory xtask was started in.
pub(crate) fn root() -> PathBuf {
    // The variable at run time comes first. With a target directory shared by several work trees,
    // the compile-time value may name another tree.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = Path::new(&here);
    here.parent().unwrap_or(here).to_path_buf()
}

/// Folder of build results.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root().join(target)
}

/// A cargo command in the root, with the cargo that started xtask.
pub(crate) fn command(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// A command that runs a program of this workspace in the root. The program is built first, unless
/// the variable ANABRANCH_BUILT names a folder that has it.
pub(crate) fn program(package: &str, name: &str, args: &[&str]) -> Command {
    program_as("dev", package, name, args)
}

/// Like [`program`], built with another profile.
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

/// A command that runs `anabranch`.
pub(crate) fn anabranch(args: &[&str]) -> Command {
    program("anabranch-cli", "anabranch", args)
}

/// A command that runs the generator of the schema and manual pages.
pub(crate) fn manual(args: &[&str]) -> Command {
    program("anabranch-manual", "anabranch-manual", args)
}

/// Builds everything that the test suite runs.
pub(crate) fn build_tests() -> Result<(), Failure> {
    run(command(&["test", "--workspace", "--locked", "--no-run", "--quiet"]))
}

/// Runs `command` and passes its output through.
pub(crate) fn run(mut command: Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| cannot_start(&command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Job(format!("{} ended with {status}", said(&command))))
    }
}

/// Runs `command` and returns its stdout; stderr is passed through.
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>, Failure> {
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| cannot_start(&command, &error))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Failure::Job(format!("{} ended with {}", said(&command), output.status)))
    }
}

/// The failure of a command that could not be started.
pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    Failure::Job(format!("cannot start {}: {error}", said(command)))
}

/// The files of Rust code in a folder and those below.
#[cfg(test)]
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|kind| kind == "rs")).collect()
}

/// The command line as a user would type it.
fn said(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words =
        std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy().into_owned());
    format!("`{}`", words.collect::<Vec<_>>().join(" "))
}
