//! Converts packets from a TUN device for the simulator.

use std::net::IpAddr;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::{NodeSpec, Scenario};
use anabranch_sim::address::{address_of, node_at};
use anabranch_sim::octets;
use anabranch_sim::packet::{Injected, IpVersion, NodeId, Opaque, Outer, Whole};
use anabranch_wire::ip::{self, Reassembler, ReassemblyLimits};
use anabranch_wire::prefix::Prefix;
use bytes::Bytes;

/// Reassembly timeout (RFC 8200 section 4.5).
const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Hosts behind TUN ends, by their prefixes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts(Vec<(Prefix, NodeId)>);

impl Hosts {
    /// The hosts of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let of = |(i, node): (usize, &NodeSpec)| {
            let prefixes = node.tun.as_ref().map_or(&[][..], |tun| &tun.prefixes);
            prefixes.iter().map(|prefix| (*prefix, NodeId(i as u32))).collect::<Vec<_>>()
        };
        Self(scenario.nodes.iter().enumerate().flat_map(of).collect())
    }

    /// All prefixes, each with the node before its hosts.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, NodeId)> {
        self.0.iter().copied()
    }

    /// The node before the host with this address.
    fn node_before(&self, address: IpAddr) -> Option<NodeId> {
        self.iter().find(|(prefix, _)| prefix.contains(address)).map(|(_, node)| node)
    }
}

/// Processes the kernel's packets at one device.
#[derive(Debug)]
pub struct Ingress {
    ip: IpVersion,
    node: NodeId,
    hosts: Hosts,
    /// The nodes whose transports run in a kernel.
    ends: Vec<NodeId>,
    reassembler: Reassembler,
}

/// Classification of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// A datagram for a node of the network.
    Datagram(Injected),
    /// A fragment of an incomplete datagram.
    Piece,
    /// The source or destination is neither a node nor a host behind a TUN end: multicast, for
    /// example.
    Foreign,
    /// Not an IP packet, or a fragment that does not match the others.
    Bad,
}

impl Ingress {
    /// Creates the ingress of a device of the kernel that represents `node`. `ends` are all nodes
    /// that kernels represent.
    pub fn new(ip: IpVersion, node: NodeId, hosts: Hosts, ends: Vec<NodeId>) -> Self {
        Self { ip, node, hosts, ends, reassembler: Reassembler::new(ReassemblyLimits::default()) }
    }

    /// Processes one packet.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Incoming {
        let Ok((header, payload)) = ip::parse(packet) else { return Incoming::Bad };
        let Some((dst, outer)) = self.ends_of(&header) else { return Incoming::Foreign };
        let payload = Bytes::copy_from_slice(&packet[payload]);
        if header.fragment.is_some() {
            let before = now.as_nanos().saturating_sub(REASSEMBLY_TIMEOUT.as_nanos());
            self.reassembler.expire(before);
        }
        match self.reassembler.insert(&header, payload, now.as_nanos()) {
            Ok(Some((header, payload))) => {
                // A node that processed the segments of a host would take them for its node's.
                let whole = match outer {
                    Outer { src: None, dst: None, .. } => octets::read(&header, payload),
                    _ => Whole::Opaque(Opaque { protocol: header.protocol, octets: payload }),
                };
                let ip::Header { hop_limit, traffic_class, .. } = header;
                Incoming::Datagram(Injected { dst, outer, hop_limit, traffic_class, whole })
            }
            Ok(None) => Incoming::Piece,
            Err(_) => Incoming::Bad,
        }
    }

    /// The destination node, and what no simulated node reads. `None` for packets that the network
    /// does not carry.
    fn ends_of(&self, header: &ip::Header) -> Option<(NodeId, Outer)> {
        let own = header.src == address_of(self.ip, self.node);
        if !own && self.hosts.node_before(header.src) != Some(self.node) {
            return None;
        }
        let outer = Outer { src: (!own).then_some(header.src), dst: None, flow_label: header.flow_label };
        if let Some(dst) = self.hosts.node_before(header.dst) {
            return Some((dst, Outer { dst: Some(header.dst), ..outer }));
        }
        let dst = node_at(header.dst).filter(|_| header.dst.is_ipv4() == (self.ip == IpVersion::V4))?;
        // A simulated node would answer to the node before the host.
        (own || self.ends.contains(&dst)).then_some((dst, outer))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::ecn::Ecn;
    use anabranch_wire::ip::{Header, Protocol};

    use super::*;

    fn udp(src: &str, dst: &str) -> Header {
        let address = |text: &str| text.parse().expect("an address");
        Header {
            ident: 9,
            hop_limit: 33,
            traffic_class: 0xb9,
            flow_label: LABEL,
            ..Header::new(address(src), address(dst), Protocol::UDP)
        }
    }

    const LABEL: u32 = 0xa_bcde;

    fn injected(whole: Whole) -> Injected {
        let outer = Outer { flow_label: LABEL, ..Outer::default() };
        Injected { dst: NodeId(2), outer, hop_limit: 33, traffic_class: 0xb9, whole }
    }

    /// The first of three nodes; it and the last are TUN ends with hosts behind them.
    fn ingress(ip: IpVersion) -> Ingress {
        let hosts = [("2001:db8::/64", 0), ("2001:db8:1::/64", 2)];
        let hosts = hosts.map(|(prefix, node)| (prefix.parse().expect("a prefix"), NodeId(node)));
        Ingress::new(ip, NodeId(0), Hosts(hosts.to_vec()), vec![NodeId(0), NodeId(2)])
    }

    fn packet(header: &Header, payload: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        ip::emit(header, payload, &mut octets).expect("a legal packet");
        octets
    }

    #[test]
    fn only_what_goes_from_this_node_to_another_comes_in() {
        let mut ingress = ingress(IpVersion::V6);
        let mut handle = |src, dst| ingress.handle(Instant::ZERO, &packet(&udp(src, dst), b"data"));
        let opaque = Opaque { protocol: Protocol::UDP, octets: Bytes::from_static(b"data") };
        let whole = Whole::Opaque(opaque);
        assert_eq!(handle("fd00::1", "fd00::3"), Incoming::Datagram(injected(whole)));
        // The network says that there is no such node.
        assert!(
            matches!(handle("fd00::1", "fd00::4"), Incoming::Datagram(packet) if packet.dst == NodeId(3))
        );
        for (src, dst) in [
            ("fd00::2", "fd00::3"),
            ("fd00::1", "ff02::1"),
            ("::", "fd00::3"),
            ("fd00::1", "2001:db8:2::1"),
            // A host behind another end; a simulated node, which would answer to the wrong address.
            ("2001:db8:1::1", "fd00::3"),
            ("2001:db8::1", "fd00::2"),
        ] {
            assert_eq!(handle(src, dst), Incoming::Foreign);
        }
        assert_eq!(handle("10.0.0.1", "10.0.0.2"), Incoming::Foreign);
        assert_eq!(ingress.handle(Instant::ZERO, b"E"), Incoming::Bad);
        assert_eq!(ingress.handle(Instant::ZERO, b""), Incoming::Bad);
    }

    #[test]
    fn pieces_are_joined() {
        let mut ingress = ingress(IpVersion::V4);
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
        let outer = Outer::default();
        let marked = Injected { traffic_class: 0xbb, outer, ..injected(whole) };
        assert_eq!(last, Some(Incoming::Datagram(marked)));
    }
    #[test]
    fn forwarded_packets_keep_their_addresses() {
        let mut ingress = ingress(IpVersion::V6);
        let segment = anabranch_core::segment::Segment::default();
        for (src, dst, kept) in [
            ("2001:db8::7", "2001:db8:1::9", (true, true)),
            ("2001:db8::7", "fd00::3", (true, false)),
            ("fd00::1", "2001:db8:1::9", (false, true)),
        ] {
            let header = udp(src, dst);
            let mut octets = Vec::new();
            ip::emit_tcp(&header, &segment, &mut octets).expect("a legal packet");
            let Incoming::Datagram(packet) = ingress.handle(Instant::ZERO, &octets) else {
                panic!("{src} {dst}")
            };
            let address = |kept: bool, address: IpAddr| kept.then_some(address);
            let outer = Outer {
                src: address(kept.0, header.src),
                dst: address(kept.1, header.dst),
                flow_label: LABEL,
            };
            assert_eq!((packet.dst, packet.outer), (NodeId(2), outer));
            // Two hosts may have equal ports, so no node on the path may read them.
            assert!(matches!(packet.whole, Whole::Opaque(_)), "{:?}", packet.whole);
        }
    }
}
