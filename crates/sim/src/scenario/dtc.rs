//! What a scenario file says of nodes that cache TCP segments for others (distributed TCP caching).

use anabranch_core::dtc::{Chance, Config, Displacement, DuplicateAcks, FlyingStart, Ratio};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::{Probability, Span};

/// How a node caches. Whatever is not given is as the algorithm has it.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DtcProfile {
    /// The paper's algorithm, or ours.
    pub algorithm: Algorithm,
    /// Segments that the node can cache, over all its connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_segments: Option<u32>,
    /// Chance that a segment displaces one that is not locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_probability: Option<Probability>,
    /// Hop-by-hop reliable SYN with a first measurement of the round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flying_start: Option<bool>,
    /// Whether an acknowledgement without SACK that asks for the cached segment is answered by it
    /// (action 3.2 of the paper, which its authors would leave out).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_acks: Option<bool>,
    /// Whether a segment may displace a locked one: `never`, or one of the same connection with a
    /// lower sequence number (erratum D14).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub displacement: Option<DisplacementName>,
    /// The local retransmission time-out in smoothed local round trips, 0.1 to 60 (erratum D16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_rto: Option<f64>,
    /// How many local round trips must have passed since a segment was sent before actions 3.2 and
    /// 3.3 repeat it, 0 to 60 (erratum D11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<f64>,
    /// Connections whose state is kept, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// A connection that was silent for so long is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
}

/// What may displace a locked segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DisplacementName {
    /// Nothing.
    Never,
    /// A segment of the same connection with a lower sequence number.
    ByLower,
}

/// Which algorithm a caching node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Section IV of the paper.
    Paper,
    /// Custody from hop to hop.
    #[default]
    Improved,
}

impl DtcProfile {
    /// The options, or the key at fault and what is wrong with it.
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
        // In thousandths, so that a Ratio can hold it.
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
