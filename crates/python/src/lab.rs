//! Experiments of the papers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anabranch_lab::experiment::{Metric, Outcome, RunError};
use anabranch_sweep::spec::Runs;
use anabranch_sweep::{Shard, Spec, Store, Sweep, Watch, execute_here, pool};
use pyo3::prelude::*;
use serde_json::json;

use crate::fault::Fault;
use crate::sweep::show;
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

/// Runs a grid of an experiment. Returns one JSON object per point, as `anabranch lab run --json`
/// prints it.
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
    let mut spec = Spec::assigned(experiment, &assignments).map_err(Fault::from)?;
    spec.runs = Runs::Fixed(runs as u64);
    spec.seeds = vec![seed];
    let watch = Arc::new(Watch::default());
    let watched = watch.clone();
    let look = |py: Python<'_>| show(py, progress.as_ref(), &watch);
    work(py, &watch.cancel, look, move || {
        let pool = pool(0)?;
        let sweep = Sweep::new(spec)?;
        let (points, mut store) = (pool.install(|| sweep.all_points())?, Store::in_memory());
        pool.install(|| execute_here(&sweep, &points, &mut store, Shard::ALL, &watched))
            .map_err(|error| Fault::from(RunError::from(error)))?;
        let text = |point| {
            let record = Outcome::of(&sweep, point, &store)?.record();
            serde_json::to_string(&record).map_err(|error| Fault::new(error.to_string()))
        };
        // After an interruption some rows are missing, and none is read.
        if watched.cancel.load(Ordering::Relaxed) {
            Ok(Vec::new())
        } else {
            points.iter().map(text).collect()
        }
    })
}
