//! The papers' experiments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_lab::experiment::{self, Chance, Measured, Metric, Point, RunError};
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde_json::json;

use crate::fault::Fault;
use crate::work::work;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(lab_list, module)?)?;
    module.add_function(wrap_pyfunction!(lab_run, module)?)
}

/// Every experiment with its parameters and metrics, as JSON.
#[pyfunction]
fn lab_list() -> Vec<String> {
    let metric = |m: &Metric| json!({ "name": m.name, "unit": m.unit, "about": m.about });
    let described = anabranch_lab::EXPERIMENTS.iter().map(|experiment| {
        let parameters = experiment.parameters().iter();
        let parameters = parameters
            .map(|p| json!({ "name": p.name, "default": p.default, "takes": p.takes, "about": p.about }));
        json!({
            "name": experiment.name(),
            "about": experiment.about(),
            "parameters": parameters.collect::<Vec<_>>(),
            "metrics": experiment.metrics().iter().map(metric).collect::<Vec<_>>(),
            "arrays": experiment.arrays().iter().map(metric).collect::<Vec<_>>(),
        })
        .to_string()
    });
    described.collect()
}

/// Runs a grid of an experiment: one JSON object for each point, as `anabranch lab run --json` prints it.
#[pyfunction]
fn lab_run(
    py: Python<'_>,
    name: &str,
    assignments: Vec<String>,
    runs: usize,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let experiment = anabranch_lab::find(name).map_err(Fault::from)?;
    let points = experiment::grid(experiment, &assignments).map_err(Fault::from)?;
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let of = |point: &dyn Point| if point.chance() == Chance::Random { runs } else { 1 };
    let total: usize = points.iter().map(|point| of(point.as_ref())).sum();
    let watched = made.clone();
    let look = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, (watched.load(Ordering::Relaxed), total)).map(drop),
        None => Ok(()),
    };
    let stopped = stop.clone();
    work(py, &stop, look, move || {
        let pool = ThreadPoolBuilder::new().build().map_err(|e| Fault::new(format!("no threads: {e}")))?;
        let one = |point: &dyn Point| {
            let watched = Watched { point, stop: &stopped, made: &made };
            experiment::run(experiment, &watched, runs, seed).map(|outcome| outcome.record())
        };
        let records: Result<Vec<_>, RunError> =
            pool.install(|| points.par_iter().map(|point| one(point.as_ref())).collect());
        let text = |record| serde_json::to_string(&record).map_err(|error| Fault::new(error.to_string()));
        records?.into_iter().map(text).collect()
    })
}

/// A point whose runs are counted, and of which none begins any more once it is told to stop.
struct Watched<'w> {
    point: &'w dyn Point,
    stop: &'w AtomicBool,
    made: &'w AtomicUsize,
}

impl Point for Watched<'_> {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.point.parameters()
    }

    fn chance(&self) -> Chance {
        self.point.chance()
    }

    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError> {
        Ok(self.measure(seed, run)?.values)
    }

    fn measure(&self, seed: u64, run: u64) -> Result<Measured, RunError> {
        if self.stop.load(Ordering::Relaxed) {
            // Nobody reads it: whoever has told it to stop has gone.
            return Err(RunError::Scenario("it was stopped".to_owned()));
        }
        let measured = self.point.measure(seed, run);
        self.made.fetch_add(1, Ordering::Relaxed);
        measured
    }
}
