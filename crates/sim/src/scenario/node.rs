//! What a node is, and where.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// An end system: it passes nothing on.
    #[default]
    Host,
    /// It passes packets on.
    Router,
    /// It joins the low-power network to the Internet: passes packets on, and can relay SET
    /// sessions.
    Gateway,
    /// A node of the low-power network; passes packets on.
    Node,
}

/// Two numbers. An array of serde's would take more, and leave out what comes after the second.
pub(super) fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 2], D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let count = numbers.len();
    numbers.try_into().map_err(|_| {
        serde::de::Error::custom(format_args!("expected two numbers, metres east and north, found {count}"))
    })
}

/// Several places.
pub(super) fn places<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<[f64; 2]>, D::Error> {
    #[derive(Deserialize)]
    struct Place(#[serde(deserialize_with = "place")] [f64; 2]);
    Ok(Vec::<Place>::deserialize(deserializer)?.into_iter().map(|Place(place)| place).collect())
}

pub(super) fn some_place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 2]>, D::Error> {
    place(deserializer).map(Some)
}
