//! Latency of a SET transfer for each number of gateways, its parts, and the best number.

use anabranch_model::set::{Best, Latency, ModelError, best_gateways};
use serde_json::{Map, Value, json};

use crate::experiment::{ParameterError, Settings};
use crate::set::{self, Equations, Scheme, TEMPLATE};

/// Result of the model.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The question: parameters of the experiment `set`, each value in canonical form.
    pub settings: Settings,
    /// The used equations.
    pub equations: Equations,
    /// Results for every number of gateways, and the best one.
    pub best: Best,
}

/// Why the model cannot answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A parameter has an invalid value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The transfer does not use SET.
    #[error("scheme={0}: the model is of SET")]
    NotSet(String),
    /// The model refuses the input.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Evaluates the model.
///
/// # Errors
///
/// See [`Refusal`].
pub fn answer(settings: &Settings, equations: Equations) -> Result<Answer, Refusal> {
    let settings = set::canonical(settings)?;
    // Building the scenario rejects values that the scenario does not take.
    TEMPLATE.point(&settings)?;
    if settings.text("scheme") != Scheme::Set.word() {
        return Err(Refusal::NotSet(settings.text("scheme").to_owned()));
    }
    let best = best_gateways(&set::transfer(&settings, equations)?)?;
    Ok(Answer { settings, equations, best })
}

impl Answer {
    /// All parameters with their values.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        TEMPLATE.texts(&self.settings)
    }

    /// The answer as a JSON object.
    pub fn object(&self) -> Value {
        let Self { equations, best, .. } = self;
        let parameters: Map<String, Value> =
            self.texts().into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        json!({
            "model": "set",
            "equations": match equations {
                Equations::Protocol => "protocol",
                Equations::Printed => "printed",
            },
            "params": parameters,
            "best_gateways": best.gateways,
            "latency_s": best.latency().total,
            "options": best.options.iter().map(option).collect::<Vec<_>>(),
        })
    }
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
