//! Conversion between the texts of parameters and their values.

use std::fmt::Display;
use std::str::FromStr;

use anabranch_scenario::did_you_mean;
use anabranch_scenario::units::{self, QueueSize, Rate, Size, Span, UnitError};
use serde::de::DeserializeOwned;

use super::{ParameterError, Settings};

/// A value, or why it is invalid.
pub(crate) type Understood<T> = Result<T, ParameterError>;

/// Parses an enum value.
pub(crate) fn word<T: DeserializeOwned>(key: &'static str, text: &str) -> Understood<T> {
    units::word(text).map_err(|_| one_of(key, text, units::words_of::<T>()))
}

fn one_of(key: &'static str, text: &str, known: &[&str]) -> ParameterError {
    let hint = did_you_mean(text, known.iter().copied());
    ParameterError::bad(key, text, format!("expected one of {}", known.join(", ")), hint)
}

/// Looks up the meaning of a word in a table.
pub(crate) fn meant<T: Copy>(key: &'static str, text: &str, words: &[(&str, T)]) -> Understood<T> {
    let known = || words.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let found = words.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| one_of(key, text, &known()))
}

/// Whether nodes share one radio channel: the parameter `medium` of two experiments.
pub(crate) fn is_radio(settings: &Settings) -> Understood<bool> {
    meant("medium", settings.text("medium"), &[("links", false), ("radio", true)])
}

/// Parses a whole number in a range.
pub(crate) fn count(key: &'static str, text: &str, least: usize, most: usize) -> Understood<usize> {
    text.parse().ok().filter(|n| (least..=most).contains(n)).ok_or_else(|| {
        ParameterError::bad(key, text, format!("expected a whole number in {least}..={most}"), None)
    })
}

/// Parses a number in a range.
pub(crate) fn real(key: &'static str, text: &str, least: f64, most: f64) -> Understood<f64> {
    text.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        ParameterError::bad(key, text, format!("expected a number from {least} to {most}"), None)
    })
}

/// Parses a number with a unit.
pub(crate) fn quantity<T: FromStr<Err = UnitError>>(key: &'static str, text: &str) -> Understood<T> {
    text.parse().map_err(|e: UnitError| ParameterError::bad(key, text, e.to_string(), e.hint()))
}

/// Parses a probability or a percentage.
pub(crate) fn probability(key: &'static str, text: &str) -> Understood<f64> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|n| n / 100.0),
        None => text.parse(),
    };
    number.ok().filter(|p| (0.0..1.0).contains(p)).ok_or_else(|| {
        let message = "expected a probability from 0 up to, not including, 1".to_owned();
        ParameterError::bad(key, text, message, Some("such as 0.02 or 2%".to_owned()))
    })
}

/// Type of a parameter whose value is not passed to the scenario as it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Takes {
    Span,
    Size,
    Rate,
    /// A rate, or 0.
    RateOrNone,
    Queue,
    Probability,
    Count(usize, usize),
    Real(f64, f64),
}

impl Takes {
    /// The value in canonical form, as results write it.
    pub(crate) fn canonical(self, key: &'static str, text: &str) -> Understood<String> {
        Ok(match self {
            Self::Span => plain(&quantity::<Span>(key, text)?),
            Self::Size => plain(&quantity::<Size>(key, text)?),
            Self::RateOrNone if ["0", "0bit/s", "0 bit/s"].contains(&text) => "0bit/s".to_owned(),
            Self::Rate | Self::RateOrNone => plain(&quantity::<Rate>(key, text)?),
            Self::Queue => plain(&quantity::<QueueSize>(key, text)?),
            Self::Probability => probability(key, text)?.to_string(),
            Self::Count(least, most) => count(key, text, least, most)?.to_string(),
            Self::Real(least, most) => real(key, text, least, most)?.to_string(),
        })
    }
}

/// The settings with each value of the table in canonical form.
///
/// # Errors
///
/// The first invalid value.
pub(crate) fn canonical(settings: &Settings, takes: &[(&'static str, Takes)]) -> Understood<Settings> {
    takes.iter().try_fold(settings.clone(), |all, (key, takes)| {
        let plain = takes.canonical(key, all.text(key))?;
        Ok(all.with(key, plain))
    })
}

/// Parses a distance between 1 m and 100 km, in metres.
pub(crate) fn metres(key: &'static str, text: &str) -> Understood<f64> {
    length(text).ok_or_else(|| {
        let hint = Some("such as 100m".to_owned());
        ParameterError::bad(key, text, "expected a distance from 1 m to 100 km", hint)
    })
}

/// Parses a distance for [`metres`].
pub(crate) fn length(text: &str) -> Option<f64> {
    let number = text.strip_suffix('m').map_or(text, str::trim_end);
    number.parse().ok().filter(|metres| (1.0..=100_000.0).contains(metres))
}

/// Formats a quantity without a space before its unit, so that a shell needs no quotes.
pub fn plain(value: &impl Display) -> String {
    value.to_string().replace(' ', "")
}
