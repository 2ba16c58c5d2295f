//! The commands of the companion program `anabranch-lab`.
//!
//! The companion stands beside `anabranch` or on the PATH, as `cargo-NAME` does for cargo, and is called with the same
//! arguments. It replaces this process, so that signals, terminal and exit code are its own.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process;

use anabranch_deploy::error::Error;
use clap::{Args, Subcommand};

/// The companion's file name.
pub const NAME: &str = "anabranch-lab";

/// What the companion does. The companion itself parses the arguments and has the help.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario many times: grids and samples of its parameters, on all cores; what is done is skipped
    Sweep(Anything),
    /// The papers' experiments: one point or grid, or every published figure beside ours
    Lab(Anything),
    /// The closed-form models
    Plan(Anything),
    /// Print the completions of a shell
    Completions(Anything),
}

/// Arguments that are passed on.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

impl Command {
    fn parts(&self) -> (&'static str, &Anything) {
        match self {
            Self::Sweep(rest) => ("sweep", rest),
            Self::Lab(rest) => ("lab", rest),
            Self::Plan(rest) => ("plan", rest),
            Self::Completions(rest) => ("completions", rest),
        }
    }
}

/// Becomes the companion.
///
/// # Errors
/// The companion is not there or cannot be started: exit code 3.
pub(crate) fn run(command: &Command) -> Result<(), Error> {
    let (name, rest) = command.parts();
    let beside = beside();
    let program = beside.clone().filter(|path| path.is_file()).unwrap_or_else(|| NAME.into());
    // Returns only if it fails.
    let error = process::Command::new(&program).arg(name).args(&rest.arguments).exec();
    Err(match error.kind() {
        io::ErrorKind::NotFound => Error::missing(format!(
            "`anabranch {name}` needs the companion program {NAME}, which is neither beside this program nor on the PATH"
        ))
        .with_hint(hint(beside)),
        _ => Error::missing(format!("cannot start {}: {error}", program.display())),
    })
}

/// The companion's place beside this program.
fn beside() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    Some(own.parent()?.join(NAME))
}

/// How to get the companion: in a checkout, where cargo has put this program below `target`, by cargo.
fn hint(beside: Option<PathBuf>) -> String {
    let folder = beside.as_deref().and_then(|path| path.parent()?.file_name()?.to_str().map(str::to_owned));
    let profile = match folder.as_deref() {
        Some("debug") => "",
        Some("dist") => " --profile dist",
        _ => " --release",
    };
    format!(
        "in a checkout, `cargo build{profile} -p anabranch-lab-cli` builds it; packages have it as anabranch-lab"
    )
}
