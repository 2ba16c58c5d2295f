//! Paths offered by neighbours, and the choice among them by an objective function over the ETX.

use alloc::vec::Vec;

use super::Config;
use super::etx::{Neighbours, ONE};
use super::message::{Dio, Metrics, Path, ShortAddress, leads_over};
use super::objective::{MAX_LINK_METRIC, MAX_PATH_COST, Objective};
use super::own_path::OwnPath;
use crate::time::{Duration, Instant};

/// Largest number of stored offers.
const ROOM: usize = 64;
/// A neighbour announces all its paths together. A path missing from this number of consecutive
/// announcements no longer exists.
const MISSED: u8 = 3;
/// Time within which a neighbour announces all its paths.
const ROUND: Duration = Duration::from_secs(4);

/// A path offered by a neighbour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    /// The nodes of the path, the neighbour first.
    pub(super) path: Path,
    /// The neighbour's rank.
    pub(super) rank: u16,
    pub(super) multi_link: u8,
    pub(super) metrics: Option<Metrics>,
    /// ETX from the neighbour on.
    pub(super) etx: u16,
    heard: Instant,
    missed: u8,
}

impl Candidate {
    pub(super) fn neighbour(&self) -> ShortAddress {
        self.path.first().copied().unwrap_or_default()
    }

    /// Whether one of the node's own paths uses the offer.
    fn is_used(&self, own: &[OwnPath]) -> bool {
        own.iter().any(|path| path.rests_on(&self.path))
    }
}

/// An offer that qualifies for a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Judged {
    /// Index of the offer.
    pub(super) at: usize,
    /// The node's rank over the offer.
    pub(super) rank: u16,
    /// Whether the first link is worse than MAX_LINK_METRIC.
    over: bool,
    cost: u32,
    /// Whether one of the node's own paths uses the offer.
    used: bool,
}

/// All offers.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
}

impl Candidates {
    pub(super) fn get(&self, at: usize) -> &Candidate {
        &self.all[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.all.iter()
    }

    /// Stores a path announced by a neighbour that the node can use.
    pub(super) fn hear(&mut self, now: Instant, dio: &Dio, own: &[OwnPath]) {
        // RFC 6719 section 3.5: without a metric, the rank is used instead.
        let etx = dio.etx.unwrap_or(dio.rank);
        let heard = |path| Candidate {
            path,
            rank: dio.rank,
            multi_link: dio.multi_link,
            metrics: dio.metrics,
            etx,
            heard: now,
            missed: 0,
        };
        match self.all.iter_mut().find(|c| c.path == dio.path) {
            Some(known) => *known = heard(core::mem::take(&mut known.path)),
            None => {
                if self.all.len() >= ROOM {
                    let unused = (0..self.all.len()).filter(|&at| !self.all[at].is_used(own));
                    let worst = unused.max_by_key(|&at| self.all[at].etx);
                    match worst.filter(|&at| self.all[at].etx > etx) {
                        Some(at) => drop(self.all.swap_remove(at)),
                        None => return,
                    }
                }
                self.all.push(heard(dio.path.clone()));
            }
        }
    }

    /// Sets the rank of a neighbour from a DIO for any of its paths. Deletes its offers that are
    /// missing from its announcements to all. An offer used by one of the node's own paths stays
    /// until it is withdrawn, because the nodes on it have stored that path.
    pub(super) fn set_rank(&mut self, now: Instant, dio: &Dio, to_all: bool, own: &[OwnPath]) {
        for known in self.all.iter_mut().filter(|c| c.path.first() == dio.path.first()) {
            known.rank = dio.rank;
            if to_all && now.saturating_since(known.heard) >= ROUND {
                known.missed = known.missed.saturating_add(1);
                known.heard = now;
            }
        }
        self.all.retain(|c| c.missed < MISSED || c.is_used(own));
    }

    /// Deletes offers after a node has withdrawn one of its links, or itself: see [`Dio`].
    pub(super) fn withdraw(&mut self, link: &[ShortAddress]) {
        self.all.retain(|c| !leads_over(&c.path, link));
    }

    /// Deletes the offers of a lost neighbour.
    pub(super) fn lose(&mut self, neighbour: ShortAddress) {
        self.all.retain(|c| c.neighbour() != neighbour);
    }

    /// Deletes an offer that did not work.
    pub(super) fn forget(&mut self, path: &[ShortAddress]) {
        self.all.retain(|c| c.path != path);
    }

    /// Deletes all offers.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns the offers for the node's own paths. The first is that of the preferred parent,
    /// which RFC 6719 section 3.2.2 keeps unless another is better by the threshold. Further ones
    /// come from neighbours that rank below the node. Until the node has announced itself, any
    /// better offer replaces the preferred one: several neighbours answer a DIS, and otherwise a
    /// node that received a detour first would keep it.
    pub(super) fn choose(
        &self,
        config: &Config,
        neighbours: &Neighbours,
        own: &[OwnPath],
        (limit, announced): (u16, bool),
    ) -> Vec<Judged> {
        let objective = config.objective;
        let judge = |(at, offer): (usize, &Candidate)| {
            let link = neighbours.etx(offer.neighbour());
            let rank = objective.rank(config, offer.rank, offer.etx, link);
            let cost = objective.cost(config, offer.rank, offer.etx, link);
            let judged = Judged { at, rank, cost, over: link > MAX_LINK_METRIC, used: offer.is_used(own) };
            let affordable = objective != Objective::Mrhof || cost <= MAX_PATH_COST;
            (affordable && rank <= limit).then_some(judged)
        };
        let mut rest: Vec<Judged> = self.all.iter().enumerate().filter_map(judge).collect();
        let hysteresis = objective.hysteresis(config);
        let threshold = if announced { hysteresis } else { 1 };
        let Some(preferred) = self.preferred(&rest, own, threshold) else { return Vec::new() };
        let mut chosen = Vec::from([preferred]);
        // The parent of an existing path may also have an equal DAGRank. Otherwise an ETX that
        // varies would end the path and restore it repeatedly.
        let fits = |judged: &Judged| {
            let (parent, node) = (config.dag_rank(self.all[judged.at].rank), config.dag_rank(preferred.rank));
            parent < node && !judged.over || announced && judged.used && parent == node
        };
        rest.retain(|judged| judged.at != preferred.at && fits(judged));
        while chosen.len() < usize::from(config.max_paths) {
            let key = |judged: &Judged| {
                let neighbour = self.all[judged.at].neighbour();
                let shared = chosen.iter().any(|c| self.all[c.at].neighbour() == neighbour);
                let malus = if shared { u32::from(ONE) } else { 0 };
                (judged.cost + malus + if judged.used { 0 } else { hysteresis }, judged.at)
            };
            let Some(next) = (0..rest.len()).min_by_key(|&i| key(&rest[i])) else { break };
            let next = rest.swap_remove(next);
            chosen.push(next);
        }
        chosen
    }

    fn preferred(&self, judged: &[Judged], own: &[OwnPath], hysteresis: u32) -> Option<Judged> {
        let best = judged.iter().min_by_key(|j| (j.over, j.cost, self.all[j.at].path.len()))?;
        let present = own.first().and_then(|own| {
            let over_parent = |j: &&Judged| Some(self.all[j.at].neighbour()) == own.first_hop();
            let key = |j: &&Judged| {
                let same = own.rests_on(&self.all[j.at].path);
                (j.over, j.cost + if same { 0 } else { hysteresis })
            };
            judged.iter().filter(over_parent).min_by_key(key)
        });
        let keeps = |present: &&Judged| present.over == best.over && present.cost < best.cost + hysteresis;
        Some(*present.filter(keeps).unwrap_or(best))
    }
}
