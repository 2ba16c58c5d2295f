//! Energy of radios by state.

use anabranch_core::time::Instant;

use super::{Figure, Measure};
use crate::packet::NodeId;
use crate::radio::{EnergyUse, Radio, RadioState};
use crate::world::World;

/// Energy of the radios of some nodes: the total in each state, and optionally that of each node.
#[derive(Debug)]
pub struct Energy {
    nodes: Vec<NodeId>,
    /// Whether there are results for each node.
    singly: bool,
    before: Vec<EnergyUse>,
    /// Set when the window has ended.
    after: Option<Vec<EnergyUse>>,
}

impl Energy {
    /// Measures these nodes; a node without a radio uses no energy. `singly` adds results for each
    /// node, which should be the same nodes in every run.
    pub fn of(nodes: Vec<NodeId>, singly: bool) -> Self {
        Self { before: vec![EnergyUse::default(); nodes.len()], after: None, nodes, singly }
    }

    fn now(&self, now: Instant, world: &World) -> Vec<EnergyUse> {
        let used = |node: &NodeId| world.network.energy_use(now, *node).unwrap_or_default();
        self.nodes.iter().map(used).collect()
    }
}

impl Measure for Energy {
    fn begin(&mut self, now: Instant, world: &mut World) {
        self.before = self.now(now, world);
    }

    fn end(&mut self, now: Instant, world: &mut World) {
        self.after = Some(self.now(now, world));
    }

    fn figures(&self, now: Instant, world: &World) -> Vec<Figure> {
        let after = self.after.clone().unwrap_or_else(|| self.now(now, world));
        let used: Vec<EnergyUse> =
            after.iter().zip(&self.before).map(|(after, before)| after.since(before)).collect();
        let mut all = EnergyUse::default();
        used.iter().for_each(|used| all += *used);
        let mut figures = vec![Figure::new("energy_j", all.energy_j(), "J")];
        let sleeps = world.network.radio().is_some_and(Radio::has_sleepers);
        let states = RadioState::ALL.into_iter().enumerate();
        for (i, state) in states.filter(|(_, state)| sleeps || *state != RadioState::Sleep) {
            figures.push(Figure::new(format!("{}_j", state.name()), all.joules[i], "J"));
            figures.push(Figure::new(format!("{}_s", state.name()), all.seconds[i], "s"));
        }
        for (node, used) in self.nodes.iter().zip(&used).filter(|_| self.singly) {
            let name = world.network.node_name(*node);
            figures.push(Figure::new(format!("{name}.energy_j"), used.energy_j(), "J"));
        }
        figures
    }
}
