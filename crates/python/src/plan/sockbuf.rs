//! The control loop of send buffers: section 3.2 of the paper on them.

use anabranch_model::sockbuf::{
    Begin, Gains, ModelError, Plant, characteristic, margin, roots, stable, step,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::fault::Fault;

/// A size counts as settled within this part of the step (erratum B8).
const BAND: f64 = 0.02;

/// The loop, and the step that it answers.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Loop {
    /// `paper` or `damped`.
    gains: String,
    kp: Option<f64>,
    ki: Option<f64>,
    kd: Option<f64>,
    times: f64,
    /// Octets.
    before: f64,
    /// Octets.
    after: f64,
    /// Octets.
    least: f64,
    /// Octets.
    pool: f64,
    /// Cycles.
    lag: f64,
    /// The controller is new when the step comes.
    new: bool,
    cycles: usize,
    /// Seconds.
    period: f64,
}

/// Gains, roots, overshoot and settling after a step of the demand.
#[pyfunction]
pub(super) fn plan_sockbuf(py: Python<'_>, asked: Loop) -> PyResult<String> {
    Ok(py.detach(|| plan(&asked).map(|object| object.to_string()).map_err(|error| refused(&error)))?)
}

fn refused(error: &ModelError) -> Fault {
    let fault = Fault::new(error.to_string());
    match error {
        ModelError::Gain { .. } => fault.with_hint("`kp`, `ki`, `kd`, `times`"),
        ModelError::Lag { .. } => fault.with_hint("`lag`"),
        ModelError::Range { .. } => {
            fault.with_hint("`before` and `after` differ, and lie between `least` and `pool`")
        }
        _ => fault,
    }
}

fn plan(asked: &Loop) -> Result<Value, ModelError> {
    let set = if asked.gains == "paper" { Gains::PAPER } else { Gains::DAMPED };
    let gains = Gains {
        kp: asked.kp.unwrap_or(set.kp),
        ki: asked.ki.unwrap_or(set.ki),
        kd: asked.kd.unwrap_or(set.kd),
    };
    let gains = gains.times(asked.times);
    let begin = if asked.new { Begin::New } else { Begin::Running };
    let plant = Plant { lag: asked.lag, least: asked.least, most: asked.pool };
    let [a2, a1, a0] = characteristic(gains)?;
    let response = step(gains, plant, begin, (asked.before, asked.after), asked.cycles)?;
    let seconds = |cycles: Option<usize>| cycles.map(|cycles| cycles as f64 * asked.period);
    Ok(json!({
        "model": "sockbuf",
        "params": {
            "kp": gains.kp,
            "ki": gains.ki,
            "kd": gains.kd,
            "before_bytes": asked.before,
            "after_bytes": asked.after,
            "least_bytes": asked.least,
            "pool_bytes": asked.pool,
            "lag_cycles": asked.lag,
            "controller": if asked.new { "new" } else { "running" },
            "cycles": asked.cycles,
            "period_s": asked.period,
        },
        "characteristic": [1.0, a2, a1, a0],
        "roots": roots(gains)?.map(|root| json!({ "re": root.re, "im": root.im, "abs": root.abs() })),
        "stable": stable(gains)?,
        "stable_up_to_times": margin(gains)?,
        "overshoot": response.overshoot(),
        "rise_cycles": response.rise(),
        "rise_s": seconds(response.rise()),
        "settling_cycles": response.settling(BAND),
        "settling_s": seconds(response.settling(BAND)),
        "settling_band": BAND,
        "sizes_bytes": response.sizes,
    }))
}
