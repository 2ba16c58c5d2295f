//! What can be wrong with what was asked for.

use std::fmt;

use anabranch_sim::scenario::{Undrawable, did_you_mean};
use thiserror::Error;

/// Why a point or a grid cannot be: the parameter, the reason, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParameterError {
    /// There is no such experiment.
    NoExperiment {
        /// What was asked for.
        name: String,
        /// What to do.
        hint: String,
    },
    /// What was set is no `key=value`.
    NoAssignment {
        /// The text.
        text: String,
    },
    /// There is no such parameter.
    UnknownKey {
        /// The key.
        key: String,
        /// What to do.
        hint: String,
    },
    /// A parameter was set twice.
    Twice {
        /// The key.
        key: String,
    },
    /// The values together make a scenario that cannot be.
    Scenario {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A value cannot be.
    BadValue {
        /// The parameter.
        key: &'static str,
        /// The value.
        value: String,
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

impl ParameterError {
    /// No experiment of that name.
    pub fn no_experiment(name: &str, known: &[&str]) -> Self {
        let none = "this program knows no experiment";
        let hint = if known.is_empty() { none.to_owned() } else { meant(name, known, "experiments") };
        Self::NoExperiment { name: name.to_owned(), hint }
    }

    /// No parameter of that name.
    pub fn unknown_key<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.collect();
        Self::UnknownKey { key: key.to_owned(), hint: meant(key, &known, "parameters") }
    }

    /// The parameter that is at fault, if it is one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { key, .. } | Self::Twice { key } => Some(key),
            Self::BadValue { key, .. } => Some(key),
            Self::NoExperiment { .. } | Self::NoAssignment { .. } | Self::Scenario { .. } => None,
        }
    }

    /// What is wrong, without the option of the command line that says it.
    pub fn reason(&self) -> String {
        match self {
            Self::NoExperiment { name, .. } => format!("there is no experiment `{name}`"),
            Self::NoAssignment { .. } => "expected `key=value`".to_owned(),
            Self::UnknownKey { key, .. } => format!("unknown key `{key}`"),
            Self::Twice { key } => format!("`{key}` is set twice"),
            Self::Scenario { message, .. } | Self::BadValue { message, .. } => message.clone(),
        }
    }

    /// A value that cannot be.
    pub fn bad(key: &'static str, value: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self::BadValue { key, value: value.to_owned(), message: message.into(), hint }
    }

    /// What to do about it.
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

/// Why a run could not be made, or its numbers not be summed up.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// What was asked for cannot be, which shows only when it is to be run; with a hint.
    #[error("{message}")]
    Impossible {
        /// What cannot be.
        message: String,
        /// What to do.
        hint: &'static str,
    },
    /// The experiment has described a network that the simulator refuses.
    #[error("the experiment's network is refused: {0}")]
    Scenario(String),
    /// A metric is no number.
    #[error("the metric `{metric}` of run {run} is not a finite number")]
    NotFinite {
        /// The metric.
        metric: &'static str,
        /// The run.
        run: u64,
    },
    /// The closed form has no answer.
    #[error("the model has no answer: {0}")]
    Model(String),
    /// The program is at fault, as when a run panicked.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// What to do about it.
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
