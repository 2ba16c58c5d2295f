//! Length of the measurements in examples that print or draw the figures of `docs`.

#![allow(dead_code, unreachable_pub, reason = "each user uses its part")]

use std::{env, io};

/// Length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Every row, each from a run that is too short for meaningful figures. The test suite runs
    /// this form to show that the example runs to its end.
    Short,
    /// The length with which the figures of `docs` were measured.
    Full,
}

impl Length {
    /// Reads the first argument of the command line: `full`, or none for [`Length::Short`].
    ///
    /// # Errors
    /// If the argument is another one.
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

    /// The argument for this length.
    pub fn pick<T>(self, short: T, full: T) -> T {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}
