//! Hooks: functions of a node besides forwarding. Each has its own folder; only this file names
//! them all.
//!
//! Forwarding reads the hook set of a node (one byte) and calls its hooks in the order of the
//! table. Like media ([`super::medium`]), hooks work on the whole network: a packet that a hook
//! sends may come back to it before the call returns.

mod aodv;
mod caching;
mod paths;

use anabranch_core::dtc::LinkEvent;
use anabranch_core::time::Instant;

use super::Network;
use super::forwarding::{Heard, Past, Way};
use super::medium::{GivenBack, LinkNews};
use crate::event::HookId;
use crate::packet::{LinkId, NodeId, PacketHandle, Whole};

use aodv::Aodv;
pub(crate) use aodv::RouteNews;
pub use aodv::{AodvConfig, AodvError, AodvMetrics, RouteChange};
use caching::Caching;
use paths::Paths;

/// The state of all hooks.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    pub(super) caching: Caching,
    pub(super) paths: Paths,
    pub(super) aodv: Aodv,
}

/// Evaluates an expression for each hook, in this order.
macro_rules! each_hook {
    ($hook:ident => $act:expr) => { each_hook!(@ $hook => $act; Caching, Paths, Aodv) };
    (@ $hook:ident => $act:expr; $($each:ty),+) => {{ $({ type $hook = $each; $act })+ }};
}

/// Hook ids differ, and a set has room for them.
const _: () = {
    let mut seen = 0_u8;
    each_hook!(H => {
        assert!(H::ID.0 < 8 && seen & 1 << H::ID.0 == 0, "two hooks have the same number, or one is above 7");
        seen |= 1 << H::ID.0;
    });
};

/// A function of nodes besides forwarding. Unless stated otherwise, methods are called for nodes
/// that have the hook.
pub(super) trait Hook {
    /// Id of the hook in hook sets and events.
    const ID: HookId;
    /// Whether the hook reads the payload of forwarded packets, which must then be reassembled.
    const LOOKS_INSIDE: bool = false;
    /// Whether the hook takes back packets whose next hop does not answer.
    const TAKES_BACK: bool = false;

    /// Called once for all nodes when the network is complete and time begins.
    fn start(net: &mut Network, now: Instant) {
        let _ = (net, now);
    }

    /// Called when the node has come up or gone down, after the media have been informed.
    fn on_node(net: &mut Network, now: Instant, at: NodeId, up: bool) {
        let _ = (net, now, at, up);
    }

    /// Called when a packet arrives over a link at its destination.
    fn on_arrival(net: &mut Network, now: Instant, link: LinkId, handle: PacketHandle) {
        let _ = (net, now, link, handle);
    }

    /// Called before a packet for another node is forwarded. Returns true if the hook has taken the
    /// packet.
    fn on_passage(net: &mut Network, now: Instant, at: NodeId, handle: PacketHandle) -> bool {
        let _ = (net, now, at, handle);
        false
    }

    /// Selects the route of a packet that leaves the node. `None` leaves the choice to the next
    /// hook or to static routing.
    fn on_route(
        net: &mut Network,
        now: Instant,
        at: NodeId,
        past: Past,
        handle: PacketHandle,
    ) -> Option<Way> {
        let _ = (net, now, at, past, handle);
        None
    }

    /// Called when a message that is not TCP arrives at its destination. Returns true if the
    /// message was for the hook.
    fn on_message(net: &mut Network, now: Instant, heard: Heard, message: &Whole) -> bool {
        let _ = (net, now, heard, message);
        false
    }

    /// Called with news of the medium about a link that begins at the node.
    fn on_link(net: &mut Network, now: Instant, link: LinkId, news: LinkNews) {
        let _ = (net, now, link, news);
    }

    /// Called with packets that come back, see [`Hook::TAKES_BACK`]. Returns how many of them got
    /// another route.
    fn on_undelivered(net: &mut Network, now: Instant, link: LinkId, back: GivenBack) -> u64 {
        let _ = (now, link);
        let handles = back.waiting.into_iter().chain([back.failed]);
        handles.for_each(|outbound| drop(net.packets.remove(outbound.handle)));
        0
    }

    /// Handles an event of the hook. The hook defines the meaning of both numbers.
    fn handle_event(net: &mut Network, now: Instant, at: u32, what: u32);
}

/// State of the nodes that have a hook.
#[derive(Debug)]
pub(super) struct Sites<T>(Vec<Option<T>>);

impl<T> Default for Sites<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Sites<T> {
    #[inline]
    fn get(&self, at: NodeId) -> Option<&T> {
        self.0.get(at.index())?.as_ref()
    }

    #[inline]
    fn get_mut(&mut self, at: NodeId) -> Option<&mut T> {
        self.0.get_mut(at.index())?.as_mut()
    }

    fn insert(&mut self, at: NodeId, site: T) {
        if self.0.len() <= at.index() {
            self.0.resize_with(at.index() + 1, || None);
        }
        self.0[at.index()] = Some(site);
    }

    /// The nodes that have state.
    fn nodes(&self) -> impl Iterator<Item = NodeId> {
        (0..).zip(&self.0).filter(|(_, site)| site.is_some()).map(|(i, _)| NodeId(i))
    }
}

impl Network {
    fn has_hook(&self, at: NodeId, hook: HookId) -> bool {
        self.relays[at.index()].hooks.contains(hook)
    }

    fn add_hook(&mut self, at: NodeId, hook: HookId) {
        self.relays[at.index()].hooks.insert(hook);
    }

    pub(super) fn start_hooks(&mut self, now: Instant) {
        each_hook!(H => H::start(self, now));
    }

    pub(super) fn set_node_on_hooks(&mut self, now: Instant, at: NodeId, up: bool) {
        each_hook!(H => if self.has_hook(at, H::ID) {
            H::on_node(self, now, at, up);
        });
    }

    pub(super) fn tell_of_arrival(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        let at = self.graph.link(link).to();
        each_hook!(H => if self.has_hook(at, H::ID) {
            H::on_arrival(self, now, link, handle);
        });
    }

    pub(super) fn take_from_passage(&mut self, now: Instant, at: NodeId, handle: PacketHandle) -> bool {
        each_hook!(H => if self.has_hook(at, H::ID) && H::on_passage(self, now, at, handle) {
            return true;
        });
        false
    }

    pub(super) fn route_by_hook(
        &mut self,
        now: Instant,
        at: NodeId,
        past: Past,
        handle: PacketHandle,
    ) -> Option<Way> {
        each_hook!(H => if self.has_hook(at, H::ID)
            && let Some(way) = H::on_route(self, now, at, past, handle)
        {
            return Some(way);
        });
        None
    }

    pub(super) fn take_message(&mut self, now: Instant, heard: Heard, message: &Whole) -> bool {
        each_hook!(H => if self.has_hook(heard.at, H::ID) && H::on_message(self, now, heard, message) {
            return true;
        });
        false
    }

    pub(super) fn tell_of_link(&mut self, now: Instant, link: LinkId, news: LinkNews) {
        let at = self.graph.link(link).from();
        each_hook!(H => if self.has_hook(at, H::ID) {
            H::on_link(self, now, link, news);
        });
    }

    pub(super) fn tell_of_outcome(
        &mut self,
        now: Instant,
        link: LinkId,
        handle: PacketHandle,
        event: LinkEvent,
    ) {
        self.tell_of_link(now, link, LinkNews::Outcome { handle, event });
    }

    pub(super) fn looks_inside(&self, at: NodeId) -> bool {
        each_hook!(H => if H::LOOKS_INSIDE && self.has_hook(at, H::ID) {
            return true;
        });
        false
    }

    pub(super) fn takes_back(&self, at: NodeId) -> bool {
        each_hook!(H => if H::TAKES_BACK && self.has_hook(at, H::ID) {
            return true;
        });
        false
    }

    /// Gives packets over a link whose far end does not answer back to the hook that takes them.
    pub(super) fn give_back(&mut self, now: Instant, link: LinkId, back: GivenBack) -> u64 {
        let at = self.graph.link(link).from();
        each_hook!(H => if H::TAKES_BACK && self.has_hook(at, H::ID) {
            return H::on_undelivered(self, now, link, back);
        });
        0
    }

    /// Handles an event of a hook.
    pub(crate) fn handle_hook(&mut self, now: Instant, hook: HookId, at: u32, what: u32) {
        each_hook!(H => if H::ID == hook {
            H::handle_event(self, now, at, what);
        });
    }
}
