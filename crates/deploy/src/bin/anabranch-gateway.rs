//! The program `anabranch-gateway`: only the command `anabranch gateway`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, gateway, programs};

fn main() -> ExitCode {
    alone::<gateway::Arguments>(programs::gateway(), gateway::main)
}
