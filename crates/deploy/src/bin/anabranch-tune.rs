//! The program `anabranch-tune`: only the command `anabranch tune`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, programs, tune};

fn main() -> ExitCode {
    alone::<tune::Arguments>(programs::tune(), tune::main)
}
