//! Errors as the user sees them, and their exit codes.

use std::fmt;
use std::io;
use std::path::Path;

use anabranch_units::text::TextError;

/// An error that ends a program.
#[derive(Debug)]
pub enum Error {
    /// The job failed: exit code 1.
    Job {
        /// What failed, and why.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// Usage error or bad input: exit code 2.
    Input {
        /// What is invalid, and where.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// A privilege, device or program is missing: exit code 3.
    Missing {
        /// What is missing.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// A command that the user has named failed: its exit code.
    Command {
        /// What failed.
        message: String,
        /// The exit code, not 0.
        code: u8,
    },
    /// Interrupted by the user: exit code 130.
    Interrupted,
    /// The reader of standard output has closed it, as `head` does: exit code 0.
    Pipe,
}

impl Error {
    /// Creates an [`Error::Job`] without a hint.
    pub fn job(message: impl Into<String>) -> Self {
        Self::Job { message: message.into(), hint: None }
    }

    /// Creates an [`Error::Input`] without a hint.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: None }
    }

    /// Creates an [`Error::Missing`] without a hint.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::Missing { message: message.into(), hint: None }
    }

    /// Sets the hint, which is printed on a second line.
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Job { message, .. } => Self::Job { message, hint: Some(text.into()) },
            Self::Input { message, .. } => Self::Input { message, hint: Some(text.into()) },
            Self::Missing { message, .. } => Self::Missing { message, hint: Some(text.into()) },
            Self::Command { .. } | Self::Interrupted | Self::Pipe => self,
        }
    }

    /// An input file cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::input(format!("cannot read {}: {error}", path.display()))
    }

    /// An output file cannot be written, found out before the work began.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::input(format!("cannot write {}: {error}", path.display()))
            .with_hint("choose a path that you can write")
    }

    /// The message and the hint.
    pub(crate) fn parts(&self) -> (&str, Option<&str>) {
        match self {
            Self::Job { message, hint } | Self::Input { message, hint } | Self::Missing { message, hint } => {
                (message, hint.as_deref())
            }
            Self::Command { message, .. } => (message, None),
            Self::Interrupted => ("interrupted", None),
            Self::Pipe => ("the reader of the output has closed it", None),
        }
    }

    /// The exit code of the program.
    pub fn code(&self) -> u8 {
        match self {
            Self::Job { .. } => 1,
            Self::Input { .. } => 2,
            Self::Missing { .. } => 3,
            Self::Command { code, .. } => *code,
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
            Self::Command { message, .. } => write!(f, "error: {message}"),
            Self::Interrupted | Self::Pipe => Ok(()),
        }
    }
}

impl From<TextError> for Error {
    /// The text of a `TextError` already contains its place and its hint.
    fn from(error: TextError) -> Self {
        Self::input(error.to_string())
    }
}
