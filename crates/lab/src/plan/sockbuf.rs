//! Gains, roots, overshoot and settling of the control loop of send buffers: section 3.2 of the
//! paper on them.

use anabranch_model::sockbuf::{
    Begin, Complex, Gains, ModelError, Plant, Response, characteristic, margin, roots, stable, step,
};
use serde_json::{Value, json};

/// A size counts as settled within this part of the step (erratum B8).
pub const BAND: f64 = 0.02;

/// What is asked. Sizes are octets.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The controller's.
    pub gains: Gains,
    /// The buffer before the step.
    pub from: f64,
    /// What it is to be from then on: two bandwidth-delay products.
    pub to: f64,
    /// The least buffer: one segment.
    pub least: f64,
    /// The largest: the pool.
    pub pool: f64,
    /// Time constant, in cycles, with which the demand becomes known; 0 is at once.
    pub lag: f64,
    /// What the controller knows when the step comes.
    pub begin: Begin,
    /// Cycles that are looked at.
    pub cycles: usize,
    /// Seconds between two decisions.
    pub period: f64,
}

/// What is known of the loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// Coefficients of the square, of z, and the constant.
    pub polynomial: [f64; 3],
    /// Where that is 0.
    pub roots: [Complex; 3],
    /// Whether all of them are less than 1.
    pub stable: bool,
    /// How many times the gains it stays so.
    pub margin: Option<f64>,
    /// Sizes after the step.
    pub response: Response,
}

/// A set of gains of which each may be replaced, all so many times as large.
pub fn gains(of: Gains, [kp, ki, kd]: [Option<f64>; 3], times: f64) -> Gains {
    Gains { kp: kp.unwrap_or(of.kp), ki: ki.unwrap_or(of.ki), kd: kd.unwrap_or(of.kd) }.times(times)
}

/// Answers.
///
/// # Errors
///
/// What the model refuses.
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
    /// As one JSON object.
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

/// A whole number where it is one.
fn octets(size: f64) -> Value {
    if size.fract() == 0.0 { json!(size as u64) } else { json!(size) }
}
