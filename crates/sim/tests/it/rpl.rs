//! RPL over the radio: nodes that reboot or die, links of different quality.

use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{Forwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{Position, RadioConfig};
use anabranch_sim::sim::{Builder, Fault};
use anabranch_sim::world::Failure;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// Nodes with routers, the root first.
fn network(
    seed: u64,
    radio: RadioConfig,
    config: paths::Config,
    places: &[Position],
) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(NetworkConfig::default(), seed, 0);
    let nodes: Vec<NodeId> =
        (0..places.len()).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let sites: Vec<_> = nodes.iter().copied().zip(places.iter().copied()).collect();
    builder.radio(radio, WirelessConfig::default(), &sites).expect("a radio");
    for (i, &node) in nodes.iter().enumerate() {
        builder.router(node, config, (i > 0).then_some(NodeType::Ieee802154));
    }
    (builder, nodes)
}

/// Octets go from a node to the root from `start` on.
fn transfer(
    builder: &mut Builder,
    (from, root): (NodeId, NodeId),
    octets: u64,
    start: Instant,
    tcp: tcp::Config,
) -> AppId {
    let sink = builder.app(root, Instant::ZERO, Sink::new(80, tcp));
    let config = BulkSenderConfig::new(root, 80, Content::Pattern(octets), tcp);
    builder.app(from, start, BulkSender::new(config));
    sink
}

/// When all octets were there; infinite if not within `limit` seconds of `start`.
fn arrival(builder: Builder, sink: AppId, octets: u64, start: Instant, limit: f64) -> f64 {
    let mut sim = builder.build();
    let end = start + Duration::from_secs_f64(limit);
    sim.run_until(start);
    while sim.now() < end {
        let next = sim.now() + Duration::from_millis(20);
        sim.run_until(next);
        if sim.app::<Sink>(sink).bytes() == octets {
            return sim.now().saturating_since(start).as_secs_f64();
        }
    }
    f64::INFINITY
}

fn small() -> tcp::Config {
    tcp::Config { mss: 100, ..tcp::Config::modern() }
}

/// A reboot of the relay or of the last node of a row of three, long after the trickle timers have slowed down to Imax:
/// both have a path again within the DIS delay, Imin, two DAO delays and a round trip, and 1 kB is there soon after.
#[test]
fn a_row_recovers_from_a_reboot_within_seconds() {
    let places = [0.0, 80.0, 160.0].map(|x| Position::new(x, 0.0));
    for (reboot, node) in [(600.0, 1), (600.0, 2), (1500.0, 1), (1500.0, 2)] {
        for seed in 1..=5 {
            let (mut builder, ids) =
                network(seed, RadioConfig::o_qpsk(100.0), paths::Config::default(), &places);
            builder.fault(at(reboot), Fault::NodeFails(ids[node], Failure::Silent));
            builder.fault(at(reboot + 0.01), Fault::NodeRecovers(ids[node]));
            let sink = transfer(&mut builder, (ids[2], ids[0]), 1000, at(reboot + 0.5), small());
            let took = arrival(builder, sink, 1000, at(reboot + 0.5), 400.0);
            // The first SYN may find no path, and comes again after a second.
            assert!(took < 5.0, "reboot of {node} at {reboot} s, seed {seed}: {took} s");
        }
    }
}
