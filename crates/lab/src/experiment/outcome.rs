//! Runs of a point, summed up.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::{Chance, Experiment, Measured, Metric, Point, RunError, json_value};
use crate::stats::{MetricRecord, StatsError, Summary};
use crate::work::Work;

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
    /// The arrays, in the experiment's order.
    pub arrays: Vec<ArraySummary>,
}

/// One array over the runs.
#[derive(Clone, PartialEq, Debug)]
pub struct ArraySummary {
    /// Which.
    pub metric: Metric,
    /// Each element over those runs that have the array; empty if none has.
    pub elements: Vec<Summary>,
    /// Runs without the array.
    pub missing: usize,
}

impl ArraySummary {
    /// The elements' means.
    pub fn means(&self) -> Vec<f64> {
        self.elements.iter().map(|s| s.mean).collect()
    }

    fn record(&self) -> MetricRecord<'static> {
        MetricRecord::of_array(&self.elements, self.missing, self.metric.unit)
    }
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

    fn record(&self) -> MetricRecord<'static> {
        MetricRecord::new(self.summary.as_ref(), self.missing(), self.metric.unit)
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

    /// An array by its name.
    ///
    /// # Panics
    ///
    /// If the experiment has none of that name.
    pub fn array(&self, name: &str) -> &ArraySummary {
        self.arrays.iter().find(|a| a.metric.name == name).expect("an array of this experiment")
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
            metrics: self
                .metrics
                .iter()
                .map(|m| (m.metric.name, m.record()))
                .chain(self.arrays.iter().map(|a| (a.metric.name, a.record())))
                .collect(),
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
    metrics: BTreeMap<&'static str, MetricRecord<'static>>,
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
    run_watched(experiment, point, &Work::new(runs, seed))
}

/// The same, with somebody who is told of every run that is made.
///
/// # Errors
///
/// As [`run`].
pub fn run_watched(
    experiment: &dyn Experiment,
    point: &dyn Point,
    work: &Work<'_>,
) -> Result<Outcome, RunError> {
    let Work { runs, seed, .. } = *work;
    let made = made(point, runs);
    let results: Result<Vec<Measured>, RunError> = (0..made)
        .into_par_iter()
        .map(|run| point.measure(seed, run as u64).inspect(|_| work.ran()))
        .collect();
    let results = results?;
    let metrics = experiment.metrics().iter().enumerate().map(|(i, metric)| {
        let one = |run: usize| results[run.min(made - 1)].values.get(i).copied().flatten();
        summed(*metric, (0..runs).map(one).collect())
    });
    let arrays = experiment.arrays().iter().enumerate().map(|(i, metric)| {
        let one = |run: usize| results[run.min(made - 1)].arrays.get(i)?.as_deref();
        summed_array(*metric, &(0..runs).map(one).collect::<Vec<_>>())
    });
    Ok(Outcome {
        experiment: experiment.name(),
        parameters: point.parameters(),
        runs,
        seed,
        metrics: metrics.collect::<Result<_, _>>()?,
        arrays: arrays.collect::<Result<_, _>>()?,
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
    run_all_watched(experiment, points, &Work::new(runs, seed))
}

/// The same, with somebody who is told of every run that is made.
///
/// # Errors
///
/// As [`run_all`].
pub fn run_all_watched(
    experiment: &dyn Experiment,
    points: &[Box<dyn Point>],
    work: &Work<'_>,
) -> Result<Vec<Outcome>, RunError> {
    points.par_iter().map(|point| run_watched(experiment, point.as_ref(), work)).collect()
}

/// How many runs are made of a point: one is all of them where nothing is random.
pub fn made(point: &dyn Point, runs: usize) -> usize {
    match point.chance() {
        Chance::Random => runs.max(1),
        Chance::None => 1,
    }
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

fn summed_array(metric: Metric, runs: &[Option<&[f64]>]) -> Result<ArraySummary, RunError> {
    let known: Vec<&[f64]> = runs.iter().copied().flatten().collect();
    let len = known.iter().map(|array| array.len()).min().unwrap_or(0);
    let element = |i: usize| {
        let values: Vec<f64> = known.iter().map(|array| array[i]).collect();
        Summary::of(&values).map_err(|_| RunError::NotFinite { metric: metric.name, run: 0 })
    };
    let elements = (0..len).map(element).collect::<Result<_, _>>()?;
    Ok(ArraySummary { metric, elements, missing: runs.len() - known.len() })
}
