//! Errors in the form that Python gets: `anabranch.Error` with a message, a place and a hint.

use anabranch_lab::experiment::{ParameterError, RunError};
use anabranch_scenario::ScenarioError;
use pyo3::prelude::*;

/// An error before it becomes an exception.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    place: Option<String>,
    hint: Option<String>,
}

impl Fault {
    /// Creates an error about invalid input.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, hint: None }
    }

    /// Adds advice for the user.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the place of the error.
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Converts a panic, which is a bug of this package.
    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing");
        Self::new(format!("anabranch panicked: {text}"))
            .with_hint("this is a fault of anabranch: please report it with what you called")
    }
}

impl From<ScenarioError> for Fault {
    fn from(ScenarioError { place, message, hint }: ScenarioError) -> Self {
        // The program's text names its command-line option for an override; Python has a parameter
        // instead.
        let place = place.to_string();
        let place = place.strip_prefix("--set ").map(|set| format!("set {set}")).unwrap_or(place);
        Self { message, place: Some(place), hint }
    }
}

impl From<anabranch_sweep::Error> for Fault {
    fn from(error: anabranch_sweep::Error) -> Self {
        match error {
            anabranch_sweep::Error::Spec(error) => (*error).into(),
            anabranch_sweep::Error::Parameter(error) => error.into(),
            other => {
                let hint = other.hint().map(|hint| hint.replace("--jobs", "`jobs`"));
                Self { message: other.to_string(), place: None, hint }
            }
        }
    }
}

impl From<ParameterError> for Fault {
    fn from(error: ParameterError) -> Self {
        let message = error.to_string().replace("--set ", "");
        Self { message, place: None, hint: error.hint().map(|hint| hint.replace("--set ", "")) }
    }
}

impl From<RunError> for Fault {
    fn from(error: RunError) -> Self {
        let hint = error.hint().map(|hint| hint.replace("--set ", ""));
        Self { message: error.to_string(), place: None, hint }
    }
}

impl From<Fault> for PyErr {
    fn from(Fault { message, place, hint }: Fault) -> Self {
        Python::attach(|py| {
            let made = py
                .import("anabranch._error")
                .and_then(|module| module.getattr("Error"))
                .and_then(|class| class.call1((message, place, hint)));
            made.map_or_else(|error| error, PyErr::from_value)
        })
    }
}
