//! The program `anabranch-node`: only the command `anabranch node`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, node, programs};

fn main() -> ExitCode {
    alone::<node::Arguments>(programs::node(), node::main)
}
