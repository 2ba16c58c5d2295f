//! The program `anabranch-gateway`: only the command `anabranch gateway`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, definition, gateway};

const NAME: &str = "anabranch-gateway";

fn main() -> ExitCode {
    let program = definition::<gateway::Arguments>(
        NAME,
        "Relay between senders and nodes, as one of the gateways of a network",
    );
    alone::<gateway::Arguments>(program, gateway::main)
}
