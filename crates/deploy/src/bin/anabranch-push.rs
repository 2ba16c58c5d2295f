//! The program `anabranch-push`: the command `anabranch push --to` and nothing else.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, programs, push};

fn main() -> ExitCode {
    alone::<push::Arguments>(programs::push(), |arguments| push::main(&arguments))
}
