//! The node's own paths to the root, and the choice among the paths that neighbours offer.

use alloc::vec::Vec;

use super::Config;
use super::candidates::{Candidates, Judged};
use super::message::{Dio, ShortAddress, leads_over};
use super::own_path::OwnPath;

/// The node's own paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    paths: Vec<OwnPath>,
    /// Lower bound of the node's rank. Except with the paper's rule, the first path is that of the
    /// preferred parent and sets the node's rank. `None` with the paper's rule.
    least_rank: Option<u16>,
}

impl Offers {
    /// The paths, best first.
    pub(super) fn paths(&self) -> &[OwnPath] {
        &self.paths
    }

    pub(super) fn paths_mut(&mut self) -> &mut [OwnPath] {
        &mut self.paths
    }

    /// Handles a path offered by a neighbour. If the node adopts it, returns the paths that it
    /// replaces.
    pub(super) fn offer(
        &mut self,
        config: &Config,
        address: ShortAddress,
        (step, limit): (u16, u16),
        dio: &Dio,
    ) -> Option<Vec<OwnPath>> {
        if let Some(own) = self.paths.iter_mut().find(|p| p.rests_on(&dio.path)) {
            own.beyond = dio.metrics;
            return None;
        }
        // RFC 6550 section 8.2.1: the rank of a parent is below the node's own rank over its best
        // parent.
        let rank = dio.rank.saturating_add(step);
        if rank > limit || self.paths.iter().any(|p| dio.rank >= p.rank) {
            return None;
        }
        let candidate = OwnPath {
            rank,
            parent_rank: dio.rank,
            multi_link: dio.multi_link,
            beyond: dio.metrics,
            ..OwnPath::over(address, &dio.path)
        };
        // Former parents that no longer rank below this node.
        let mut replaced = self.take(|own| own.parent_rank >= rank);
        if self.paths.len() >= usize::from(config.max_paths) {
            let worst = self.worst_beside(&candidate)?;
            replaced.push(self.paths.remove(worst));
        }
        self.build(candidate, &replaced);
        Some(replaced)
    }

    /// Sets a neighbour's rank from its newest DIO. Returns the paths whose parent no longer ranks
    /// below the node (RFC 6550 section 8.2.1).
    pub(super) fn set_parent_rank(&mut self, parent: ShortAddress, rank: u16, step: u16) -> Vec<OwnPath> {
        for own in self.paths.iter_mut().filter(|own| own.first_hop() == Some(parent)) {
            own.parent_rank = rank;
            own.rank = rank.saturating_add(step);
        }
        let Some(own_rank) = self.rank() else { return Vec::new() };
        self.take(|own| own.parent_rank >= own_rank)
    }

    /// Removes and returns all paths.
    pub(super) fn clear(&mut self) -> Vec<OwnPath> {
        self.take(|_| true)
    }

    /// Replaces the paths by the chosen offers. Returns the number of new paths, and the removed
    /// paths.
    pub(super) fn adopt(
        &mut self,
        config: &Config,
        address: ShortAddress,
        candidates: &Candidates,
        chosen: &[Judged],
    ) -> (u64, Vec<OwnPath>) {
        let offer = |judged: &Judged| candidates.get(judged.at);
        let gone = self.take(|own| !chosen.iter().any(|judged| own.rests_on(&offer(judged).path)));
        let mut built = 0;
        let mut paths = Vec::with_capacity(chosen.len());
        for judged in chosen {
            let offer = offer(judged);
            let known = self.paths.iter().position(|own| own.rests_on(&offer.path));
            let mut path = match known {
                Some(at) => self.paths.swap_remove(at),
                None => {
                    built += 1;
                    let id = free_id(self.paths.iter().chain(&paths).chain(&gone));
                    OwnPath { id, ..OwnPath::over(address, &offer.path) }
                }
            };
            path.rank = judged.rank;
            path.parent_rank = offer.rank;
            path.multi_link = offer.multi_link;
            path.beyond = offer.metrics;
            path.beyond_etx = offer.etx;
            paths.push(path);
        }
        self.paths = paths;
        // RFC 6719 section 3.3, the third case.
        let highest = self.paths.iter().map(|p| p.rank).max().unwrap_or_default();
        let increase = config.max_rank_increase;
        self.least_rank = Some(if increase == 0 { 0 } else { highest.saturating_sub(increase) });
        (built, gone)
    }

    /// The preferred parent.
    pub(super) fn preferred(&self) -> Option<ShortAddress> {
        self.paths.first()?.first_hop()
    }

    /// The node's rank: that over its preferred parent, or with the paper's rule over its best
    /// parent.
    pub(super) fn rank(&self) -> Option<u16> {
        if let Some(least) = self.least_rank {
            return self.paths.first().map(|path| path.rank.max(least));
        }
        self.paths.iter().map(|p| p.rank).min()
    }

    /// Index of the path that the candidate should replace, if any.
    fn worst_beside(&self, candidate: &OwnPath) -> Option<usize> {
        let shared = |path: &OwnPath, except: usize| {
            let mut others = self.paths.iter().enumerate().filter(|(i, _)| *i != except);
            others.any(|(_, other)| other.first_hop() == path.first_hop())
        };
        let key = |i: usize| (self.paths[i].cost(), shared(&self.paths[i], i));
        let worst = (0..self.paths.len()).max_by_key(|&i| key(i))?;
        let ours = (candidate.cost(), shared(candidate, worst));
        (ours < key(worst)).then_some(worst)
    }

    fn build(&mut self, mut path: OwnPath, replaced: &[OwnPath]) {
        path.id = free_id(self.paths.iter().chain(replaced));
        let key = |p: &OwnPath| (p.cost(), p.id);
        let at = self.paths.partition_point(|p| key(p) <= key(&path));
        self.paths.insert(at, path);
    }

    /// Removes paths after a node has withdrawn one of its links, or itself: see [`Dio`].
    pub(super) fn withdraw(&mut self, link: &[ShortAddress]) -> Vec<OwnPath> {
        self.take(|own| leads_over(&own.nodes[1..], link))
    }

    /// Removes the paths over a lost neighbour.
    pub(super) fn lose(&mut self, neighbour: ShortAddress) -> Vec<OwnPath> {
        self.take(|own| own.first_hop() == Some(neighbour))
    }

    /// Removes a path.
    pub(super) fn drop_path(&mut self, id: u8) -> Option<OwnPath> {
        self.take(|own| own.id == id).pop()
    }

    fn take(&mut self, which: impl Fn(&OwnPath) -> bool) -> Vec<OwnPath> {
        let mut taken = Vec::new();
        while let Some(i) = self.paths.iter().position(&which) {
            taken.push(self.paths.remove(i));
        }
        taken
    }

    /// Records the root's confirmation.
    pub(super) fn told(&mut self, id: u8, sequence: u8) {
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == id && p.sequence == sequence) {
            path.confirmed = true;
            path.due = None;
        }
    }
}

/// Returns a number that none of these paths has. The number of a replaced path is not reused
/// immediately, because other nodes still store the old path.
fn free_id<'a>(paths: impl Iterator<Item = &'a OwnPath> + Clone) -> u8 {
    (1..=u8::MAX).find(|&id| paths.clone().all(|path| path.id != id)).unwrap_or(1)
}
