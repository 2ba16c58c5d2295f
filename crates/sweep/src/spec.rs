//! Specification of a sweep: a scenario or an experiment, the parameters that vary, seeds, and the
//! number of runs.
//!
//! Every value of a [`Spec`] is valid by itself. The effects of parameters on the scenario are
//! checked when points are created ([`crate::points`]).

mod distribution;
mod file;
mod normal;
mod samples;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_scenario::{Place, Policies, Source};
use serde_json::Value;

pub use distribution::{Distribution, Scale};
pub use samples::{Method, Samples};

use crate::enough::Enough;
use crate::error::Error;
use crate::experiment::{Experiment, Experiments, ParameterError, Settings};

/// What a sweep runs.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A scenario. Parameters are paths in it.
    Scenario {
        /// Its text.
        source: Source,
        /// The folder of the files that it uses.
        folder: PathBuf,
    },
    /// An experiment with its own parameters and metrics.
    Experiment(&'static dyn Experiment),
}

/// A parsed spec file.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Name of the sweep.
    pub name: String,
    /// What it runs.
    pub subject: Subject,
    /// Parameters with the same value at all points, by path.
    pub fixed: BTreeMap<String, Value>,
    /// The values on the axes of a grid, by path; the last axis varies fastest. Axes of a scenario
    /// are sorted by path.
    pub grid: Vec<(String, Vec<Value>)>,
    /// Listed points, all with the same parameters. Each is combined with every point of the grid.
    pub listed: Vec<BTreeMap<String, Value>>,
    /// Groups of axes that vary together, by path; all axes of a group have the same number of
    /// values. Each group is combined with every point of the grid and with the other groups.
    pub zipped: Vec<BTreeMap<String, Vec<Value>>>,
    /// Groups of samples. Every sample is combined with every point of the grid and with the
    /// samples of the other groups.
    pub samples: Vec<Samples>,
    /// Root seed of the random streams of samples.
    pub seed: u64,
    /// Root seeds of the random streams of runs; if empty, the scenario's own seed, or 1 for an
    /// experiment.
    pub seeds: Vec<u64>,
    /// Number of runs of every point per seed.
    pub runs: Runs,
    /// Name of the spec file, if there is one, and the place of each parameter in it.
    file: Option<String>,
    places: BTreeMap<String, Place>,
    /// The places of the values of [`Spec::listed`].
    listed_places: Vec<BTreeMap<String, Place>>,
}

/// Number of runs of a point per seed.
#[derive(Clone, PartialEq, Debug)]
pub enum Runs {
    /// A fixed number, at least 1.
    Fixed(u64),
    /// As many as the stopping rule requires.
    Enough(Enough),
}

impl Spec {
    /// One run of one point. Set other properties through the fields.
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

    /// Creates a grid of an experiment from assignments such as those of a command line:
    /// `key=value`, or `key=value,value` for an axis. The last axis varies fastest. Values are
    /// parsed when the points are created.
    ///
    /// # Errors
    /// A key is unknown or set twice, or a text is not an assignment.
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

    /// Reads a spec file and the scenario that it names, or finds its experiment among
    /// `experiments`.
    ///
    /// # Errors
    /// A file cannot be read, or the spec is invalid.
    pub fn read(path: &Path, experiments: Experiments<'_>) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::unreadable(path, e))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&path.display().to_string(), &text, folder, experiments)
    }

    /// Parses the text of a spec. Reads the scenario that it names from `folder`, or finds its
    /// experiment among `experiments`. Errors call the text `name`.
    ///
    /// # Errors
    /// As [`Spec::read`].
    pub fn parse(name: &str, text: &str, folder: &Path, experiments: Experiments<'_>) -> Result<Self, Error> {
        file::parse(name, text, file::Given::Folder(folder, experiments))
    }

    /// Parses the text of a spec for a given scenario, whose files are in `folder`. The spec need
    /// not name a scenario.
    ///
    /// # Errors
    /// The spec is invalid.
    pub fn parse_for(name: &str, text: &str, scenario: Source, folder: &Path) -> Result<Self, Error> {
        file::parse(name, text, file::Given::Scenario(scenario, folder))
    }

    /// Allows the scenario to name custom policies. [`crate::Job::from_json`] knows only built-in
    /// policies; [`crate::Job::from_json_with`] accepts others.
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

    /// The experiment, if the sweep has one.
    pub fn experiment(&self) -> Option<&'static dyn Experiment> {
        match self.subject {
            Subject::Experiment(experiment) => Some(experiment),
            Subject::Scenario { .. } => None,
        }
    }

    /// Name of the spec file.
    pub(crate) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Where a parameter is in the spec file, if there is one. For a parameter of listed points,
    /// the place of the first point with this value.
    pub(crate) fn place(&self, path: &str, value: Option<&Value>) -> Option<&Place> {
        let listed = self.listed.iter().zip(&self.listed_places);
        let mut listed = listed.filter(|(point, _)| value.is_some() && point.get(path) == value);
        listed.find_map(|(_, places)| places.get(path)).or_else(|| self.places.get(path))
    }
}
