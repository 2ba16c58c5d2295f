//! The `[dtc.NAME]` section: nodes that cache TCP segments for other nodes (distributed TCP
//! caching).

use anabranch_core::dtc::{Chance, Config, Displacement, DuplicateAcks, FlyingStart, Ratio};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::{Probability, Span};

/// Options of a caching node. The algorithm provides the keys that are not given.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DtcProfile {
    /// Caching algorithm.
    pub algorithm: Algorithm,
    /// Number of segments that the node can cache, over all connections, 0 to 65,535.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_segments: Option<u32>,
    /// Probability that a new segment replaces one that is not locked, rounded to thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_probability: Option<Probability>,
    /// Hop-by-hop reliable SYN, which also gives a first measurement of the round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flying_start: Option<bool>,
    /// Whether the node answers an acknowledgement without SACK that asks for the cached segment
    /// with that segment (action 3.2 of the paper, which its authors would leave out).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_acks: Option<bool>,
    /// Replacement of a locked segment: "never", or "by-lower" for a segment of the same connection
    /// with a lower sequence number (erratum D14).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub displacement: Option<DisplacementName>,
    /// Local retransmission time-out in smoothed local round trips, 0.1 to 60 (erratum D16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_rto: Option<f64>,
    /// Least age of a transmission, in local round trips, before actions 3.2 and 3.3 repeat the
    /// segment, 0 to 60 (erratum D11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<f64>,
    /// Number of connections whose state is kept, 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Silence after which a connection is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
}

/// Condition under which a segment may replace a locked one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DisplacementName {
    /// A locked segment is never replaced.
    Never,
    /// A segment of the same connection with a lower sequence number may replace it.
    ByLower,
}

/// Algorithm of a caching node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The algorithm of section IV of the paper.
    Paper,
    /// Custody: each hop takes over the responsibility for a segment from the one before.
    #[default]
    Improved,
}

impl DtcProfile {
    /// The options of the core. An error is the key at fault and the reason.
    pub(super) fn config(&self) -> Result<Config, (&'static str, String)> {
        let base = match self.algorithm {
            Algorithm::Paper => Config::paper(),
            Algorithm::Improved => Config::improved(),
        };
        let count =
            |key, value: Option<u32>, default: usize, range: std::ops::RangeInclusive<u32>| match value {
                None => Ok(default),
                Some(value) if range.contains(&value) => Ok(value as usize),
                Some(value) => {
                    Err((key, format!("expected {} to {}, found {value}", range.start(), range.end())))
                }
            };
        // In thousandths, since a `Ratio` holds integers.
        let factor = |key, value: Option<f64>, default: Ratio, least: f64| match value {
            None => Ok(default),
            Some(value) if (least..=60.0).contains(&value) => {
                Ok(Ratio { num: (value * 1000.0).round() as u16, den: 1000 })
            }
            Some(value) => Err((key, format!("expected {least} to 60, found {value}"))),
        };
        let chance = |p: Probability| Chance::per_mille((p.0 * 1000.0).round() as u32);
        Ok(Config {
            cache_segments: count("cache_segments", self.cache_segments, base.cache_segments, 0..=65_535)?,
            cache_chance: self.cache_probability.map_or(base.cache_chance, chance),
            flying_start: match self.flying_start {
                None => base.flying_start,
                Some(true) => FlyingStart::On,
                Some(false) => FlyingStart::Off,
            },
            duplicate_acks: match self.duplicate_acks {
                None => base.duplicate_acks,
                Some(true) => DuplicateAcks::Repeat,
                Some(false) => DuplicateAcks::Ignore,
            },
            displacement: match self.displacement {
                None => base.displacement,
                Some(DisplacementName::Never) => Displacement::Never,
                Some(DisplacementName::ByLower) => Displacement::ByLower,
            },
            local_rto: factor("local_rto", self.local_rto, base.local_rto, 0.1)?,
            guard: factor("guard", self.guard, base.guard, 0.0)?,
            connections: count("connections", self.connections, base.connections, 1..=1_000_000)?,
            idle: self.idle.map_or(base.idle, |span| span.0),
            ..base
        })
    }
}
