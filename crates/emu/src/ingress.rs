//! Converts packets from a TUN device for the simulator.

use std::collections::BTreeMap;
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

/// Paths between the addresses of TUN ends of which one has several addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Crossings(BTreeMap<(IpAddr, IpAddr), (NodeId, u8)>);

impl Crossings {
    /// The paths of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let both = scenario.crossings.iter().flat_map(|crossing| {
            let [a, b] = crossing.ends.map(|(node, i)| (node, scenario.address(node, i)));
            [(a, b), (b, a)].map(|((_, from), (node, to))| ((from, to), (node, crossing.path)))
        });
        Self(both.collect())
    }

    /// The node with the second address, and the number of the path to it from the first.
    fn find(&self, from: IpAddr, to: IpAddr) -> Option<(NodeId, u8)> {
        self.0.get(&(from, to)).copied()
    }
}

/// Processes the kernel's packets at one device.
#[derive(Debug)]
pub struct Ingress {
    ip: IpVersion,
    node: NodeId,
    /// Address of the device.
    address: IpAddr,
    hosts: Hosts,
    crossings: Crossings,
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
    /// Creates the ingress of the device with this address of the kernel that represents `node`.
    /// `ends` are all nodes that kernels represent.
    pub fn new(
        ip: IpVersion,
        (node, address): (NodeId, IpAddr),
        hosts: Hosts,
        crossings: Crossings,
        ends: Vec<NodeId>,
    ) -> Self {
        let reassembler = Reassembler::new(ReassemblyLimits::default());
        Self { ip, node, address, hosts, crossings, ends, reassembler }
    }

    /// Processes one packet.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Incoming {
        let Ok((header, payload)) = ip::parse(packet) else { return Incoming::Bad };
        let Some((dst, path, outer)) = self.ends_of(&header) else { return Incoming::Foreign };
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
                Incoming::Datagram(Injected { dst, path, outer, hop_limit, traffic_class, whole })
            }
            Ok(None) => Incoming::Piece,
            Err(_) => Incoming::Bad,
        }
    }

    /// The destination node, the path to it, and what no simulated node reads. `None` for packets
    /// that the network does not carry.
    fn ends_of(&self, header: &ip::Header) -> Option<(NodeId, u8, Outer)> {
        let own = header.src == self.address;
        if !own && self.hosts.node_before(header.src) != Some(self.node) {
            return None;
        }
        let is_nodes = |node, address| address == address_of(self.ip, node);
        let src = (!is_nodes(self.node, header.src)).then_some(header.src);
        let outer = Outer { src, dst: None, flow_label: header.flow_label };
        if let Some(dst) = self.hosts.node_before(header.dst) {
            let crossing = self.crossings.find(header.src, address_of(self.ip, dst));
            let path = crossing.map_or(0, |(_, path)| path);
            return Some((dst, path, Outer { dst: Some(header.dst), ..outer }));
        }
        if let Some((dst, path)) = self.crossings.find(header.src, header.dst) {
            let behind = (!is_nodes(dst, header.dst)).then_some(header.dst);
            return Some((dst, path, Outer { dst: behind, ..outer }));
        }
        let dst = node_at(header.dst).filter(|_| header.dst.is_ipv4() == (self.ip == IpVersion::V4))?;
        // A simulated node would answer to the address of the node.
        (src.is_none() || self.ends.contains(&dst) && !own).then_some((dst, 0, outer))
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
        Injected { dst: NodeId(2), path: 0, outer, hop_limit: 33, traffic_class: 0xb9, whole }
    }

    /// The first of three nodes; it and the last are TUN ends with hosts behind them.
    fn ingress(ip: IpVersion) -> Ingress {
        let hosts = [("2001:db8::/64", 0), ("2001:db8:1::/64", 2)];
        let hosts = hosts.map(|(prefix, node)| (prefix.parse().expect("a prefix"), NodeId(node)));
        let own = (NodeId(0), address_of(ip, NodeId(0)));
        Ingress::new(ip, own, Hosts(hosts.to_vec()), Crossings::default(), vec![NodeId(0), NodeId(2)])
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

    #[test]
    fn packets_keep_to_the_path_between_two_addresses() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let (second, far) = (address("fd00::4"), address("fd00::3"));
        let both = [((second, far), (NodeId(2), 7)), ((far, second), (NodeId(0), 7))];
        let crossings = Crossings(both.into());
        let ends = || vec![NodeId(0), NodeId(2)];
        let mut segment = Vec::new();
        let handle = |own, src: &str, dst: &str, segment: &mut Vec<u8>| {
            segment.clear();
            let content = anabranch_core::segment::Segment::default();
            ip::emit_tcp(&udp(src, dst), &content, segment).expect("a legal packet");
            let mut ingress = Ingress::new(IpVersion::V6, own, Hosts::default(), crossings.clone(), ends());
            ingress.handle(Instant::ZERO, segment)
        };
        let (near, other) = ((NodeId(0), second), (NodeId(2), far));
        for (own, src, dst, node, outer) in [
            (near, "fd00::4", "fd00::3", NodeId(2), (Some(second), None)),
            (other, "fd00::3", "fd00::4", NodeId(0), (None, Some(second))),
        ] {
            let Incoming::Datagram(packet) = handle(own, src, dst, &mut segment) else {
                panic!("{src} {dst}")
            };
            assert_eq!((packet.dst, packet.path, (packet.outer.src, packet.outer.dst)), (node, 7, outer));
            assert!(matches!(packet.whole, Whole::Opaque(_)), "{:?}", packet.whole);
        }
        // The address of another device; a simulated node, which would answer to another address.
        for (src, dst) in [("fd00::1", "fd00::3"), ("fd00::4", "fd00::2")] {
            assert_eq!(handle(near, src, dst, &mut segment), Incoming::Foreign, "{src} {dst}");
        }
    }
}
