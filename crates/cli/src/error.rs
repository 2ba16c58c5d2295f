//! What can go wrong, as the person at the keyboard sees it, and the exit code that goes with it.

use std::fmt;
use std::io;
use std::path::Path;

use anabranch_sim::scenario::ScenarioError;

/// An error of the program.
#[derive(Debug)]
pub(crate) enum Error {
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
    pub(crate) fn job(message: impl Into<String>) -> Self {
        Self::Job { message: message.into(), hint: None }
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: None }
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::Missing { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Job { message, .. } => Self::Job { message, hint: Some(text.into()) },
            Self::Input { message, .. } => Self::Input { message, hint: Some(text.into()) },
            Self::Missing { message, .. } => Self::Missing { message, hint: Some(text.into()) },
            Self::Interrupted | Self::Pipe => self,
        }
    }

    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::input(format!("cannot read {}: {error}", path.display()))
    }

    /// Something that was to be written before the work began cannot be.
    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        // The crate `tempfile` adds the name of a file beside it, which means nothing to whoever named the other.
        let said = error.to_string();
        let said = said.split(" at path \"").next().unwrap_or_default();
        Self::input(format!("cannot write {}: {said}", path.display()))
            .with_hint("name a place where you may write")
    }

    pub(crate) fn code(&self) -> u8 {
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

impl From<ScenarioError> for Error {
    /// A scenario's error has its hint in it already.
    fn from(error: ScenarioError) -> Self {
        Self::input(error.to_string())
    }
}
