//! `anabranch push`.

use crate::error::Error;

/// Options of `push`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn main(_arguments: &Arguments) -> Result<(), Error> {
    Err(Error::job("not here yet"))
}
