//! The program `anabranch-lab`: all commands of `anabranch`, and those that need the laboratory, sweeps or tables.
//!
//! `anabranch lab`, `sweep`, `plan` and `completions` start it, so it calls itself `anabranch`. It is a library so that a
//! user's own program can be this one with policies of its own: [`main`].

#![forbid(unsafe_code)]

mod completions;
mod lab;
mod plan;
mod sweep;

use std::process::ExitCode;

use anabranch_cli::Command as Base;
use anabranch_deploy::config;
use anabranch_deploy::error::Error;
use anabranch_sim::scenario::Policies;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Reliable transport for lossy, low-power networks that reach the Internet through several gateways.
///
/// Exit codes: 0 done; 1 the job failed (not delivered, a check broken); 2 usage or bad input; 3 a privilege
/// or device is missing; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one value of it, and clap flattens no box")]
enum Command {
    #[command(flatten)]
    Base(Base),
    /// Run a scenario many times: grids and samples of its parameters, on all cores; what is done is skipped
    Sweep(sweep::Arguments),
    /// The papers' experiments: one point or grid, or every published figure beside ours
    #[command(subcommand)]
    Lab(lab::Command),
    /// The closed-form models
    #[command(subcommand)]
    Plan(plan::Command),
    /// Print the completions of a shell
    Completions(completions::Arguments),
}

/// The program. Scenario files may name `policies` beside the built-in ones.
#[must_use]
pub fn main(policies: &Policies) -> ExitCode {
    anabranch_deploy::exit(run(policies))
}

/// The whole definition of the command line, for completions and manual pages.
pub fn program() -> clap::Command {
    config::with_files(Arguments::command())
}

fn run(policies: &Policies) -> Result<(), Error> {
    // Whatever the file is called: users call it as `anabranch`, and usage lines say so.
    let words = std::iter::once("anabranch".into()).chain(std::env::args_os().skip(1)).collect();
    let matches = config::matches(&program(), words)?;
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match arguments.command {
        Command::Base(command) => command.run(policies),
        Command::Sweep(arguments) => sweep::main(&arguments, policies),
        Command::Lab(command) => lab::main(&command),
        Command::Plan(command) => plan::main(&command),
        Command::Completions(arguments) => completions::main(&arguments),
    }
}
