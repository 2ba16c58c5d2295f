//! The program `anabranch`: it parses the command line, calls the simulator and the socket drivers,
//! and prints results. It contains no protocol or network logic.
//!
//! Results go to standard output, progress and errors to standard error.
//!
//! Other commands belong to companion programs, which this program starts ([`companion`]): `lab`,
//! `sweep`, `plan` and `completions` to `anabranch-lab`, whose tables and experiments take longer
//! to build than everything that a push needs, and each daemon of another system than SET to the
//! small program of its name. [`Command`] holds the commands that both this program and
//! `anabranch-lab` have.

#![forbid(unsafe_code)]
// `eprintln!` and `println!` panic if the reader of the stream has gone: use
// `anabranch_deploy::say` and `anabranch_deploy::output`.
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
use anabranch_scenario::Policies;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Reliable transport for lossy, low-power networks that reach the Internet through several
/// gateways.
///
/// Exit codes: 0 success; 1 the job failed (not delivered, or a check failed); 2 usage error or bad
/// input; 3 a privilege, device or program is missing; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
struct Program<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

/// Builds the command-line definition of a program with the commands `C`, including `--config`.
pub fn definition<C: Subcommand>() -> clap::Command {
    config::with_files(Program::<C>::command())
}

/// Parses the arguments `words` (the program's name first), together with the file of `--config`.
///
/// # Errors
/// The contents of the file are invalid. An invalid command line ends the process, as clap does.
pub fn parse<C: Subcommand>(definition: &clap::Command, words: Vec<OsString>) -> Result<C, Error> {
    let matches = config::matches(definition, words)?;
    Ok(Program::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command)
}

/// Commands for simulated and deployed networks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Deliver a file to a node through several gateways, deployed (`--to`) or simulated
    Push(push::Arguments),
    /// Relay between senders and nodes, as one of the gateways of a network
    Gateway(gateway::Arguments),
    /// Receive files from senders, through gateways
    Node(node::Arguments),
    /// Make keys for senders, gateways and nodes, and sign files
    #[command(subcommand)]
    Key(key::Command),
    /// Sign and check firmware manifests
    #[command(subcommand)]
    Manifest(manifest::Command),
    /// Simulate a scenario file and print its metrics
    Run(run::Arguments),
    /// Make an HTML page that replays a run: packets in the network, windows, queues and repaired
    /// losses
    View(view::Arguments),
    /// Open a capture in Wireshark, with the SET dissector and the settings that captures need
    Wireshark(wireshark::Arguments),
    /// Run a scenario's network in real time behind TUN devices
    Emulate(emulate::Arguments),
}

impl Command {
    /// Runs the command. Scenario files may name the custom `policies` as well as the built-in
    /// ones.
    ///
    /// # Errors
    /// Why the command failed; the error determines the exit code.
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

/// Runs the program and returns its exit code. Scenario files may name the custom `policies` as
/// well as the built-in ones.
///
/// The companion does not know these policies: a program that runs sweeps with custom policies
/// calls `anabranch_lab_cli::main` instead.
#[must_use]
pub fn main(policies: &Policies) -> ExitCode {
    anabranch_deploy::exit(run(policies))
}

fn run(policies: &Policies) -> Result<(), Error> {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(companion) = companion::wanted(&words) {
        return companion.run(&words);
    }
    parse::<Command>(&companion::listed(definition::<Command>()), words)?.run(policies)
}
