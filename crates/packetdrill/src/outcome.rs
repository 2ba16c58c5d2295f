//! The result of a script.

use std::fmt;

/// The result of one script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every expectation was met.
    Passed,
    /// The first difference between the script and the connection.
    Failed(Place),
    /// The script tests something that this project does not have.
    NotApplicable(Place),
    /// The text is not a valid script.
    Invalid(Place),
}

/// A line of a script with a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Line number, counted from 1; 0 if no line is at fault.
    pub line: usize,
    /// The difference, the reason or the error.
    pub message: String,
}

impl Outcome {
    /// Formats the result of the script `name` in one line.
    pub fn report(&self, name: &str) -> String {
        match self {
            Self::Passed => format!("{name}: passed"),
            Self::Failed(place) => format!("{name}:{}: failed: {}", place.line, place.message),
            Self::NotApplicable(place) => {
                format!("{name}:{}: not applicable: {}", place.line, place.message)
            }
            Self::Invalid(place) => format!("{name}:{}: invalid script: {}", place.line, place.message),
        }
    }
}

/// Why a script stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stop {
    line: usize,
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Failed,
    NotApplicable,
    Invalid,
}

/// Result of a step of a script.
pub(crate) type Step<T = ()> = Result<T, Stop>;

impl Stop {
    pub(crate) fn failed(line: usize, message: impl fmt::Display) -> Self {
        Self { line, kind: Kind::Failed, message: message.to_string() }
    }

    pub(crate) fn not_applicable(line: usize, message: impl fmt::Display) -> Self {
        Self { line, kind: Kind::NotApplicable, message: message.to_string() }
    }

    pub(crate) fn invalid(line: usize, message: impl fmt::Display) -> Self {
        Self { line, kind: Kind::Invalid, message: message.to_string() }
    }
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Self {
        let place = Place { line: stop.line, message: stop.message };
        match stop.kind {
            Kind::Failed => Self::Failed(place),
            Kind::NotApplicable => Self::NotApplicable(place),
            Kind::Invalid => Self::Invalid(place),
        }
    }
}
