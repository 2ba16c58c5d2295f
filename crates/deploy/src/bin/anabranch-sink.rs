//! The program `anabranch-sink`: only the command `anabranch sink`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, programs, sink};

fn main() -> ExitCode {
    alone::<sink::Arguments>(programs::sink(), sink::main)
}
