//! Stored paths of other nodes that lead through this node: section III's {source, path ID, upward
//! next hop, downward next hop}.

use alloc::vec::Vec;

use super::message::ShortAddress;

/// A stored path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The owner of the path.
    pub source: ShortAddress,
    /// The number of the path at its owner.
    pub path_id: u8,
    /// Next hop towards the root; `None` at the root.
    pub up: Option<ShortAddress>,
    /// Next hop towards the source.
    pub down: ShortAddress,
    /// Increases with each use: the largest value marks the path by which the source was last
    /// heard.
    pub(super) used: u64,
}

impl Route {
    fn key(&self) -> (ShortAddress, u8) {
        (self.source, self.path_id)
    }
}

/// The table, in order of source and path number.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    all: Vec<Route>,
    uses: u64,
}

impl Routes {
    pub(super) fn all(&self) -> &[Route] {
        &self.all
    }

    /// Stores a path; returns false if the table is full.
    pub(super) fn store(&mut self, mut route: Route, room: usize) -> bool {
        self.uses += 1;
        route.used = self.uses;
        match self.all.binary_search_by_key(&route.key(), Route::key) {
            Ok(at) => self.all[at] = route,
            Err(_) if self.all.len() >= room => return false,
            Err(at) => self.all.insert(at, route),
        }
        true
    }

    pub(super) fn remove(&mut self, source: ShortAddress, path_id: u8) {
        if let Ok(at) = self.all.binary_search_by_key(&(source, path_id), Route::key) {
            self.all.remove(at);
        }
    }

    /// Returns the entry of a path; for number 0, the path by which the source was last heard.
    pub(super) fn get(&self, source: ShortAddress, path_id: u8) -> Option<&Route> {
        if path_id == 0 {
            let at = self.all.partition_point(|r| r.source < source);
            return self.all[at..].iter().take_while(|r| r.source == source).max_by_key(|r| r.used);
        }
        let at = self.all.binary_search_by_key(&(source, path_id), Route::key).ok()?;
        self.all.get(at)
    }

    /// Whether a stored path leads up to that neighbour.
    pub(super) fn lead_through(&self, up: ShortAddress) -> bool {
        self.all.iter().any(|r| r.up == Some(up))
    }

    /// Deletes all paths that lead up to a neighbour; returns true if there were any. Paths that
    /// lead down to it stay: if it is lost, the sources notice and use another path.
    pub(super) fn lose(&mut self, neighbour: ShortAddress) -> bool {
        let before = self.all.len();
        self.all.retain(|r| r.up != Some(neighbour));
        self.all.len() < before
    }
}
