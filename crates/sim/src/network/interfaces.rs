//! Nodes with several interfaces: whoever sends says by a path's number which of them a packet leaves by. No way around is
//! looked for: while the interface is down, what is to leave by it is dropped there.

use super::Network;
use crate::packet::{LinkId, NodeId, PacketHandle};

/// What a node sends to another over the path of that number leaves by this link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    to: NodeId,
    path: u8,
    link: LinkId,
}

impl Network {
    /// Makes `at` send what is for `to` over the path of that number by `link`, whether that is up or not. Path 0 is
    /// whatever is shortest. What was said first holds.
    pub fn pin_path(&mut self, at: NodeId, to: NodeId, path: u8, link: LinkId) {
        if self.interfaces.len() <= at.index() {
            self.interfaces.resize(at.index() + 1, Vec::new());
        }
        self.interfaces[at.index()].push(Interface { to, path, link });
    }

    /// Somebody tells paths apart without a router that builds them.
    pub(crate) fn has_interfaces(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// The interface for a packet, if its path has one here.
    pub(super) fn interface(&mut self, at: NodeId, handle: PacketHandle) -> Option<LinkId> {
        let here = self.interfaces.get(at.index())?;
        here.iter().find(|i| i.to == handle.dst)?;
        let path = self.packets.peek(handle).path;
        here.iter().find(|i| i.to == handle.dst && i.path == path).map(|i| i.link)
    }
}
