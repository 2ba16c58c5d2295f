//! Edges of the network to the outside.

use anabranch_core::segment::{Ecn, Flags, Segment, SeqNumber};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::Sink;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::octets;
use anabranch_sim::packet::{Injected, IpVersion, NodeId, Opaque, Packet, Payload, Whole};
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_wire::ip::Protocol;
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
    Injected { dst, hop_limit, traffic_class: DSCP | Ecn::Ect0 as u8, whole }
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
    assert!(sim.take_departed().is_none());
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
