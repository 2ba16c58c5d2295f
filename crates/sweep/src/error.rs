//! What can go wrong.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_sim::scenario::{ScenarioError, did_you_mean};
use thiserror::Error;

use crate::experiment::{ParameterError, RunError};

/// Why a sweep does not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The spec, the scenario, or what a parameter makes of it. The text has its hint in it.
    #[error("{0}")]
    Spec(#[from] Box<ScenarioError>),
    /// A file that the spec or the scenario names.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A parameter of an experiment that no file says. The text names it as an option of the
    /// command line.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A run could not be made.
    #[error("run {run} with seed {seed} of point {point}: {error}")]
    Run {
        /// The point's number.
        point: usize,
        /// The seed.
        seed: u64,
        /// The run.
        run: u64,
        /// Why.
        error: RunError,
    },
    /// What is asked for cannot be.
    #[error("{message}")]
    Impossible {
        /// Why.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The folder of results.
    #[error("cannot {doing} {}: {error}", path.display())]
    Store {
        /// What was tried: `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Octets that somebody else has made are not what they should be.
    #[error("{0}")]
    Foreign(String),
    /// A run ended in a panic: a fault of the simulator.
    #[error("run {run} with seed {seed} of point {point} panicked: {message}")]
    Panicked {
        /// The point's number.
        point: usize,
        /// The seed.
        seed: u64,
        /// The run.
        run: u64,
        /// What it said.
        message: String,
    },
    /// A table could not be made.
    #[error("cannot make the table: {0}")]
    Table(String),
    /// A table that was written cannot be read, or is none of ours.
    #[error("cannot read the table: {0}")]
    Unread(String),
}

impl Error {
    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), error }
    }

    pub(crate) fn unwritten(path: &Path, error: io::Error) -> Self {
        Self::Store { doing: "write", path: path.to_owned(), error }
    }

    /// What is wrong is what was asked for, not what happened.
    pub fn is_input(&self) -> bool {
        let impossible = |error: &RunError| matches!(error, RunError::Impossible { .. });
        match self {
            Self::Run { error, .. } => impossible(error),
            other => matches!(
                other,
                Self::Spec(_)
                    | Self::Parameter(_)
                    | Self::Unreadable { .. }
                    | Self::Impossible { .. }
                    | Self::Unread(_)
            ),
        }
    }

    /// What to do about it, if the text does not say.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Parameter(error) => return error.hint().map(Cow::Owned),
            Self::Run { error, .. } => error.hint(),
            Self::Unreadable { .. } => {
                Some("paths in a spec are relative to the spec, those in a scenario to the scenario")
            }
            Self::Impossible { hint, .. } => Some(hint.as_str()),
            Self::Store { error, .. } if error.kind() == io::ErrorKind::StorageFull => {
                Some("free space and repeat the command to resume; finished runs are kept")
            }
            Self::Store { .. } => Some("name a folder where you may write; what is done is kept"),
            Self::Foreign(_) => Some("both ends must be the same version of anabranch"),
            Self::Panicked { .. } => Some(
                "this is a fault of anabranch: please report it with the scenario; other points go on if this one is left out",
            ),
            Self::Unread(_) => {
                Some("name a file that `anabranch sweep` or the Python package has written as Parquet")
            }
            Self::Spec(_) | Self::Table(_) => None,
        };
        hint.map(Cow::Borrowed)
    }
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Self {
        Self::Spec(Box::new(error))
    }
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        match error {
            Error::Parameter(error) => error.into(),
            Error::Run { error, .. } => error,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A metric that no run has.
pub(crate) fn unknown_metric<'n>(metric: &str, known: impl Iterator<Item = &'n str> + Clone) -> Error {
    let hint = did_you_mean(metric, known.clone()).unwrap_or_else(|| {
        format!("there is `{}`, for example", known.take(3).collect::<Vec<_>>().join("`, `"))
    });
    Error::Impossible { message: format!("no run has the metric `{metric}`"), hint }
}
