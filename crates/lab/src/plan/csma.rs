//! Back-off periods until a node gains the channel, and the probability that it does: section V.

use anabranch_model::mptcp::ModelError;
use anabranch_model::mptcp::csma::{Access, Busy, Csma, access};
use serde_json::{Value, json};

use super::equations;
use super::hops::{Phy, reading};

/// Input of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Channel access.
    pub csma: Csma,
    /// Probability that the channel is busy.
    pub busy: Busy,
    /// Radio, which sets the duration of a period.
    pub phy: Phy,
    /// Whether to use the paper's equations as printed, with their errata.
    pub printed: bool,
}

/// Result of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question.
    pub question: Question,
    /// Results of the Markov chain.
    pub access: Access,
    /// Duration of a back-off period in seconds.
    pub period: f64,
}

/// Why the model cannot answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This radio has no channel access.
    #[error("a cellular network has no channel access of this kind")]
    NoAccess,
    /// The model refuses the input.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Evaluates the model.
///
/// # Errors
///
/// See [`Refusal`].
pub fn answer(question: Question) -> Result<Answer, Refusal> {
    let radio = question.phy.radio(question.busy.clone()).ok_or(Refusal::NoAccess)?;
    let access = access(&question.csma, &question.busy, reading(question.printed, None))?;
    Ok(Answer { question, access, period: radio.backoff_period })
}

impl Answer {
    /// The answer as a JSON object.
    pub fn object(&self) -> Value {
        let Self { question: Question { csma, busy, phy, printed }, access, period } = self;
        let stages = access
            .stages
            .iter()
            .map(|stage| json!({ "window": stage.window, "p_reached": stage.reached, "p_busy": stage.busy }));
        json!({
            "model": "csma",
            "equations": equations(*printed),
            "params": {
                "min_be": csma.min_be,
                "max_be": csma.max_be,
                "backoffs": csma.max_backoffs,
                "busy": match busy {
                    Busy::Constant(busy) => json!(busy),
                    Busy::ByPeriod(each) => json!(each),
                },
                "phy": phy.name(),
                "backoff_period_s": period,
            },
            "n_bp": access.periods,
            "n_bp_if_won": access.periods_if_won,
            "n_bp_if_lost": access.periods_if_lost,
            "p_won": access.won,
            "p_lost": access.lost,
            "delay_s": access.periods * period,
            "delay_if_won_s": access.periods_if_won.map(|n| n * period),
            "stages": stages.collect::<Vec<_>>(),
            "p_won_at": access.won_at,
        })
    }
}
