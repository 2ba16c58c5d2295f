//! `anabranch plan`.

use clap::Subcommand;

use crate::error::Error;

/// What `plan` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {}

pub(crate) fn main(command: &Command) -> Result<(), Error> {
    match *command {}
}
