//! Distributions of a parameter. Values are drawn by inverting the distribution function: one
//! number in 0..1 yields one value, so that the strata of a Latin hypercube are strata of the value
//! too.

use anabranch_scenario::units::Quantity;
use serde_json::Value;

use super::normal;

/// Type of the values of a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Numbers.
    Number,
    /// Quantities: whole multiples of this base unit.
    Quantity(&'static str),
}

/// Distribution of the values of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution {
    /// Uniform between two values.
    Uniform {
        /// Lower limit.
        low: f64,
        /// Upper limit.
        high: f64,
        /// Type of the values.
        scale: Scale,
    },
    /// Uniform in the logarithm.
    LogUniform {
        /// Lower limit, greater than 0.
        low: f64,
        /// Upper limit.
        high: f64,
        /// Type of the values.
        scale: Scale,
    },
    /// Integers with equal probability.
    Integer {
        /// Lower limit.
        low: i64,
        /// Upper limit.
        high: i64,
    },
    /// The listed values with equal probability; a value listed twice is twice as probable.
    Choice(Vec<Value>),
    /// A truncated normal distribution: values outside the limits are never drawn.
    Normal {
        /// Mean before truncation.
        mean: f64,
        /// Standard deviation before truncation, greater than 0.
        deviation: f64,
        /// Lower limit.
        low: f64,
        /// Upper limit.
        high: f64,
        /// Type of the values.
        scale: Scale,
    },
}

impl Distribution {
    /// The quantile: the value below which the fraction `u` of all values lies; `u` is in 0..1.
    pub fn at(&self, u: f64) -> Value {
        match self {
            Self::Uniform { low, high, scale: Scale::Number } => number(low + u * (high - low), *low, *high),
            // Every multiple of the base unit is equally probable, including both limits.
            Self::Uniform { low, high, scale: Scale::Quantity(unit) } => {
                quantity((low + u * (high - low + 1.0)).floor(), *low, *high, unit)
            }
            Self::LogUniform { low, high, scale } => {
                let (from, to) = (anabranch_sim::math::ln(*low), anabranch_sim::math::ln(*high));
                let value = anabranch_sim::math::exp(from + u * (to - from));
                scale.value(value, *low, *high)
            }
            Self::Integer { low, high } => {
                let count = i128::from(*high) - i128::from(*low) + 1;
                let step = ((u * count as f64).floor() as i128).min(count - 1);
                Value::from((i128::from(*low) + step) as i64)
            }
            Self::Choice(values) => {
                let place = (u * values.len() as f64) as usize;
                values.get(place.min(values.len().saturating_sub(1))).cloned().unwrap_or(Value::Null)
            }
            Self::Normal { mean, deviation, low, high, scale } => {
                let share = |x: f64| normal::below((x - mean) / deviation);
                let (from, to) = (share(*low), share(*high));
                scale.value(mean + deviation * normal::quantile(from + u * (to - from)), *low, *high)
            }
        }
    }
}

impl Scale {
    fn value(self, value: f64, low: f64, high: f64) -> Value {
        match self {
            Self::Number => number(value, low, high),
            Self::Quantity(unit) => quantity(value.round(), low, high, unit),
        }
    }
}

fn number(value: f64, low: f64, high: f64) -> Value {
    Value::from(value.clamp(low, high))
}

fn quantity(value: f64, low: f64, high: f64, unit: &'static str) -> Value {
    Value::from(Quantity { value: value.clamp(low, high) as u64, unit }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_they_should() {
        let uniform = Distribution::Uniform { low: 2.0, high: 4.0, scale: Scale::Number };
        assert_eq!((uniform.at(0.0), uniform.at(0.5)), (2.0.into(), 3.0.into()));
        let packets = Distribution::Uniform { low: 1.0, high: 4.0, scale: Scale::Quantity("packets") };
        let seen = [0.0, 0.24, 0.26, 0.51, 0.99].map(|u| packets.at(u));
        assert_eq!(seen, ["1 packets", "1 packets", "2 packets", "3 packets", "4 packets"].map(Value::from));
        let rate = Distribution::LogUniform { low: 1e3, high: 1e5, scale: Scale::Quantity("bit/s") };
        assert_eq!((rate.at(0.0), rate.at(0.5)), ("1000 bit/s".into(), "10000 bit/s".into()));
        let die = Distribution::Integer { low: 1, high: 6 };
        assert_eq!([0.0, 0.17, 0.999].map(|u| die.at(u)), [1, 2, 6].map(Value::from));
        let whole = Distribution::Integer { low: i64::MIN, high: i64::MAX };
        assert_eq!(whole.at(0.0), Value::from(i64::MIN));
        let choice = Distribution::Choice(vec!["a".into(), true.into()]);
        assert_eq!(
            [0.0, 0.49, 0.5, 0.99].map(|u| choice.at(u)),
            [Value::from("a"), Value::from("a"), Value::from(true), Value::from(true)]
        );
    }

    #[test]
    fn a_cut_normal_distribution_is_that_of_the_tables() {
        let law =
            |low, high| Distribution::Normal { mean: 10.0, deviation: 2.0, low, high, scale: Scale::Number };
        let at = |law: &Distribution, u| law.at(u).as_f64().unwrap();
        // Limits so wide that nothing is truncated: quantiles of the standard normal distribution.
        let whole = law(-90.0, 110.0);
        for (u, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.1, -1.281_551_566)] {
            assert!((at(&whole, u) - (10.0 + 2.0 * z)).abs() < 1e-8, "{u}");
        }
        // Truncated at one standard deviation on both sides: between 15.87 % and 84.13 % of the
        // whole.
        let cut = law(8.0, 12.0);
        assert!((at(&cut, 0.5) - 10.0).abs() < 1e-9);
        assert!((at(&cut, 0.0) - 8.0).abs() < 1e-9);
        // The quantile of 0.1587 + 0.75 * 0.6827 = 0.6707 is 0.4418 standard deviations.
        assert!((at(&cut, 0.75) - 10.8836).abs() < 1e-3);
    }
}
