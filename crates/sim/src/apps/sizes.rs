//! Sizes of packets, messages and replies.

use std::fmt;
use std::sync::Arc;

use anabranch_units::Size;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::schedule::Schedule;
use crate::math::{NO_PARETO_SHAPE, PARETO_SHAPES, exp, ln, pareto_least};
use crate::random::Stream;

/// Size of packets: `"500 B"`, or a distribution.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Sizes {
    /// The same size for all.
    Constant(Size),
    /// A random size for each.
    Drawn(Drawn),
}

/// A distribution of sizes.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Exponential distribution: `{ exponential = { mean = "500 B", most = "1400 B" } }`. Sizes
    /// above `most` are cut to it, which lowers the mean; `rate` is based on the lower mean.
    Exponential(Exponential),
    /// Pareto distribution, with a few very large sizes:
    /// `{ pareto = { mean = "20 kB", shape = 1.2, most = "10 MB" } }`. `most` is as in
    /// `exponential`.
    Pareto(Pareto),
    /// Cumulative distribution: pairs of a size and the fraction of packets of at most this size,
    /// from 0 (or more) to 1. Sizes are evenly distributed between two points:
    /// `{ cdf = [["1 kB", 0], ["10 kB", 0.7], ["1 MB", 1]] }`.
    Cdf(Vec<(Size, f64)>),
}

/// An exponential distribution.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exponential {
    /// Mean before sizes are cut to `most`.
    pub mean: Size,
    /// Size to which larger ones are cut; the largest possible size of a packet if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Size>,
}

/// A Pareto distribution.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pareto {
    /// Mean before sizes are cut to `most`.
    pub mean: Size,
    /// Index of the tail, more than 1: a packet is at least `k` times as large as the smallest one
    /// with a probability of `k` to the power of minus `shape`. Below 2 the variance is infinite.
    #[serde(default = "usual")]
    pub shape: f64,
    /// Size to which larger ones are cut; the largest possible size of a packet if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Size>,
}

/// Crovella and Bestavros found 1.1 to 1.3 for files of the web (1997).
fn usual() -> f64 {
    1.2
}

impl From<u64> for Sizes {
    fn from(octets: u64) -> Self {
        Self::Constant(Size(octets))
    }
}

/// Bounds on sizes, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Smaller sizes are raised to this.
    pub least: u32,
    /// Larger sizes are cut to this.
    pub most: u32,
}

/// The reason why sizes are invalid, and a hint.
pub type Wrong = (String, Option<&'static str>);

impl Sizes {
    /// The size in bytes, if it is constant.
    pub fn constant(&self) -> Option<u64> {
        match self {
            Self::Constant(size) => Some(size.0),
            Self::Drawn(_) => None,
        }
    }

    /// Checks that sizes are within bounds, and narrows the bounds to the given values.
    pub fn check(&self, bounds: Bounds) -> Result<Law, Wrong> {
        let least = bounds.least;
        let within = |size: Size, what: &str| within(size, what, bounds);
        let cut = |mean: Size, most: Option<Size>| match most {
            Some(most) if most.0 < mean.0 => Err((
                format!("`most` is {most}, and `mean` {mean}"),
                Some("`most` cuts what is longer, of which there is little"),
            )),
            most => most.map_or(Ok(bounds.most), |most| within(most, "`most`")),
        };
        match self {
            Self::Constant(size) => {
                let octets = within(*size, "a packet")?;
                Ok(Law { shape: Shape::Constant, bounds: Bounds { least: octets, most: octets } })
            }
            Self::Drawn(Drawn::Exponential(Exponential { mean, most })) => {
                let bounds = Bounds { least, most: cut(*mean, *most)? };
                let mean = f64::from(within(*mean, "`mean`")?);
                Ok(Law { shape: Shape::Exponential { mean }, bounds })
            }
            Self::Drawn(Drawn::Pareto(Pareto { mean, shape, most })) => {
                if !PARETO_SHAPES.contains(shape) {
                    return Err((format!("`shape`: {NO_PARETO_SHAPE}"), Some("1.2 is usual for files")));
                }
                let bounds = Bounds { least, most: cut(*mean, *most)? };
                let shortest = pareto_least(f64::from(within(*mean, "`mean`")?), *shape);
                Ok(Law { shape: Shape::Pareto { shortest, shape: *shape }, bounds })
            }
            Self::Drawn(Drawn::Cdf(points)) => Ok(Law { shape: Shape::cdf(points, within)?, bounds }),
        }
    }
}

/// A checked distribution of sizes.
#[derive(Clone, PartialEq, Debug)]
pub struct Law {
    shape: Shape,
    bounds: Bounds,
}

#[derive(Clone, PartialEq, Debug)]
enum Shape {
    /// The size at which the bounds meet.
    Constant,
    Exponential {
        mean: f64,
    },
    Pareto {
        shortest: f64,
        shape: f64,
    },
    /// Bytes and fractions, both increasing, from a fraction of 0 to 1.
    Cdf(Vec<(f64, f64)>),
    /// The sizes of a file, in order.
    Listed(Arc<Schedule>),
}

impl Shape {
    fn cdf(points: &[(Size, f64)], within: impl Fn(Size, &str) -> Result<u32, Wrong>) -> Result<Self, Wrong> {
        let hint =
            Some("pairs of a size and a share, such as `[[\"1 kB\", 0], [\"10 kB\", 0.7], [\"1 MB\", 1]]`");
        let mut all = Vec::with_capacity(points.len() + 1);
        for (size, share) in points {
            let octets = f64::from(within(*size, "a size of `cdf`")?);
            if !(0.0..=1.0).contains(share) {
                return Err((format!("a share of `cdf` is {share}: expected 0 to 1"), hint));
            }
            // This fraction of packets has exactly this size.
            if all.is_empty() && *share > 0.0 {
                all.push((octets, 0.0));
            }
            let last = all.last().copied().unwrap_or((octets, *share));
            if octets < last.0 || *share < last.1 {
                return Err((format!("`cdf` goes down at [\"{size}\", {share}]"), hint));
            }
            all.push((octets, *share));
        }
        match all.last() {
            Some((_, share)) if *share == 1.0 => Ok(Self::Cdf(all)),
            Some((_, share)) => Err((format!("`cdf` ends at a share of {share}: expected 1"), hint)),
            None => Err(("`cdf` is empty".to_owned(), hint)),
        }
    }
}

/// Checks that a size is within bounds.
fn within(size: Size, what: &str, Bounds { least, most }: Bounds) -> Result<u32, Wrong> {
    match u32::try_from(size.0).ok() {
        Some(octets) if (least..=most).contains(&octets) => Ok(octets),
        _ => {
            let (least, most) = (Size(least.into()), Size(most.into()));
            Err((format!("{what} is {size}: expected {least}, for number and time, to {most}"), None))
        }
    }
}

impl Law {
    /// The sizes of a file.
    pub fn listed(schedule: &Arc<Schedule>, bounds: Bounds) -> Result<Self, Wrong> {
        let sizes = schedule.sizes().iter();
        let (least, most) =
            sizes.fold((u32::MAX, 0), |(least, most), size| (least.min(*size), most.max(*size)));
        for octets in [least, most] {
            within(Size(octets.into()), "a packet of the file", bounds)?;
        }
        Ok(Self { shape: Shape::Listed(Arc::clone(schedule)), bounds: Bounds { least, most } })
    }

    /// Largest size in bytes.
    pub fn most(&self) -> u32 {
        match &self.shape {
            Shape::Cdf(points) => points.last().map_or(0.0, |point| point.0) as u32,
            _ => self.bounds.most,
        }
    }

    /// The size in bytes, if it is constant; `None` for the sizes of a file.
    pub fn constant(&self) -> Option<u32> {
        let is_listed = matches!(self.shape, Shape::Listed(_));
        (self.bounds.least == self.bounds.most && !is_listed).then_some(self.bounds.most)
    }

    /// Mean size in bytes: the integral of the fraction of larger sizes, over all possible sizes.
    pub fn mean(&self) -> f64 {
        let (least, most) = (f64::from(self.bounds.least), f64::from(self.bounds.most));
        match &self.shape {
            Shape::Constant => most,
            Shape::Exponential { mean } => least + mean * (exp(-least / mean) - exp(-most / mean)),
            Shape::Pareto { shortest, shape } => {
                let from = least.max(*shortest).min(most);
                let tail = |x: f64| exp(shape * ln(shortest / x)) * x;
                from + (tail(from) - tail(most)) / (shape - 1.0)
            }
            Shape::Cdf(points) => {
                points.windows(2).map(|p| (p[1].1 - p[0].1) * (p[0].0 + p[1].0) / 2.0).sum()
            }
            Shape::Listed(schedule) => {
                let sizes = schedule.sizes();
                sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / sizes.len() as f64
            }
        }
    }

    /// Draws the next size in bytes. For a file it is the size in the given row.
    pub(crate) fn draw(&self, random: &mut Stream, row: usize) -> u32 {
        let drawn = match &self.shape {
            Shape::Constant => return self.bounds.most,
            Shape::Listed(schedule) => return schedule.octets(row),
            Shape::Exponential { mean } => mean * random.exponential(),
            Shape::Pareto { shortest, shape } => shortest * random.pareto(*shape),
            Shape::Cdf(points) => {
                let share = random.uniform();
                let above = points.partition_point(|point| point.1 <= share).clamp(1, points.len() - 1);
                let [(from, low), (to, high)] = [points[above - 1], points[above]];
                let part = if high > low { (share - low) / (high - low) } else { 1.0 };
                from + (to - from) * part
            }
        };
        // Rounded to the nearest integer, which preserves the mean.
        (drawn.min(f64::from(u32::MAX)).round() as u32).clamp(self.bounds.least, self.bounds.most)
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeOrTable;
        impl<'de> Visitor<'de> for SizeOrTable {
            type Value = Sizes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a size such as \"129 kB\", or a table such as `{ exponential = { mean = \"500 B\" } }`",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Sizes, E> {
                Size::deserialize(StrDeserializer::new(text)).map(Sizes::Constant)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sizes, A::Error> {
                let drawn = Drawn::deserialize(MapAccessDeserializer::new(&mut map))?;
                match map.next_key::<String>()? {
                    None => Ok(Sizes::Drawn(drawn)),
                    Some(key) => {
                        Err(A::Error::custom(format!("expected one distribution, found also `{key}`")))
                    }
                }
            }
        }
        deserializer.deserialize_any(SizeOrTable)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Sizes {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sizes".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let size = generator.subschema_for::<Size>();
        let drawn = generator.subschema_for::<Drawn>();
        schemars::json_schema!({ "anyOf": [size, drawn] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(text: &str) -> Result<Law, String> {
        #[derive(Deserialize)]
        struct Table {
            payload: Sizes,
        }
        let table: Table =
            toml::from_str(&format!("payload = {text}")).map_err(|e| e.message().to_owned())?;
        table.payload.check(Bounds { least: 12, most: 1_000_000 }).map_err(|(message, _)| message)
    }

    /// (value, mean, a size, the fraction of larger ones)
    #[test]
    fn sizes_have_their_mean_and_tail() {
        let e = |x: f64| x.exp();
        for (text, mean, size, longer) in [
            ("\"500 B\"", 500.0, 499.0, 1.0),
            ("{ exponential = { mean = \"5 kB\" } }", 5000.0, 10_000.0, e(-2.0)),
            (
                "{ exponential = { mean = \"5 kB\", most = \"5 kB\" } }",
                5000.0 * (1.0 - e(-1.0)),
                2500.0,
                e(-0.5),
            ),
            ("{ pareto = { mean = \"20 kB\", shape = 2.5 } }", 20_000.0, 24_000.0, 2.0_f64.powf(-2.5)),
            // The smallest size is 2 kB: 2 kB plus the integral of (2 kB / x)^1.25 to 32 kB.
            (
                "{ pareto = { mean = \"10 kB\", shape = 1.25, most = \"32 kB\" } }",
                6000.0,
                4000.0,
                2.0_f64.powf(-1.25),
            ),
            (
                "{ cdf = [[\"1 kB\", 0], [\"10 kB\", 0.7], [\"100 kB\", 1]] }",
                0.7 * 5500.0 + 0.3 * 55_000.0,
                55_000.0,
                0.15,
            ),
            ("{ cdf = [[\"1 kB\", 0.5], [\"1 MB\", 0.5], [\"1 MB\", 1]] }", 500_500.0, 1001.0, 0.5),
        ] {
            let law = law(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let mut random = Stream::new(1, 0, "test", "sizes");
            let drawn: Vec<u32> = (0..200_000).map(|_| law.draw(&mut random, 0)).collect();
            assert!((law.mean() / mean - 1.0).abs() < 0.003, "{text}: {} instead of {mean}", law.mean());
            let found = drawn.iter().copied().map(f64::from).sum::<f64>() / drawn.len() as f64;
            assert!((found / mean - 1.0).abs() < 0.02, "{text}: {found} instead of {mean}");
            let beyond = drawn.iter().filter(|n| f64::from(**n) > size).count() as f64 / drawn.len() as f64;
            assert!((beyond / longer - 1.0).abs() < 0.02, "{text}: {beyond} instead of {longer}");
            assert!(drawn.iter().all(|n| (12..=law.most()).contains(n)), "{text}");
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (text, reason) in [
            ("\"11 B\"", "expected 12 B"),
            ("\"2 MB\"", "to 1 MB"),
            ("500", "expected a size such as"),
            ("{ exponential = { mean = \"0 B\" } }", "`mean` is 0 B"),
            ("{ exponential = { mean = \"1 kB\", most = \"2 MB\" } }", "`most` is 2 MB"),
            ("{ exponential = { median = \"1 kB\" } }", "median"),
            ("{ pareto = { mean = \"1 kB\", shape = 1 } }", "1.01 to 100"),
            ("{ pareto = { mean = \"1 kB\", shape = nan } }", "1.01 to 100"),
            ("{ cdf = [] }", "empty"),
            ("{ cdf = [[\"1 kB\", 0.5]] }", "ends at a share of 0.5"),
            ("{ cdf = [[\"1 kB\", 0.5], [\"1 kB\", 0.4], [\"2 kB\", 1]] }", "goes down"),
            ("{ cdf = [[\"2 kB\", 0.5], [\"1 kB\", 1]] }", "goes down"),
            ("{ cdf = [[\"2 kB\", 1.5]] }", "0 to 1"),
            ("{ cdf = [[\"2 kB\", nan]] }", "0 to 1"),
            ("{ normal = { mean = \"1 kB\" } }", "normal"),
            ("{ exponential = { mean = \"1 kB\" }, pareto = { mean = \"1 kB\" } }", "found also `pareto`"),
            ("{ pareto = { mean = \"2 kB\", most = \"1 kB\" } }", "`most` is 1 kB, and `mean` 2 kB"),
            ("{ exponential = { mean = \"2 kB\", most = \"1 kB\" } }", "`most` is 1 kB, and `mean` 2 kB"),
        ] {
            let error = law(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
