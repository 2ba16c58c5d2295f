//! Media: what carries packets over links. Each has a folder of its own, and below is the only
//! place that names them all.
//!
//! A medium works on the whole network instead of having its own state borrowed: a packet that it
//! brings to a node may go on by the same medium before the call returns, and in which order that
//! happens decides results. Dispatch is by the number that a link bears. Cables are asked for
//! first, so that a packet on one costs the comparison and no call.

mod adhoc;
mod cable;
mod stations;
mod wireless;

use anabranch_core::dtc::LinkEvent;
use anabranch_core::paths::Metrics;
use anabranch_core::time::{Duration, Instant};

use super::Network;
use super::forwarding::Past;
use crate::air::meter::EnergyUse;
use crate::link::Link;
use crate::packet::{LinkId, MediumId, NodeId, PacketHandle};
use crate::trace::Observer;

use adhoc::Adhoc;
pub use adhoc::{AdhocConfig, AdhocMetrics};
use cable::Cable;
use wireless::Wireless;
pub use wireless::{FragmentForwarding, VirtualReassembly, WirelessConfig, WirelessMetrics};

/// The state of all media; those with stations are there if a network has them.
#[derive(Debug, Default)]
pub(super) struct Media {
    pub(super) cable: Cable,
    pub(super) wireless: Option<Box<Wireless>>,
    pub(super) adhoc: Option<Box<Adhoc>>,
}

/// Does something for each medium, in this order.
macro_rules! each_medium {
    ($medium:ident => $act:expr) => { each_medium!(@ $medium => $act; Cable, Wireless, Adhoc) };
    (@ $medium:ident => $act:expr; $($each:ty),+) => {{ $({ type $medium = $each; $act })+ }};
}

/// Numbers differ.
const _: () = {
    let mut seen = 0_u64;
    each_medium!(M => {
        assert!(seen & 1 << M::ID.0 == 0, "two media have the same number");
        seen |= 1 << M::ID.0;
    });
};

/// How good a link is, as the node at its beginning sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) metrics: Metrics,
    /// From one packet without payload to the next.
    pub(super) spacing: Duration,
}

/// What a medium tells the hooks of the node at the beginning of a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkNews {
    /// How often a frame was sent.
    Transmissions { attempts: u8, acknowledged: bool },
    /// The neighbour at the far end is taken for gone.
    NeighbourLost,
    /// The packet has arrived as far as the link layer can tell, or it will be taken for lost.
    Outcome { handle: PacketHandle, event: LinkEvent },
}

/// A packet, and over which link it goes; `None` is to all in reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outbound {
    pub(super) link: Option<LinkId>,
    pub(super) handle: PacketHandle,
    pub(super) past: Past,
}

/// Packets that a medium gives back, since their next hop does not answer.
#[derive(Debug)]
pub(super) struct GivenBack {
    /// The packet that was tried.
    pub(super) failed: Outbound,
    /// Those that waited behind it for the same next hop.
    pub(super) waiting: Vec<Outbound>,
    /// How often a packet may be given another route.
    pub(super) reroutes: u8,
}

/// The figures of a node's interface: their place in results, and name, value and unit of each.
pub type Figures = (&'static str, Vec<(&'static str, f64, &'static str)>);

/// What carries packets over links.
pub(super) trait Medium {
    /// In links and events.
    const ID: MediumId;

    /// A packet is to go over a link whose MTU has room for it; the medium counts it there and
    /// shows it to observers.
    fn transmit(net: &mut Network, now: Instant, link: LinkId, past: Past, handle: PacketHandle);

    /// A packet is to go to everybody in reach of a node that [`Medium::has_node`].
    fn broadcast(net: &mut Network, now: Instant, from: NodeId, handle: PacketHandle) {
        let _ = (now, from);
        net.packets.remove(handle);
    }

    /// A node can send to everybody in reach.
    fn has_node(net: &Network, node: NodeId) -> bool {
        let _ = (net, node);
        false
    }

    /// An event of its own happens at a station.
    fn handle_event(net: &mut Network, now: Instant, station: u32, what: u32, generation: u32) {
        let _ = (net, now, station, what, generation);
    }

    /// A node dies, with all that the medium has of it; or it lives again.
    fn set_node(net: &mut Network, now: Instant, node: NodeId, up: bool) {
        let _ = (net, now, node, up);
    }

    /// One direction of a link, perhaps of another medium, goes down or comes up.
    fn set_link(net: &mut Network, link: LinkId, up: bool) {
        let _ = (net, link, up);
    }

    /// Length of a link for static routes, in parts of [`crate::routing::HOP`]; `None` is that of a
    /// cable.
    fn length(net: &Network, link: &Link) -> Option<u64> {
        let _ = (net, link);
        None
    }

    /// Bits per second of a link, if that is known.
    fn bit_rate(net: &Network, link: LinkId) -> Option<u64> {
        let _ = (net, link);
        None
    }

    /// How good a link is, if that is known.
    fn view(net: &mut Network, now: Instant, link: LinkId) -> Option<View> {
        let _ = (net, now, link);
        None
    }

    /// What the radio of a node has used from the epoch on, if it has one here.
    fn energy_use(net: &Network, now: Instant, node: NodeId) -> Option<EnergyUse> {
        let _ = (net, now, node);
        None
    }

    /// Routing messages that a node has given to its interface to the medium.
    fn routing(net: &Network, node: NodeId) -> u64 {
        let _ = (net, node);
        0
    }

    /// What a node's interface to the medium has done until `now`, if it has one: the place of the
    /// figures in results, and each with its name and unit.
    fn figures(net: &Network, now: Instant, node: NodeId) -> Option<Figures> {
        let _ = (net, now, node);
        None
    }

    /// An observer comes, who may want to see frames.
    fn attach(net: &mut Network, observer: &mut dyn Observer) {
        let _ = (net, observer);
    }
}

impl Network {
    /// A packet goes over a link.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Instant, link: LinkId, past: Past, handle: PacketHandle) {
        let medium = self.graph.link(link).medium();
        each_medium!(M => if M::ID == medium {
            M::transmit(self, now, link, past, handle);
        });
    }

    /// A packet goes to everybody in reach of a node, over the first medium that can do that.
    pub(super) fn broadcast(&mut self, now: Instant, from: NodeId, handle: PacketHandle) {
        each_medium!(M => if M::has_node(self, from) {
            return M::broadcast(self, now, from, handle);
        });
        self.packets.remove(handle);
    }

    /// A node can send to everybody in reach.
    pub(super) fn can_broadcast(&self, node: NodeId) -> bool {
        each_medium!(M => if M::has_node(self, node) {
            return true;
        });
        false
    }

    /// An event of a medium happens.
    pub(crate) fn handle_medium(
        &mut self,
        now: Instant,
        medium: MediumId,
        (station, what, generation): (u32, u32, u32),
    ) {
        each_medium!(M => if M::ID == medium {
            M::handle_event(self, now, station, what, generation);
        });
    }

    pub(super) fn set_node_on_media(&mut self, now: Instant, node: NodeId, up: bool) {
        each_medium!(M => M::set_node(self, now, node, up));
    }

    pub(super) fn set_link_on_media(&mut self, link: LinkId, up: bool) {
        each_medium!(M => M::set_link(self, link, up));
    }

    pub(super) fn link_length(&self, link: &Link) -> Option<u64> {
        each_medium!(M => if M::ID == link.medium() {
            return M::length(self, link);
        });
        None
    }

    /// Bits per second of a link, if its medium knows.
    pub(super) fn bit_rate(&self, link: LinkId) -> Option<u64> {
        let medium = self.graph.link(link).medium();
        each_medium!(M => if M::ID == medium {
            return M::bit_rate(self, link);
        });
        None
    }

    /// How good a link is, as the node at its beginning sees it.
    pub(super) fn view(&mut self, now: Instant, link: LinkId) -> Option<View> {
        let medium = self.graph.link(link).medium();
        each_medium!(M => if M::ID == medium {
            return M::view(self, now, link);
        });
        None
    }

    /// What the radio of a node has used from the epoch on; `None` if it has none.
    pub fn energy_use(&self, now: Instant, node: NodeId) -> Option<EnergyUse> {
        each_medium!(M => if let Some(used) = M::energy_use(self, now, node) {
            return Some(used);
        });
        None
    }

    /// Routing messages (AODV, RPL) that a node has given to its radio.
    pub fn routing_messages(&self, node: NodeId) -> u64 {
        let mut sum = 0;
        each_medium!(M => sum += M::routing(self, node));
        sum
    }

    /// What a node's interface to a shared channel has done until `now`; `None` if it has none.
    pub fn medium_figures(&self, now: Instant, node: NodeId) -> Option<Figures> {
        each_medium!(M => if let Some(figures) = M::figures(self, now, node) {
            return Some(figures);
        });
        None
    }

    pub(super) fn attach_to_media(&mut self, observer: &mut dyn Observer) {
        each_medium!(M => M::attach(self, observer));
    }
}
