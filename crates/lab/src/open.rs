//! Parameters that a paper leaves open, with plausible ranges.

use anabranch_sweep::spec::{Distribution, Scale};

use crate::verdict::number;

/// A parameter whose value a paper does not print.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Open {
    /// Name of the parameter in the experiment.
    pub parameter: &'static str,
    /// Erratum that says that the parameter is open.
    pub erratum: &'static str,
    /// Plausible values.
    pub range: Range,
}

impl Open {
    pub(crate) const fn new(parameter: &'static str, erratum: &'static str, range: Range) -> Self {
        Self { parameter, erratum, range }
    }
}

/// Plausible values, with the unit that follows a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Range {
    /// Uniform between two numbers.
    Even(f64, f64, &'static str),
    /// Log-uniform between two numbers.
    Log(f64, f64, &'static str),
    /// Whole numbers.
    Whole(i64, i64, &'static str),
    /// One of these, with equal probabilities.
    OneOf(&'static [&'static str]),
}

impl Range {
    /// The value at quantile `u` in 0..1.
    pub(crate) fn text(&self, u: f64) -> String {
        let scale = Scale::Number;
        let (distribution, unit) = match *self {
            Self::Even(low, high, unit) => (Distribution::Uniform { low, high, scale }, unit),
            Self::Log(low, high, unit) => (Distribution::LogUniform { low, high, scale }, unit),
            Self::Whole(low, high, unit) => (Distribution::Integer { low, high }, unit),
            Self::OneOf(words) => {
                (Distribution::Choice(words.iter().map(|word| (*word).into()).collect()), "")
            }
        };
        match distribution.at(u) {
            serde_json::Value::String(word) => word,
            value if matches!(self, Self::Whole(..)) => format!("{value}{unit}"),
            value => format!("{}{unit}", number(value.as_f64().unwrap_or_default())),
        }
    }

    /// Description of the range.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Even(low, high, unit) => format!("{low}{unit} to {high}{unit}"),
            Self::Log(low, high, unit) => format!("{low}{unit} to {high}{unit}, by the logarithm"),
            Self::Whole(low, high, unit) => format!("{low}{unit} to {high}{unit}, whole"),
            Self::OneOf(words) => words.join(", "),
        }
    }

    /// Group of the value at quantile `u`, for the analysis of variance; at most `most` groups.
    pub(crate) fn group(&self, u: f64, most: usize) -> usize {
        let values = match self {
            Self::OneOf(words) => words.len(),
            Self::Whole(low, high, _) => (high - low + 1) as usize,
            Self::Even(..) | Self::Log(..) => usize::MAX,
        };
        (u * values.min(most) as f64) as usize
    }
}
