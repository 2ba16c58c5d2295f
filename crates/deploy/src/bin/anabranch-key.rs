//! The program `anabranch-key`: the command `anabranch key` and nothing else.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{exit, key};
use clap::Parser;

/// Make keys of senders, gateways and nodes, and sign files
#[derive(Parser)]
#[command(name = "anabranch-key", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: key::Command,
}

fn main() -> ExitCode {
    exit(key::main(&Arguments::parse().command))
}
