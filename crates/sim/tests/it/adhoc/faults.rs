//! Failing relays, links that go down, energy that is used up.

use anabranch_core::aodv::{self, LocalRepair};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::cbr::CbrSink;
use anabranch_sim::network::{AdhocConfig, RouteChange};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Fault;
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_sim::wifi::WifiConfig;
use anabranch_sim::world::Failure;

use super::support::{after, at_places, cbr, diamond, row};

/// Records route changes.
#[derive(Debug, Default)]
struct Listener(Vec<(NodeId, RouteChange)>);

impl App for Listener {
    fn start(&mut self, _: &mut Ctx<'_>) {}
    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}
    fn on_route(&mut self, _: &mut Ctx<'_>, to: NodeId, change: RouteChange) {
        self.0.push((to, change));
    }
}

/// 100 datagrams in 10 s; the relay in use fails after 5 s.
#[test]
fn a_relay_that_dies_is_gone_around() {
    let (mut builder, nodes) = diamond(aodv::Config::default());
    let (_, sink) = cbr(&mut builder, (nodes[0], nodes[3]), (0, 100, 100));
    let listener = builder.app(nodes[0], Instant::ZERO, Listener::default());
    let mut sim = builder.build();
    sim.run_until(after(5_000));
    let network = &sim.world().network;
    let used = if network.node_metrics(nodes[1]).forwarded > 0 { 1 } else { 2 };
    let other = 3 - used;
    assert_eq!(network.node_metrics(nodes[other]).forwarded, 0);
    sim.inject(Fault::NodeFails(nodes[used], Failure::Silent));
    sim.run_until(after(8_000));
    sim.inject(Fault::NodeRecovers(nodes[used]));
    sim.run_until(after(15_000));
    let network = &sim.world().network;
    assert_eq!(sim.app::<CbrSink>(sink).arrived.len(), 100, "what was on its way was given another route");
    assert!(network.node_metrics(nodes[other]).forwarded > 40);
    let metrics = network.adhoc_metrics(nodes[0]).unwrap();
    assert_eq!((metrics.failures, metrics.rerouted), (1, 1));
    assert!(network.aodv(nodes[used]).unwrap().quiet_until().is_some(), "it has rebooted");
    let heard = &sim.app::<Listener>(listener).0;
    use RouteChange::{Broken, Found};
    assert_eq!(heard.iter().map(|h| h.1).collect::<Vec<_>>(), [Found, Broken, Broken, Found]);
    assert!(heard.contains(&(nodes[3], Broken)) && heard.contains(&(nodes[used], Broken)));
}

/// Without reroutes, packets that the MAC gives up are lost, as in ns-2.
#[test]
fn as_in_ns2_what_the_mac_gives_up_is_lost() {
    let places = [(0.0, 0.0), (60.0, 60.0), (60.0, -60.0), (120.0, 0.0)];
    let (mut builder, nodes) = at_places(WifiConfig::ns2(100.0), AdhocConfig::ns2(), &places);
    for node in &nodes {
        builder.aodv(*node, aodv::Config::ns2()).unwrap();
    }
    let (_, sink) = cbr(&mut builder, (nodes[0], nodes[3]), (0, 100, 100));
    let mut sim = builder.build();
    sim.run_until(after(5_000));
    let used = if sim.world().network.node_metrics(nodes[1]).forwarded > 0 { 1 } else { 2 };
    sim.inject(Fault::NodeFails(nodes[used], Failure::Silent));
    sim.run_until(after(15_000));
    assert_eq!(sim.app::<CbrSink>(sink).arrived.len(), 99);
    assert_eq!(sim.world().network.node_metrics(nodes[0]).no_route, 1);
}

/// A row with an alternative route around its last relay: 0 - 1 - 2 - 4, and 1 - 3 - 4.
#[test]
fn a_node_repairs_the_way_while_packets_wait() {
    let places = [(0.0, 0.0), (80.0, 0.0), (140.0, 60.0), (140.0, -60.0), (200.0, 0.0)];
    let (mut builder, nodes) = at_places(WifiConfig::dsss(100.0), AdhocConfig::default(), &places);
    let router = aodv::Config { local_repair: LocalRepair::On, ..aodv::Config::default() };
    for node in &nodes {
        builder.aodv(*node, router).unwrap();
    }
    let (_, sink) = cbr(&mut builder, (nodes[0], nodes[4]), (0, 200, 20));
    let mut sim = builder.build();
    sim.run_until(after(2_000));
    let used = if sim.world().network.node_metrics(nodes[2]).forwarded > 0 { 2 } else { 3 };
    // One direction only: the relay still hears node 1's neighbours but not node 1.
    let link = sim.world().network.find_link(nodes[1], nodes[used]).unwrap();
    sim.inject(Fault::LinkDown(link));
    sim.run_until(after(10_000));
    let network = &sim.world().network;
    assert_eq!(sim.app::<CbrSink>(sink).arrived.len(), 200);
    let counters = network.aodv(nodes[1]).unwrap().counters();
    assert_eq!((counters.repairs, counters.repaired), (1, 1));
    assert_eq!(network.aodv(nodes[0]).unwrap().counters().searches, 1, "the source has noticed nothing");
    assert!(network.aodv_metrics(nodes[1]).unwrap().waited > 0);
}

#[test]
fn packets_for_nobody_are_dropped_and_the_buffer_is_bounded() {
    let (mut builder, nodes) = row(2, Some(aodv::Config::default()));
    let nobody = builder.node("island", anabranch_sim::network::Forwarding::On);
    // 40 packets per second; the search takes about 14 s.
    cbr(&mut builder, (nodes[0], nobody), (0, 1000, 25));
    let listener = builder.app(nodes[0], Instant::ZERO, Listener::default());
    let mut sim = builder.build();
    sim.run_until(after(60_000));
    let network = &sim.world().network;
    let metrics = network.aodv_metrics(nodes[0]).unwrap();
    assert_eq!((metrics.waited, metrics.waited_in_vain + metrics.not_found), (1000, 1000));
    let searches = network.aodv(nodes[0]).unwrap().counters().searches;
    assert_eq!(metrics.not_found, 64 * searches);
    assert_eq!(sim.app::<Listener>(listener).0, vec![(nobody, RouteChange::Failed); searches as usize]);
    assert_eq!((network.packets_in_flight(), network.aodv_waiting(nodes[0])), (0, 0));
}

#[test]
fn a_station_without_energy_dies_with_its_node() {
    let mut wifi = WifiConfig::dsss(100.0);
    wifi.initial_energy_j = Some(0.5);
    let places: Vec<_> = (0..3).map(|i| (80.0 * f64::from(i), 0.0)).collect();
    let (mut builder, nodes) = at_places(wifi, AdhocConfig::default(), &places);
    for node in &nodes {
        builder.aodv(*node, aodv::Config::default()).unwrap();
    }
    let (_, sink) = cbr(&mut builder, (nodes[0], nodes[2]), (0, 10_000, 10));
    let mut sim = builder.build();
    sim.run_until(after(100_000));
    let network = &sim.world().network;
    let wifi = network.wifi().unwrap();
    // The relay hears and sends everything, and so does the first node.
    assert!(!network.is_up(nodes[1]));
    let spent = wifi.energy_j(sim.now(), network.wifi_station(nodes[1]).unwrap());
    assert!((0.5..0.502).contains(&spent), "{spent}");
    let arrived = sim.app::<CbrSink>(sink).arrived.len();
    assert!((300..900).contains(&arrived), "{arrived}");
    sim.inject(Fault::NodeRecovers(nodes[1]));
    assert!(!sim.world().network.is_up(nodes[1]));
    sim.run_until(after(101_000) + Duration::from_secs(1));
    assert_eq!(sim.app::<CbrSink>(sink).arrived.len(), arrived);
}
