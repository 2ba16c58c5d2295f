//! The deployed programs: `gateway`, `node` and `push` of SET, `sense` and `sink` of RDCA, `tune`
//! of socket buffers, and `key`, each as clap options and a function.
//!
//! `anabranch` contains all of them beside the simulator. `anabranch-gateway`, `anabranch-node`,
//! `anabranch-push`, `anabranch-sense`, `anabranch-sink` and `anabranch-tune` are small programs with one command
//! each, without simulator and experiments.
//!
//! The library also holds what every program of this workspace shares: [`error`] (messages, hints,
//! exit codes), [`output`] (standard output), [`files`] (files that are there whole or not at all),
//! [`config`] (`--config`), [`programs`] (their command lines), [`service`] (signals, systemd) and
//! [`endpoint`].

#![forbid(unsafe_code)]
// `eprintln!` and `println!` panic if the reader of the stream has gone: use
// `anabranch_deploy::say` and `anabranch_deploy::output`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod calendar;
pub mod config;
pub mod endpoint;
mod envelope;
pub mod error;
pub mod files;
pub mod gateway;
mod greetings;
pub mod key;
pub mod keys;
pub mod log;
pub mod manifest;
mod mcuboot;
pub mod metrics;
pub mod node;
pub mod output;
pub mod programs;
pub mod push;
#[cfg(feature = "rdca")]
pub mod sense;
pub mod service;
#[cfg(feature = "rdca")]
pub mod sink;
#[cfg(feature = "sockbuf")]
pub mod tune;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, FromArgMatches};

use crate::error::Error;

/// Prints the error of a program, if any, and returns its exit code.
#[must_use]
pub fn exit(outcome: Result<(), Error>) -> ExitCode {
    let code = match outcome {
        Ok(()) | Err(Error::Pipe) => ExitCode::SUCCESS,
        Err(Error::Interrupted) => ExitCode::from(Error::Interrupted.code()),
        Err(error) => {
            log::ended(&error);
            ExitCode::from(error.code())
        }
    };
    log::finish();
    code
}

/// Runs a program with one command: parses its options and the file of `--config`, then calls
/// `main`.
pub fn alone<A: FromArgMatches>(program: Command, main: impl FnOnce(A) -> Result<(), Error>) -> ExitCode {
    exit(parsed(&program).and_then(main))
}

fn parsed<A: FromArgMatches>(program: &Command) -> Result<A, Error> {
    let name = program.get_subcommands().next().map_or_else(OsString::new, |c| c.get_name().into());
    // Use the definition's name instead of the file's: a package or a link may rename the file.
    let arguments = std::iter::once(name).chain(std::env::args_os().skip(1)).collect();
    let matches = config::matches(program, arguments)?;
    let (_, matches) = matches.subcommand().expect("clap ends the program where the command is missing");
    Ok(A::from_arg_matches(matches).unwrap_or_else(|error| error.exit()))
}
