//! Summaries of the runs of a point.

use std::collections::BTreeMap;

use anabranch_sweep::address::Address;
use anabranch_sweep::experiment::{element, json_value};
use anabranch_sweep::{Error, Point, Store, Sweep};
use serde::Serialize;
use serde_json::Value;

use super::Metric;
use crate::stats::{MetricRecord, Summary};

/// Results of a point.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// All parameters, resolved.
    pub parameters: Vec<(&'static str, String)>,
    /// Number of runs.
    pub runs: usize,
    /// Seed of the runs.
    pub seed: u64,
    /// Metrics, in the experiment's order.
    pub metrics: Vec<MetricSummary>,
    /// Arrays, in the experiment's order.
    pub arrays: Vec<ArraySummary>,
}

/// Results of one array over the runs.
#[derive(Clone, PartialEq, Debug)]
pub struct ArraySummary {
    /// The array's name, unit and description.
    pub metric: Metric,
    /// Summary of each element over the runs that have the array; empty if none has.
    pub elements: Vec<Summary>,
    /// The array of each run, in order.
    pub runs: Vec<Option<Vec<f64>>>,
}

impl ArraySummary {
    fn of(metric: Metric, runs: Vec<Option<Vec<f64>>>) -> Self {
        let known: Vec<&[f64]> = runs.iter().flatten().map(Vec::as_slice).collect();
        let len = known.iter().map(|array| array.len()).min().unwrap_or(0);
        let element = |i: usize| {
            let values: Vec<f64> = known.iter().map(|array| array[i]).collect();
            Summary::of(&values).expect("a row has finite numbers, and a run has the array")
        };
        Self { metric, elements: (0..len).map(element).collect(), runs }
    }

    /// Number of runs without the array.
    pub fn missing(&self) -> usize {
        self.runs.iter().filter(|run| run.is_none()).count()
    }

    /// Means of the elements.
    pub fn means(&self) -> Vec<f64> {
        self.elements.iter().map(|s| s.mean).collect()
    }

    fn record(&self) -> MetricRecord<'static> {
        MetricRecord::of_array(&self.elements, self.missing(), self.metric.unit)
    }
}

/// Results of one metric over the runs.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricSummary {
    /// The metric's name, unit and description.
    pub metric: Metric,
    /// The value of each run, in order.
    pub values: Vec<Option<f64>>,
    /// Summary over the runs that have a value; `None` if none has.
    pub summary: Option<Summary>,
}

impl MetricSummary {
    fn of(metric: Metric, values: Vec<Option<f64>>) -> Self {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        Self { metric, values, summary: Summary::of(&known).ok() }
    }

    /// Number of runs without a value, such as incomplete transfers.
    pub fn missing(&self) -> usize {
        self.values.iter().filter(|v| v.is_none()).count()
    }

    fn record(&self) -> MetricRecord<'static> {
        MetricRecord::new(self.summary.as_ref(), self.missing(), self.metric.unit)
    }
}

impl Outcome {
    /// Summarises the stored rows of a point. The sweep must be of an experiment and have one seed.
    ///
    /// # Errors
    ///
    /// A point of a large sweep is no longer valid.
    ///
    /// # Panics
    ///
    /// The sweep is of a scenario.
    pub fn of(sweep: &Sweep, point: &Point, store: &Store) -> Result<Self, Error> {
        let experiment = sweep.spec().experiment().expect("a sweep of an experiment");
        let each = sweep.standing(point, store).runs;
        let runs: Vec<Address> = sweep.addresses(point, each).map(|(_, address)| address).collect();
        let metric = |metric: &Metric| {
            let values = runs.iter().map(|run| store.figure(run, metric.name)).collect();
            MetricSummary::of(*metric, values)
        };
        let array = |array: &Metric| {
            let values: Vec<_> = runs.iter().map(|run| elements(array, run, store)).collect();
            ArraySummary::of(*array, values)
        };
        Ok(Self {
            experiment: experiment.name(),
            parameters: sweep.resolved(point)?,
            runs: runs.len(),
            seed: sweep.seeds()[0],
            metrics: experiment.metrics().iter().map(metric).collect(),
            arrays: experiment.arrays().iter().map(array).collect(),
        })
    }

    /// A metric by name.
    ///
    /// # Panics
    ///
    /// The experiment has no metric of that name.
    pub fn metric(&self, name: &str) -> &MetricSummary {
        self.metrics.iter().find(|m| m.metric.name == name).expect("a metric of this experiment")
    }

    /// An array by name.
    ///
    /// # Panics
    ///
    /// The experiment has no array of that name.
    pub fn array(&self, name: &str) -> &ArraySummary {
        self.arrays.iter().find(|a| a.metric.name == name).expect("an array of this experiment")
    }

    /// Mean of a metric.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.metric(name).summary.map(|s| s.mean)
    }

    /// Text of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| *n == name).map(|(_, text)| text.as_str())
    }

    /// The object that `lab run --json` prints.
    pub fn record(&self) -> Record {
        let parameters = self.parameters.iter().map(|(name, text)| (*name, json_value(text)));
        Record {
            experiment: self.experiment,
            params: parameters.collect(),
            runs: self.runs,
            seed: self.seed,
            metrics: self
                .metrics
                .iter()
                .map(|m| (m.metric.name, m.record()))
                .chain(self.arrays.iter().map(|a| (a.metric.name, a.record())))
                .collect(),
        }
    }
}

/// JSON form of an outcome.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record {
    experiment: &'static str,
    params: BTreeMap<&'static str, Value>,
    runs: usize,
    seed: u64,
    metrics: BTreeMap<&'static str, MetricRecord<'static>>,
}

/// Elements of an array in a row; `None` if the run does not have the array.
fn elements(array: &Metric, run: &Address, store: &Store) -> Option<Vec<f64>> {
    let (schema, values) = store.values(run)?;
    let place = |i| schema.0.binary_search_by(|(name, _)| name.as_str().cmp(&element(array, i))).ok();
    (0..).map_while(place).map(|place| values[place]).collect()
}
