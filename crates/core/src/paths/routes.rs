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
}

impl Routes {
    pub(super) fn all(&self) -> &[Route] {
        &self.all
    }

    /// False if there is no room.
    pub(super) fn store(&mut self, route: Route, room: usize) -> bool {
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

    /// The entry of that path; of number 0, the source's first.
    pub(super) fn get(&self, source: ShortAddress, path_id: u8) -> Option<&Route> {
        if path_id == 0 {
            let at = self.all.partition_point(|r| r.source < source);
            return self.all.get(at).filter(|r| r.source == source);
        }
        let at = self.all.binary_search_by_key(&(source, path_id), Route::key).ok()?;
        self.all.get(at)
    }

    /// Some path goes on to that neighbour.
    pub(super) fn lead_through(&self, up: ShortAddress) -> bool {
        self.all.iter().any(|r| r.up == Some(up))
    }

    /// Forgets all that lead to a neighbour, up or down; true if one of them led up.
    pub(super) fn lose(&mut self, neighbour: ShortAddress) -> bool {
        let led_up = self.lead_through(neighbour);
        self.all.retain(|r| r.up != Some(neighbour) && r.down != neighbour);
        led_up
    }
}
