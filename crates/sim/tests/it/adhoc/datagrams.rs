//! UDP over links and over the air.

use anabranch_core::aodv;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::cbr::{CbrSink, CbrSource};
use anabranch_sim::host::{BindError, DatagramError, MAX_DATAGRAM};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::network::{AdhocConfig, AodvError, Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::sim::Builder;
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_sim::wifi::{Position, WifiConfig};
use bytes::Bytes;

use super::support::{after, cbr, config, row};

/// Sends datagrams of several lengths, and answers each with an equal one from the other port.
#[derive(Debug)]
struct Echo {
    to: Option<NodeId>,
    lengths: Vec<usize>,
    heard: Vec<(NodeId, u16, u16, Bytes)>,
}

impl Echo {
    fn new(to: Option<NodeId>, lengths: &[usize]) -> Self {
        Self { to, lengths: lengths.to_vec(), heard: Vec::new() }
    }
}

fn octets(len: usize) -> Bytes {
    (0..len).map(|i| (i * 7) as u8).collect()
}

impl App for Echo {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        ctx.bind(7).unwrap();
        assert_eq!(ctx.bind(7), Err(BindError::PortInUse(7)));
        ctx.bind(8).unwrap();
        ctx.unbind(8);
        let Some(to) = self.to else { return };
        for len in &self.lengths {
            ctx.send_datagram(to, 7, 7, octets(*len)).unwrap();
        }
        ctx.send_datagram(to, 7, 8, octets(5)).unwrap();
        let long = ctx.send_datagram(to, 7, 7, octets(MAX_DATAGRAM + 1));
        assert_eq!(long, Err(DatagramError::TooLong { octets: MAX_DATAGRAM + 1, most: MAX_DATAGRAM }));
        let nobody = NodeId(99);
        assert_eq!(ctx.send_datagram(nobody, 7, 7, octets(1)), Err(DatagramError::NoSuchNode(nobody)));
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_datagram(&mut self, ctx: &mut Ctx<'_>, from: NodeId, from_port: u16, to_port: u16, data: Bytes) {
        if self.to.is_none() {
            ctx.send_datagram(from, to_port, from_port, data.clone()).unwrap();
        }
        self.heard.push((from, from_port, to_port, data));
    }
}

#[test]
fn datagrams_cross_links_in_pieces_and_whole() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let mut builder = Builder::new(NetworkConfig { ip, ..NetworkConfig::default() }, 1, 0);
        let [a, r, b] = ["a", "r", "b"].map(|name| builder.node(name, Forwarding::On));
        let link = LinkConfig::new(1_000_000, Duration::from_millis(10));
        builder.cable(a, r, link);
        builder.cable(r, b, LinkConfig { mtu: 576, ..link });
        let lengths = [0, 1, 500, 1400, 3000, 20_000];
        let server = builder.app(b, Instant::ZERO, Echo::new(None, &[]));
        let client = builder.app(a, Instant::ZERO, Echo::new(Some(b), &lengths));
        let mut sim = builder.build();
        sim.run_until(after(20_000));
        for (app, peer) in [(server, a), (client, b)] {
            let heard = &sim.app::<Echo>(app).heard;
            assert_eq!(heard.len(), lengths.len());
            for ((from, from_port, to_port, data), len) in heard.iter().zip(lengths) {
                assert_eq!((*from, *from_port, *to_port), (peer, 7, 7));
                assert_eq!(*data, octets(len));
            }
        }
        let metrics = sim.world().network.node_metrics(b);
        assert_eq!((metrics.received, metrics.not_spoken), (lengths.len() as u64, 1), "port 8 is not bound");
        assert!(sim.world().network.node_metrics(r).fragmented > 0);
    }
}

#[test]
fn a_packet_finds_its_way_over_four_hops() {
    let (mut builder, nodes) = row(5, Some(aodv::Config::default()));
    let (source, sink) = cbr(&mut builder, (nodes[0], nodes[4]), (100, 1, 100));
    let mut sim = builder.build();
    sim.run_until(after(2_000));
    let network = &sim.world().network;
    let arrived = &sim.app::<CbrSink>(sink).arrived;
    assert_eq!((sim.app::<CbrSource>(source).sent, arrived.len()), (1, 1));
    let delay = arrived[0].at.saturating_since(arrived[0].made);
    assert!(delay > Duration::from_millis(10) && delay < Duration::from_secs(1), "{delay}");
    for (i, node) in nodes.iter().enumerate() {
        let router = network.aodv(*node).unwrap();
        assert_eq!(network.node_metrics(*node).forwarded, u64::from((1..4).contains(&i)));
        assert_eq!(router.counters().searches, u64::from(i == 0));
        let to_last = router.entries().find(|(to, _)| to.octets() == [10, 0, 0, 5]);
        if i < 4 {
            assert_eq!(usize::from(to_last.unwrap().1.hops), 4 - i);
        }
    }
    // Search rings of 1, 3 and 5 hops.
    assert_eq!(network.aodv(nodes[0]).unwrap().counters().requests, 3);
    assert_eq!(network.aodv_metrics(nodes[0]).unwrap().waited, 1);
    assert_eq!(network.packets_in_flight(), 0);
}

#[test]
fn static_routes_work_too_in_either_version_of_ip() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let mut builder = Builder::new(NetworkConfig { ip, ..config() }, 1, 0);
        let nodes: Vec<_> = (0..4).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
        let place = |i: usize| Position::new(80.0 * i as f64, 0.0);
        let places: Vec<_> = nodes.iter().enumerate().map(|(i, n)| (*n, place(i))).collect();
        builder.wifi(WifiConfig::dsss(100.0), AdhocConfig::default(), &places).unwrap();
        let (_, sink) = cbr(&mut builder, (nodes[0], nodes[3]), (0, 100, 50));
        if ip == IpVersion::V6 {
            assert_eq!(builder.aodv(nodes[0], aodv::Config::default()), Err(AodvError::NotIpv4));
        }
        let mut sim = builder.build();
        sim.run_until(after(10_000));
        assert_eq!(sim.app::<CbrSink>(sink).arrived.len(), 100);
    }
}

#[test]
fn a_datagram_that_needs_several_frames_is_cut_by_ip_and_one_that_may_not_be_is_counted() {
    use anabranch_sim::network::Fragmentation;
    for fragmentation in [Fragmentation::Allowed, Fragmentation::Forbidden] {
        let mut builder = Builder::new(NetworkConfig { fragmentation, ..config() }, 1, 0);
        let nodes: Vec<_> = (0..3).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
        let place = |i: usize| Position::new(80.0 * i as f64, 0.0);
        let places: Vec<_> = nodes.iter().enumerate().map(|(i, n)| (*n, place(i))).collect();
        builder.wifi(WifiConfig::dsss(100.0), AdhocConfig::default(), &places).unwrap();
        for node in &nodes {
            builder.aodv(*node, aodv::Config::default()).unwrap();
        }
        let server = builder.app(nodes[2], Instant::ZERO, Echo::new(None, &[]));
        let client = builder.app(nodes[0], Instant::ZERO, Echo::new(Some(nodes[2]), &[100, 4000]));
        let mut sim = builder.build();
        sim.run_until(after(5_000));
        let expected = if fragmentation == Fragmentation::Allowed { 2 } else { 1 };
        for app in [server, client] {
            assert_eq!(sim.app::<Echo>(app).heard.len(), expected);
        }
        assert_eq!(sim.world().network.node_metrics(nodes[0]).too_big, 2 - expected as u64);
    }
}

/// UDP headers are compressed (RFC 6282 section 4.3): the radio and the capture have equal lengths.
#[test]
fn datagrams_cross_the_other_radio_too() {
    use anabranch_sim::capture::Capture;
    use anabranch_sim::network::WirelessConfig;
    use anabranch_sim::radio::RadioConfig;
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let nodes: Vec<_> = (0..2).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let place = |i: usize| Position::new(80.0 * i as f64, 0.0);
    let places: Vec<_> = nodes.iter().enumerate().map(|(i, n)| (*n, place(i))).collect();
    builder.radio(RadioConfig::o_qpsk(100.0), WirelessConfig::default(), &places).unwrap();
    let lengths = [0, 10, 60, 400];
    let server = builder.app(nodes[1], Instant::ZERO, Echo::new(None, &[]));
    let client = builder.app(nodes[0], Instant::ZERO, Echo::new(Some(nodes[1]), &lengths));
    let mut sim = builder.build();
    sim.observe(Capture::new(Vec::new(), IpVersion::V6));
    sim.run_until(after(5_000));
    let heard = |app| sim.app::<Echo>(app).heard.iter().map(|h| h.3.len()).collect::<Vec<_>>();
    assert_eq!(heard(server), lengths);
    // The first answer finds no free channel.
    assert_eq!(heard(client), lengths[1..]);
    let capture = sim.take_observer::<Capture<Vec<u8>>>().unwrap().finish().unwrap();
    assert!(capture.len() > 2000);
}
