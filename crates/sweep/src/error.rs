//! Errors of sweeps.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_scenario::{ScenarioError, did_you_mean};
use thiserror::Error;

use crate::experiment::{ParameterError, RunError};

/// Why a sweep stops.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The spec, the scenario, or the effect of a parameter on the scenario is invalid. The text
    /// contains a hint.
    #[error("{0}")]
    Spec(#[from] Box<ScenarioError>),
    /// A file that the spec or the scenario names cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A parameter of an experiment is invalid and does not come from a file. The text names it as
    /// an option of the command line.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A run failed.
    #[error("run {run} with seed {seed} of point {point}: {error}")]
    Run {
        /// Number of the point.
        point: usize,
        /// Seed of the run.
        seed: u64,
        /// Number of the run.
        run: u64,
        /// The cause.
        error: RunError,
    },
    /// The request is impossible.
    #[error("{message}")]
    Impossible {
        /// The reason.
        message: String,
        /// How to fix it.
        hint: String,
    },
    /// The folder of results cannot be used.
    #[error("cannot {doing} {}: {error}", path.display())]
    Store {
        /// The operation: `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// Data from another process is invalid.
    #[error("{0}")]
    Foreign(String),
    /// A run panicked, which is a bug of the simulator.
    #[error("run {run} with seed {seed} of point {point} panicked: {message}")]
    Panicked {
        /// Number of the point.
        point: usize,
        /// Seed of the run.
        seed: u64,
        /// Number of the run.
        run: u64,
        /// The panic message.
        message: String,
    },
    /// A table cannot be created.
    #[error("cannot make the table: {0}")]
    Table(String),
    /// A table cannot be read, or was not written by this crate.
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

    /// True if the request is at fault, not the environment or the program.
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

    /// How to fix it, if the message does not say so.
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
            Self::Store { .. } => Some("name a folder where you may write; finished runs are kept"),
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

/// The error for a metric that no run has.
pub(crate) fn unknown_metric<'n>(metric: &str, known: impl Iterator<Item = &'n str> + Clone) -> Error {
    let hint = did_you_mean(metric, known.clone()).unwrap_or_else(|| {
        format!("there is `{}`, for example", known.take(3).collect::<Vec<_>>().join("`, `"))
    });
    Error::Impossible { message: format!("no run has the metric `{metric}`"), hint }
}
