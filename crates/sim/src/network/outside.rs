//! The edge of the simulated network, where packets enter from outside and leave.

use anabranch_core::segment::Ecn;
use anabranch_core::time::Instant;

use super::Network;
use super::forwarding::Past;
use crate::packet::{Ends, Injected, NodeId, Packet, PacketHandle, Payload};
use crate::trace::NodeDrop;

impl Network {
    /// Makes a node the edge to the outside. Packets for it are not passed to its TCP host; they
    /// wait for [`Network::take_departed`]. [`Network::inject`] sends packets from it.
    pub fn set_outside(&mut self, node: NodeId) {
        self.relays[node.index()].outside = true;
    }

    /// Sends a packet that was made outside from `src`. The caller reassembles fragments first. A
    /// packet for a node that does not exist is dropped and counted as one without a route.
    pub fn inject(&mut self, now: Instant, src: NodeId, packet: Injected) {
        let Injected { dst, path, outer, hop_limit, traffic_class, whole } = packet;
        let metrics = &mut self.relays[src.index()].metrics;
        if !self.graph.is_up(src) {
            metrics.down += 1;
            return;
        }
        metrics.sent += 1;
        let mut handle =
            self.make_packet(src, Ends { src, dst, path }, hop_limit, whole.wire_len(), whole.into());
        handle.ecn = Ecn::of(traffic_class);
        let packet = self.packets.get_mut(handle);
        packet.traffic_class = traffic_class;
        packet.outer = outer.boxed();
        if dst.index() < self.graph.node_count() {
            self.send_on(now, src, Past::NONE, handle);
        } else {
            self.drop_at(now, src, NodeDrop::NoRoute, handle);
        }
    }

    /// Takes the first packet that has left the simulation: reassembled, at its destination.
    pub fn take_departed(&mut self) -> Option<Packet> {
        self.departed.pop_front()
    }

    #[cold]
    pub(super) fn depart(&mut self, now: Instant, at: NodeId, handle: PacketHandle) {
        let mut packet = self.packets.remove(handle);
        let relay = &mut self.relays[at.index()];
        if let Payload::Fragment(piece) = packet.payload {
            let of = (packet.identification, handle.ecn);
            let Some((ecn, whole)) = relay.reassembly.handle_fragment(now, packet.src, of, piece) else {
                return;
            };
            packet.traffic_class = ecn.within(packet.traffic_class);
            packet.wire_len = self.config.ip.header_len() + whole.wire_len() as u32;
            packet.payload = whole.marked(ecn).into();
        }
        relay.metrics.received += 1;
        // The path was one of the network's.
        packet.path = 0;
        self.departed.push_back(packet);
    }
}
