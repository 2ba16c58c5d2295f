//! Hooks: what a node does with packets beyond forwarding them. Each has a folder of its own, and
//! below is the only place that names them all.
//!
//! Forwarding asks a node's set of hooks, one octet, and calls those that are in it, in the order
//! of the table. Like media ([`super::medium`]) and for the same reason they work on the whole
//! network: what a hook sends may come back to it before the call returns.

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

/// Does something for each hook, in this order.
macro_rules! each_hook {
    ($hook:ident => $act:expr) => { each_hook!(@ $hook => $act; Caching, Paths, Aodv) };
    (@ $hook:ident => $act:expr; $($each:ty),+) => {{ $({ type $hook = $each; $act })+ }};
}

/// Numbers differ, and a set has room for them.
const _: () = {
    let mut seen = 0_u8;
    each_hook!(H => {
        assert!(H::ID.0 < 8 && seen & 1 << H::ID.0 == 0, "two hooks have the same number, or one is above 7");
        seen |= 1 << H::ID.0;
    });
};

/// What a node does beyond forwarding. A function is called for nodes that have the hook, where
/// nothing else is said.
pub(super) trait Hook {
    /// In the sets of nodes, and in events.
    const ID: HookId;
    /// It looks into packets that pass, which must be whole for that.
    const LOOKS_INSIDE: bool = false;
    /// It wants packets back whose next hop does not answer.
    const TAKES_BACK: bool = false;

    /// The network is complete, and time begins. Called once for all nodes.
    fn start(net: &mut Network, now: Instant) {
        let _ = (net, now);
    }

    /// The node lives again, or has died; the media know already.
    fn on_node(net: &mut Network, now: Instant, at: NodeId, up: bool) {
        let _ = (net, now, at, up);
    }

    /// A packet has come over a link to the node that it is for.
    fn on_arrival(net: &mut Network, now: Instant, link: LinkId, handle: PacketHandle) {
        let _ = (net, now, link, handle);
    }

    /// A packet for another node is about to be passed on. True if the hook has it now.
    fn on_passage(net: &mut Network, now: Instant, at: NodeId, handle: PacketHandle) -> bool {
        let _ = (net, now, at, handle);
        false
    }

    /// A packet is to leave the node. `None` leaves the way to others.
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

    /// A message that is not TCP is for the node. True if it was for the hook.
    fn on_message(net: &mut Network, now: Instant, heard: Heard, message: &Whole) -> bool {
        let _ = (net, now, heard, message);
        false
    }

    /// The medium of a link knows something; the hook is at its beginning.
    fn on_link(net: &mut Network, now: Instant, link: LinkId, news: LinkNews) {
        let _ = (net, now, link, news);
    }

    /// Packets come back, as [`Hook::TAKES_BACK`] asks for; answers how many were given another
    /// route.
    fn on_undelivered(net: &mut Network, now: Instant, link: LinkId, back: GivenBack) -> u64 {
        let _ = (now, link);
        let handles = back.waiting.into_iter().chain([back.failed]);
        handles.for_each(|outbound| drop(net.packets.remove(outbound.handle)));
        0
    }

    /// An event of its own happens; what the two numbers mean is the hook's affair.
    fn handle_event(net: &mut Network, now: Instant, at: u32, what: u32);
}

/// What is kept for nodes that have a hook.
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

    /// The nodes that have one.
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

    /// Packets over a link whose far end does not answer go back to the hook that wants them.
    pub(super) fn give_back(&mut self, now: Instant, link: LinkId, back: GivenBack) -> u64 {
        let at = self.graph.link(link).from();
        each_hook!(H => if H::TAKES_BACK && self.has_hook(at, H::ID) {
            return H::on_undelivered(self, now, link, back);
        });
        0
    }

    /// An event of a hook happens.
    pub(crate) fn handle_hook(&mut self, now: Instant, hook: HookId, at: u32, what: u32) {
        each_hook!(H => if H::ID == hook {
            H::handle_event(self, now, at, what);
        });
    }
}
