//! `anabranch lab`.

use clap::Subcommand;

use crate::error::Error;

/// What `lab` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {}

pub(crate) fn main(command: &Command) -> Result<(), Error> {
    match *command {}
}
