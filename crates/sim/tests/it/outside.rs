//! Edges of the network to the outside.

use std::net::IpAddr;

use anabranch_core::segment::{Ecn, Flags, Segment, SeqNumber};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::address::address_of;
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::Sink;
use anabranch_sim::capture::Capture;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, Fragmentation, NetworkConfig, WirelessConfig};
use anabranch_sim::octets;
use anabranch_sim::packet::{Injected, IpVersion, NodeId, Opaque, Outer, Packet, Payload, Whole};
use anabranch_sim::radio::{Position, RadioConfig};
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_wire::icmpv6::{self, Kind};
use anabranch_wire::ip::{self, Protocol, UdpDatagram};
use bytes::Bytes;

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const C: NodeId = NodeId(2);
/// Expedited forwarding (RFC 3246).
const DSCP: u8 = 46 << 2;

/// Two edges and a router between them, 10 ms from each.
fn network(mtu: u32) -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    builder.node("a", Forwarding::Off);
    builder.node("b", Forwarding::On);
    builder.node("c", Forwarding::Off);
    let link = LinkConfig { mtu, ..LinkConfig::new(1_000_000_000, Duration::from_millis(10)) };
    builder.cable(A, B, link);
    builder.cable(B, C, link);
    builder.outside(A);
    builder.outside(C);
    builder.app(B, Instant::ZERO, Sink::new(80, tcp::Config::default()));
    builder.build()
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn opaque(octets: usize) -> Whole {
    let octets = Bytes::from_iter((0..octets).map(|i| i as u8));
    Whole::Opaque(Opaque { protocol: Protocol::UDP, octets })
}

fn payload(packet: &Packet) -> String {
    format!("{:?}", packet.payload)
}

fn packet(dst: NodeId, hop_limit: u8, whole: Whole) -> Injected {
    Injected {
        dst,
        path: 0,
        outer: Outer::default(),
        hop_limit,
        traffic_class: DSCP | Ecn::Ect0 as u8,
        whole,
    }
}

#[test]
fn a_packet_comes_in_at_one_end_and_goes_out_at_the_other() {
    // Once whole, once in fragments.
    for mtu in [1500, 200] {
        let mut sim = network(mtu);
        sim.catch_up(ms(5));
        let segment =
            Segment { src_port: 7, dst_port: 9, payload: Bytes::from(vec![3; 700]), ..Segment::default() };
        for whole in [opaque(1000), Whole::Tcp(segment)] {
            let begun = sim.now();
            sim.send_from_outside(A, packet(C, 64, whole.clone()));
            sim.catch_up(begun + Duration::from_millis(20));
            assert!(sim.take_departed().is_none());
            sim.catch_up(begun + Duration::from_millis(21));
            let packet = sim.take_departed().expect("it has arrived");
            assert_eq!((packet.src, packet.dst, packet.hop_limit), (A, C, 63));
            assert_eq!(packet.traffic_class, DSCP | Ecn::Ect0 as u8);
            assert_eq!(packet.wire_len as usize, 40 + whole.wire_len());
            let whole = match whole {
                Whole::Tcp(segment) => Whole::Tcp(Segment { ecn: Ecn::Ect0, ..segment }),
                other @ (Whole::Udp(_) | Whole::Opaque(_)) => other,
            };
            assert_eq!(payload(&packet), format!("{:?}", Payload::from(whole)));
            assert!(sim.take_departed().is_none());
        }
        assert_eq!(sim.world().network.packets_in_flight(), 0);
        assert_eq!(sim.next_event(), None);
    }
}

#[test]
fn a_simulated_host_answers_the_outside() {
    let mut sim = network(1500);
    let syn =
        Segment { src_port: 7, dst_port: 80, flags: Flags::SYN, seq: SeqNumber(5), ..Segment::default() };
    sim.send_from_outside(A, packet(B, 64, Whole::Tcp(syn)));
    sim.catch_up(ms(25));
    let answer = sim.take_departed().expect("a SYN with an acknowledgement");
    assert_eq!((answer.src, answer.dst), (B, A));
    let Payload::Tcp(answer) = answer.payload else { panic!("not TCP: {answer:?}") };
    assert_eq!((answer.flags, answer.ack), (Flags(Flags::SYN.0 | Flags::ACK.0), SeqNumber(6)));
}

/// Closes connections that it accepts.
struct Closer;

impl App for Closer {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        let config = tcp::Config { time_wait_reuse: true, ..tcp::Config::default() };
        ctx.listen(81, config).expect("the port is free");
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        if let StreamEvent::Accepted { .. } = event {
            ctx.close(id);
        }
    }
}

/// RFC 6191, through the host's table of connections.
#[test]
fn a_later_syn_takes_the_place_of_a_connection_in_time_wait() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    builder.node("a", Forwarding::Off);
    builder.node("b", Forwarding::On);
    builder.cable(A, B, LinkConfig::new(1_000_000_000, Duration::from_millis(10)));
    builder.outside(A);
    builder.app(B, Instant::ZERO, Closer);
    let mut sim = builder.build();
    sim.catch_up(ms(1));
    let mut exchange = |segment: Segment| {
        let segment = Segment { src_port: 7, dst_port: 81, window: 8000, ..segment };
        let begun = sim.now();
        sim.send_from_outside(A, packet(B, 64, Whole::Tcp(segment)));
        sim.catch_up(begun + Duration::from_millis(30));
        sim.take_departed().map(|packet| match packet.payload {
            Payload::Tcp(segment) => segment,
            other => panic!("not TCP: {other:?}"),
        })
    };
    let syn = |seq| Segment { flags: Flags::SYN, seq: SeqNumber(seq), ..Segment::default() };
    let first = exchange(syn(5)).expect("a SYN-ACK");
    let answer = |flags, ack| Segment { flags, seq: SeqNumber(6), ack, ..Segment::default() };
    let fin = exchange(answer(Flags::ACK, first.seq + 1)).expect("a FIN");
    assert!(fin.flags.contains(Flags::FIN));
    exchange(answer(Flags::FIN.with(Flags::ACK), fin.seq + 1)).expect("the FIN's acknowledgement");
    // An old SYN is answered by the connection in TIME-WAIT, a later one by the listener.
    let old = exchange(syn(2)).expect("a challenge");
    assert_eq!((old.flags, old.ack), (Flags::ACK, SeqNumber(7)));
    let second = exchange(syn(5000)).expect("a SYN-ACK");
    assert_eq!((second.flags, second.ack), (Flags::SYN.with(Flags::ACK), SeqNumber(5001)));
    assert!(second.seq.gt(fin.seq + 1));
    // The old connection is removed, the new one is not.
    let again = Segment { seq: SeqNumber(5001), ..answer(Flags::ACK, second.seq + 1) };
    assert!(exchange(again).expect("a FIN").flags.contains(Flags::FIN));
}

#[test]
fn what_nobody_can_take_is_counted_and_gone() {
    let mut sim = network(200);
    sim.send_from_outside(A, packet(B, 64, opaque(100)));
    sim.send_from_outside(A, packet(B, 64, opaque(1000)));
    sim.send_from_outside(A, packet(NodeId(3), 64, opaque(100)));
    sim.send_from_outside(A, packet(A, 64, opaque(100)));
    sim.send_from_outside(A, packet(C, 1, opaque(100)));
    sim.catch_up(ms(100));
    let network = &sim.world().network;
    assert_eq!(network.packets_in_flight(), 0);
    assert_eq!(network.node_metrics(B).not_spoken, 2);
    assert_eq!(network.node_metrics(B).hop_limit, 1);
    assert_eq!(network.node_metrics(A).no_route, 2);
}

#[test]
fn time_goes_on_without_events() {
    let mut sim = network(1500);
    sim.catch_up(ms(70));
    assert_eq!((sim.now(), sim.next_event()), (ms(70), None));
    sim.send_from_outside(A, packet(C, 64, opaque(1)));
    assert!(sim.next_event().is_some_and(|due| due > ms(80) && due < ms(81)));
}

/// A mark by the network's queue is in the bytes that leave it; in IPv4 the header checksum
/// matches.
#[test]
fn marks_leave_the_network() {
    for (ip, mtu) in [(IpVersion::V4, 1500), (IpVersion::V6, 1500), (IpVersion::V6, 400)] {
        let mut builder = Builder::new(NetworkConfig { ip, ..NetworkConfig::default() }, 1, 0);
        let [a, b] = ["a", "b"].map(|name| builder.node(name, Forwarding::Off));
        let threshold = Some(QueueLimit::Packets(3));
        let link = LinkConfig { mtu, ecn_threshold: threshold, ..LinkConfig::new(1_000_000, Duration::ZERO) };
        builder.cable(a, b, link);
        builder.outside(a);
        builder.outside(b);
        let mut sim = builder.build();
        for _ in 0..6 {
            sim.send_from_outside(a, packet(b, 64, opaque(900)));
        }
        sim.catch_up(ms(500));
        let mut seen = Vec::new();
        while let Some(packet) = sim.take_departed() {
            let octets = octets::write(ip, &packet).expect("a legal packet");
            let (header, _) = anabranch_wire::ip::parse(&octets).expect("what was written");
            assert_eq!(header.traffic_class & !3, DSCP);
            seen.push(Ecn::of(header.traffic_class));
        }
        assert_eq!(seen.len(), 6);
        // One is in transmission and three may wait; there are more fragments than packets.
        let unmarked = if mtu == 1500 { 4 } else { 1 };
        assert_eq!(seen.iter().position(|ecn| *ecn == Ecn::Ce), Some(unmarked), "{seen:?}");
        assert!(seen[unmarked..].iter().all(|ecn| *ecn == Ecn::Ce), "{seen:?}");
    }
}

/// The ICMPv6 messages that have left the network: source, destination, type, code and body.
fn messages(sim: &mut Simulation) -> Vec<(NodeId, NodeId, u8, u8, Vec<u8>)> {
    let mut seen = Vec::new();
    while let Some(packet) = sim.take_departed() {
        let octets = octets::write(IpVersion::V6, &packet).expect("a legal packet");
        let (header, payload) = ip::parse(&octets).expect("what was written");
        if header.protocol != Protocol::ICMPV6 {
            continue;
        }
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (header.src, header.dst) else { panic!("{header:?}") };
        let message = &octets[payload];
        let (icmp, body) = icmpv6::parse(message, [src, dst]).expect("a right checksum");
        seen.push((packet.src, packet.dst, icmp.kind.0, icmp.code, message[body].to_vec()));
    }
    seen
}

/// An ICMPv6 message from A to `to` with this type and body.
fn icmp(to: NodeId, kind: Kind, body: &[u8]) -> Whole {
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (address_of(IpVersion::V6, A), address_of(IpVersion::V6, to))
    else {
        panic!("not IPv6")
    };
    let mut octets = Vec::new();
    icmpv6::emit(&icmpv6::Header { kind, code: 0 }, body, [src, dst], &mut octets);
    Whole::Opaque(Opaque { protocol: Protocol::ICMPV6, octets: octets.into() })
}

#[test]
fn a_simulated_node_answers_an_echo() {
    let mut sim = network(1500);
    let body: Vec<u8> = (0..100).collect();
    sim.send_from_outside(A, packet(B, 64, icmp(B, Kind::ECHO_REQUEST, &body)));
    // An answer has no answer.
    sim.send_from_outside(A, packet(B, 64, icmp(B, Kind::ECHO_REPLY, &body)));
    sim.catch_up(ms(100));
    assert_eq!(messages(&mut sim), [(B, A, 129, 0, body)]);
    assert_eq!(sim.world().network.node_metrics(B).not_spoken, 1);
}

/// The table of RFC 4443 section 3, for every reason that this network has to drop a packet.
#[test]
fn the_source_of_a_dropped_packet_is_told_why() {
    const ALONE: NodeId = NodeId(3);
    const NONE: NodeId = NodeId(4);
    let config = NetworkConfig { fragmentation: Fragmentation::Forbidden, ..NetworkConfig::default() };
    let udp = UdpDatagram { src_port: 1000, dst_port: 99, payload: Bytes::from_static(b"hello") };
    let other = Opaque { protocol: Protocol::EXPERIMENT, octets: Bytes::from(vec![7; 1300]) };
    let other = |len: usize| Whole::Opaque(Opaque { octets: other.octets.slice(..len), ..other.clone() });
    // The node that tells, type, code, the word before the packet, and the packet's length.
    for (sent, (teller, kind, code, word), len) in [
        (packet(ALONE, 64, other(100)), (A, 1, 0, 0), 140),
        (packet(NONE, 64, other(100)), (A, 1, 3, 0), 140),
        (packet(B, 64, Whole::Udp(udp)), (B, 1, 4, 0), 53),
        (packet(C, 64, other(1200)), (B, 2, 0, 1000), 1232),
        (packet(C, 1, other(100)), (B, 3, 0, 0), 140),
        (packet(B, 64, other(1300)), (B, 4, 1, 6), 1232),
    ] {
        let mut builder = Builder::new(config, 1, 0);
        builder.node("a", Forwarding::Off);
        builder.node("b", Forwarding::On);
        builder.node("c", Forwarding::Off);
        builder.node("alone", Forwarding::Off);
        let link = LinkConfig::new(1_000_000_000, Duration::from_millis(10));
        builder.cable(A, B, link);
        builder.cable(B, C, LinkConfig { mtu: 1000, ..link });
        builder.outside(A);
        let mut sim = builder.build();
        sim.send_from_outside(A, sent.clone());
        sim.catch_up(ms(100));
        let seen = messages(&mut sim);
        let [(from, to, type_, code_, body)] = &seen[..] else { panic!("{sent:?}: {seen:?}") };
        assert_eq!((*from, *to, *type_, *code_), (teller, A, kind, code), "{sent:?}");
        assert_eq!(body[..4], u32::to_be_bytes(word), "{sent:?}");
        assert_eq!(body.len() - 4, len, "{sent:?}");
        // The packet itself follows, from its own header on.
        let (src, dst) = (address_of(IpVersion::V6, A), address_of(IpVersion::V6, sent.dst));
        assert_eq!(body[4] >> 4, 6);
        assert_eq!(body[4 + 8..4 + 40], [octets_of(src), octets_of(dst)].concat(), "{sent:?}");
    }
}

fn octets_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V6(address) => address.octets().to_vec(),
        IpAddr::V4(address) => address.octets().to_vec(),
    }
}

/// RFC 4443 section 2.4 (e) and (f).
#[test]
fn no_error_answers_an_error_and_not_every_packet_has_one() {
    // The longer ones are fragmented.
    let mut sim = network(200);
    for len in [60, 600] {
        sim.send_from_outside(A, packet(C, 1, icmp(C, Kind::TIME_EXCEEDED, &vec![0; len])));
        sim.send_from_outside(A, packet(C, 1, icmp(C, Kind::REDIRECT, &vec![0; len])));
    }
    // TCP that no node can read, and nothing at all, are not unknown protocols.
    for protocol in [Protocol::TCP, Protocol(59)] {
        let opaque = Opaque { protocol, octets: Bytes::from(vec![1; 40]) };
        sim.send_from_outside(A, packet(B, 64, Whole::Opaque(opaque)));
    }
    sim.catch_up(ms(100));
    assert_eq!(messages(&mut sim), []);
    let mut sim = network(1500);
    for _ in 0..30 {
        sim.send_from_outside(A, packet(C, 1, opaque(100)));
    }
    sim.catch_up(ms(200));
    assert_eq!(messages(&mut sim).len(), 10);
    // Simulated hosts have no use for them.
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    builder.node("a", Forwarding::Off);
    builder.node("b", Forwarding::On);
    builder.cable(A, B, LinkConfig::new(1_000_000_000, Duration::from_millis(10)));
    let mut sim = builder.build();
    sim.send_from_outside(A, packet(B, 64, opaque(100)));
    sim.catch_up(ms(100));
    assert_eq!(sim.world().network.node_metrics(B).sent, 0);
}

#[test]
fn what_no_node_reads_passes_unchanged() {
    let address = |text: &str| Some(text.parse().expect("an address"));
    let outer = Outer { src: address("2001:db8::7"), dst: address("2001:db8:1::9"), flow_label: 0xa_bcde };
    for mtu in [1500, 200] {
        let mut sim = network(mtu);
        sim.send_from_outside(A, Injected { outer, ..packet(C, 64, opaque(1000)) });
        sim.catch_up(ms(100));
        let packet = sim.take_departed().expect("it has arrived");
        let octets = octets::write(IpVersion::V6, &packet).expect("a legal packet");
        let (header, payload) = ip::parse(&octets).expect("what was written");
        assert_eq!((Some(header.src), Some(header.dst)), (outer.src, outer.dst));
        assert_eq!(header.flow_label, outer.flow_label);
        assert_eq!(payload.len(), 1000);
        // An error goes to the host, not to the node before it.
        sim.send_from_outside(A, Injected { outer, ..packet_of_one_hop() });
        sim.catch_up(ms(200));
        let packet = sim.take_departed().expect("an error");
        let octets = octets::write(IpVersion::V6, &packet).expect("a legal packet");
        let (header, payload) = ip::parse(&octets).expect("what was written");
        assert_eq!((header.src, Some(header.dst)), (address_of(IpVersion::V6, B), outer.src));
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (header.src, header.dst) else { panic!("{header:?}") };
        let message = &octets[payload];
        let (_, body) = icmpv6::parse(message, [src, dst]).expect("a right checksum");
        let (inner, _) = ip::parse(&message[body][4..]).expect("the whole packet");
        assert_eq!((Some(inner.src), Some(inner.dst)), (outer.src, outer.dst));
    }
}

fn packet_of_one_hop() -> Injected {
    packet(C, 1, opaque(100))
}

/// The radio sends the headers that the packet has outside, so its frames have their length.
#[test]
fn packets_from_outside_cross_a_radio() {
    let place = |x: f64| Position { x, y: 0.0 };
    for (whole, label, src) in [
        (opaque(300), 0, None),
        // Its fragments of 1280 bytes are IP's.
        (opaque(1452), 0, None),
        (opaque(300), 0x1_2345, Some("2001:db8::7".parse().expect("an address"))),
        (Whole::Udp(UdpDatagram { src_port: 7, dst_port: 9, payload: vec![1; 400].into() }), 0x1_2345, None),
    ] {
        let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
        let places: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .enumerate()
            .map(|(i, name)| (builder.node(name, Forwarding::On), place(80.0 * i as f64)))
            .collect();
        builder.radio(RadioConfig::o_qpsk(100.0), WirelessConfig::default(), &places).expect("a legal radio");
        builder.outside(A);
        builder.outside(C);
        let mut sim = builder.build();
        // A capture asserts that the bytes of each frame are as many as the radio has timed.
        sim.observe(Capture::new(Vec::new(), IpVersion::V6));
        let outer = Outer { src, flow_label: label, ..Outer::default() };
        sim.send_from_outside(A, Injected { outer, ..packet(C, 64, whole.clone()) });
        sim.catch_up(ms(1000));
        let packet = sim.take_departed().expect("it has arrived");
        assert_eq!(payload(&packet), format!("{:?}", Payload::from(whole)));
        let octets = octets::write(IpVersion::V6, &packet).expect("a legal packet");
        let (header, _) = ip::parse(&octets).expect("what was written");
        assert_eq!((header.flow_label, header.hop_limit), (label, 63));
    }
}
