//! Mobility of nodes: the keys of a scenario file, and the motion that they describe.

use std::fmt;
use std::sync::Arc;

use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::units::{Length, Span, Speed};
use anabranch_sim::air::motion::{Motion, Mover};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::Position;
use anabranch_sim::random::Stream;

/// Mobility of nodes on the channel. A node with a `place` or `position` starts there. Other nodes
/// start in the stationary distribution of their model, as if they had always moved. The motion of
/// a node depends only on the seed, the run and its name.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MobilityName {
    /// Random waypoint: moves to a uniformly random point of a rectangle, pauses, and moves to the
    /// next.
    RandomWaypoint {
        /// Width of the rectangle, at least 1 m.
        width: Length,
        /// Height of the rectangle, at least 1 m.
        height: Length,
        /// South-west corner of the rectangle.
        #[serde(default, deserialize_with = "super::node::place")]
        corner: [f64; 2],
        /// Lowest and highest speed, up to 10,000 m/s; the speed of each trip is uniformly
        /// distributed between them. A lowest speed of 0 needs nodes with a place: there is no
        /// stationary distribution, since the mean speed falls as the run goes on.
        #[serde(deserialize_with = "two_speeds")]
        speed: [Speed; 2],
        /// Time that a node rests at each point.
        #[serde(default = "at_once")]
        pause: Span,
    },
    /// Gauss-Markov: speed and direction change gradually from step to step (Liang and Haas 1999),
    /// and turn away from the edges of a rectangle (Camp, Boleng and Davies 2002).
    GaussMarkov {
        /// Width of the rectangle, at least 1 m.
        width: Length,
        /// Height of the rectangle, at least 1 m.
        height: Length,
        /// South-west corner of the rectangle.
        #[serde(default, deserialize_with = "super::node::place")]
        corner: [f64; 2],
        /// Mean speed, more than 0 and at most 10,000 m/s.
        speed: Speed,
        /// Standard deviation of the speed, at most 10,000 m/s.
        deviation: Speed,
        /// Standard deviation of the direction, in degrees, 0 to 180.
        #[serde(default = "half_a_right_angle")]
        turn_deg: f64,
        /// Correlation of speed and direction between two steps, 0 to 1.
        memory: f64,
        /// Time between two steps, at least 1 ms.
        #[serde(default = "one_second")]
        interval: Span,
    },
    /// Movement file of ns-2, relative to the scenario: `setdest = "FILE"`. The nodes of
    /// `[[nodes]]` follow the file's nodes from 0 on; a `[[node]]` follows the file's node 0.
    /// `setdest = { file = "FILE", node = 5 }` counts from node 5.
    Setdest(SetdestName),
}

/// A movement file, and the number of the first node in it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    deny_unknown_fields,
    untagged,
    expecting = "expected the name of a movement file, or a table with `file` and `node`"
)]
pub enum SetdestName {
    /// From node 0 of the file.
    File(String),
    /// From the given node of the file.
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

/// Reads exactly two speeds. serde's implementation for arrays would ignore further elements.
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
    /// The mobility of the node that is `k` places after the first of its group.
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
    /// The name of the file, and the number of the node in it.
    pub(super) fn of(&self) -> (&str, u32) {
        match self {
            Self::File(file) => (file, 0),
            Self::Node { file, node } => (file, *node),
        }
    }
}

/// A moving node.
#[derive(Clone, PartialEq)]
pub struct MobileSpec {
    /// The node.
    pub node: NodeId,
    /// Name of the node, which also names its random stream.
    pub name: Arc<str>,
    /// Its motion.
    pub motion: Motion,
    /// Whether it starts at its given position, not where its motion model starts.
    pub placed: bool,
}

/// Omits the motion: a trace may be long, and every node has one.
impl fmt::Debug for MobileSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MobileSpec")
            .field("node", &self.node)
            .field("placed", &self.placed)
            .finish_non_exhaustive()
    }
}

impl MobileSpec {
    /// The node in motion from the beginning of a run; `start` is its given position.
    pub fn mover(&self, start: Option<Position>, seed: u64, run: u64) -> Mover {
        let random = Stream::new(seed, run, &format!("node {}", self.name), "mobility");
        Mover::new(&self.motion, start.filter(|_| self.placed), random)
    }
}
