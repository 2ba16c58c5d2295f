//! Probes: unicast DIOs that measure the ETX of links without data traffic.

use super::etx::ONE;
use super::own_path::OwnPath;
use super::{Output, Router, ShortAddress};
use crate::time::Instant;

impl Router {
    /// Starts probing when the node has a path.
    pub(super) fn begin_probes(&mut self, now: Instant, random: u32) {
        if self.probe.is_none() {
            self.schedule_probe(now, true, random);
        }
    }

    fn schedule_probe(&mut self, now: Instant, soon: bool, random: u32) {
        let interval = self.config.probe_interval;
        if interval.is_zero() || !self.config.objective.uses_etx() {
            return;
        }
        let wait = if soon { interval / 8 } else { interval };
        self.probe = Some(now + wait / 2 + wait.mul_ratio(u64::from(random), 1 << 32));
    }

    /// Sends a DIO over the link that most needs a measurement.
    pub(super) fn send_probe(&mut self, now: Instant, random: u32) {
        self.probe = None;
        if self.offers.paths().is_empty() {
            return;
        }
        let target = self.probe_target(now);
        if let (Some((to, _)), Some(dio)) = (target, self.dios().into_iter().next()) {
            self.neighbours.entry(to).used = now;
            self.counters.probes += 1;
            self.output.push_back(Output::DioTo { to, dio });
        }
        self.schedule_probe(now, target.is_some_and(|(_, urgent)| urgent), random);
    }

    /// Returns the neighbour to probe, and whether the next probe should follow soon. Candidates
    /// are parents, and neighbours that would be parents if their link were perfect. A link needs a
    /// probe if it is not measured yet, if it fails, or if it was unused for an interval.
    fn probe_target(&self, now: Instant) -> Option<(ShortAddress, bool)> {
        let config = &self.config;
        let own = self.offers.paths();
        let own_rank = config.dag_rank(self.offers.rank()?);
        let cost = |rank, etx, link| config.objective.cost(config, rank, etx, link);
        let present = |path: &OwnPath| {
            cost(path.parent_rank, path.beyond_etx, path.first_hop().map_or(0, |n| self.neighbours.etx(n)))
        };
        let preferred = own.first().map(present)?;
        // The parent of a path other than the preferred one must rank below the node.
        let beside = if own.len() < usize::from(self.config.max_paths) {
            Some(u32::MAX)
        } else {
            own.iter().skip(1).map(present).max()
        };
        let useful = |neighbour, rank, etx| {
            let best = cost(rank, etx, ONE);
            own.iter().any(|p| p.first_hop() == Some(neighbour))
                || best < preferred
                || config.dag_rank(rank) < own_rank && beside.is_some_and(|worst| best < worst)
        };
        let state = |neighbour| {
            let known = self.neighbours.get(neighbour);
            let urgent = known.is_none_or(|n| n.estimate.is_urgent());
            (urgent, known.map_or(Instant::ZERO, |n| n.used), known.is_some_and(|n| n.reliable))
        };
        let offered = self.candidates.iter().filter(|c| useful(c.neighbour(), c.rank, c.etx));
        let waiting = offered.filter_map(|c| {
            let (urgent, used, reliable) = state(c.neighbour());
            let idle = now.saturating_since(used);
            let due = urgent || idle >= self.config.probe_interval;
            (due && !reliable).then_some((!urgent, used, c.etx, c.neighbour()))
        });
        waiting.min().map(|(settled, _, _, neighbour)| (neighbour, !settled))
    }
}
