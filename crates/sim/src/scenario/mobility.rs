//! How nodes move: what a scenario file says, and what it means.

use std::fmt;
use std::sync::Arc;

use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::units::{Length, Span, Speed};
use crate::air::motion::{Motion, Mover};
use crate::packet::NodeId;
use crate::radio::Position;
use crate::random::Stream;

/// How nodes move, which are on the air. A node with a place, by `place` or `position`, starts
/// there; the others start as if they had moved for ever: by the stationary distribution of their
/// model. Where each is depends on seed, run and its name alone.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MobilityName {
    /// To a place drawn evenly in a rectangle, and after a pause to the next.
    RandomWaypoint {
        /// Width of the rectangle, at least 1 m.
        width: Length,
        /// Height of the rectangle, at least 1 m.
        height: Length,
        /// Its south-west corner.
        #[serde(default, deserialize_with = "super::node::place")]
        corner: [f64; 2],
        /// Least and greatest speed; each way has one drawn evenly between them. A least speed of 0
        /// is for nodes with a place: the longer a run, the slower they are.
        #[serde(deserialize_with = "two_speeds")]
        speed: [Speed; 2],
        /// How long a node stays where it has arrived.
        #[serde(default = "at_once")]
        pause: Span,
    },
    /// At a speed and in a direction that change little from step to step (Liang and Haas 1999),
    /// away from the edges of a rectangle (Camp, Boleng and Davies 2002).
    GaussMarkov {
        /// Width of the rectangle, at least 1 m.
        width: Length,
        /// Height of the rectangle, at least 1 m.
        height: Length,
        /// Its south-west corner.
        #[serde(default, deserialize_with = "super::node::place")]
        corner: [f64; 2],
        /// Mean speed.
        speed: Speed,
        /// Standard deviation of the speed.
        deviation: Speed,
        /// Standard deviation of the direction, in degrees, 0 to 180.
        #[serde(default = "half_a_right_angle")]
        turn_deg: f64,
        /// How much of speed and direction stays from step to step: 0 to 1.
        memory: f64,
        /// From step to step, 1 ms or more.
        #[serde(default = "one_second")]
        interval: Span,
    },
    /// As a movement file of ns-2 has it, relative to the scenario: `setdest = "FILE"`. Nodes of
    /// `[[nodes]]` are the file's nodes from 0 on, a `[[node]]` is the file's node 0;
    /// `setdest = { file = "FILE", node = 5 }` counts from another.
    Setdest(SetdestName),
}

/// A movement file, and from which of its nodes on.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    deny_unknown_fields,
    untagged,
    expecting = "expected the name of a movement file, or a table with `file` and `node`"
)]
pub enum SetdestName {
    /// Its node 0.
    File(String),
    /// That node.
    Node {
        /// Name of the file, relative to the scenario.
        file: String,
        /// Number of the node in the file.
        node: u32,
    },
}

fn at_once() -> Span {
    Span(Duration::ZERO)
}

fn one_second() -> Span {
    Span(Duration::from_secs(1))
}

fn half_a_right_angle() -> f64 {
    45.0
}

/// An array of serde's would leave out what comes after the second.
fn two_speeds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[Speed; 2], D::Error> {
    let speeds = Vec::<Speed>::deserialize(deserializer)?;
    let count = speeds.len();
    speeds.try_into().map_err(|_| {
        serde::de::Error::custom(format_args!(
            "expected two speeds, the least and the greatest, found {count}"
        ))
    })
}

impl MobilityName {
    /// The same for the node that comes `k` places after the first of its group.
    pub(super) fn of_member(&self, k: u32) -> Self {
        match self {
            Self::Setdest(name) => {
                let (file, node) = name.of();
                Self::Setdest(SetdestName::Node { file: file.to_owned(), node: node.saturating_add(k) })
            }
            other => other.clone(),
        }
    }
}

impl SetdestName {
    /// The file, and the number of the node in it.
    pub(super) fn of(&self) -> (&str, u32) {
        match self {
            Self::File(file) => (file, 0),
            Self::Node { file, node } => (file, *node),
        }
    }
}

/// A node that moves.
#[derive(Clone, PartialEq)]
pub struct MobileSpec {
    /// Which.
    pub node: NodeId,
    /// Its name, which its random stream bears.
    pub name: Arc<str>,
    /// How it moves.
    pub motion: Motion,
    /// It starts where it was placed, and not where its motion has it.
    pub placed: bool,
}

/// A trace may be long, and all nodes have one.
impl fmt::Debug for MobileSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MobileSpec")
            .field("node", &self.node)
            .field("placed", &self.placed)
            .finish_non_exhaustive()
    }
}

impl MobileSpec {
    /// The node on its way, from the beginning of a run; `start` is where it was placed.
    pub fn mover(&self, start: Option<Position>, seed: u64, run: u64) -> Mover {
        let random = Stream::new(seed, run, &format!("node {}", self.name), "mobility");
        Mover::new(&self.motion, start.filter(|_| self.placed), random)
    }
}
