//! Quantities as text: a number and a unit in one string, such as `250 kbit/s`, with errors that
//! quote the wrong text.
//!
//! The number is decimal, without sign or exponent; a space before the unit is optional. Arithmetic
//! is exact in integers. A rate or time finer than the base unit (bit/s, nanosecond) is rounded to
//! the nearest one. Bytes and packets must be whole.
//!
//! Features: `serde` reads and writes quantities as strings, `schema` describes them as JSON
//! Schema, and `text` parses TOML with the line and column of every value.

#![forbid(unsafe_code)]

#[cfg(feature = "serde")]
mod de;
mod length;
mod quantity;
#[cfg(feature = "schema")]
mod schema;
mod speed;
#[cfg(feature = "text")]
pub mod text;
#[cfg(feature = "serde")]
mod word;
mod words;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use anabranch_core::time::Duration;

#[cfg(feature = "serde")]
pub use de::{HINT_MARK, ProbabilityVisitor, hint_from};
pub use length::Length;
pub use quantity::Quantity;
pub use speed::Speed;
#[cfg(feature = "serde")]
pub use word::{WordError, keys_of, word, word_of, words_of};
pub use words::{did_you_mean, nearest, quoted};

/// A data rate in bit/s, at least 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(pub u64);

/// A span of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span(pub Duration);

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

/// Upper limit of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Number of packets.
    Packets(u32),
    /// Bytes of whole packets, including IP headers.
    Bytes(u64),
}

impl QueueLimit {
    /// True if this number of packets, or of bytes, exceeds the limit.
    #[inline]
    pub fn is_exceeded(self, packets: usize, octets: u64) -> bool {
        match self {
            Self::Packets(most) => packets > most as usize,
            Self::Bytes(most) => octets > most,
        }
    }

    /// Compares two limits; `None` if they have different units.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Packets(this), Self::Packets(other)) => Some(this.cmp(&other)),
            (Self::Bytes(this), Self::Bytes(other)) => Some(this.cmp(&other)),
            _ => None,
        }
    }
}

/// A [`QueueLimit`] as text. "unlimited" is stored as the largest number of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSize(pub QueueLimit);

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{text}` does not begin with a number; expected {expected}")]
    NoNumber {
        /// The text.
        text: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The number is negative.
    #[error("`{0}` is negative")]
    Negative(String),
    /// The number is zero, which is not allowed here.
    #[error("`{0}` is zero")]
    Zero(String),
    /// The unit is missing.
    #[error("`{text}` has no unit; expected {expected}")]
    NoUnit {
        /// The text.
        text: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The unit is unknown.
    #[error("unknown unit `{unit}`, expected one of {}", quoted(.known.iter()))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The known units.
        known: Vec<&'static str>,
    },
    /// The number of packets is not whole.
    #[error("`{0}` is not a whole number of packets")]
    PartOfPacket(String),
    /// The number of bytes is not whole.
    #[error("`{0}` is not a whole number of bytes")]
    PartOfByte(String),
    /// The quantity exceeds 64 bits of the base unit.
    #[error("`{0}` is too large")]
    TooLarge(String),
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
/// The word for a queue without a limit.
const UNLIMITED: &str = "unlimited";

/// Parses a number and a unit into the base unit. Rates and times are rounded to the nearest; bytes
/// must be whole.
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
    // Unicode has two characters for the micro sign.
    let plain = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let Some((name, factor)) = known().find(|(name, _)| *name == plain) else {
        let known = known().map(|(name, _)| *name).collect();
        return Err(UnitError::UnknownUnit { unit: unit.to_owned(), known });
    };
    let (value, exact) = scaled(whole, part, *factor).ok_or_else(|| UnitError::TooLarge(text.to_owned()))?;
    if !exact && SIZES.iter().any(|(size, _)| size == name) {
        return Err(UnitError::PartOfByte(text.to_owned()));
    }
    Ok((value, name))
}

/// `whole.part * factor`, rounded to the nearest, and whether it is exact.
fn scaled(whole: &str, part: &str, factor: u64) -> Option<(u64, bool)> {
    let finer = part.bytes().skip(18).any(|digit| digit != b'0');
    // No base unit needs more than eighteen decimals.
    let part = &part[..part.len().min(18)];
    let scale = 10u128.pow(part.len() as u32);
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let exact = digits.checked_mul(u128::from(factor))?;
    let value = u64::try_from(exact.checked_add(scale / 2)? / scale).ok()?;
    Some((value, exact % scale == 0 && !finer))
}

/// Formats a value in the largest unit in which it is a whole number.
fn show(f: &mut fmt::Formatter<'_>, value: u64, units: Units) -> fmt::Result {
    let fits = |(_, factor): &&(&str, u64)| value != 0 && value.is_multiple_of(*factor);
    let (name, factor) = units.iter().filter(fits).max_by_key(|(_, factor)| *factor).unwrap_or(&units[0]);
    write!(f, "{} {name}", value / factor)
}

impl Rate {
    /// The expected form, for errors.
    const EXPECTED: &'static str = "a rate such as \"250 kbit/s\"";
}

impl Span {
    /// The expected form, for errors.
    const EXPECTED: &'static str = "a span of time such as \"25 ms\"";

    /// Parses a span that must be greater than zero.
    ///
    /// # Errors
    /// Those of `parse`, and [`UnitError::Zero`].
    pub fn positive(text: &str) -> Result<Duration, UnitError> {
        match text.parse()? {
            Self(span) if span.is_zero() => Err(UnitError::Zero(text.to_owned())),
            Self(span) => Ok(span),
        }
    }
}

impl Size {
    /// The expected form, for errors.
    const EXPECTED: &'static str = "a size such as \"129 kB\"";
}

impl QueueSize {
    /// The expected form, for errors.
    const EXPECTED: &'static str = "a queue size such as \"100 packets\" or \"64 kB\", or \"unlimited\"";

    /// A number of packets that no simulation can reach.
    pub const UNLIMITED: Self = Self(QueueLimit::Packets(u32::MAX));
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
        if text.trim() == UNLIMITED {
            return Ok(Self::UNLIMITED);
        }
        let (value, unit) = parse(text, &[PACKETS, SIZES], Self::EXPECTED)?;
        if !unit.starts_with("packet") {
            return Ok(Self(QueueLimit::Bytes(value)));
        }
        let decimals = text.split_once('.').map_or("", |(_, part)| part);
        if decimals.chars().take_while(char::is_ascii_digit).any(|digit| digit != '0') {
            return Err(UnitError::PartOfPacket(text.to_owned()));
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
        // Minutes are not used: "60 s" is more common for a timeout than "1 min".
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
            QueueLimit::Packets(u32::MAX) => f.write_str(UNLIMITED),
            QueueLimit::Packets(n) => write!(f, "{n} packets"),
            QueueLimit::Bytes(n) => Size(n).fmt(f),
        }
    }
}

impl UnitError {
    /// What the author may have meant.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownUnit { unit, known } => {
                // "kbps" and "kb/s" differ from "kbit/s" by several letters but have the same
                // meaning.
                let bits = unit.replace("bps", "bit/s").replace("b/s", "bit/s");
                did_you_mean(&bits, known.iter())
            }
            Self::Negative(_) => Some("leave out the sign: no quantity is negative".to_owned()),
            Self::Zero(_) => Some("to stop a link, take it down with an `[[event]]`".to_owned()),
            Self::NoUnit { .. } => Some("add the unit, in one string with the number".to_owned()),
            Self::PartOfPacket(_) => Some("set a whole number, or a size in bytes".to_owned()),
            Self::PartOfByte(_) => Some("set a whole number of bytes".to_owned()),
            Self::NoNumber { .. } | Self::TooLarge(_) => None,
        }
    }
}

/// A number, or the word `none` or `off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limit(pub Option<u32>);

/// A probability in 0..=1: a number, or a percentage such as `"2 %"`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Probability(pub f64);

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
        assert_eq!("3.0 packets".parse(), Ok(QueueSize(QueueLimit::Packets(3))));
        for part in ["2.5 packets", "0.1 packets", "1.01 packet"] {
            assert_eq!(part.parse::<QueueSize>(), Err(UnitError::PartOfPacket(part.to_owned())));
        }
        for part in ["1.5 B", "0.0015 kB", "1.0001KiB", "1.0000000000000000001 GB"] {
            assert_eq!(part.parse::<Size>(), Err(UnitError::PartOfByte(part.to_owned())));
            assert_eq!(part.parse::<QueueSize>(), Err(UnitError::PartOfByte(part.to_owned())));
        }
        assert_eq!("1.0 B".parse(), Ok(Size(1)));
        assert_eq!("1.0000000000000000000000 kB".parse(), Ok(Size(1000)));
        assert_eq!("0 packets".parse(), Ok(QueueSize(QueueLimit::Packets(0))));
        assert_eq!("unlimited".parse(), Ok(QueueSize::UNLIMITED));
        assert_eq!(QueueSize::UNLIMITED.to_string(), "unlimited");
        let wrong = "unlimitted".parse::<QueueSize>().unwrap_err().to_string();
        assert!(wrong.contains("or \"unlimited\""), "{wrong}");
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
