//! Quantities of any kind, for code that draws values without knowing their purpose.

use std::fmt;
use std::str::FromStr;

use super::length::LENGTHS;
use super::speed::SPEEDS;
use super::{PACKETS, RATES, SIZES, SPANS, UnitError, parse};

/// A quantity in the base unit of its kind. The base unit identifies the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// Number of base units.
    pub value: u64,
    /// Base unit: `bit/s`, `ns`, `B`, `packets`, `mm` or `mm/h`.
    pub unit: &'static str,
}

impl FromStr for Quantity {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let kinds = [RATES, SPANS, SIZES, PACKETS, LENGTHS, SPEEDS];
        let (value, name) = parse(text, &kinds, "a quantity such as \"250 kbit/s\" or \"25 ms\"")?;
        let kind = kinds.iter().find(|kind| kind.iter().any(|(unit, _)| *unit == name));
        let unit = kind.map_or(name, |kind| kind[0].0);
        Ok(Self { value, unit })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.value, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_told_by_its_base_unit() {
        for (text, value, unit) in [
            ("250 kbit/s", 250_000, "bit/s"),
            ("25 ms", 25_000_000, "ns"),
            ("1.5 KiB", 1_536, "B"),
            ("1 packet", 1, "packets"),
            ("50 m", 50_000, "mm"),
            ("5 m/s", 18_000_000, "mm/h"),
        ] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!(quantity, Quantity { value, unit }, "{text}");
            assert_eq!(quantity.to_string().parse(), Ok(quantity), "{text}");
        }
        assert!(matches!("25 parsecs".parse::<Quantity>(), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!("fast".parse::<Quantity>(), Err(UnitError::NoNumber { .. })));
    }
}
