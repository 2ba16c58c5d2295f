//! Back-off periods until a node gains the channel, and how likely it does: section V.

use anabranch_model::mptcp::ModelError;
use anabranch_model::mptcp::csma::{Access, Busy, Csma, access};
use serde_json::{Value, json};

use super::equations;
use super::hops::{Phy, reading};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Channel access.
    pub csma: Csma,
    /// The chance that the channel is found busy.
    pub busy: Busy,
    /// The radio, whose periods the times are in.
    pub phy: Phy,
    /// The paper's equations to the letter, errata kept.
    pub printed: bool,
}

/// What the model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// The chain.
    pub access: Access,
    /// Seconds of a back-off period.
    pub period: f64,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The radio is none.
    #[error("a cellular network has no channel access of this kind")]
    NoAccess,
    /// The model refuses.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Answers.
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
    /// As one JSON object.
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
