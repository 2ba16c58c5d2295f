//! A path of the node's own to the root.

use alloc::vec::Vec;

use super::message::{Metrics, Path, ShortAddress};
use crate::time::Instant;

/// A path of the node's own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnPath {
    /// Its number, from 1; at most twice NP_thr.
    pub id: u8,
    /// The node first, the root last.
    pub nodes: Path,
    /// The node's rank by its parent on it.
    pub rank: u16,
    /// The parent's.
    pub(super) parent_rank: u16,
    /// Nodes on it, the node itself and the root left out, that have a second interface.
    pub multi_link: u8,
    /// The root has confirmed that it and all on the way know it.
    pub confirmed: bool,
    /// From the parent on, as it said last.
    pub(super) beyond: Option<Metrics>,
    /// ETX from the parent on; 0 with the paper's rule.
    pub(super) beyond_etx: u16,
    /// When it is to be told upstream, for the first time or again.
    pub(super) due: Option<Instant>,
    /// How often it was.
    pub(super) tries: u8,
    /// The sequence number of the newest DAO.
    pub(super) sequence: u8,
}

impl OwnPath {
    /// A path of `address` over an offer of a neighbour. It has no number yet.
    pub(super) fn over(address: ShortAddress, offer: &[ShortAddress]) -> Self {
        let mut nodes = Vec::with_capacity(offer.len() + 1);
        nodes.push(address);
        nodes.extend_from_slice(offer);
        Self { nodes, ..Self::default() }
    }

    /// It was made of that offer.
    pub(super) fn rests_on(&self, offer: &[ShortAddress]) -> bool {
        self.nodes[1..] == *offer
    }

    /// Links on it.
    pub fn hops(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    /// What it is judged by: less is better. Where a multi-link node is on it, two hops are those
    /// to the base station and on, for which no neighbour on the radio has to wait.
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
