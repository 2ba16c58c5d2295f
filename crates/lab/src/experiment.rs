//! The papers' experiments as sweeps: results of a point ([`Outcome`]), experiments that consist of
//! a scenario file and a table of parameters ([`template`]), and runs in memory.
//! [`anabranch_sweep::experiment`] defines experiments, grids and runs.

mod outcome;
pub mod template;
pub(crate) mod values;

use anabranch_sweep::{Shard, Spec, Store, Sweep, Watch, execute_here};

pub use anabranch_sweep::experiment::{
    Chance, Experiment, Measured, Metric, Parameter, ParameterError, Point, RunError, Sets, Settings,
    parameter,
};
pub use outcome::{ArraySummary, MetricSummary, Outcome, Record};
pub use values::plain;

use crate::work::Work;
use anabranch_sweep::spec::{Runs, Subject};

/// Fingerprint of the sources of this crate and of the statistics, on which the rows of its
/// experiments depend in addition to the simulator.
pub const BUILD: &str = env!("ANABRANCH_LAB_BUILD");

/// The settings of every point of a grid: `key=value` for all points, `key=value,value` for an
/// axis. The last axis changes fastest.
///
/// # Errors
///
/// A key is unknown or set twice, a text is not an assignment, or the grid has more points than a
/// sweep may have.
pub fn settings<S: AsRef<str>>(
    experiment: &'static dyn Experiment,
    assignments: &[S],
) -> Result<Vec<Settings>, ParameterError> {
    let sweep = Sweep::new(Spec::assigned(experiment, assignments)?);
    let sweep = sweep.map_err(|error| ParameterError::Scenario {
        message: error.to_string(),
        hint: error.hint().map(Into::into),
    })?;
    sweep.settings()
}

/// Runs one point; see [`run_all`].
///
/// # Errors
///
/// As [`run_all`].
pub fn run(
    experiment: &'static dyn Experiment,
    point: &Settings,
    work: &Work<'_>,
) -> Result<Outcome, RunError> {
    Ok(run_all(experiment, std::slice::from_ref(point), work)?.remove(0))
}

/// Runs points on all threads of the current pool, and returns the results in the order of the
/// points. Nothing is stored.
///
/// # Errors
///
/// A point is invalid (found before the first run), or a run failed.
pub fn run_all(
    experiment: &'static dyn Experiment,
    points: &[Settings],
    work: &Work<'_>,
) -> Result<Vec<Outcome>, RunError> {
    let mut spec = Spec::new(experiment.name(), Subject::Experiment(experiment));
    spec.listed = points.iter().map(|point| work.settings(experiment, point).parameters()).collect();
    spec.runs = Runs::Fixed(work.runs as u64);
    spec.seeds = vec![work.seed];
    let sweep = Sweep::new(spec)?;
    let (points, mut store) = (sweep.all_points()?, Store::in_memory());
    let each = || work.ran();
    let watch = Watch { each: Some(&each), ..Watch::default() };
    execute_here(&sweep, &points, &mut store, Shard::ALL, &watch)?;
    points.iter().map(|point| Ok(Outcome::of(&sweep, point, &store)?)).collect()
}

/// The checked points of a grid.
#[cfg(test)]
pub(crate) fn grid<S: AsRef<str>>(
    experiment: &'static dyn Experiment,
    assignments: &[S],
) -> Result<Vec<Box<dyn Point>>, ParameterError> {
    settings(experiment, assignments)?.iter().map(|settings| experiment.point(settings)).collect()
}

/// The results of a grid.
#[cfg(test)]
pub(crate) fn outcomes<S: AsRef<str>>(
    experiment: &'static dyn Experiment,
    assignments: &[S],
    runs: usize,
    seed: u64,
) -> Vec<Outcome> {
    let points = settings(experiment, assignments).expect("good settings");
    run_all(experiment, &points, &Work::new(runs, seed)).expect("runs")
}

#[cfg(test)]
mod tests;
