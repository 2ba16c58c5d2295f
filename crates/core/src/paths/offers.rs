//! A node's own paths to the root, and which of those that neighbours offer are worth taking.

use alloc::vec::Vec;

use super::Config;
use super::candidates::{Candidates, Judged};
use super::message::{Dio, ShortAddress};
use super::own_path::OwnPath;

/// What an offer has led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// No path was built of it.
    None,
    /// A path was built.
    Built { replaced: Vec<OwnPath> },
}

/// The paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    paths: Vec<OwnPath>,
    /// The first path is that of the preferred parent, and the node's rank follows from it: this, at least. `None` with
    /// the paper's rule.
    least_rank: Option<u16>,
}

impl Offers {
    /// Best first.
    pub(super) fn paths(&self) -> &[OwnPath] {
        &self.paths
    }

    pub(super) fn paths_mut(&mut self) -> &mut [OwnPath] {
        &mut self.paths
    }

    /// A neighbour's path.
    pub(super) fn offer(
        &mut self,
        config: &Config,
        address: ShortAddress,
        (step, limit): (u16, u16),
        dio: &Dio,
    ) -> Change {
        if let Some(own) = self.paths.iter_mut().find(|p| p.nodes[1..] == dio.path[..]) {
            own.beyond = dio.metrics;
            return Change::None;
        }
        // RFC 6550 section 8.2.1: a parent's rank is below one's own, which is that by the best parent.
        let rank = dio.rank.saturating_add(step);
        if rank > limit || self.paths.iter().any(|p| dio.rank >= p.rank) {
            return Change::None;
        }
        let mut nodes = Vec::with_capacity(dio.path.len() + 1);
        nodes.push(address);
        nodes.extend_from_slice(&dio.path);
        let candidate = OwnPath {
            id: 0,
            rank,
            parent_rank: dio.rank,
            multi_link: dio.multi_link,
            confirmed: false,
            beyond: dio.metrics,
            beyond_etx: 0,
            due: None,
            tries: 0,
            sequence: 0,
            nodes,
        };
        // Who was a parent and is not above this node any more.
        let mut replaced = self.take(|own| own.parent_rank >= rank);
        if self.paths.len() >= usize::from(config.max_paths) {
            match self.worst_beside(&candidate) {
                Some(worst) => replaced.push(self.paths.remove(worst)),
                None => return Change::None,
            }
        }
        self.build(candidate, &replaced);
        Change::Built { replaced }
    }

    /// A neighbour's rank, as its newest DIO says. Returned are the paths whose parent does not rank below the node any
    /// more (RFC 6550 section 8.2.1).
    pub(super) fn set_parent_rank(&mut self, parent: ShortAddress, rank: u16, step: u16) -> Vec<OwnPath> {
        for own in self.paths.iter_mut().filter(|own| own.first_hop() == Some(parent)) {
            own.parent_rank = rank;
            own.rank = rank.saturating_add(step);
        }
        let Some(own_rank) = self.rank() else { return Vec::new() };
        self.take(|own| own.parent_rank >= own_rank)
    }

    /// Gives up every path.
    pub(super) fn clear(&mut self) -> Vec<OwnPath> {
        self.take(|_| true)
    }

    /// The paths follow the offers that were chosen. Returns the number of new ones and those that are gone.
    pub(super) fn adopt(
        &mut self,
        config: &Config,
        address: ShortAddress,
        candidates: &Candidates,
        chosen: &[Judged],
    ) -> (u64, Vec<OwnPath>) {
        let offer = |judged: &Judged| candidates.get(judged.at);
        let gone = self.take(|own| !chosen.iter().any(|judged| offer(judged).path[..] == own.nodes[1..]));
        let mut built = 0;
        let mut paths = Vec::with_capacity(chosen.len());
        for judged in chosen {
            let offer = offer(judged);
            let known = self.paths.iter().position(|own| own.nodes[1..] == offer.path[..]);
            let mut path = match known {
                Some(at) => self.paths.swap_remove(at),
                None => {
                    built += 1;
                    let mut nodes = Vec::with_capacity(offer.path.len() + 1);
                    nodes.push(address);
                    nodes.extend_from_slice(&offer.path);
                    let taken = |id: u8| self.paths.iter().chain(&paths).chain(&gone).any(|p| p.id == id);
                    let id = (1..=u8::MAX).find(|&id| !taken(id)).unwrap_or(1);
                    OwnPath { id, nodes, ..OwnPath::default() }
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

    /// The node's rank: that by its preferred parent; with the paper's rule, by its best.
    pub(super) fn rank(&self) -> Option<u16> {
        if let Some(least) = self.least_rank {
            return self.paths.first().map(|path| path.rank.max(least));
        }
        self.paths.iter().map(|p| p.rank).min()
    }

    /// The path that the candidate should replace.
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
        // A number is free again only when the old path is forgotten everywhere: not for the one that takes its place.
        let taken = |id: u8| self.paths.iter().chain(replaced).any(|p| p.id == id);
        path.id = (1..=u8::MAX).find(|&id| !taken(id)).unwrap_or(1);
        let key = |p: &OwnPath| (p.cost(), p.id);
        let at = self.paths.partition_point(|p| key(p) <= key(&path));
        self.paths.insert(at, path);
    }

    /// A node has withdrawn a link of its own, or itself: see [`Dio`].
    pub(super) fn withdraw(&mut self, link: &[ShortAddress]) -> Vec<OwnPath> {
        self.take(|own| own.nodes[1..].windows(link.len().max(1)).any(|part| part == link))
    }

    /// A neighbour is gone.
    pub(super) fn lose(&mut self, neighbour: ShortAddress) -> Vec<OwnPath> {
        self.take(|own| own.first_hop() == Some(neighbour))
    }

    /// One is given up.
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

    /// The root's answer.
    pub(super) fn told(&mut self, id: u8, sequence: u8) {
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == id && p.sequence == sequence) {
            path.confirmed = true;
            path.due = None;
        }
    }
}
