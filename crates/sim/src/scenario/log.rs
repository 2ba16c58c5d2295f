//! What an event log says of a scenario.

use super::{NodeKind, Scenario};
use crate::events::{NodeFacts, Run};
use crate::packet::NodeId;

impl Scenario {
    /// The head of the event log of a run.
    pub fn log_head(&self, seed: u64, run: u64) -> Run {
        // A run that cannot be placed has no log.
        let places = self.draw(seed, run).unwrap_or_default().places;
        let node = |(i, node): (usize, &super::NodeSpec)| {
            let place = places.iter().find(|(on_air, _)| *on_air == NodeId(i as u32));
            let kind = match node.kind {
                NodeKind::Host => "host",
                NodeKind::Router => "router",
                NodeKind::Gateway => "gateway",
                NodeKind::Node => "node",
            };
            NodeFacts { kind: kind.to_owned(), position: place.map(|(_, position)| (position.x, position.y)) }
        };
        Run {
            name: self.name.clone(),
            hash: self.hash(),
            seed,
            run,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            nodes: self.nodes.iter().enumerate().map(node).collect(),
        }
    }
}
