//! Latency of a SET transfer for each number of gateways.

use anabranch_lab::experiment;
use anabranch_lab::plan::set::{self, Refusal};
use anabranch_lab::set::{Equations, Set};
use pyo3::prelude::*;

use crate::fault::Fault;

/// Returns one JSON object per combination of parameters of the experiment `set`.
#[pyfunction]
pub(super) fn plan_set(py: Python<'_>, assignments: Vec<String>, printed: bool) -> PyResult<Vec<String>> {
    Ok(py.detach(|| plan(&assignments, printed))?)
}

fn plan(assignments: &[String], printed: bool) -> Result<Vec<String>, Fault> {
    let equations = if printed { Equations::Printed } else { Equations::Protocol };
    let settings = experiment::settings(&Set, assignments)?;
    let objects = settings.iter().map(|settings| {
        let answer = set::answer(settings, equations).map_err(|refusal| match refusal {
            Refusal::Parameter(error) => error.into(),
            Refusal::NotSet(_) => Fault::new(refusal.to_string())
                .with_hint("leave `scheme` out; `lab.run(\"set\", ...)` simulates baselines"),
            other => Fault::new(other.to_string()),
        })?;
        Ok(answer.object().to_string())
    });
    objects.collect()
}
