//! The deployed programs of SET: `gateway`, `node`, `push` and `key`, each as a command with
//! options and as a function.
//!
//! `anabranch` has them beside the simulator; `anabranch-gateway`, `anabranch-node` and
//! `anabranch-push` are programs of one command each, for machines that have room for nothing else.
//! Neither simulator nor laboratory nor tables are linked into them.
//!
//! The library also holds what every program of this workspace shares: [`error`] (messages, hints,
//! exit codes), [`output`] (standard output), [`files`] (files that are there whole or not at all),
//! [`config`] (`--config`), [`programs`] (their command lines), [`service`] (signals, systemd) and [`endpoint`].

#![forbid(unsafe_code)]
// They panic if the reader has gone away: see `anabranch_deploy::say` and
// `anabranch_deploy::output`.
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
mod log;
pub mod manifest;
mod mcuboot;
mod metrics;
pub mod node;
pub mod output;
pub mod programs;
pub mod push;
pub mod service;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, FromArgMatches};

use crate::error::Error;

/// The exit code of a program's outcome, after its error is printed on standard error.
#[must_use]
pub fn exit(outcome: Result<(), Error>) -> ExitCode {
    match outcome {
        Ok(()) | Err(Error::Pipe) => ExitCode::SUCCESS,
        Err(Error::Interrupted) => ExitCode::from(Error::Interrupted.code()),
        Err(error) => {
            log::ended(&error);
            ExitCode::from(error.code())
        }
    }
}

/// Runs a program that is one command: reads its options and the file of `--config`, then calls
/// `main`.
pub fn alone<A: FromArgMatches>(program: Command, main: impl FnOnce(A) -> Result<(), Error>) -> ExitCode {
    exit(parsed(&program).and_then(main))
}

fn parsed<A: FromArgMatches>(program: &Command) -> Result<A, Error> {
    let name = program.get_subcommands().next().map_or_else(OsString::new, |c| c.get_name().into());
    // The file may have any name: a package may rename it, a test may link to it.
    let arguments = std::iter::once(name).chain(std::env::args_os().skip(1)).collect();
    let matches = config::matches(program, arguments)?;
    let (_, matches) = matches.subcommand().expect("clap ends the program where the command is missing");
    Ok(A::from_arg_matches(matches).unwrap_or_else(|error| error.exit()))
}
