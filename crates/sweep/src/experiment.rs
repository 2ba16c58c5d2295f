//! What an experiment is: named parameters with defaults, metrics with units, and one run of one
//! point. The spec of a sweep may name one in place of a scenario file.
//!
//! Three layers, as with scenarios: [`Settings`] is what was said (texts), a [`Point`] is what it
//! means (typed, checked, ready to run), and rows are what came out.

mod error;

use std::collections::BTreeMap;
use std::fmt;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::scenario::record::{self, Metrics};
use serde_json::Value;

pub use error::{ParameterError, RunError};

/// The experiments that a spec may name.
pub type Experiments<'e> = &'e [&'static dyn Experiment];

/// The experiment of that name.
///
/// # Errors
///
/// [`ParameterError::NoExperiment`], with the nearest name.
pub fn find(experiments: Experiments<'_>, name: &str) -> Result<&'static dyn Experiment, ParameterError> {
    experiments.iter().copied().find(|experiment| experiment.name() == name).ok_or_else(|| {
        let known: Vec<&str> = experiments.iter().map(|experiment| experiment.name()).collect();
        ParameterError::no_experiment(name, &known)
    })
}

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
pub trait Experiment: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it is, in a line.
    fn about(&self) -> &'static str;
    /// Fingerprint of the sources that decide its results beside the simulator's: part of the
    /// identity of each run.
    fn build(&self) -> &'static str;
    /// Its parameters, in the order in which they are shown.
    fn parameters(&self) -> &'static [Parameter];
    /// Its metrics, in the order of [`Point::run`]'s values.
    fn metrics(&self) -> &'static [Metric];
    /// Its metrics that are arrays, such as one number for each node, in the order of
    /// [`Measured::arrays`].
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
pub trait Point: fmt::Debug + Send + Sync {
    /// The scenario that the parameters make.
    fn scenario(&self) -> &Scenario;
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
    /// The elements of each array, as many in every run of a point; `None` where the run has no
    /// such array.
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

    /// The defaults, and what `parameters` say on top: a number, a text or a truth value each.
    ///
    /// # Errors
    ///
    /// The first parameter that the experiment does not have, or a value that is a list or a table.
    pub fn of(
        experiment: &dyn Experiment,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Self, ParameterError> {
        let mut settings = Self::defaults(experiment);
        for (key, value) in parameters {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let known = settings.values.keys().find(|known| *known == key).copied();
                    let Some(known) = known else {
                        return Err(ParameterError::unknown_key(key, settings.values.keys().copied()));
                    };
                    let hint = "an axis belongs in `[grid]`; several values of one point are a text such as \"5ms+10ms\"".to_owned();
                    let message = "expected a number or a text";
                    return Err(ParameterError::bad(known, &value.to_string(), message, Some(hint)));
                }
            };
            settings.set(key, &text)?;
        }
        Ok(settings)
    }

    /// Every parameter and its text.
    pub fn parameters(&self) -> BTreeMap<String, Value> {
        self.values.iter().map(|(key, text)| ((*key).to_owned(), text.as_str().into())).collect()
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
pub fn json_value(text: &str) -> Value {
    match text.parse::<serde_json::Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::String(text.to_owned()),
    }
}

/// What a run has measured, by name: the elements of an array `NAME` are `NAME.0`, `NAME.1` and so
/// on. An array that the run does not have is `NAME.0` without a value.
///
/// # Errors
///
/// [`RunError::NotFinite`], the first metric that is no number.
pub(crate) fn metrics(
    experiment: &dyn Experiment,
    measured: &Measured,
    run: u64,
) -> Result<Metrics, RunError> {
    let mut metrics = Metrics::new();
    let mut put = |metric: &Metric, name: String, value: Option<f64>| match value {
        Some(value) if !value.is_finite() => Err(RunError::NotFinite { metric: metric.name, run }),
        value => {
            metrics.insert(name, record::Metric { value, unit: metric.unit });
            Ok(())
        }
    };
    for (metric, value) in experiment.metrics().iter().zip(&measured.values) {
        put(metric, metric.name.to_owned(), *value)?;
    }
    for (array, elements) in experiment.arrays().iter().zip(&measured.arrays) {
        match elements {
            Some(elements) => {
                for (i, value) in elements.iter().enumerate() {
                    put(array, element(array, i), Some(*value))?;
                }
            }
            None => put(array, element(array, 0), None)?,
        }
    }
    Ok(metrics)
}

/// The name of an element of an array among the metrics of a row.
pub fn element(array: &Metric, index: usize) -> String {
    format!("{}.{index}", array.name)
}
