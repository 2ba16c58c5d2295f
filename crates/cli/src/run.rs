//! `anabranch run`.

use crate::error::Error;

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn main(_arguments: &Arguments) -> Result<(), Error> {
    Err(Error::job("not here yet"))
}
