//! A scenario: its text, its overrides, and the parsed result.

use std::path::PathBuf;

use anabranch_scenario::{self, Source};
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::policy::{self, Brought};

/// A scenario that can run.
#[pyclass(frozen, module = "anabranch._anabranch")]
pub(crate) struct Scenario {
    pub(crate) source: Source,
    /// Whether some policies are written in Python.
    pub(crate) has_policies: bool,
    scenario: anabranch_scenario::Scenario,
}

#[pymethods]
impl Scenario {
    /// Parses a scenario text with overrides `path=value`. Errors call the text `name`. Its files
    /// are in `folder`; `brought` are custom policies that it may name.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        text: String,
        overrides: Vec<String>,
        folder: PathBuf,
        brought: Vec<Brought>,
    ) -> PyResult<Self> {
        let (policies, has_policies) = (policy::policies(py, &brought)?, !brought.is_empty());
        let understand = || {
            let source = Source::new(name, text).with_folder(folder).with_policies(policies);
            let source = overrides.into_iter().fold(source, Source::set);
            // A sweep of this scenario may select among its profiles, so unused profiles are not an
            // error here.
            let scenario = source.clone().selecting().scenario()?;
            Ok::<_, Fault>(Self { source, has_policies, scenario })
        };
        Ok(py.detach(understand)?)
    }

    /// All values, including defaults, as JSON.
    fn resolved(&self) -> String {
        self.scenario.to_json()
    }

    /// All values, including defaults, as a scenario file without axes.
    fn to_toml(&self) -> String {
        self.scenario.to_toml()
    }

    /// SHA-256 of the resolved scenario without its seed, name and description, in hexadecimal.
    fn hash(&self) -> String {
        self.scenario.hash()
    }

    /// Latest end of the simulation in seconds.
    fn stop(&self) -> f64 {
        self.scenario.stop.saturating_since(anabranch_core::time::Instant::ZERO).as_secs_f64()
    }

    /// The points of the scenario's own axes: the values on the axes as JSON, and the scenario as a
    /// file.
    fn points(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let points = py.detach(|| self.source.points().map_err(Fault::from))?;
        let text = |point: anabranch_scenario::Point| {
            let axes = serde_json::to_string(&point.axes);
            let axes = axes.map_err(|error| Fault::new(error.to_string()))?;
            Ok((axes, point.scenario.to_toml()))
        };
        points.into_iter().map(text).collect()
    }
}
