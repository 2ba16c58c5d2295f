//! What a node stores of other nodes' paths that lead through it: section III's
//! {source, path ID, upward next hop, downward next hop}.

use alloc::vec::Vec;

use super::message::ShortAddress;

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The node that the path belongs to.
    pub source: ShortAddress,
    /// The path's number there.
    pub path_id: u8,
    /// Towards the root; `None` at the root.
    pub up: Option<ShortAddress>,
    /// Towards the source.
    pub down: ShortAddress,
    /// Grows with each use: the path by which the source was last heard has the greatest of its
    /// routes.
    pub(super) used: u64,
}

impl Route {
    fn key(&self) -> (ShortAddress, u8) {
        (self.source, self.path_id)
    }
}

/// The table, in order of source and path.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    all: Vec<Route>,
    uses: u64,
}

impl Routes {
    pub(super) fn all(&self) -> &[Route] {
        &self.all
    }

    /// False if there is no room.
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

    /// The entry of that path; of number 0, the one by which the source was last heard.
    pub(super) fn get(&self, source: ShortAddress, path_id: u8) -> Option<&Route> {
        if path_id == 0 {
            let at = self.all.partition_point(|r| r.source < source);
            return self.all[at..].iter().take_while(|r| r.source == source).max_by_key(|r| r.used);
        }
        let at = self.all.binary_search_by_key(&(source, path_id), Route::key).ok()?;
        self.all.get(at)
    }

    /// Some path goes on to that neighbour.
    pub(super) fn lead_through(&self, up: ShortAddress) -> bool {
        self.all.iter().any(|r| r.up == Some(up))
    }

    /// Forgets all that lead up to a neighbour; true if there were any. Those that lead down to it
    /// stay: if it is really gone the sources find out themselves, and come by another path.
    pub(super) fn lose(&mut self, neighbour: ShortAddress) -> bool {
        let before = self.all.len();
        self.all.retain(|r| r.up != Some(neighbour));
        self.all.len() < before
    }
}
