//! The program `anabranch-lab`: all of it is the library beside this file.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_sim::scenario::Policies;

fn main() -> ExitCode {
    anabranch_lab_cli::main(&Policies::default())
}
