//! The latency of a SET transfer by number of gateways, its parts, and the best number.

use anabranch_model::set::{Best, Latency, ModelError, best_gateways};
use serde_json::{Map, Value, json};

use crate::experiment::{ParameterError, Settings};
use crate::set::{self, Equations, Scheme, TEMPLATE};

/// What the model says.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What was asked: parameters of the experiment `set`, each value in the one way in which
    /// results name it.
    pub settings: Settings,
    /// Which equations.
    pub equations: Equations,
    /// Every number of gateways, and the best.
    pub best: Best,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A parameter has no such value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The transfer is not of SET.
    #[error("scheme={0}: the model is of SET")]
    NotSet(String),
    /// The model refuses.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Answers.
///
/// # Errors
///
/// See [`Refusal`].
pub fn answer(settings: &Settings, equations: Equations) -> Result<Answer, Refusal> {
    let settings = set::canonical(settings)?;
    // What is no word of the scenario is refused here.
    TEMPLATE.point(&settings)?;
    if settings.text("scheme") != Scheme::Set.word() {
        return Err(Refusal::NotSet(settings.text("scheme").to_owned()));
    }
    let best = best_gateways(&set::transfer(&settings, equations)?)?;
    Ok(Answer { settings, equations, best })
}

impl Answer {
    /// Every parameter with its value.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        TEMPLATE.texts(&self.settings)
    }

    /// As one JSON object.
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
