//! Media: they carry packets over links. Each has its own folder; only this file names them all.
//!
//! A medium works on the whole network, and its own state is not borrowed separately: a packet that
//! it delivers to a node may continue over the same medium before the call returns, and the order
//! of these steps affects results. Dispatch uses the medium id of a link. Cables are compared
//! first, so that a packet on a cable costs one comparison and no call.

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

/// State of all media. Media with stations are present only if the network has them.
#[derive(Debug, Default)]
pub(super) struct Media {
    pub(super) cable: Cable,
    pub(super) wireless: Option<Box<Wireless>>,
    pub(super) adhoc: Option<Box<Adhoc>>,
}

/// Evaluates an expression for each medium, in this order.
macro_rules! each_medium {
    ($medium:ident => $act:expr) => { each_medium!(@ $medium => $act; Cable, Wireless, Adhoc) };
    (@ $medium:ident => $act:expr; $($each:ty),+) => {{ $({ type $medium = $each; $act })+ }};
}

/// Medium ids differ.
const _: () = {
    let mut seen = 0_u64;
    each_medium!(M => {
        assert!(seen & 1 << M::ID.0 == 0, "two media have the same number");
        seen |= 1 << M::ID.0;
    });
};

/// Quality of a link, as estimated by the node at its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) metrics: Metrics,
    /// Time from one packet without payload to the next.
    pub(super) spacing: Duration,
}

/// News of a medium for the hooks of the node at the beginning of a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkNews {
    /// Number of transmissions of a frame, and whether it was acknowledged.
    Transmissions { attempts: u8, acknowledged: bool },
    /// The neighbour at the far end is considered lost.
    NeighbourLost,
    /// The link layer's knowledge about the fate of a packet: it has arrived, or will be considered
    /// lost.
    Outcome { handle: PacketHandle, event: LinkEvent },
}

/// A packet and its link; `None` is a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outbound {
    pub(super) link: Option<LinkId>,
    pub(super) handle: PacketHandle,
    pub(super) past: Past,
}

/// Packets that a medium gives back because their next hop does not answer.
#[derive(Debug)]
pub(super) struct GivenBack {
    /// The packet whose transmission failed.
    pub(super) failed: Outbound,
    /// The packets that waited for the same next hop.
    pub(super) waiting: Vec<Outbound>,
    /// Number of times that a packet may get another route.
    pub(super) reroutes: u8,
}

/// Metrics of a node's interface: the prefix of their names, and name, value and unit of each.
pub type Figures = (&'static str, Vec<(&'static str, f64, &'static str)>);

/// A medium that carries packets over links.
pub(super) trait Medium {
    /// Id of the medium in links and events.
    const ID: MediumId;

    /// Sends a packet over a link whose MTU has room for it. The medium counts the packet on the
    /// link and shows it to observers.
    fn transmit(net: &mut Network, now: Instant, link: LinkId, past: Past, handle: PacketHandle);

    /// Broadcasts a packet from a node that [`Medium::has_node`].
    fn broadcast(net: &mut Network, now: Instant, from: NodeId, handle: PacketHandle) {
        let _ = (now, from);
        net.packets.remove(handle);
    }

    /// Whether a node can broadcast on this medium.
    fn has_node(net: &Network, node: NodeId) -> bool {
        let _ = (net, node);
        false
    }

    /// Handles an event of the medium at a station.
    fn handle_event(net: &mut Network, now: Instant, station: u32, what: u32, generation: u32) {
        let _ = (net, now, station, what, generation);
    }

    /// A node goes down and loses all its packets in the medium, or comes up.
    fn set_node(net: &mut Network, now: Instant, node: NodeId, up: bool) {
        let _ = (net, now, node, up);
    }

    /// One more jammer begins, or one ends, at a node.
    fn jam(net: &mut Network, now: Instant, node: NodeId, begins: bool) {
        let _ = (net, now, node, begins);
    }

    /// One direction of a link goes down or comes up. The link may belong to another medium.
    fn set_link(net: &mut Network, link: LinkId, up: bool) {
        let _ = (net, link, up);
    }

    /// Length of a link for static routes, in units of 1/[`crate::routing::HOP`]; `None` is the
    /// length of a cable.
    fn length(net: &Network, link: &Link) -> Option<u64> {
        let _ = (net, link);
        None
    }

    /// Rate of a link in bit/s, if known.
    fn bit_rate(net: &Network, link: LinkId) -> Option<u64> {
        let _ = (net, link);
        None
    }

    /// Quality of a link, if known.
    fn view(net: &mut Network, now: Instant, link: LinkId) -> Option<View> {
        let _ = (net, now, link);
        None
    }

    /// Energy that the radio of a node has used since the beginning of time, if it has one on this
    /// medium.
    fn energy_use(net: &Network, now: Instant, node: NodeId) -> Option<EnergyUse> {
        let _ = (net, now, node);
        None
    }

    /// Number of routing messages that a node has passed to its interface.
    fn routing(net: &Network, node: NodeId) -> u64 {
        let _ = (net, node);
        0
    }

    /// Metrics of a node's interface until `now`, if it has one: the prefix of their names, and
    /// each with its name and unit.
    fn figures(net: &Network, now: Instant, node: NodeId) -> Option<Figures> {
        let _ = (net, now, node);
        None
    }

    /// Informs the medium of an observer, which may want to see frames.
    fn attach(net: &mut Network, observer: &mut dyn Observer) {
        let _ = (net, observer);
    }
}

impl Network {
    /// Sends a packet over a link.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Instant, link: LinkId, past: Past, handle: PacketHandle) {
        let medium = self.graph.link(link).medium();
        each_medium!(M => if M::ID == medium {
            M::transmit(self, now, link, past, handle);
        });
    }

    /// Broadcasts a packet from a node, over the first medium that can.
    pub(super) fn broadcast(&mut self, now: Instant, from: NodeId, handle: PacketHandle) {
        each_medium!(M => if M::has_node(self, from) {
            return M::broadcast(self, now, from, handle);
        });
        self.packets.remove(handle);
    }

    /// Whether a node can broadcast.
    pub(super) fn can_broadcast(&self, node: NodeId) -> bool {
        each_medium!(M => if M::has_node(self, node) {
            return true;
        });
        false
    }

    /// Handles an event of a medium.
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

    pub(super) fn jam_on_media(&mut self, now: Instant, node: NodeId, begins: bool) {
        each_medium!(M => M::jam(self, now, node, begins));
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

    /// Rate of a link in bit/s, if its medium knows it.
    pub(super) fn bit_rate(&self, link: LinkId) -> Option<u64> {
        let medium = self.graph.link(link).medium();
        each_medium!(M => if M::ID == medium {
            return M::bit_rate(self, link);
        });
        None
    }

    /// Quality of a link, as estimated by the node at its beginning.
    pub(super) fn view(&mut self, now: Instant, link: LinkId) -> Option<View> {
        let medium = self.graph.link(link).medium();
        each_medium!(M => if M::ID == medium {
            return M::view(self, now, link);
        });
        None
    }

    /// Energy that the radio of a node has used since the beginning of time; `None` if it has no
    /// radio.
    pub fn energy_use(&self, now: Instant, node: NodeId) -> Option<EnergyUse> {
        each_medium!(M => if let Some(used) = M::energy_use(self, now, node) {
            return Some(used);
        });
        None
    }

    /// Number of routing messages (AODV, RPL) that a node has passed to its radio.
    pub fn routing_messages(&self, node: NodeId) -> u64 {
        let mut sum = 0;
        each_medium!(M => sum += M::routing(self, node));
        sum
    }

    /// Metrics of a node's interface to a shared channel until `now`; `None` if it has none.
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
