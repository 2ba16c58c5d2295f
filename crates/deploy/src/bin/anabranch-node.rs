//! The program `anabranch-node`: only the command `anabranch node`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, definition, node};

const NAME: &str = "anabranch-node";

fn main() -> ExitCode {
    let program = definition::<node::Arguments>(NAME, "Receive files from senders, through gateways");
    alone::<node::Arguments>(program, node::main)
}
