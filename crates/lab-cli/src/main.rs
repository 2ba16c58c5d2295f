//! The program `anabranch-lab`. Its code is in the library of this crate.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_scenario::Policies;

fn main() -> ExitCode {
    anabranch_lab_cli::main(&Policies::default())
}
