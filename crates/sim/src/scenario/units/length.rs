//! Lengths, which may also be bare numbers: of metres.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{UnitError, Units, parse, said};

/// A length in metres: a number, or a string such as `"50 m"`, which is read to the millimetre.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Length(pub f64);

pub(super) const LENGTHS: Units = &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)];
const EXPECTED: &str = "a length such as \"50 m\", or a number of metres";

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Ok(Self(parse(text, &[LENGTHS], EXPECTED)?.0 as f64 / 1e3))
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
                f.write_str(EXPECTED)
            }
            fn visit_f64<E: Error>(self, metres: f64) -> Result<Length, E> {
                Ok(Length(metres))
            }
            fn visit_i64<E: Error>(self, metres: i64) -> Result<Length, E> {
                Ok(Length(metres as f64))
            }
            fn visit_u64<E: Error>(self, metres: u64) -> Result<Length, E> {
                Ok(Length(metres as f64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Length, E> {
                text.parse().map_err(said)
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length in mm, cm, m or km, such as \"50 m\", or a number of metres.",
            "anyOf": [
                { "type": "number" },
                { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(mm|cm|m|km)$" },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_units_or_are_metres() {
        for (text, metres) in [("50 m", 50.0), ("50m", 50.0), ("0.1 km", 100.0), ("12.5 cm", 0.125)] {
            assert_eq!(text.parse(), Ok(Length(metres)), "{text}");
        }
        for number in ["50", "50.0"] {
            let length: Length = serde_json::from_str(number).unwrap();
            assert_eq!(serde_json::to_string(&length).unwrap(), "50.0");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |text: &str| {
            let error = text.parse::<Length>().unwrap_err();
            format!("{error} ({})", error.hint().unwrap_or_default())
        };
        let all = ["50", "50 metres", "50 km/h", "far", "-3 m"];
        expect_test::expect![[r#"
            `50` has no unit; expected a length such as "50 m", or a number of metres (add the unit, in one string with the number)
            unknown unit `metres`, expected one of `mm`, `cm`, `m`, `km` ()
            unknown unit `km/h`, expected one of `mm`, `cm`, `m`, `km` (did you mean `km`?)
            `far` does not begin with a number; expected a length such as "50 m", or a number of metres ()
            `-3 m` is negative (leave out the sign: no quantity is negative)"#]].assert_eq(&all.map(check).join("\n"));
    }
}
