//! Experiments: named parameters with defaults, metrics with units, and the execution of one run at
//! one point. The spec of a sweep may name an experiment instead of a scenario file.
//!
//! There are three layers, as for scenarios: [`Settings`] are texts, a [`Point`] is typed, checked
//! and ready to run, and rows are results.

mod error;

use std::collections::BTreeMap;
use std::fmt;

use anabranch_scenario::Scenario;
use anabranch_scenario::record::{self, Metrics};
use serde_json::Value;

pub use error::{ParameterError, RunError};

/// The experiments that a spec may name.
pub type Experiments<'e> = &'e [&'static dyn Experiment];

/// Returns the experiment with this name.
///
/// # Errors
///
/// [`ParameterError::NoExperiment`], with the closest name.
pub fn find(experiments: Experiments<'_>, name: &str) -> Result<&'static dyn Experiment, ParameterError> {
    experiments.iter().copied().find(|experiment| experiment.name() == name).ok_or_else(|| {
        let known: Vec<&str> = experiments.iter().map(|experiment| experiment.name()).collect();
        ParameterError::no_experiment(name, &known)
    })
}

/// A parameter of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Name, which is the key of `--set`.
    pub name: &'static str,
    /// Default value, as written in a spec.
    pub default: &'static str,
    /// Accepted values: an example with a unit, or the list of words.
    pub takes: &'static str,
    /// Description.
    pub about: &'static str,
    /// Its effect on the scenario of the experiment.
    pub sets: Sets,
}

/// Effect of a parameter on the scenario of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sets {
    /// The alias of the same name in the scenario file.
    Alias,
    /// The experiment computes assignments from this and other parameters.
    Derived,
}

/// Creates a parameter; for tables of parameters.
pub const fn parameter(
    name: &'static str,
    default: &'static str,
    takes: &'static str,
    about: &'static str,
) -> Parameter {
    Parameter { name, default, takes, about, sets: Sets::Derived }
}

impl Parameter {
    /// Returns the parameter as an alias of the scenario file.
    pub const fn alias(self) -> Self {
        Self { sets: Sets::Alias, ..self }
    }
}

/// A metric of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Name.
    pub name: &'static str,
    /// Unit: `1`, `s`, `B`, `bit/s`.
    pub unit: &'static str,
    /// Description.
    pub about: &'static str,
}

/// An experiment: a family of simulations with parameters.
pub trait Experiment: fmt::Debug + Send + Sync {
    /// Name.
    fn name(&self) -> &'static str;
    /// One-line description.
    fn about(&self) -> &'static str;
    /// Fingerprint of the sources that determine its results, in addition to the simulator's. Part
    /// of the identity of each run.
    fn build(&self) -> &'static str;
    /// Parameters in display order.
    fn parameters(&self) -> &'static [Parameter];
    /// Metrics in the order of the values of [`Point::run`].
    fn metrics(&self) -> &'static [Metric];
    /// Array metrics, such as one number per node, in the order of [`Measured::arrays`].
    fn arrays(&self) -> &'static [Metric] {
        &[]
    }
    /// Parses the value of every parameter.
    ///
    /// # Errors
    ///
    /// The first invalid value, with a hint.
    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError>;
}

/// One combination of parameter values, ready to run.
pub trait Point: fmt::Debug + Send + Sync {
    /// The scenario for these parameter values.
    fn scenario(&self) -> &Scenario;
    /// Every parameter with its resolved value, in a form that can be parsed again.
    fn parameters(&self) -> Vec<(&'static str, String)>;
    /// Whether runs can differ from each other.
    fn chance(&self) -> Chance;
    /// Executes one run. Returns a value for each metric, `None` if the run has no such value (for
    /// example, a transfer that did not finish).
    ///
    /// # Errors
    ///
    /// The run could not be executed.
    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError>;
    /// Executes one run and returns its arrays too. Experiments with arrays override this method.
    ///
    /// # Errors
    ///
    /// As [`Point::run`].
    fn measure(&self, seed: u64, run: u64) -> Result<Measured, RunError> {
        Ok(Measured { values: self.run(seed, run)?, arrays: Vec::new() })
    }
}

/// Measurements of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// A value for each metric; `None` if the run has no such value.
    pub values: Vec<Option<f64>>,
    /// The elements of each array, equally many in every run of a point; `None` if the run has no
    /// such array.
    pub arrays: Vec<Option<Vec<f64>>>,
}

/// Whether a point involves randomness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chance {
    /// Runs differ.
    Random,
    /// All runs are equal, so one is sufficient.
    None,
}

/// The text of each parameter of an experiment: the default, or the value that was set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// The defaults.
    pub fn defaults(experiment: &dyn Experiment) -> Self {
        Self { values: experiment.parameters().iter().map(|p| (p.name, p.default.to_owned())).collect() }
    }

    /// The defaults, overridden by `parameters`, whose values are numbers, texts or booleans.
    ///
    /// # Errors
    ///
    /// The first unknown parameter, or the first value that is a list or a table.
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
    /// [`ParameterError::UnknownKey`] if there is no such parameter.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        match self.values.get_mut(key) {
            Some(slot) => value.trim().clone_into(slot),
            None => return Err(ParameterError::unknown_key(key, self.values.keys().copied())),
        }
        Ok(())
    }

    /// Returns the settings with another value of an existing parameter.
    ///
    /// # Panics
    ///
    /// If the experiment has no such parameter.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.set(key, &value.to_string()).expect("an experiment sets its own parameters");
        self
    }

    /// The text of an existing parameter.
    ///
    /// # Panics
    ///
    /// If the experiment has no such parameter.
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).expect("an experiment asks for its own parameters")
    }
}

/// The text of a parameter as JSON: numbers as numbers, other texts as strings.
pub fn json_value(text: &str) -> Value {
    match text.parse::<serde_json::Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::String(text.to_owned()),
    }
}

/// The measurements of a run by name. The elements of an array `NAME` are `NAME.0`, `NAME.1` and so
/// on. An array that the run does not have is `NAME.0` without a value.
///
/// # Errors
///
/// [`RunError::NotFinite`] for the first metric that is not finite.
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

/// The name of an array element among the metrics of a row.
pub fn element(array: &Metric, index: usize) -> String {
    format!("{}.{index}", array.name)
}
