//! What makes the runs of a point: a scenario that is simulated, or an experiment that measures.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration as Real;

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::scenario::record::Metrics;
use anabranch_sim::scenario::{Plan, Planned, Scenario};
use anabranch_sim::sim::{Pause, Simulation};

use crate::address::{Files, Root, RunKey};
use crate::clock::Began;
use crate::experiment::{self, Chance, Experiment, RunError};

/// What makes the runs of a point.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A scenario, with the contents that it carries.
    Scenario { scenario: Arc<Scenario>, files: Arc<Files> },
    /// A point of an experiment.
    Experiment(Arc<Trial>),
}

/// A point of an experiment.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) experiment: &'static dyn Experiment,
    pub(crate) point: Box<dyn experiment::Point>,
    /// What all runs say, where nothing is random: one is made for all.
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
    /// The scenario that is run.
    pub(crate) fn scenario(&self) -> &Scenario {
        match self {
            Self::Scenario { scenario, .. } => scenario,
            Self::Experiment(trial) => trial.point.scenario(),
        }
    }

    /// What the identities of the runs have in common. Those of an experiment depend on its meters
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

    /// Makes one run; `None` if `is_over` was true before it ended. A run of an experiment is not
    /// interrupted, and not looked at.
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

/// Slices of simulated time after each of which one asks whether to go on, at least.
const SLICES: u64 = 64;
/// The first slice; those that take no time are followed by longer ones.
const FIRST: Duration = Duration::from_millis(1);
/// Real time that a slice should take, from and to: a run that is to stop goes on for that long at
/// most.
const QUICK: Real = Real::from_millis(5);
const SLOW: Real = Real::from_millis(50);

/// Looks at a run from beside it.
pub(crate) trait Look {
    /// A run begins.
    fn begin(&mut self, scenario: &Scenario, planned: &Planned, sim: &mut Simulation);
    /// As [`Simulation::run_until`].
    fn run_until(&mut self, sim: &mut Simulation, to: Instant) -> Pause;
    /// The run is over.
    fn end(&mut self, sim: &mut Simulation) -> Result<(), RunError>;
}

/// Keeps more of runs than their rows.
pub(crate) trait Recorder: fmt::Debug + Send + Sync {
    /// Whether all that it keeps of a run is there already.
    fn has(&self, point: usize, key: RunKey) -> bool;
    /// What looks at a run, and keeps what it has seen.
    fn look(&self, point: usize, key: RunKey) -> Box<dyn Look + '_>;
}

/// Looks at nothing.
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

/// [`Scenario::run`], which can be stopped and looked at.
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
        // Where slices end does not show in what a run says.
        let took = began.elapsed();
        if took < QUICK {
            slice = Duration::from_nanos(slice.as_nanos() * 2).min(longest);
        } else if took > SLOW {
            slice = Duration::from_nanos((slice.as_nanos() / 2).max(1));
        }
    }
}
