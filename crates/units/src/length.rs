//! Lengths. A bare number is in metres.

use std::str::FromStr;

use super::{UnitError, Units, parse};

/// A length in metres: a number, or a string such as `"50 m"`, which is read with a precision of
/// one millimetre.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Length(pub f64);

pub(super) const LENGTHS: Units = &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)];
pub(super) const EXPECTED: &str = "a length such as \"50 m\", or a number of metres";

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Ok(Self(parse(text, &[LENGTHS], EXPECTED)?.0 as f64 / 1e3))
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
