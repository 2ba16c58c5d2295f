//! What an experiment is: named parameters with defaults, metrics with units, and one run of one point.
//!
//! Three layers, as with scenarios: [`Settings`] is what was said (texts), a [`Point`] is what it means (typed,
//! checked, ready to run), a [`Outcome`] is what came out over all runs.

mod error;
mod grid;
mod outcome;
pub mod template;
pub(crate) mod values;

use std::collections::BTreeMap;

use serde_json::Value;

pub use error::{ParameterError, RunError};
pub use grid::{grid, settings};
pub use outcome::{
    ArraySummary, MetricSummary, Outcome, Record, made, run, run_all, run_all_watched, run_watched,
};

/// A parameter of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name: the key of `--set`.
    pub name: &'static str,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// What it takes: a unit's example, or the words that it knows.
    pub takes: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What it changes in the experiment's scenario.
    pub sets: Sets,
}

/// What a parameter changes in the scenario of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sets {
    /// What the scenario file's alias of the parameter's name says.
    Alias,
    /// The experiment computes assignments from it and from other parameters.
    Derived,
}

/// A parameter in one line, for tables of them.
pub const fn parameter(
    name: &'static str,
    default: &'static str,
    takes: &'static str,
    about: &'static str,
) -> Parameter {
    Parameter { name, default, takes, about, sets: Sets::Derived }
}

impl Parameter {
    /// The same, as an alias of the scenario file.
    pub const fn alias(self) -> Self {
        Self { sets: Sets::Alias, ..self }
    }
}

/// A metric of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit: `1`, `s`, `B`, `bit/s`.
    pub unit: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// An experiment: a family of simulations, spanned by parameters.
pub trait Experiment: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it is, in a line.
    fn about(&self) -> &'static str;
    /// Its parameters, in the order in which they are shown.
    fn parameters(&self) -> &'static [Parameter];
    /// Its metrics, in the order of [`Point::run`]'s values.
    fn metrics(&self) -> &'static [Metric];
    /// Its metrics that are arrays, such as one number for each node, in the order of [`Measured::arrays`].
    fn arrays(&self) -> &'static [Metric] {
        &[]
    }
    /// Understands a value for every parameter.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, with a hint.
    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError>;
}

/// One combination of parameters, ready to run.
pub trait Point: Send + Sync {
    /// Every parameter, resolved, as it can be given again.
    fn parameters(&self) -> Vec<(&'static str, String)>;
    /// Whether runs can differ from each other.
    fn chance(&self) -> Chance;
    /// One run: a value for each metric, `None` where there is none (a transfer that did not end).
    ///
    /// # Errors
    ///
    /// What kept the run from being made at all.
    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError>;
    /// One run with its arrays; an experiment that has some overrides it.
    ///
    /// # Errors
    ///
    /// As [`Point::run`].
    fn measure(&self, seed: u64, run: u64) -> Result<Measured, RunError> {
        Ok(Measured { values: self.run(seed, run)?, arrays: Vec::new() })
    }
}

/// What one run has measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// A value for each metric, `None` where there is none.
    pub values: Vec<Option<f64>>,
    /// The elements of each array, as many in every run of a point; `None` where there are none.
    pub arrays: Vec<Option<Vec<f64>>>,
}

/// Whether a point has anything random in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chance {
    /// Runs differ.
    Random,
    /// All runs are the same: one says it all.
    None,
}

/// A text for each parameter of an experiment: the defaults, and what was set on top.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// The defaults.
    pub fn defaults(experiment: &dyn Experiment) -> Self {
        Self { values: experiment.parameters().iter().map(|p| (p.name, p.default.to_owned())).collect() }
    }

    /// Sets one parameter.
    ///
    /// # Errors
    ///
    /// [`ParameterError::UnknownKey`] if there is none of that name.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        match self.values.get_mut(key) {
            Some(slot) => value.trim().clone_into(slot),
            None => return Err(ParameterError::unknown_key(key, self.values.keys().copied())),
        }
        Ok(())
    }

    /// The same with another value of a parameter that the experiment has.
    ///
    /// # Panics
    ///
    /// If the experiment has none of that name.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.set(key, &value.to_string()).expect("an experiment sets its own parameters");
        self
    }

    /// The text of a parameter that the experiment has.
    ///
    /// # Panics
    ///
    /// If the experiment has none of that name.
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).expect("an experiment asks for its own parameters")
    }
}

/// A parameter's text as JSON: numbers as numbers, all else as it is.
fn json_value(text: &str) -> Value {
    match text.parse::<serde_json::Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::String(text.to_owned()),
    }
}
