//! The program `anabranch-key`: the commands `anabranch key` and `anabranch manifest`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anabranch_deploy::exit;
use anabranch_deploy::programs::Key;
use clap::Parser;

fn main() -> ExitCode {
    exit(Key::parse().run())
}
