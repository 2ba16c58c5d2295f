//! The program `anabranch-cache`: only the command `anabranch cache`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::alone;
use anabranch_host::cache;

fn main() -> ExitCode {
    alone::<cache::Arguments>(cache::program(), cache::main)
}
