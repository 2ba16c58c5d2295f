//! Quantities in serde formats: strings, and numbers if no unit is needed.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    Length, Limit, Probability, QueueSize, Rate, Size, Span, Speed, UnitError, did_you_mean, length,
};

/// Separates message and hint in an error that a deserialiser passes on.
pub const HINT_MARK: &str = "; hint: ";

/// Derives a hint from a deserialiser's message about an unknown key or value, which lists the
/// known ones.
pub fn hint_from(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") || message.starts_with("unknown unit") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let word = quoted.next()?;
    did_you_mean(word, quoted)
}

/// Converts an error for a deserialiser.
fn said<E: serde::de::Error>(error: UnitError) -> E {
    match error.hint() {
        Some(hint) => E::custom(format_args!("{error}{HINT_MARK}{hint}")),
        None => E::custom(error),
    }
}

/// Implements serde for a quantity that is written as a string.
macro_rules! quantity {
    ($type:ident) => {
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
                    // A bare number has no unit; parsing its text yields that error.
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(said)
                    }
                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$type, E> {
                        number.to_string().parse().map_err(said)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

quantity!(Rate);
quantity!(Span);
quantity!(Size);
quantity!(QueueSize);
quantity!(Speed);

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

/// Reads a [`Probability`], for values that may be a probability or something else.
#[derive(Debug)]
pub struct ProbabilityVisitor;

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

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = Length;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(length::EXPECTED)
            }
            fn visit_f64<E: serde::de::Error>(self, metres: f64) -> Result<Length, E> {
                Ok(Length(metres))
            }
            fn visit_i64<E: serde::de::Error>(self, metres: i64) -> Result<Length, E> {
                Ok(Length(metres as f64))
            }
            fn visit_u64<E: serde::de::Error>(self, metres: u64) -> Result<Length, E> {
                Ok(Length(metres as f64))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Length, E> {
                text.parse().map_err(said)
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_taken_from_the_message() {
        let hint = hint_from("unknown field `dealy`, expected one of `rate`, `delay`");
        assert_eq!(hint.as_deref(), Some("did you mean `delay`?"));
        assert_eq!(hint_from("missing field `rate`"), None);
    }

    #[test]
    fn a_bare_length_is_in_metres() {
        for number in ["50", "50.0"] {
            let length: Length = serde_json::from_str(number).unwrap();
            assert_eq!(serde_json::to_string(&length).unwrap(), "50.0");
        }
    }
}
