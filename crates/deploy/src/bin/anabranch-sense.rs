//! The program `anabranch-sense`: only the command `anabranch sense`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, programs, sense};

fn main() -> ExitCode {
    alone::<sense::Arguments>(programs::sense(), sense::main)
}
