//! Converts packets from a TUN device for the simulator.

use std::net::IpAddr;

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::address::{address_of, node_at};
use anabranch_sim::octets;
use anabranch_sim::packet::{Injected, IpVersion, NodeId};
use anabranch_wire::ip::{self, Reassembler, ReassemblyLimits};
use bytes::Bytes;

/// Reassembly timeout (RFC 8200 section 4.5).
const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Processes the kernel's packets at one end.
#[derive(Debug)]
pub struct Ingress {
    address: IpAddr,
    /// Number of nodes.
    nodes: u32,
    reassembler: Reassembler,
}

/// Classification of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// A datagram for a node of the network.
    Datagram(Injected),
    /// A fragment of an incomplete datagram.
    Piece,
    /// The source or destination is outside the network: multicast, or traffic that the kernel
    /// forwards.
    Foreign,
    /// Not an IP packet, or a fragment that does not match the others.
    Bad,
}

impl Ingress {
    /// Creates the ingress of the kernel that represents `node`, in a network of `nodes` nodes.
    pub fn new(ip: IpVersion, node: NodeId, nodes: u32) -> Self {
        let reassembler = Reassembler::new(ReassemblyLimits::default());
        Self { address: address_of(ip, node), nodes, reassembler }
    }

    /// Processes one packet.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Incoming {
        let Ok((header, payload)) = ip::parse(packet) else { return Incoming::Bad };
        let Some(dst) = node_at(header.dst).filter(|dst| dst.0 < self.nodes && header.src == self.address)
        else {
            return Incoming::Foreign;
        };
        let payload = Bytes::copy_from_slice(&packet[payload]);
        if header.fragment.is_some() {
            let before = now.as_nanos().saturating_sub(REASSEMBLY_TIMEOUT.as_nanos());
            self.reassembler.expire(before);
        }
        match self.reassembler.insert(&header, payload, now.as_nanos()) {
            Ok(Some((header, payload))) => {
                let whole = octets::read(&header, payload);
                let ip::Header { hop_limit, traffic_class, .. } = header;
                Incoming::Datagram(Injected { dst, hop_limit, traffic_class, whole })
            }
            Ok(None) => Incoming::Piece,
            Err(_) => Incoming::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_sim::packet::{Opaque, Whole};
    use anabranch_wire::ecn::Ecn;
    use anabranch_wire::ip::{Header, Protocol};

    use super::*;

    fn udp(src: &str, dst: &str) -> Header {
        let address = |text: &str| text.parse().expect("an address");
        Header {
            ident: 9,
            hop_limit: 33,
            traffic_class: 0xb9,
            ..Header::new(address(src), address(dst), Protocol::UDP)
        }
    }

    fn injected(whole: Whole) -> Injected {
        Injected { dst: NodeId(2), hop_limit: 33, traffic_class: 0xb9, whole }
    }

    fn packet(header: &Header, payload: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        ip::emit(header, payload, &mut octets).expect("a legal packet");
        octets
    }

    #[test]
    fn only_what_goes_from_this_node_to_another_comes_in() {
        let mut ingress = Ingress::new(IpVersion::V6, NodeId(0), 3);
        let mut handle = |src, dst| ingress.handle(Instant::ZERO, &packet(&udp(src, dst), b"data"));
        let opaque = Opaque { protocol: Protocol::UDP, octets: Bytes::from_static(b"data") };
        let whole = Whole::Opaque(opaque);
        assert_eq!(handle("fd00::1", "fd00::3"), Incoming::Datagram(injected(whole)));
        for (src, dst) in
            [("fd00::2", "fd00::3"), ("fd00::1", "fd00::4"), ("fd00::1", "ff02::1"), ("::", "fd00::3")]
        {
            assert_eq!(handle(src, dst), Incoming::Foreign);
        }
        assert_eq!(handle("10.0.0.1", "10.0.0.2"), Incoming::Foreign);
        assert_eq!(ingress.handle(Instant::ZERO, b"E"), Incoming::Bad);
        assert_eq!(ingress.handle(Instant::ZERO, b""), Incoming::Bad);
    }

    #[test]
    fn pieces_are_joined() {
        let mut ingress = Ingress::new(IpVersion::V4, NodeId(0), 3);
        let data: Vec<u8> = (0..3000).map(|i| i as u8).collect();
        let header = udp("10.0.0.1", "10.0.0.3");
        let mut last = None;
        // One marked fragment marks the datagram (RFC 3168 section 5.3).
        let mut class = [0, Ecn::Ce as u8, 0].into_iter();
        for (header, range) in ip::fragment(&header, data.len(), 1500).expect("it can be cut") {
            let traffic_class = header.traffic_class | class.next().unwrap_or_default();
            let header = Header { traffic_class, ..header };
            assert!(last.is_none_or(|last| last == Incoming::Piece));
            last = Some(ingress.handle(Instant::ZERO, &packet(&header, &data[range])));
        }
        let whole = Whole::Opaque(Opaque { protocol: Protocol::UDP, octets: Bytes::from(data) });
        let marked = Injected { traffic_class: 0xbb, ..injected(whole) };
        assert_eq!(last, Some(Incoming::Datagram(marked)));
    }
}
