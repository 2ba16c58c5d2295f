//! How long an example measures: what the examples that print or draw the figures of `docs` share.

#![allow(dead_code, unreachable_pub, reason = "each user uses its part")]

use std::{env, io};

/// How long an example measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Every row, each from a run so short that its figures mean nothing. The test suite runs this
    /// form: it shows that the example runs to its end.
    Short,
    /// As long as the figures of `docs` were measured.
    Full,
}

impl Length {
    /// Reads the first word of the command line: `full`, or none for [`Length::Short`].
    ///
    /// # Errors
    /// The word is another one.
    pub fn from_command_line() -> io::Result<Self> {
        match env::args().nth(1).as_deref() {
            None => {
                eprintln!("short runs: with `full`, this example measures what docs has");
                Ok(Self::Short)
            }
            Some("full") => Ok(Self::Full),
            Some(other) => Err(io::Error::other(format!("expected `full` or nothing, found `{other}`"))),
        }
    }

    /// The argument that is for this length.
    pub fn pick<T>(self, short: T, full: T) -> T {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}
