//! The head of an event log: nodes and links of the scenario.

use super::radio::Channel;
use super::record::is_striped;
use super::{NodeKind, Scenario};
use anabranch_sim::events::{NodeFacts, Run};
use anabranch_sim::packet::NodeId;

impl Scenario {
    /// The head of the event log of one run.
    pub fn log_head(&self, seed: u64, run: u64) -> Run {
        // A run that cannot be placed fails and has no log, so an empty placement is harmless here.
        let drawn = self.draw(seed, run).unwrap_or_default();
        let (places, mut movers) = (&drawn.places, self.movers(&drawn, seed, run));
        let mut node = |(i, node): (usize, &super::NodeSpec)| {
            let place = places.iter().find(|(on_air, _)| *on_air == NodeId(i as u32));
            let kind = match node.kind {
                NodeKind::Host => "host",
                NodeKind::Router => "router",
                NodeKind::Gateway => "gateway",
                NodeKind::Node => "node",
            };
            let position = place.map(|(_, position)| (position.x, position.y));
            let at = movers.iter().position(|(mobile, _)| *mobile == NodeId(i as u32));
            let mover = at.map(|at| movers.swap_remove(at).1);
            NodeFacts { kind: kind.to_owned(), position, mover }
        };
        let sleeps = self.radio.as_ref().is_some_and(|radio| match radio.channel {
            Channel::Ieee802154(config, _) => config.csl.is_some(),
            Channel::Ieee80211(_) => false,
        });
        Run {
            name: self.name.clone(),
            hash: self.hash(),
            seed,
            run,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            nodes: self.nodes.iter().enumerate().map(&mut node).collect(),
            sleeps,
            phases: self.transfers.iter().any(is_striped),
        }
    }
}
