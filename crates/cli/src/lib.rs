//! The program `anabranch`. It parses, calls the simulator and the drivers of sockets, and prints;
//! it decides nothing about protocols or networks.
//!
//! The result goes to standard output, progress and errors to standard error.
//!
//! The laboratory, sweeps and closed forms are the companion program `anabranch-lab`, which
//! `anabranch lab`, `sweep`, `plan` and `completions` start ([`companion`]): its tables and papers
//! take longer to build than everything that a push needs. [`Command`] is what both programs have.

#![forbid(unsafe_code)]
// They panic if the reader has gone away: see `anabranch_deploy::say` and
// `anabranch_deploy::output`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod companion;
mod emulate;
mod events;
mod progress;
mod push;
mod run;
mod view;
mod wireshark;

use std::ffi::OsString;
use std::process::ExitCode;

use anabranch_deploy::error::Error;
use anabranch_deploy::{config, gateway, key, manifest, node};
use anabranch_sim::scenario::Policies;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Reliable transport for lossy, low-power networks that reach the Internet through several
/// gateways.
///
/// Exit codes: 0 done; 1 the job failed (not delivered, a check broken); 2 usage or bad input; 3 a
/// privilege or device is missing; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
struct Program<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

/// The definition of the command line of a program with the commands `C`.
pub fn definition<C: Subcommand>() -> clap::Command {
    config::with_files(Program::<C>::command())
}

/// The command that `words`, the program's name first, and the file of `--config` call.
///
/// # Errors
/// What is wrong in the file. What is wrong in the words ends the program, as clap does.
pub fn parse<C: Subcommand>(definition: &clap::Command, words: Vec<OsString>) -> Result<C, Error> {
    let matches = config::matches(definition, words)?;
    Ok(Program::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command)
}

/// The commands over simulated and real networks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Deliver a file to a node through several gateways, deployed (`--to`) or of a simulated
    /// network
    Push(push::Arguments),
    /// Relay between senders and nodes, as one of the gateways of a network
    Gateway(gateway::Arguments),
    /// Receive files from senders, through gateways
    Node(node::Arguments),
    /// Make keys of senders, gateways and nodes, and sign files
    #[command(subcommand)]
    Key(key::Command),
    /// Sign manifests of firmware, and check them
    #[command(subcommand)]
    Manifest(manifest::Command),
    /// Simulate a scenario file
    Run(run::Arguments),
    /// Make a page that replays a run: its network with packets moving, windows, queues, where
    /// losses were repaired
    View(view::Arguments),
    /// Open a capture in Wireshark, with the dissector of SET and the settings that it needs
    Wireshark(wireshark::Arguments),
    /// Let a scenario's network run in real time behind TUN devices
    Emulate(emulate::Arguments),
}

impl Command {
    /// Carries the command out. Scenario files may name `policies` beside the built-in ones.
    ///
    /// # Errors
    /// What failed, with its exit code.
    pub fn run(self, policies: &Policies) -> Result<(), Error> {
        match self {
            Self::Push(arguments) => push::main(&arguments),
            Self::Gateway(arguments) => gateway::main(arguments),
            Self::Node(arguments) => node::main(arguments),
            Self::Key(command) => key::main(&command),
            Self::Manifest(command) => manifest::main(&command),
            Self::Run(arguments) => run::main(&arguments, policies),
            Self::View(arguments) => view::main(&arguments, policies),
            Self::Wireshark(arguments) => wireshark::main(&arguments),
            Self::Emulate(arguments) => emulate::main(&arguments, policies),
        }
    }
}

/// The program. Scenario files may name `policies` beside the built-in ones; the companion does not
/// know them, so a program that sweeps with policies of its own is made from
/// `anabranch_lab_cli::main`.
#[must_use]
pub fn main(policies: &Policies) -> ExitCode {
    anabranch_deploy::exit(run(policies))
}

fn run(policies: &Policies) -> Result<(), Error> {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(command) = companion::wanted(&words) {
        return companion::run(command, &words);
    }
    parse::<Command>(&companion::listed(definition::<Command>()), words)?.run(policies)
}
