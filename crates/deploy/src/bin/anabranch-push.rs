//! The program `anabranch-push`: only the command `anabranch push --to`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::{alone, programs, push};

fn main() -> ExitCode {
    alone::<push::Arguments>(programs::push(), |arguments| push::main(&arguments))
}
