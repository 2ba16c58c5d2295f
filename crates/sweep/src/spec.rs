//! What is to be run: a scenario or an experiment, the parameters that vary, seeds, and how many
//! runs.
//!
//! [`Spec`] is what a spec file says, every value legal. What the parameters do to the scenario is
//! found out when its points are made ([`crate::points`]).

mod distribution;
mod file;
mod normal;
mod samples;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_sim::scenario::{Place, Policies, Source};
use serde_json::Value;

pub use distribution::{Distribution, Scale};
pub use samples::{Method, Samples};

use crate::enough::Enough;
use crate::error::Error;
use crate::experiment::{Experiment, Experiments, ParameterError, Settings};

/// What the runs of a sweep are runs of.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A scenario. Parameters are paths of it.
    Scenario {
        /// Its text.
        source: Source,
        /// The folder in which the files are that it carries.
        folder: PathBuf,
    },
    /// An experiment, with parameters and metrics of its own.
    Experiment(&'static dyn Experiment),
}

/// A sweep as its file describes it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is called.
    pub name: String,
    /// What is run.
    pub subject: Subject,
    /// Parameters that are the same for all points, by their paths.
    pub fixed: BTreeMap<String, Value>,
    /// The values on the axes of a grid, by their paths; the last axis is the fastest. Those of a
    /// scenario are put in the order of their paths.
    pub grid: Vec<(String, Vec<Value>)>,
    /// Points that are listed, all with the same parameters. Each is combined with every point of
    /// the grid.
    pub listed: Vec<BTreeMap<String, Value>>,
    /// Groups of axes that vary together, by their paths: all axes of a group have the same number
    /// of values. Each group is combined with every point of the grid, and with the other groups.
    pub zipped: Vec<BTreeMap<String, Vec<Value>>>,
    /// Samples; every one of these is combined with every point of the grid, and with the samples
    /// of the others.
    pub samples: Vec<Samples>,
    /// Root of the samples' random streams.
    pub seed: u64,
    /// Roots of the runs' random streams; the scenario's own if there is none, 1 for an experiment.
    pub seeds: Vec<u64>,
    /// How many runs every point has with each seed.
    pub runs: Runs,
    /// The file that says all this, if one does, and where in it each parameter was written.
    file: Option<String>,
    places: BTreeMap<String, Place>,
    /// The same for the values of [`Spec::listed`].
    listed_places: Vec<BTreeMap<String, Place>>,
}

/// How many runs a point has with each seed.
#[derive(Clone, PartialEq, Debug)]
pub enum Runs {
    /// So many, at least 1.
    Fixed(u64),
    /// As many as it takes.
    Enough(Enough),
}

impl Spec {
    /// One run of one point. All else is set by its fields.
    pub fn new(name: impl Into<String>, subject: Subject) -> Self {
        Self {
            name: name.into(),
            subject,
            fixed: BTreeMap::new(),
            grid: Vec::new(),
            listed: Vec::new(),
            zipped: Vec::new(),
            samples: Vec::new(),
            seed: 1,
            seeds: Vec::new(),
            runs: Runs::Fixed(1),
            file: None,
            places: BTreeMap::new(),
            listed_places: Vec::new(),
        }
    }

    /// A grid of an experiment, from assignments such as those of a command line: `key=value`, or
    /// `key=value,value` for an axis. The last is the fastest. Values are understood when the
    /// points are made.
    ///
    /// # Errors
    /// A key that is unknown or set twice, or a text that is no assignment.
    pub fn assigned<S: AsRef<str>>(
        experiment: &'static dyn Experiment,
        assignments: &[S],
    ) -> Result<Self, ParameterError> {
        let mut spec = Self::new(experiment.name(), Subject::Experiment(experiment));
        let mut known = Settings::defaults(experiment);
        for assignment in assignments.iter().map(AsRef::as_ref) {
            let (key, values) = assignment
                .split_once('=')
                .ok_or_else(|| ParameterError::NoAssignment { text: assignment.to_owned() })?;
            let key = key.trim();
            if spec.grid.iter().any(|(axis, _)| axis == key) {
                return Err(ParameterError::Twice { key: key.to_owned() });
            }
            known.set(key, values)?;
            spec.grid.push((key.to_owned(), values.split(',').map(|value| value.trim().into()).collect()));
        }
        Ok(spec)
    }

    /// Reads a spec file, and the scenario that it names, or finds its experiment among
    /// `experiments`.
    ///
    /// # Errors
    /// A file that cannot be read, and whatever is wrong in the spec.
    pub fn read(path: &Path, experiments: Experiments<'_>) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::unreadable(path, e))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&path.display().to_string(), &text, folder, experiments)
    }

    /// Understands the text of a spec, and reads the scenario that it names from `folder`, or finds
    /// its experiment among `experiments`; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Spec::read`].
    pub fn parse(name: &str, text: &str, folder: &Path, experiments: Experiments<'_>) -> Result<Self, Error> {
        file::parse(name, text, file::Given::Folder(folder, experiments))
    }

    /// Understands the text of a spec for a scenario that is given, whose files are in `folder`.
    /// The spec need not name one.
    ///
    /// # Errors
    /// Whatever is wrong in the spec.
    pub fn parse_for(name: &str, text: &str, scenario: Source, folder: &Path) -> Result<Self, Error> {
        file::parse(name, text, file::Given::Scenario(scenario, folder))
    }

    /// Lets the scenario name policies that are not ours. [`crate::Job::from_json`] knows ours
    /// only, [`crate::Job::from_json_with`] is told of others.
    #[must_use]
    pub fn with_policies(self, policies: Policies) -> Self {
        let subject = match self.subject {
            Subject::Scenario { source, folder } => {
                Subject::Scenario { source: source.with_policies(policies), folder }
            }
            experiment @ Subject::Experiment(_) => experiment,
        };
        Self { subject, ..self }
    }

    /// The experiment, if it is a sweep of one.
    pub fn experiment(&self) -> Option<&'static dyn Experiment> {
        match self.subject {
            Subject::Experiment(experiment) => Some(experiment),
            Subject::Scenario { .. } => None,
        }
    }

    /// The name of the file that says all this.
    pub(crate) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Where a parameter was written, if a file says it; of a parameter of listed points, where the
    /// first point with this value is.
    pub(crate) fn place(&self, path: &str, value: Option<&Value>) -> Option<&Place> {
        let listed = self.listed.iter().zip(&self.listed_places);
        let mut listed = listed.filter(|(point, _)| value.is_some() && point.get(path) == value);
        listed.find_map(|(_, places)| places.get(path)).or_else(|| self.places.get(path))
    }
}
