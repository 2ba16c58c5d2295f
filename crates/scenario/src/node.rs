//! Role and position of a node.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Role of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// End system: it does not forward packets.
    #[default]
    Host,
    /// Forwards packets.
    Router,
    /// Connects the low-power network to the Internet: forwards packets, and can relay SET
    /// sessions.
    Gateway,
    /// Node of the low-power network: forwards packets.
    Node,
}

/// Reads exactly two numbers. serde's implementation for arrays would ignore further elements.
pub(super) fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 2], D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let count = numbers.len();
    numbers.try_into().map_err(|_| {
        serde::de::Error::custom(format_args!("expected two numbers, metres east and north, found {count}"))
    })
}

/// Reads a list of positions.
pub(super) fn places<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<[f64; 2]>, D::Error> {
    #[derive(Deserialize)]
    struct Place(#[serde(deserialize_with = "place")] [f64; 2]);
    Ok(Vec::<Place>::deserialize(deserializer)?.into_iter().map(|Place(place)| place).collect())
}

pub(super) fn some_place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 2]>, D::Error> {
    place(deserializer).map(Some)
}
