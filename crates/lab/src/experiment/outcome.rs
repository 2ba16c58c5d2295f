//! Runs of a point, summed up.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::{Chance, Experiment, Metric, Point, RunError, json_value};
use crate::stats::{StatsError, Summary};

/// What came out of a point.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The experiment's name.
    pub experiment: &'static str,
    /// Every parameter, resolved.
    pub parameters: Vec<(&'static str, String)>,
    /// How many runs there were.
    pub runs: usize,
    /// The root of their random streams.
    pub seed: u64,
    /// The metrics, in the experiment's order.
    pub metrics: Vec<MetricSummary>,
}

/// One metric over the runs.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricSummary {
    /// Which.
    pub metric: Metric,
    /// The value of each run, in order.
    pub values: Vec<Option<f64>>,
    /// Over those runs that have a value; `None` if none has.
    pub summary: Option<Summary>,
}

impl MetricSummary {
    /// Runs without a value: transfers that did not end.
    pub fn missing(&self) -> usize {
        self.values.iter().filter(|v| v.is_none()).count()
    }

    fn record(&self) -> MetricRecord {
        let s = self.summary.as_ref();
        MetricRecord {
            mean: s.map(|s| s.mean),
            ci95: s.and_then(|s| s.ci95),
            min: s.map(|s| s.min),
            max: s.map(|s| s.max),
            unit: self.metric.unit,
            missing: self.missing(),
        }
    }
}

impl Outcome {
    /// A metric by its name.
    ///
    /// # Panics
    ///
    /// If the experiment has none of that name.
    pub fn metric(&self, name: &str) -> &MetricSummary {
        self.metrics.iter().find(|m| m.metric.name == name).expect("a metric of this experiment")
    }

    /// A metric's mean.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.metric(name).summary.map(|s| s.mean)
    }

    /// A parameter's text.
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
            metrics: self.metrics.iter().map(|m| (m.metric.name, m.record())).collect(),
        }
    }
}

/// An outcome as a program reads it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record {
    experiment: &'static str,
    params: BTreeMap<&'static str, Value>,
    runs: usize,
    seed: u64,
    metrics: BTreeMap<&'static str, MetricRecord>,
}

/// A metric as a program reads it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct MetricRecord {
    mean: Option<f64>,
    ci95: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    unit: &'static str,
    /// Runs without a value; left out if there are none.
    #[serde(skip_serializing_if = "is_none")]
    missing: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Runs one point `runs` times (at least once), on all threads.
///
/// # Errors
///
/// The first run (by number) that could not be made.
pub fn run(
    experiment: &dyn Experiment,
    point: &dyn Point,
    runs: usize,
    seed: u64,
) -> Result<Outcome, RunError> {
    let runs = runs.max(1);
    // Where nothing is random, one run is all of them.
    let made = match point.chance() {
        Chance::Random => runs,
        Chance::None => 1,
    };
    let results: Result<Vec<Vec<Option<f64>>>, RunError> =
        (0..made).into_par_iter().map(|run| point.run(seed, run as u64)).collect();
    let results = results?;
    let metrics = experiment.metrics().iter().enumerate().map(|(i, metric)| {
        let one = |run: usize| results[run.min(made - 1)].get(i).copied().flatten();
        summed(*metric, (0..runs).map(one).collect())
    });
    Ok(Outcome {
        experiment: experiment.name(),
        parameters: point.parameters(),
        runs,
        seed,
        metrics: metrics.collect::<Result<_, _>>()?,
    })
}

/// Runs many points, in parallel, and returns what came out in their order.
///
/// # Errors
///
/// The first point that could not be run.
pub fn run_all(
    experiment: &dyn Experiment,
    points: &[Box<dyn Point>],
    runs: usize,
    seed: u64,
) -> Result<Vec<Outcome>, RunError> {
    points.par_iter().map(|point| run(experiment, point.as_ref(), runs, seed)).collect()
}

fn summed(metric: Metric, values: Vec<Option<f64>>) -> Result<MetricSummary, RunError> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let summary = match Summary::of(&known) {
        Ok(summary) => Some(summary),
        Err(StatsError::NotFinite { run }) => return Err(RunError::NotFinite { metric: metric.name, run }),
        Err(_) => None,
    };
    Ok(MetricSummary { metric, values, summary })
}
