//! Speeds.

use std::fmt;
use std::str::FromStr;

use super::{UnitError, Units, parse, show};

/// A speed in millimetres per hour, a unit in which m/s and km/h are both whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Speed(pub u64);

/// The units of speed, base unit first.
pub(super) const SPEEDS: Units =
    &[("mm/h", 1), ("mm/s", 3_600), ("cm/s", 36_000), ("m/s", 3_600_000), ("km/h", 1_000_000)];

impl Speed {
    /// The expected form, for errors.
    pub(super) const EXPECTED: &'static str = "a speed such as \"5 m/s\" or \"30 km/h\"";

    /// The speed in metres per second.
    pub fn as_m_per_s(self) -> f64 {
        self.0 as f64 / 3.6e6
    }
}

impl FromStr for Speed {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Ok(Self(parse(text, &[SPEEDS], Self::EXPECTED)?.0))
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0 m/s"),
            speed => show(f, speed, SPEEDS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_and_written_exactly() {
        for (text, metres, written) in [
            ("5 m/s", 5.0, "5 m/s"),
            ("1.5 m/s", 1.5, "150 cm/s"),
            ("36 km/h", 10.0, "10 m/s"),
            ("50km/h", 50.0 / 3.6, "50 km/h"),
            ("0 m/s", 0.0, "0 m/s"),
            ("0.1 mm/s", 0.0001, "360 mm/h"),
        ] {
            let speed: Speed = text.parse().unwrap();
            assert!((speed.as_m_per_s() - metres).abs() < 1e-12, "{text}");
            assert_eq!(speed.to_string(), written);
            assert_eq!(written.parse(), Ok(speed));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |text: &str| {
            let error = text.parse::<Speed>().unwrap_err();
            format!("{error} ({})", error.hint().unwrap_or_default())
        };
        expect_test::expect![[r#"
            `5` has no unit; expected a speed such as "5 m/s" or "30 km/h" (add the unit, in one string with the number)
            unknown unit `kmh`, expected one of `mm/h`, `mm/s`, `cm/s`, `m/s`, `km/h` (did you mean `km/h`?)
            `-1 m/s` is negative (leave out the sign: no quantity is negative)"#]]
        .assert_eq(&["5", "5 kmh", "-1 m/s"].map(check).join("\n"));
    }
}
