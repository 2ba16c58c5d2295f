//! Quantities as a scenario says them: a number and a unit in one string.
//!
//! The number is decimal, without sign or exponent; a space before the unit is optional. Arithmetic is exact
//! in integers; what is finer than the base unit (bit/s, nanosecond, octet) is rounded to the nearest.

mod length;
mod quantity;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use anabranch_core::time::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{HINT_MARK, nearest};
use crate::link::QueueLimit;

pub use length::Length;
pub use quantity::Quantity;

/// Bit/s, at least 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(pub u64);

/// A span of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span(pub Duration);

/// Octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

/// What a queue holds at most: octets or packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSize(pub QueueLimit);

/// Why a text is no quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It does not begin with a number.
    #[error("`{text}` does not begin with a number; expected {expected}")]
    NoNumber {
        /// The text.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// It is negative.
    #[error("`{0}` is negative")]
    Negative(String),
    /// It is zero where that makes no sense.
    #[error("`{0}` is zero")]
    Zero(String),
    /// It has no unit.
    #[error("`{text}` has no unit; expected {expected}")]
    NoUnit {
        /// The text.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Its unit is none of those.
    #[error("unknown unit `{unit}`, expected one of {}", list(.known))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// Those that are known.
        known: Vec<&'static str>,
    },
    /// It does not fit in 64 bits of the base unit.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

fn list(known: &[&str]) -> String {
    known.iter().map(|unit| format!("`{unit}`")).collect::<Vec<_>>().join(", ")
}

type Units = &'static [(&'static str, u64)];

const RATES: Units = &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
const SPANS: Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const SIZES: Units = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];
const PACKETS: Units = &[("packets", 1), ("packet", 1)];

/// A number and a unit, in the base unit.
fn parse(text: &str, units: &[Units], expected: &'static str) -> Result<(u64, &'static str), UnitError> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(UnitError::Negative(text.to_owned()));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let no_number = || UnitError::NoNumber { text: text.to_owned(), expected };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.contains('.') || (number.contains('.') && part.is_empty()) {
        return Err(no_number());
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit { text: text.to_owned(), expected });
    }
    let known = || units.iter().flat_map(|table| table.iter());
    // A micro sign is two different letters in Unicode.
    let plain = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let Some((name, factor)) = known().find(|(name, _)| *name == plain) else {
        let known = known().map(|(name, _)| *name).collect();
        return Err(UnitError::UnknownUnit { unit: unit.to_owned(), known });
    };
    let value = scaled(whole, part, *factor).ok_or_else(|| UnitError::TooLarge(text.to_owned()))?;
    Ok((value, name))
}

/// `whole.part * factor`, rounded to the nearest.
fn scaled(whole: &str, part: &str, factor: u64) -> Option<u64> {
    // Eighteen decimals are finer than any base unit needs.
    let part = &part[..part.len().min(18)];
    let scale = 10u128.pow(part.len() as u32);
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let exact = digits.checked_mul(u128::from(factor))?.checked_add(scale / 2)?;
    u64::try_from(exact / scale).ok()
}

/// The largest unit in which it is a whole number.
fn show(f: &mut fmt::Formatter<'_>, value: u64, units: Units) -> fmt::Result {
    let fits = |(_, factor): &&(&str, u64)| value != 0 && value.is_multiple_of(*factor);
    let (name, factor) = units.iter().filter(fits).max_by_key(|(_, factor)| *factor).unwrap_or(&units[0]);
    write!(f, "{} {name}", value / factor)
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse(text, &[RATES], Self::EXPECTED)?.0 {
            0 => Err(UnitError::Zero(text.to_owned())),
            rate => Ok(Self(rate)),
        }
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Ok(Self(Duration::from_nanos(parse(text, &[SPANS], Self::EXPECTED)?.0)))
    }
}

impl FromStr for Size {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Ok(Self(parse(text, &[SIZES], Self::EXPECTED)?.0))
    }
}

impl FromStr for QueueSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (value, unit) = parse(text, &[PACKETS, SIZES], Self::EXPECTED)?;
        if !unit.starts_with("packet") {
            return Ok(Self(QueueLimit::Bytes(value)));
        }
        let packets = u32::try_from(value).map_err(|_| UnitError::TooLarge(text.to_owned()))?;
        Ok(Self(QueueLimit::Packets(packets)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, RATES)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nobody says "1 min" for a time-out of 60 s.
        show(f, self.0.as_nanos(), &SPANS[..4])
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, SIZES)
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            QueueLimit::Packets(n) => write!(f, "{n} packets"),
            QueueLimit::Bytes(n) => Size(n).fmt(f),
        }
    }
}

impl UnitError {
    /// What the writer may have meant.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownUnit { unit, known } => {
                // "kbps" and "kb/s" are farther from "kbit/s" by letters than by meaning.
                let bits = unit.replace("bps", "bit/s").replace("b/s", "bit/s");
                let near = nearest(&bits, known.iter().copied())?;
                Some(format!("did you mean `{near}`?"))
            }
            Self::Negative(_) => Some("leave out the sign: no quantity is negative".to_owned()),
            Self::Zero(_) => Some("to stop a link, take it down with an `[[event]]`".to_owned()),
            Self::NoUnit { .. } => Some("add the unit, in one string with the number".to_owned()),
            Self::NoNumber { .. } | Self::TooLarge(_) => None,
        }
    }
}

/// What is wrong, as a deserialiser passes it on.
fn said<E: serde::de::Error>(error: UnitError) -> E {
    match error.hint() {
        Some(hint) => E::custom(format_args!("{error}{HINT_MARK}{hint}")),
        None => E::custom(error),
    }
}

/// A quantity that is written as a string.
macro_rules! quantity {
    ($type:ident, $expected:literal, $pattern:literal, $doc:literal) => {
        impl $type {
            const EXPECTED: &'static str = $expected;
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($type::EXPECTED)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(said)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $doc })
            }
        }
    };
}

quantity!(
    Rate,
    "a rate such as \"250 kbit/s\"",
    r"^[0-9]+(\.[0-9]+)? ?(bit|kbit|Mbit|Gbit)/s$",
    "A rate in bit/s, kbit/s, Mbit/s or Gbit/s (factors of 1000), such as \"250 kbit/s\"."
);
quantity!(
    Span,
    "a span of time such as \"25 ms\"",
    r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h)$",
    "A span of time in ns, us, ms, s, min or h, such as \"25 ms\"."
);
quantity!(
    Size,
    "a size such as \"129 kB\"",
    r"^[0-9]+(\.[0-9]+)? ?([kMG]?B|[KMG]iB)$",
    "A number of octets in B, kB, MB, GB (factors of 1000) or KiB, MiB, GiB (of 1024), such as \"129 kB\"."
);
quantity!(
    QueueSize,
    "a queue size such as \"100 packets\" or \"64 kB\"",
    r"^[0-9]+(\.[0-9]+)? ?(packets?|[kMG]?B|[KMG]iB)$",
    "What a queue holds at most: packets, or octets, such as \"100 packets\" or \"64 kB\"."
);

/// A number of something, or the word `none` or `off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limit(pub Option<u32>);

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(n) => serializer.serialize_u32(n),
            None => serializer.serialize_str("none"),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrWord;
        impl Visitor<'_> for NumberOrWord {
            type Value = Limit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"none\" or \"off\"")
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Limit, E> {
                let fits = u32::try_from(n);
                fits.map(|n| Limit(Some(n)))
                    .map_err(|_| E::custom(format_args!("{n} is not in 0..=4294967295")))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Limit, E> {
                self.visit_i64(n.try_into().unwrap_or(i64::MAX))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Limit, E> {
                match text {
                    "none" | "off" => Ok(Limit(None)),
                    other => Err(E::custom(format_args!(
                        "expected a number, \"none\" or \"off\", found `{other}`"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(NumberOrWord)
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "enum": ["none", "off"] }] })
    }
}

/// A probability in 0..=1: a number, or a string in percent such as `"2 %"`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Probability(pub f64);

impl Probability {
    fn checked<E: serde::de::Error>(p: f64) -> Result<Self, E> {
        if (0.0..=1.0).contains(&p) {
            return Ok(Self(p));
        }
        Err(E::custom(format_args!("{p} is not a probability in 0..=1")))
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

pub(super) struct ProbabilityVisitor;

impl Visitor<'_> for ProbabilityVisitor {
    type Value = Probability;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a probability such as 0.02 or \"2 %\"")
    }
    fn visit_f64<E: serde::de::Error>(self, p: f64) -> Result<Probability, E> {
        Probability::checked(p)
    }
    fn visit_i64<E: serde::de::Error>(self, p: i64) -> Result<Probability, E> {
        Probability::checked(p as f64)
    }
    fn visit_u64<E: serde::de::Error>(self, p: u64) -> Result<Probability, E> {
        Probability::checked(p as f64)
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Probability, E> {
        let percent = text.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
        match percent {
            Some(n) => Probability::checked(n / 100.0),
            None => Err(E::custom(format_args!(
                "`{text}` is not a probability; expected one such as 0.02 or \"2 %\""
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ProbabilityVisitor).map_err(D::Error::custom)
    }
}

impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        "Probability".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?%$" },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_and_print_as_they_are_read() {
        assert_eq!("250 kbit/s".parse(), Ok(Rate(250_000)));
        assert_eq!("1.2Mbit/s".parse(), Ok(Rate(1_200_000)));
        assert_eq!("25 ms".parse(), Ok(Span(Duration::from_millis(25))));
        assert_eq!("0.1 µs".parse(), Ok(Span(Duration::from_nanos(100))));
        assert_eq!("129kB".parse(), Ok(Size(129_000)));
        assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
        assert_eq!("100 packets".parse(), Ok(QueueSize(QueueLimit::Packets(100))));
        assert_eq!("0 packets".parse(), Ok(QueueSize(QueueLimit::Packets(0))));
        let shown =
            [Rate(1_200_000).to_string(), Span(Duration::from_secs(90)).to_string(), Size(0).to_string()];
        assert_eq!(shown, ["1200 kbit/s", "90 s", "0 B"]);
        assert_eq!(Size(65_536).to_string(), "64 KiB");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |error: UnitError| format!("{error} ({})", error.hint().unwrap_or_default());
        let rate = |text: &str| check(text.parse::<Rate>().unwrap_err());
        let all =
            ["-5 kbit/s", "0 bit/s", "5", "fast", "5 kbps", "99999999999 Gbit/s", "1.2.3 bit/s", "5. bit/s"];
        expect_test::expect![[r#"
            `-5 kbit/s` is negative (leave out the sign: no quantity is negative)
            `0 bit/s` is zero (to stop a link, take it down with an `[[event]]`)
            `5` has no unit; expected a rate such as "250 kbit/s" (add the unit, in one string with the number)
            `fast` does not begin with a number; expected a rate such as "250 kbit/s" ()
            unknown unit `kbps`, expected one of `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s` (did you mean `kbit/s`?)
            `99999999999 Gbit/s` is too large ()
            `1.2.3 bit/s` does not begin with a number; expected a rate such as "250 kbit/s" ()
            `5. bit/s` does not begin with a number; expected a rate such as "250 kbit/s" ()"#]].assert_eq(&all.map(rate).join("\n"));
    }
}
