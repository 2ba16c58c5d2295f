//! Errors of experiments.

use std::fmt;

use anabranch_scenario::{Undrawable, did_you_mean};
use thiserror::Error;

/// Why a point or a grid is invalid: the parameter, the reason, and how to fix it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParameterError {
    /// The experiment does not exist.
    NoExperiment {
        /// The requested name.
        name: String,
        /// How to fix it.
        hint: String,
    },
    /// The text is not of the form `key=value`.
    NoAssignment {
        /// The text.
        text: String,
    },
    /// The parameter does not exist.
    UnknownKey {
        /// The key.
        key: String,
        /// How to fix it.
        hint: String,
    },
    /// A parameter is set twice.
    Twice {
        /// The key.
        key: String,
    },
    /// The values together make an invalid scenario.
    Scenario {
        /// The reason.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A value is invalid.
    BadValue {
        /// The parameter.
        key: &'static str,
        /// The value.
        value: String,
        /// The reason.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
}

impl ParameterError {
    /// The error for an unknown experiment.
    pub fn no_experiment(name: &str, known: &[&str]) -> Self {
        let none = "this program knows no experiment";
        let hint = if known.is_empty() { none.to_owned() } else { meant(name, known, "experiments") };
        Self::NoExperiment { name: name.to_owned(), hint }
    }

    /// The error for an unknown parameter.
    pub fn unknown_key<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.collect();
        Self::UnknownKey { key: key.to_owned(), hint: meant(key, &known, "parameters") }
    }

    /// The invalid parameter, if there is a single one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { key, .. } | Self::Twice { key } => Some(key),
            Self::BadValue { key, .. } => Some(key),
            Self::NoExperiment { .. } | Self::NoAssignment { .. } | Self::Scenario { .. } => None,
        }
    }

    /// The reason, without the option of the command line that contains it.
    pub fn reason(&self) -> String {
        match self {
            Self::NoExperiment { name, .. } => format!("there is no experiment `{name}`"),
            Self::NoAssignment { .. } => "expected `key=value`".to_owned(),
            Self::UnknownKey { key, .. } => format!("unknown key `{key}`"),
            Self::Twice { key } => format!("`{key}` is set twice"),
            Self::Scenario { message, .. } | Self::BadValue { message, .. } => message.clone(),
        }
    }

    /// The error for an invalid value.
    pub fn bad(key: &'static str, value: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self::BadValue { key, value: value.to_owned(), message: message.into(), hint }
    }

    /// How to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoExperiment { hint, .. } | Self::UnknownKey { hint, .. } => Some(hint.clone()),
            Self::NoAssignment { .. } => {
                Some("write `--set key=value`, or `key=value,value` for a grid".to_owned())
            }
            Self::Twice { key } => Some(format!("write both values with a comma: `--set {key}=value,value`")),
            Self::BadValue { hint, .. } | Self::Scenario { hint, .. } => hint.clone(),
        }
    }
}

fn meant(word: &str, known: &[&str], what: &str) -> String {
    did_you_mean(word, known).unwrap_or_else(|| format!("the {what} are {}", known.join(", ")))
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAssignment { text } => write!(f, "--set {text}: ")?,
            Self::UnknownKey { key, .. } | Self::Twice { key } => write!(f, "--set {key}: ")?,
            Self::BadValue { key, value, .. } => write!(f, "--set {key}={value}: ")?,
            Self::NoExperiment { .. } | Self::Scenario { .. } => {}
        }
        f.write_str(&self.reason())
    }
}

impl std::error::Error for ParameterError {}

/// Why a run failed, or its results cannot be summarised.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The request is invalid, which is only detected when it runs.
    #[error("{message}")]
    Impossible {
        /// The reason.
        message: String,
        /// How to fix it.
        hint: &'static str,
    },
    /// The simulator refuses the network of the experiment.
    #[error("the experiment's network is refused: {0}")]
    Scenario(String),
    /// A metric is not a finite number.
    #[error("the metric `{metric}` of run {run} is not a finite number")]
    NotFinite {
        /// The metric.
        metric: &'static str,
        /// The run.
        run: u64,
    },
    /// The closed form has no solution.
    #[error("the model has no answer: {0}")]
    Model(String),
    /// A bug of the program, such as a panic in a run.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// How to fix it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Impossible { hint, .. } => Some(hint),
            Self::Scenario(_) | Self::NotFinite { .. } | Self::Model(_) | Self::Failed(_) => None,
        }
    }
}

impl From<ParameterError> for RunError {
    fn from(error: ParameterError) -> Self {
        Self::Scenario(error.to_string())
    }
}

impl From<Undrawable> for RunError {
    fn from(error: Undrawable) -> Self {
        Self::Impossible { message: error.to_string(), hint: error.hint() }
    }
}
