//! The latency of a SET transfer by number of gateways.

use anabranch_lab::experiment;
use anabranch_lab::set::{Config, Equations, Scheme, Set};
use anabranch_model::set::{Latency, best_gateways};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::fault::Fault;

/// One object for each combination of parameters of the experiment `set`.
#[pyfunction]
pub(super) fn plan_set(py: Python<'_>, assignments: Vec<String>, printed: bool) -> PyResult<Vec<String>> {
    Ok(py.detach(|| plan(&assignments, printed))?)
}

fn plan(assignments: &[String], printed: bool) -> Result<Vec<String>, Fault> {
    let equations = if printed { Equations::Printed } else { Equations::Protocol };
    let settings = experiment::settings(&Set, assignments)?;
    let configs = settings.iter().map(Config::understand).collect::<Result<Vec<_>, _>>()?;
    let objects = configs.iter().map(|config| {
        if config.scheme != Scheme::Set {
            return Err(Fault::new("scheme: the model is of SET")
                .with_hint("leave `scheme` out; `lab.run(\"set\", ...)` simulates baselines"));
        }
        let best = best_gateways(&config.model(equations)).map_err(|e| Fault::new(e.to_string()))?;
        let parameters: Map<String, Value> =
            config.texts().into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        let object = json!({
            "model": "set",
            "equations": if printed { "printed" } else { "protocol" },
            "params": parameters,
            "best_gateways": best.gateways,
            "latency_s": best.latency().total,
            "options": best.options.iter().map(option).collect::<Vec<_>>(),
        });
        Ok(object.to_string())
    });
    objects.collect()
}

fn option(latency: &Latency) -> Value {
    let paths = latency.paths.iter().map(|path| {
        json!({
            "start_s": path.start,
            "finish_s": path.finish,
            "wired_segments": path.wired_segments,
            "wireless_segments": path.wireless_segments,
            "wired_windows": path.wired_windows,
            "wireless_windows": path.wireless_windows,
        })
    });
    json!({
        "gateways": latency.gateways,
        "latency_s": latency.total,
        "request_s": latency.request,
        "establishment_s": latency.establishment,
        "first_segment_s": latency.parts.first_segment,
        "transmission_s": latency.parts.transmission,
        "stall_s": latency.parts.stall,
        "wired_limit_s": latency.parts.wired_limit,
        "last_segment_s": latency.parts.last_segment,
        "paths": paths.collect::<Vec<_>>(),
    })
}
