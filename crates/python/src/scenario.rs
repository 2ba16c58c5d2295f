//! A scenario: its text, what was set on top of it, and what both mean.

use std::path::PathBuf;

use anabranch_sim::scenario::{self, Source};
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::policy::{self, Brought};

/// A scenario that can run.
#[pyclass(frozen, module = "anabranch._anabranch")]
pub(crate) struct Scenario {
    pub(crate) source: Source,
    /// Some policies are written in Python.
    pub(crate) has_policies: bool,
    scenario: scenario::Scenario,
}

#[pymethods]
impl Scenario {
    /// Understands a text, which errors call `name`, with overrides `path=value`. The files that it
    /// carries are in `folder`, and `brought` are policies that it may name beside ours.
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
            // A sweep of this scenario may select among its profiles, and refuses those that no
            // point uses.
            let scenario = source.clone().selecting().scenario()?;
            Ok::<_, Fault>(Self { source, has_policies, scenario })
        };
        Ok(py.detach(understand)?)
    }

    /// What was said and every default, as JSON.
    fn resolved(&self) -> String {
        self.scenario.to_json()
    }

    /// What was said and every default, as a scenario file without axes.
    fn to_toml(&self) -> String {
        self.scenario.to_toml()
    }

    /// SHA-256 over the resolved scenario without its seed, name and description, in hexadecimal.
    fn hash(&self) -> String {
        self.scenario.hash()
    }

    /// When the simulation ends at the latest, in seconds.
    fn stop(&self) -> f64 {
        self.scenario.stop.saturating_since(anabranch_core::time::Instant::ZERO).as_secs_f64()
    }

    /// The points of its own axes: the values on them as JSON, and the scenario as a file.
    fn points(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let points = py.detach(|| self.source.points().map_err(Fault::from))?;
        let text = |point: scenario::Point| {
            let axes = serde_json::to_string(&point.axes);
            let axes = axes.map_err(|error| Fault::new(error.to_string()))?;
            Ok((axes, point.scenario.to_toml()))
        };
        points.into_iter().map(text).collect()
    }
}
