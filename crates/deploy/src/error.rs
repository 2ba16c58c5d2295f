//! What can go wrong, as the person at the keyboard sees it, and the exit code that goes with it.

use std::fmt;
use std::io;
use std::path::Path;

use anabranch_units::text::TextError;

/// An error of the program.
#[derive(Debug)]
pub enum Error {
    /// The job failed: exit code 1.
    Job {
        /// What happened.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Usage or bad input: exit code 2.
    Input {
        /// What is wrong, and where.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A privilege or a device is missing: exit code 3.
    Missing {
        /// What is missing.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The person at the keyboard has had enough: exit code 130.
    Interrupted,
    /// Whoever reads our output has seen enough.
    Pipe,
}

impl Error {
    /// The job failed.
    pub fn job(message: impl Into<String>) -> Self {
        Self::Job { message: message.into(), hint: None }
    }

    /// Usage or bad input.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: None }
    }

    /// A privilege, a device or a program is missing.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::Missing { message: message.into(), hint: None }
    }

    /// The same error with advice in its second line.
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Job { message, .. } => Self::Job { message, hint: Some(text.into()) },
            Self::Input { message, .. } => Self::Input { message, hint: Some(text.into()) },
            Self::Missing { message, .. } => Self::Missing { message, hint: Some(text.into()) },
            Self::Interrupted | Self::Pipe => self,
        }
    }

    /// A file that was named cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::input(format!("cannot read {}: {error}", path.display()))
    }

    /// Something that was to be written before the work began cannot be.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::input(format!("cannot write {}: {error}", path.display()))
            .with_hint("name a place where you may write")
    }

    /// The message and the hint.
    pub(crate) fn parts(&self) -> (&str, Option<&str>) {
        match self {
            Self::Job { message, hint } | Self::Input { message, hint } | Self::Missing { message, hint } => {
                (message, hint.as_deref())
            }
            Self::Interrupted => ("interrupted", None),
            Self::Pipe => ("the reader of the output is gone", None),
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Job { .. } => 1,
            Self::Input { .. } => 2,
            Self::Missing { .. } => 3,
            Self::Interrupted => 130,
            Self::Pipe => 0,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job { message, hint } | Self::Input { message, hint } | Self::Missing { message, hint } => {
                write!(f, "error: {message}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
            }
            Self::Interrupted | Self::Pipe => Ok(()),
        }
    }
}

impl From<TextError> for Error {
    /// The text of the error holds its place and its hint.
    fn from(error: TextError) -> Self {
        Self::input(error.to_string())
    }
}
