//! The program `anabranch`. It parses, calls the simulator, the laboratory, the models and the drivers of sockets, and prints; it
//! decides nothing about protocols or networks.
//!
//! The result goes to standard output, progress and errors to standard error.

#![forbid(unsafe_code)]

mod best;
mod config;
mod emulate;
mod endpoint;
mod error;
mod files;
mod gateway;
mod key;
mod keys;
mod lab;
mod manual;
mod node;
mod output;
mod plan;
mod push;
mod run;
mod service;
mod sweep;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::Error;

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
enum Command {
    /// Deliver a file to a node through several gateways, deployed (`--to`) or of a simulated network
    Push(push::Arguments),
    /// Relay between senders and nodes, as one of the gateways of a network
    Gateway(gateway::Arguments),
    /// Receive files from senders, through gateways
    Node(node::Arguments),
    /// Make keys of senders, gateways and nodes, and sign files
    #[command(subcommand)]
    Key(key::Command),
    /// Simulate a scenario file
    Run(run::Arguments),
    /// Run a scenario many times: grids and samples of its parameters, on all cores; what is done is skipped
    Sweep(sweep::Arguments),
    /// Let a scenario's network run in real time behind TUN devices
    Emulate(emulate::Arguments),
    /// The papers' experiments: one point or grid, or every published figure beside ours
    #[command(subcommand)]
    Lab(lab::Command),
    /// The closed-form models
    #[command(subcommand)]
    Plan(plan::Command),
    /// Print the completions of a shell
    Completions(manual::CompletionsArguments),
    /// Write the manual pages into a folder
    Man(manual::ManArguments),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Pipe) => ExitCode::SUCCESS,
        Err(Error::Interrupted) => ExitCode::from(Error::Interrupted.code()),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.code())
        }
    }
}

/// The whole definition of the command line.
fn program() -> clap::Command {
    config::with_files(Arguments::command())
}

fn run() -> Result<(), Error> {
    let matches = config::matches(&program(), std::env::args_os().collect())?;
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match arguments.command {
        Command::Push(arguments) => push::main(&arguments),
        Command::Gateway(arguments) => gateway::main(arguments),
        Command::Node(arguments) => node::main(arguments),
        Command::Key(command) => key::main(&command),
        Command::Run(arguments) => run::main(&arguments),
        Command::Sweep(arguments) => sweep::main(&arguments),
        Command::Emulate(arguments) => emulate::main(&arguments),
        Command::Lab(command) => lab::main(&command),
        Command::Plan(command) => plan::main(&command),
        Command::Completions(arguments) => manual::completions(&arguments, program()),
        Command::Man(arguments) => manual::man(&arguments, program()),
    }
}
