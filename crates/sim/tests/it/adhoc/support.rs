//! Networks shared by the tests.

use anabranch_core::aodv;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{AdhocConfig, AodvConfig, Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_sim::trace::TextTrace;
use anabranch_sim::wifi::{Position, WifiConfig};

pub(crate) fn after(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(crate) fn config() -> NetworkConfig {
    NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() }
}

/// Nodes at these positions with a range of 100 m.
pub(crate) fn at_places(
    wifi: WifiConfig,
    adhoc: AdhocConfig,
    places: &[(f64, f64)],
) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(config(), 1, 0);
    let nodes: Vec<NodeId> =
        (0..places.len()).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let sites: Vec<_> = nodes.iter().zip(places).map(|(n, (x, y))| (*n, Position::new(*x, *y))).collect();
    builder.wifi(wifi, adhoc, &sites).unwrap();
    (builder, nodes)
}

/// A row of nodes 80 m apart, with AODV or without.
pub(crate) fn row(count: usize, router: Option<aodv::Config>) -> (Builder, Vec<NodeId>) {
    let places: Vec<_> = (0..count).map(|i| (80.0 * i as f64, 0.0)).collect();
    let (mut builder, nodes) = at_places(WifiConfig::dsss(100.0), AdhocConfig::default(), &places);
    speak(&mut builder, &nodes, router);
    (builder, nodes)
}

/// Two routes from node 0 to node 3: over 1 and over 2, which do not hear each other.
pub(crate) fn diamond(router: aodv::Config) -> (Builder, Vec<NodeId>) {
    let places = [(0.0, 0.0), (60.0, 60.0), (60.0, -60.0), (120.0, 0.0)];
    let (mut builder, nodes) = at_places(WifiConfig::dsss(100.0), AdhocConfig::default(), &places);
    speak(&mut builder, &nodes, Some(router));
    (builder, nodes)
}

fn speak(builder: &mut Builder, nodes: &[NodeId], router: Option<aodv::Config>) {
    for node in nodes.iter().filter(|_| router.is_some()) {
        builder.aodv(*node, router.map_or_else(AodvConfig::default, AodvConfig::from)).unwrap();
    }
}

/// Datagrams of 200 bytes from one node to another, starting after this number of milliseconds.
pub(crate) fn cbr(
    builder: &mut Builder,
    (from, to): (NodeId, NodeId),
    (start, packets, interval): (u64, u32, u64),
) -> (AppId, AppId) {
    let sink = builder.app(to, Instant::ZERO, CbrSink::new(9000));
    let interval = Duration::from_millis(interval);
    let config = CbrConfig { to, port: 9000, from_port: 9001, packets, payload: 200, interval };
    (builder.app(from, after(start), CbrSource::new(config)), sink)
}

/// The trace of the first `millis` milliseconds.
pub(crate) fn trace(mut sim: Simulation, millis: u64) -> Vec<u8> {
    sim.observe(TextTrace::new(Vec::new()));
    sim.run_until(after(millis));
    sim.take_observer::<TextTrace<Vec<u8>>>().unwrap().finish().unwrap()
}
