//! Gains, roots, overshoot and settling of the control loop of send buffers: section 3.2 of the
//! send-buffer paper.

use anabranch_model::sockbuf::{
    Begin, Complex, Gains, ModelError, Plant, Response, characteristic, margin, roots, stable, step,
};
use serde_json::{Value, json};

/// A size counts as settled within this share of the step (erratum B8).
pub const BAND: f64 = 0.02;

/// Input of the model. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Gains of the controller.
    pub gains: Gains,
    /// Buffer size before the step.
    pub from: f64,
    /// Target size after the step: two bandwidth-delay products.
    pub to: f64,
    /// Smallest buffer: one segment.
    pub least: f64,
    /// Largest buffer: the pool.
    pub pool: f64,
    /// Time constant of the demand estimate, in cycles; 0 means no delay.
    pub lag: f64,
    /// State of the controller before the step.
    pub begin: Begin,
    /// Number of cycles to simulate.
    pub cycles: usize,
    /// Time between two decisions in seconds.
    pub period: f64,
}

/// Result of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question.
    pub question: Question,
    /// Characteristic polynomial: coefficients of z² and z, and the constant.
    pub polynomial: [f64; 3],
    /// Roots of the polynomial.
    pub roots: [Complex; 3],
    /// Whether all roots have a magnitude below 1.
    pub stable: bool,
    /// Factor of the gains up to which the loop stays stable.
    pub margin: Option<f64>,
    /// Sizes after the step.
    pub response: Response,
}

/// A set of gains, of which each may be replaced, multiplied by `times`.
pub fn gains(of: Gains, [kp, ki, kd]: [Option<f64>; 3], times: f64) -> Gains {
    Gains { kp: kp.unwrap_or(of.kp), ki: ki.unwrap_or(of.ki), kd: kd.unwrap_or(of.kd) }.times(times)
}

/// Evaluates the model.
///
/// # Errors
///
/// The model refuses the input.
pub fn answer(question: Question) -> Result<Answer, ModelError> {
    let Question { gains, from, to, least, pool, lag, begin, cycles, .. } = question;
    Ok(Answer {
        polynomial: characteristic(gains)?,
        roots: roots(gains)?,
        stable: stable(gains)?,
        margin: margin(gains)?,
        response: step(gains, Plant { lag, least, most: pool }, begin, (from, to), cycles)?,
        question,
    })
}

impl Answer {
    /// The answer as a JSON object.
    pub fn object(&self) -> Value {
        let Self { question, polynomial: [a2, a1, a0], roots, stable, margin, response } = self;
        let Question { gains, from, to, least, pool, lag, begin, cycles, period } = question;
        let seconds = |cycles: Option<usize>| cycles.map(|cycles| cycles as f64 * period);
        json!({
            "model": "sockbuf",
            "params": {
                "kp": gains.kp,
                "ki": gains.ki,
                "kd": gains.kd,
                "from_bytes": octets(*from),
                "to_bytes": octets(*to),
                "least_bytes": octets(*least),
                "pool_bytes": octets(*pool),
                "lag_cycles": lag,
                "controller": match begin {
                    Begin::New => "new",
                    Begin::Running => "running",
                },
                "cycles": cycles,
                "period_s": period,
            },
            "characteristic": [1.0, *a2, *a1, *a0],
            "roots": roots.map(|root| json!({ "re": root.re, "im": root.im, "abs": root.abs() })),
            "stable": stable,
            "stable_up_to_times": margin,
            "overshoot": response.overshoot(),
            "rise_cycles": response.rise(),
            "rise_s": seconds(response.rise()),
            "settling_cycles": response.settling(BAND),
            "settling_s": seconds(response.settling(BAND)),
            "settling_band": BAND,
            "sizes_bytes": response.sizes,
        })
    }
}

/// A size as an integer if it is one.
fn octets(size: f64) -> Value {
    if size.fract() == 0.0 { json!(size as u64) } else { json!(size) }
}
