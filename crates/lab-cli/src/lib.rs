//! The program `anabranch-lab`: all commands of `anabranch`, and those that need the laboratory,
//! sweeps or tables.
//!
//! `anabranch lab`, `sweep`, `plan` and `completions` start it, so it calls itself `anabranch`. It
//! is a library so that a user's own program can be this one with policies of its own: [`main`].

#![forbid(unsafe_code)]
// They panic if the reader has gone away: see `anabranch_deploy::say` and
// `anabranch_deploy::output`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod completions;
mod lab;
mod plan;
mod sweep;

use std::process::ExitCode;

use anabranch_cli::{Command as Base, companion};
use anabranch_deploy::error::Error;
use anabranch_sim::scenario::Policies;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one value of it, and clap flattens no box")]
enum Command {
    #[command(flatten)]
    Base(Base),
    #[command(about = companion::SWEEP)]
    Sweep(sweep::Arguments),
    #[command(subcommand, about = companion::LAB)]
    Lab(lab::Command),
    #[command(subcommand, about = companion::PLAN)]
    Plan(plan::Command),
    #[command(about = companion::COMPLETIONS)]
    Completions(completions::Arguments),
}

/// The program. Scenario files may name `policies` beside the built-in ones.
#[must_use]
pub fn main(policies: &Policies) -> ExitCode {
    anabranch_deploy::exit(run(policies))
}

/// The whole definition of the command line, for completions and manual pages.
pub fn program() -> clap::Command {
    anabranch_cli::definition::<Command>()
}

fn run(policies: &Policies) -> Result<(), Error> {
    // Whatever the file is called: users call it as `anabranch`, and usage lines say so.
    let words = std::iter::once("anabranch".into()).chain(std::env::args_os().skip(1)).collect();
    match anabranch_cli::parse(&program(), words)? {
        Command::Base(command) => command.run(policies),
        Command::Sweep(arguments) => sweep::main(&arguments, policies),
        Command::Lab(command) => lab::main(&command),
        Command::Plan(command) => plan::main(&command),
        Command::Completions(arguments) => completions::main(&arguments),
    }
}
