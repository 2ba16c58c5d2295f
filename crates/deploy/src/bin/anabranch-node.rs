//! The program `anabranch-node`: the command `anabranch node` and nothing else.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, node, programs};

fn main() -> ExitCode {
    alone::<node::Arguments>(programs::node(), node::main)
}
