//! The program `anabranch-lab`: all commands of `anabranch`, and the commands `lab`, `sweep`,
//! `plan` and `completions`.
//!
//! `anabranch` starts this program for those four commands, so the program calls itself `anabranch`
//! in its messages, and starts the same small programs ([`companion`]). It is also a library: a
//! program with custom policies calls [`main`] with them.

#![forbid(unsafe_code)]
// `eprintln!` and `println!` panic if the reader of the stream has gone: use
// `anabranch_deploy::say` and `anabranch_deploy::output`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod completions;
mod lab;
mod plan;
mod sweep;

use std::iter;
use std::process::ExitCode;

use anabranch_cli::{Command as Base, companion};
use anabranch_deploy::error::Error;
use anabranch_deploy::programs;
use anabranch_host::{cache, multipath};
use anabranch_scenario::Policies;
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

/// Runs the program and returns its exit code. Scenario files may name the custom `policies` as
/// well as the built-in ones.
#[must_use]
pub fn main(policies: &Policies) -> ExitCode {
    anabranch_deploy::exit(run(policies))
}

/// The complete definition of the command line, for completions and manual pages.
pub fn program() -> clap::Command {
    let small = [
        ("sense", programs::sense()),
        ("sink", programs::sink()),
        ("cache", cache::program()),
        ("multipath", multipath::program()),
        ("tune", programs::tune()),
    ];
    let small = small.map(|(name, program)| programs::alone(&program).name(name));
    anabranch_cli::definition::<Command>().subcommands(small)
}

fn run(policies: &Policies) -> Result<(), Error> {
    // Users call this program as `anabranch`, so usage lines show that name whatever the file is
    // called.
    let words: Vec<_> = iter::once("anabranch".into()).chain(std::env::args_os().skip(1)).collect();
    if let Some(companion) = companion::small(&words) {
        return companion.run(&words);
    }
    match anabranch_cli::parse(&program(), words)? {
        Command::Base(command) => command.run(policies),
        Command::Sweep(arguments) => sweep::main(&arguments, policies),
        Command::Lab(command) => lab::main(&command),
        Command::Plan(command) => plan::main(&command),
        Command::Completions(arguments) => completions::main(&arguments),
    }
}
