//! Memory of a node in a large radio network, with a router and 19 neighbours.

use anabranch_core::paths::{self, NodeType};
use anabranch_core::time::Duration;
use anabranch_sim::network::{Forwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{Position, RadioConfig};
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_testkit::counting::in_use;

use crate::air::{after, scattered};

const NODES: usize = 600;
/// In metres; with this range, a node in the middle has 20 neighbours.
const SIDE: f64 = 1160.0;
const RANGE: f64 = 120.0;

fn network() -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let nodes: Vec<NodeId> = (0..NODES).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let places = scattered(NODES, SIDE, 1).into_iter().map(|(x, y)| Position::new(x, y));
    let places: Vec<(NodeId, Position)> = nodes.iter().copied().zip(places).collect();
    builder.radio(RadioConfig::o_qpsk(RANGE), WirelessConfig::default(), &places).expect("the radio can be");
    for (i, &node) in nodes.iter().enumerate() {
        builder.router(node, paths::Config::default(), (i > 0).then_some(NodeType::Ieee802154));
    }
    builder.build()
}

#[test]
fn a_node_with_a_router_takes_at_most_24_kb() {
    let before = in_use();
    let mut sim = network();
    let each = || (in_use() - before) / NODES as i64;
    let links = sim.world().network.links().len() / NODES;
    assert!((17..=20).contains(&links), "{links} neighbours");
    let built = each();
    sim.run_until(after(Duration::from_secs(60)));
    let formed = each();
    let network = &sim.world().network;
    let paths = (0..NODES as u32).filter(|i| !network.own_paths(NodeId(*i)).is_empty()).count();
    println!("{built} bytes built, {formed} bytes with {paths} nodes that have paths");
    assert!(paths > NODES * 9 / 10, "{paths} nodes have paths");
    assert!(built < 8_000, "{built} bytes");
    assert!(formed < 24_000, "{formed} bytes");
}
