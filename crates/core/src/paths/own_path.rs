//! A path from this node to the root.

use alloc::vec::Vec;

use super::message::{Metrics, Path, ShortAddress};
use crate::time::Instant;

/// A path from this node to the root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnPath {
    /// The number of the path, from 1; at most twice NP_thr.
    pub id: u8,
    /// The nodes of the path, this node first, the root last.
    pub nodes: Path,
    /// The node's rank over its parent on the path.
    pub rank: u16,
    /// The parent's rank.
    pub(super) parent_rank: u16,
    /// Number of nodes on the path with a second interface, without this node and the root.
    pub multi_link: u8,
    /// Whether the root has confirmed that it and all nodes on the path have stored it.
    pub confirmed: bool,
    /// Metrics from the parent on, as last announced by the parent.
    pub(super) beyond: Option<Metrics>,
    /// ETX from the parent on; 0 with the paper's rule.
    pub(super) beyond_etx: u16,
    /// When to send the DAO for the path, for the first time or again.
    pub(super) due: Option<Instant>,
    /// Number of DAOs sent.
    pub(super) tries: u8,
    /// The sequence number of the newest DAO.
    pub(super) sequence: u8,
}

impl OwnPath {
    /// Creates a path of `address` over a neighbour's offer, without a number.
    pub(super) fn over(address: ShortAddress, offer: &[ShortAddress]) -> Self {
        let mut nodes = Vec::with_capacity(offer.len() + 1);
        nodes.push(address);
        nodes.extend_from_slice(offer);
        Self { nodes, ..Self::default() }
    }

    /// Whether the path was created from that offer.
    pub(super) fn rests_on(&self, offer: &[ShortAddress]) -> bool {
        self.nodes[1..] == *offer
    }

    /// Number of links on the path.
    pub fn hops(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    /// The cost of the path; less is better. For a multi-link node, two hops do not count: those to
    /// the base station and beyond, which use no radio capacity of neighbours.
    pub(super) fn cost(&self) -> i32 {
        self.hops() as i32 - 2 * i32::from(self.multi_link)
    }

    pub(super) fn first_hop(&self) -> Option<ShortAddress> {
        self.nodes.get(1).copied()
    }

    pub(super) fn is_new(&self) -> bool {
        self.tries == 0 && self.due.is_none() && !self.confirmed
    }

    pub(super) fn was_told(&self) -> bool {
        self.tries > 0
    }

    pub(super) fn tell_at(&mut self, at: Instant) {
        self.due = Some(at);
    }
}
