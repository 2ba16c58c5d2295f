//! UDP: datagrams of applications, and those of routers.

use anabranch_core::time::Instant;
use anabranch_wire::ip::{self, Header, Protocol, UdpDatagram};

use super::Network;
use crate::address::address_of;
use crate::packet::{Ends, NodeId, Opaque, Payload};

/// A datagram that has reached its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    /// Where it is.
    pub(crate) node: NodeId,
    /// Where it comes from.
    pub(crate) src: NodeId,
    /// Ports and payload.
    pub(crate) datagram: UdpDatagram,
}

impl Network {
    /// A node sends a datagram.
    pub fn send_datagram(&mut self, now: Instant, ends: Ends, datagram: UdpDatagram) {
        let node = &mut self.nodes[ends.src.index()];
        if !node.up {
            return;
        }
        node.metrics.sent += 1;
        let (hop_limit, octets) = (self.config.hop_limit, datagram.wire_len());
        let handle = self.make_packet(ends.src, ends, hop_limit, octets, Payload::Udp(datagram));
        self.send_on(now, ends.src, handle);
    }

    /// The datagram for an application that came first.
    #[inline]
    pub(crate) fn take_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// An application has taken a datagram.
    pub(crate) fn count_datagram(&mut self, at: NodeId) {
        self.nodes[at.index()].metrics.received += 1;
    }

    /// A datagram has come to a node from its neighbour `from`; `src` has made it.
    pub(super) fn receive_datagram(
        &mut self,
        now: Instant,
        at: NodeId,
        (from, src, ttl): (NodeId, NodeId, u8),
        datagram: UdpDatagram,
    ) {
        if datagram.dst_port == anabranch_core::aodv::PORT && self.has_aodv(at) {
            return self.handle_routing_message(now, at, (from, ttl), &datagram.payload);
        }
        self.datagrams.push_back(Datagram { node: at, src, datagram });
    }

    /// What was made outside may be a datagram, too; false if it is none.
    pub(super) fn receive_opaque_datagram(&mut self, at: NodeId, src: NodeId, opaque: &Opaque) -> bool {
        if opaque.protocol != Protocol::UDP {
            return false;
        }
        let ip = self.config.ip;
        let header = Header::new(address_of(ip, src), address_of(ip, at), Protocol::UDP);
        let Ok(datagram) = ip::parse_udp(&header, opaque.octets.clone()) else { return false };
        self.datagrams.push_back(Datagram { node: at, src, datagram });
        true
    }
}
