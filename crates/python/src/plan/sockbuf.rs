//! The control loop of send buffers: section 3.2 of the send-buffer paper.

use anabranch_lab::plan::sockbuf::{self, Question};
use anabranch_model::sockbuf::{Begin, Gains, ModelError};
use pyo3::prelude::*;

use crate::fault::Fault;

/// Parameters of the loop and of the step of its demand.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Loop {
    /// `paper` or `damped`.
    gains: String,
    kp: Option<f64>,
    ki: Option<f64>,
    kd: Option<f64>,
    times: f64,
    /// Bytes.
    before: f64,
    /// Bytes.
    after: f64,
    /// Bytes.
    least: f64,
    /// Bytes.
    pool: f64,
    /// Cycles.
    lag: f64,
    /// Whether the controller is new at the step.
    new: bool,
    cycles: usize,
    /// Seconds.
    period: f64,
}

impl From<Loop> for Question {
    fn from(asked: Loop) -> Self {
        let set = if asked.gains == "paper" { Gains::PAPER } else { Gains::DAMPED };
        Self {
            gains: sockbuf::gains(set, [asked.kp, asked.ki, asked.kd], asked.times),
            from: asked.before,
            to: asked.after,
            least: asked.least,
            pool: asked.pool,
            lag: asked.lag,
            begin: if asked.new { Begin::New } else { Begin::Running },
            cycles: asked.cycles,
            period: asked.period,
        }
    }
}

/// Gains, roots, overshoot and settling time after a step of the demand.
#[pyfunction]
pub(super) fn plan_sockbuf(py: Python<'_>, asked: Loop) -> PyResult<String> {
    let answer = py.detach(|| sockbuf::answer(asked.into()));
    Ok(answer.map(|answer| answer.object().to_string()).map_err(|error| refused(&error))?)
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
