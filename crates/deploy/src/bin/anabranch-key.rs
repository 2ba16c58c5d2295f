//! The program `anabranch-key`: the commands `anabranch key` and `anabranch manifest`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::error::Error;
use anabranch_deploy::{exit, key, manifest};
use clap::{Parser, Subcommand};

/// Make keys for senders, gateways and nodes, and sign files and manifests
#[derive(Parser)]
#[command(name = "anabranch-key", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Key(key::Command),
    /// Sign and check firmware manifests
    #[command(subcommand)]
    Manifest(manifest::Command),
}

impl Command {
    fn run(&self) -> Result<(), Error> {
        match self {
            Self::Key(command) => key::main(command),
            Self::Manifest(command) => manifest::main(command),
        }
    }
}

fn main() -> ExitCode {
    exit(Arguments::parse().command.run())
}
