//! What is to be run: a scenario, the parameters that vary, seeds, and how many runs.
//!
//! [`Spec`] is what a spec file says, every value legal. What the parameters do to the scenario is found out when its points
//! are made ([`crate::points`]).

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

/// A sweep as its file describes it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is called.
    pub name: String,
    /// The scenario's text.
    pub scenario: Source,
    /// The folder in which the files are that the scenario carries.
    pub folder: PathBuf,
    /// Parameters that are the same for all points, by their paths.
    pub fixed: BTreeMap<String, Value>,
    /// The values on the axes of a grid, by their paths.
    pub grid: BTreeMap<String, Vec<Value>>,
    /// Samples; every one of these is combined with every point of the grid, and with the samples of the others.
    pub samples: Vec<Samples>,
    /// Root of the samples' random streams.
    pub seed: u64,
    /// Roots of the runs' random streams; the scenario's own if there is none.
    pub seeds: Vec<u64>,
    /// How many runs every point has with each seed.
    pub runs: Runs,
    /// Where each parameter was written.
    places: BTreeMap<String, Place>,
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
    /// One run of one point of a scenario, whose files are in `folder`. All else is set by its fields.
    pub fn new(name: impl Into<String>, scenario: Source, folder: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            scenario,
            folder: folder.into(),
            fixed: BTreeMap::new(),
            grid: BTreeMap::new(),
            samples: Vec::new(),
            seed: 1,
            seeds: Vec::new(),
            runs: Runs::Fixed(1),
            places: BTreeMap::new(),
        }
    }

    /// Reads a spec file, and the scenario that it names.
    ///
    /// # Errors
    /// A file that cannot be read, and whatever is wrong in the spec.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::unreadable(path, e))?;
        Self::parse(&path.display().to_string(), &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Understands the text of a spec, and reads the scenario that it names from `folder`; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Spec::read`].
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, Error> {
        file::parse(name, text, file::Subject::Named(folder))
    }

    /// Understands the text of a spec for a scenario that is given, whose files are in `folder`. The spec need not name one.
    ///
    /// # Errors
    /// Whatever is wrong in the spec.
    pub fn parse_for(name: &str, text: &str, scenario: Source, folder: &Path) -> Result<Self, Error> {
        file::parse(name, text, file::Subject::Given(scenario, folder))
    }

    /// Lets the scenario name policies that are not ours. [`crate::Job`]s that are sent away know ours only.
    #[must_use]
    pub fn with_policies(self, policies: Policies) -> Self {
        Self { scenario: self.scenario.with_policies(policies), ..self }
    }

    /// Where a parameter was written, if a file says it.
    pub(crate) fn place(&self, path: &str) -> Option<&Place> {
        self.places.get(path)
    }
}
