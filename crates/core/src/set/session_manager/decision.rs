//! What adaptive striping decides and why, for reports and logs.

use core::fmt;

use crate::time::Instant;

/// What adaptive striping has decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripingChoice {
    /// The sessions take turns.
    Turns,
    /// Predictive striping.
    Predictive,
}

impl StripingChoice {
    /// Name of the choice in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Predictive => "predictive",
        }
    }
}

/// The number on which a [`StripingDecision`] rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripingReason {
    /// Number of sessions over the shared channel, open or about to open; a lower limit.
    Sessions,
    /// Number of such sessions over other paths; an upper limit.
    Outside,
    /// Rate of turns in bit/s; an upper limit. Above it, no turns follow in this transfer.
    TurnsRate,
}

impl StripingReason {
    /// Name of the reason in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Outside => "outside",
            Self::TurnsRate => "turns_rate",
        }
    }

    /// Unit of the number and its limit, as in metrics: `1` or `bit/s`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Sessions | Self::Outside => "1",
            Self::TurnsRate => "bit/s",
        }
    }
}

/// A decision of adaptive striping. Its text has the choice, the reason, the number and the limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StripingDecision {
    /// When it was made.
    pub at: Instant,
    /// What was decided.
    pub choice: StripingChoice,
    /// What was counted or measured.
    pub reason: StripingReason,
    /// The number, in the unit of the reason.
    pub measured: f64,
    /// The limit to which it was compared, in the same unit.
    pub limit: f64,
}

impl fmt::Display for StripingDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measured, limit, .. } = *self;
        write!(f, "{}: ", self.choice.name())?;
        match self.reason {
            StripingReason::Sessions => {
                write!(f, "sessions over the shared channel {measured}, at least {limit}")
            }
            StripingReason::Outside => write!(f, "sessions over other paths {measured}, at most {limit}"),
            StripingReason::TurnsRate => {
                let [measured, limit] = [measured, limit].map(|rate| rate / 1e3);
                write!(f, "rate of turns {measured:.1} kbit/s, at most {limit:.1} kbit/s")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_decision_says_what_was_measured_and_the_limit() {
        for (choice, reason, measured, limit, text) in [
            (
                StripingChoice::Turns,
                StripingReason::Sessions,
                3.0,
                1.0,
                "turns: sessions over the shared channel 3, at least 1",
            ),
            (
                StripingChoice::Predictive,
                StripingReason::Outside,
                1.0,
                0.0,
                "predictive: sessions over other paths 1, at most 0",
            ),
            (
                StripingChoice::Predictive,
                StripingReason::TurnsRate,
                234_120.0,
                80_000.0,
                "predictive: rate of turns 234.1 kbit/s, at most 80.0 kbit/s",
            ),
        ] {
            let decision = StripingDecision { at: Instant::ZERO, choice, reason, measured, limit };
            assert_eq!(decision.to_string(), text);
        }
    }
}
