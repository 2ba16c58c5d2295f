//! Datagrams (UDP) that have reached their nodes.

use anabranch_wire::ip::{self, Header, Protocol, UdpDatagram};

use super::Network;
use crate::address::address_of;
use crate::packet::{NodeId, Opaque};

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
    /// The datagram for an application that came first.
    #[inline]
    pub(crate) fn take_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// An application has taken a datagram.
    pub(crate) fn count_datagram(&mut self, at: NodeId) {
        self.relays[at.index()].metrics.received += 1;
    }

    /// Keeps a datagram for an application at its node.
    pub(super) fn keep_datagram(&mut self, node: NodeId, src: NodeId, datagram: UdpDatagram) {
        self.datagrams.push_back(Datagram { node, src, datagram });
    }

    /// What was made outside may be a datagram, too.
    pub(super) fn parse_datagram(&self, at: NodeId, src: NodeId, opaque: &Opaque) -> Option<UdpDatagram> {
        if opaque.protocol != Protocol::UDP {
            return None;
        }
        let ip = self.config.ip;
        let header = Header::new(address_of(ip, src), address_of(ip, at), Protocol::UDP);
        ip::parse_udp(&header, opaque.octets.clone()).ok()
    }
}
