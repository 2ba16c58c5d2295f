//! Executes the runs of a point: a scenario that is simulated, or an experiment.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration as Real;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::record::Metrics;
use anabranch_scenario::{Plan, Planned, Scenario};
use anabranch_sim::sim::{Pause, Simulation};

use crate::address::{Files, Root, RunKey};
use crate::clock::Began;
use crate::experiment::{self, Chance, Experiment, RunError};

/// Executes the runs of a point.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A scenario, with the contents of its files.
    Scenario { scenario: Arc<Scenario>, files: Arc<Files> },
    /// A point of an experiment.
    Experiment(Arc<Trial>),
}

/// A point of an experiment.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) experiment: &'static dyn Experiment,
    pub(crate) point: Box<dyn experiment::Point>,
    /// The result of all runs if nothing is random; one run is executed for all.
    all: OnceLock<Result<Metrics, RunError>>,
}

impl Trial {
    pub(crate) fn new(experiment: &'static dyn Experiment, point: Box<dyn experiment::Point>) -> Self {
        Self { experiment, point, all: OnceLock::new() }
    }

    fn run(&self, RunKey { seed, run }: RunKey) -> Result<Metrics, RunError> {
        let measure = || experiment::metrics(self.experiment, &self.point.measure(seed, run)?, run);
        match self.point.chance() {
            Chance::Random => measure(),
            Chance::None => self.all.get_or_init(measure).clone(),
        }
    }
}

impl Task {
    /// The scenario.
    pub(crate) fn scenario(&self) -> &Scenario {
        match self {
            Self::Scenario { scenario, .. } => scenario,
            Self::Experiment(trial) => trial.point.scenario(),
        }
    }

    /// The common part of the identities of the runs. For an experiment it depends on the metrics,
    /// and on parameters that the scenario may not show.
    pub(crate) fn root(&self) -> Root {
        match self {
            Self::Scenario { scenario, files } => scenario.root(files),
            Self::Experiment(trial) => {
                let parameters = trial.point.parameters();
                let parameters = parameters.iter().flat_map(|(name, text)| [*name, text]);
                let own = [trial.experiment.name(), trial.experiment.build()];
                self.scenario().root(&Files::new()).with(own.into_iter().chain(parameters))
            }
        }
    }

    /// Executes one run; `None` if `is_over` became true before its end. The run of an experiment
    /// is neither interrupted nor observed.
    pub(crate) fn run(
        &self,
        key: RunKey,
        look: &mut dyn Look,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Metrics>, RunError> {
        match self {
            Self::Scenario { scenario, files } => simulate(scenario, key, files, look, is_over),
            Self::Experiment(_) if is_over() => Ok(None),
            Self::Experiment(trial) => trial.run(key).map(Some),
        }
    }
}

/// Minimum number of slices of simulated time; after each one, cancellation is checked.
const SLICES: u64 = 64;
/// Length of the first slice; slices that take no real time are followed by longer ones.
const FIRST: Duration = Duration::from_millis(1);
/// Shortest and longest real time of a slice: a cancelled run continues for at most that long.
const QUICK: Real = Real::from_millis(5);
const SLOW: Real = Real::from_millis(50);

/// Observes a run.
pub(crate) trait Look {
    /// Called at the beginning of a run.
    fn begin(&mut self, scenario: &Scenario, planned: &Planned, sim: &mut Simulation);
    /// As [`Simulation::run_until`].
    fn run_until(&mut self, sim: &mut Simulation, to: Instant) -> Pause;
    /// Called at the end of a run.
    fn end(&mut self, sim: &mut Simulation) -> Result<(), RunError>;
}

/// Records more of runs than their rows.
pub(crate) trait Recorder: fmt::Debug + Send + Sync {
    /// True if everything that it records of a run exists.
    fn has(&self, point: usize, key: RunKey) -> bool;
    /// Creates the observer of a run.
    fn look(&self, point: usize, key: RunKey) -> Box<dyn Look + '_>;
}

/// Observes nothing.
pub(crate) struct Blind;

impl Look for Blind {
    fn begin(&mut self, _: &Scenario, _: &Planned, _: &mut Simulation) {}

    fn run_until(&mut self, sim: &mut Simulation, to: Instant) -> Pause {
        sim.run_until(to)
    }

    fn end(&mut self, _: &mut Simulation) -> Result<(), RunError> {
        Ok(())
    }
}

/// As [`Scenario::run`], with cancellation and observation.
fn simulate(
    scenario: &Scenario,
    key: RunKey,
    files: &Files,
    look: &mut dyn Look,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Metrics>, RunError> {
    let Plan { builder, planned } = scenario.plan(key.seed, key.run, files)?;
    let mut sim = builder.build();
    look.begin(scenario, &planned, &mut sim);
    let whole = scenario.stop.saturating_since(Instant::ZERO).as_nanos();
    let longest = Duration::from_nanos((whole / SLICES).max(1));
    let mut slice = FIRST.min(longest);
    loop {
        if is_over() {
            return Ok(None);
        }
        let (next, began) = ((sim.now() + slice).min(scenario.stop), Began::now());
        if look.run_until(&mut sim, next) != Pause::Reached || next == scenario.stop {
            look.end(&mut sim)?;
            return Ok(Some(scenario.metrics(&planned, &sim)));
        }
        // The boundaries of slices do not affect the results of a run.
        let took = began.elapsed();
        if took < QUICK {
            slice = Duration::from_nanos(slice.as_nanos() * 2).min(longest);
        } else if took > SLOW {
            slice = Duration::from_nanos((slice.as_nanos() / 2).max(1));
        }
    }
}
