//! UDP datagrams that have reached their nodes.

use anabranch_wire::ip::{self, Header, Protocol, UdpDatagram};

use super::Network;
use crate::address::address_of;
use crate::packet::{NodeId, Opaque};

/// A UDP datagram that has reached its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    /// Destination node.
    pub(crate) node: NodeId,
    /// Source node.
    pub(crate) src: NodeId,
    /// Ports and payload.
    pub(crate) datagram: UdpDatagram,
}

impl Network {
    /// Takes the first datagram that waits for an application.
    #[inline]
    pub(crate) fn take_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// Counts a datagram that an application has accepted.
    pub(crate) fn count_datagram(&mut self, at: NodeId) {
        self.relays[at.index()].metrics.received += 1;
    }

    /// Queues a datagram for an application at its node.
    pub(super) fn keep_datagram(&mut self, node: NodeId, src: NodeId, datagram: UdpDatagram) {
        self.datagrams.push_back(Datagram { node, src, datagram });
    }

    /// Reads a datagram from a packet that was made outside.
    pub(super) fn parse_datagram(&self, at: NodeId, src: NodeId, opaque: &Opaque) -> Option<UdpDatagram> {
        if opaque.protocol != Protocol::UDP {
            return None;
        }
        let ip = self.config.ip;
        let header = Header::new(address_of(ip, src), address_of(ip, at), Protocol::UDP);
        ip::parse_udp(&header, opaque.octets.clone()).ok()
    }
}
