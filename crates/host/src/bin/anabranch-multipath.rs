//! The program `anabranch-multipath`: only the command `anabranch multipath`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::alone;
use anabranch_host::multipath;

fn main() -> ExitCode {
    alone::<multipath::Arguments>(multipath::program(), multipath::main)
}
