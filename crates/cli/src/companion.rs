//! Starts the companion program `anabranch-lab`.
//!
//! The companion is found beside `anabranch` or on the PATH, as cargo finds `cargo-NAME`. It
//! receives the same arguments and replaces this process, so that it handles signals, terminal and
//! exit code itself.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;

use anabranch_deploy::error::Error;
use anabranch_deploy::say;

/// File name of the companion.
const NAME: &str = "anabranch-lab";

/// Help of `sweep`.
pub const SWEEP: &str =
    "Run a scenario for a grid or sample of its parameters, on all cores; finished runs are skipped";
/// Help of `lab`.
pub const LAB: &str =
    "Run the papers' experiments: one point, a grid, or all published figures for comparison";
/// Help of `plan`.
pub const PLAN: &str = "Evaluate the closed-form models";
/// Help of `completions`.
pub const COMPLETIONS: &str = "Print the completion script of a shell";

/// The companion's commands, each with its help.
const COMMANDS: [(&str, &str); 4] =
    [("sweep", SWEEP), ("lab", LAB), ("plan", PLAN), ("completions", COMPLETIONS)];

/// Lists the companion's commands in this program's help. The companion parses their arguments and
/// prints their own help.
pub(crate) fn listed(program: clap::Command) -> clap::Command {
    program.subcommands(COMMANDS.map(|(name, about)| clap::Command::new(name).about(about)))
}

/// The companion's command that `arguments` (the program's name first) call, or request help for.
pub(crate) fn wanted(arguments: &[OsString]) -> Option<&str> {
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    let command = if word(1) == Some("help") { word(2) } else { word(1) };
    command.filter(|command| COMMANDS.iter().any(|(name, _)| name == command))
}

/// Replaces this process by the companion. The first of `arguments` is the program's name.
///
/// # Errors
/// The companion is missing or cannot be started: exit code 3.
pub(crate) fn run(command: &str, arguments: &[OsString]) -> Result<(), Error> {
    let own = env::current_exe().ok();
    let Some(program) = found(own.as_deref(), env::var_os("PATH").as_deref()) else {
        let message = format!(
            "`anabranch {command}` needs the companion program {NAME}, which is neither in the folder of this program nor on the PATH"
        );
        return Err(Error::missing(message).with_hint(hint(own.as_deref())));
    };
    if let Some(own) = own.as_deref().filter(|own| is_stale(own, &program)) {
        say!("warning: {} is older than this program; {}", program.display(), hint(Some(own)));
    }
    // `exec` returns only if it fails.
    let error = process::Command::new(&program).args(arguments.get(1..).unwrap_or_default()).exec();
    Err(Error::missing(format!("cannot start {}: {error}", program.display()))
        .with_hint(hint(own.as_deref())))
}

/// Finds the companion: beside this program first, then in the absolute folders of the PATH.
///
/// Files without execute permission are skipped. So is this program under the companion's name: it
/// would start itself forever.
fn found(own: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let real = own.and_then(|own| fs::canonicalize(own).ok());
    let beside = own.and_then(Path::parent).map(Path::to_path_buf);
    let folders = path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let candidates = beside.into_iter().chain(folders.into_iter().filter(|folder| folder.is_absolute()));
    candidates.map(|folder| folder.join(NAME)).find(|candidate| {
        let executable = |file: fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
        fs::metadata(candidate).is_ok_and(executable)
            && fs::canonicalize(candidate).is_ok_and(|file| Some(&file) != real.as_ref())
    })
}

/// Whether cargo has rebuilt this program since it built the companion beside it, as `cargo run`
/// does. Outside of cargo's folders the times of files are no evidence.
fn is_stale(own: &Path, companion: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let folder = own.parent();
    let by_cargo = folder.is_some_and(|folder| folder.join(".cargo-lock").exists());
    by_cargo && companion.parent() == folder && changed(companion) < changed(own)
}

/// How to get the companion. In a checkout, where this program is below `target`, cargo builds it.
fn hint(own: Option<&Path>) -> String {
    let folder = own.and_then(|path| path.parent()?.file_name()?.to_str());
    let profile = match folder {
        Some("debug") => "",
        Some("dist") => " --profile dist",
        _ => " --release",
    };
    format!(
        "in a checkout, build it with `cargo build{profile} -p anabranch-lab-cli`; packages contain it as {NAME}"
    )
}
