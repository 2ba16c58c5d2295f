//! What adaptive striping decides and why, for reports and logs.

use core::fmt;

use crate::time::Instant;

/// What adaptive striping has decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripingChoice {
    /// Turns are not tried, while this reason holds.
    Excluded,
    /// A trial of turns begins.
    Trial,
    /// Turns go on after their trial.
    Turns,
    /// Predictive striping goes on, and no further trial follows unless sessions are lost or open.
    Predictive,
    /// A trial or turns have ended without a verdict: predictive striping goes on.
    NoVerdict,
}

impl StripingChoice {
    /// Name of the choice in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Excluded => "excluded",
            Self::Trial => "trial",
            Self::Turns => "turns",
            Self::Predictive => "predictive",
            Self::NoVerdict => "no_verdict",
        }
    }
}

/// The measurement on which a [`StripingDecision`] rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripingReason {
    /// Number of open sessions; a lower limit.
    Sessions,
    /// Bytes that are not assigned to a session; a lower limit.
    Rest,
    /// Rate at which predictive striping delivers the file, in bit/s; an upper limit.
    FileRate,
    /// Rate of the fastest session in bit/s; an upper limit.
    SessionRate,
    /// Ratio of the rates of the fastest and the slowest session; an upper limit.
    Spread,
    /// Ratio of the sum of the sessions' rates to the rate of the file; a lower limit.
    Sum,
    /// Shortest time in which a session has opened, in seconds; an upper limit.
    Opening,
    /// Time for the rest of the file in seconds; a lower limit.
    TimeLeft,
    /// Number of earlier trials; an upper limit.
    Trials,
    /// Rate of a chunk alone in bit/s; a lower limit.
    ChunkAlone,
    /// Rate at which turns deliver the file, in bit/s; a lower limit.
    TurnsRate,
    /// Time without an acknowledged chunk in seconds; an upper limit.
    Wait,
    /// Number of open sessions after sessions were lost or opened; the limit is the number before.
    Renewal,
}

impl StripingReason {
    /// Name of the reason in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Rest => "rest",
            Self::FileRate => "file_rate",
            Self::SessionRate => "session_rate",
            Self::Spread => "spread",
            Self::Sum => "sum",
            Self::Opening => "opening",
            Self::TimeLeft => "time_left",
            Self::Trials => "trials",
            Self::ChunkAlone => "chunk_alone",
            Self::TurnsRate => "turns_rate",
            Self::Wait => "wait",
            Self::Renewal => "renewal",
        }
    }

    /// Unit of the measurement and its limit, as in metrics: `1`, `B`, `s` or `bit/s`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Sessions | Self::Spread | Self::Sum | Self::Trials | Self::Renewal => "1",
            Self::Rest => "B",
            Self::Opening | Self::TimeLeft | Self::Wait => "s",
            Self::FileRate | Self::SessionRate | Self::ChunkAlone | Self::TurnsRate => "bit/s",
        }
    }

    /// The measurement in words.
    const fn text(self) -> &'static str {
        match self {
            Self::Sessions => "open sessions",
            Self::Rest => "unassigned rest of the file",
            Self::FileRate => "rate of the file",
            Self::SessionRate => "rate of the fastest session",
            Self::Spread => "fastest over slowest session",
            Self::Sum => "sum of the sessions' rates over the rate of the file",
            Self::Opening => "shortest opening of a session",
            Self::TimeLeft => "time for the rest of the file",
            Self::Trials => "earlier trials",
            Self::ChunkAlone => "rate of a chunk alone",
            Self::TurnsRate => "rate of turns",
            Self::Wait => "time without an acknowledged chunk",
            Self::Renewal => "open sessions changed",
        }
    }

    /// Relation of an acceptable measurement to the limit, in words.
    const fn relation(self) -> &'static str {
        match self {
            Self::Sessions | Self::Rest | Self::Sum | Self::TimeLeft | Self::ChunkAlone | Self::TurnsRate => {
                "at least"
            }
            Self::FileRate | Self::SessionRate | Self::Spread | Self::Opening | Self::Trials | Self::Wait => {
                "at most"
            }
            Self::Renewal => "before",
        }
    }
}

/// A measurement and its limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Evidence {
    pub(super) reason: StripingReason,
    pub(super) measured: f64,
    pub(super) limit: f64,
}

/// A decision of adaptive striping. Its text has the choice, the reason, the measurement and the
/// limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StripingDecision {
    /// When it was made.
    pub at: Instant,
    /// What was decided.
    pub choice: StripingChoice,
    /// What was measured.
    pub reason: StripingReason,
    /// The measured value, in the unit of the reason.
    pub measured: f64,
    /// The limit to which it was compared, in the same unit.
    pub limit: f64,
}

impl fmt::Display for StripingDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.choice {
            StripingChoice::Excluded => "turns are not tried",
            StripingChoice::Trial => "a trial of turns begins",
            StripingChoice::Turns => "turns go on",
            StripingChoice::Predictive => "turns end",
            StripingChoice::NoVerdict => "turns end without a verdict",
        })?;
        write!(f, ": {} ", self.reason.text())?;
        self.write_value(f, self.measured)?;
        write!(f, ", {} ", self.reason.relation())?;
        self.write_value(f, self.limit)
    }
}

impl StripingDecision {
    fn write_value(&self, f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
        match self.reason {
            StripingReason::Sessions | StripingReason::Trials | StripingReason::Renewal => {
                write!(f, "{value:.0}")
            }
            StripingReason::Spread | StripingReason::Sum => write!(f, "{value:.2}"),
            StripingReason::Rest => write!(f, "{value:.0} bytes"),
            StripingReason::Opening | StripingReason::TimeLeft | StripingReason::Wait => {
                write!(f, "{value:.3} s")
            }
            StripingReason::FileRate
            | StripingReason::SessionRate
            | StripingReason::ChunkAlone
            | StripingReason::TurnsRate => write!(f, "{:.1} kbit/s", value / 1e3),
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
                StripingChoice::Excluded,
                StripingReason::Opening,
                0.1104,
                0.1021,
                "turns are not tried: shortest opening of a session 0.110 s, at most 0.102 s",
            ),
            (
                StripingChoice::Turns,
                StripingReason::ChunkAlone,
                34_100.0,
                26_640.0,
                "turns go on: rate of a chunk alone 34.1 kbit/s, at least 26.6 kbit/s",
            ),
            (
                StripingChoice::NoVerdict,
                StripingReason::Renewal,
                2.0,
                3.0,
                "turns end without a verdict: open sessions changed 2, before 3",
            ),
        ] {
            let decision = StripingDecision { at: Instant::ZERO, choice, reason, measured, limit };
            assert_eq!(decision.to_string(), text);
        }
    }
}
