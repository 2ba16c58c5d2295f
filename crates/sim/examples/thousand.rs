//! 1,000 nodes on one channel build paths, and 50 of them send to the root: prints memory and time.
//! The figures are in `docs/evidence/performance.md`; they are measured with the argument `full`,
//! without which there is less traffic.

#![expect(clippy::disallowed_types, reason = "it measures the wall's time")]

use std::{fs, io};

use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{Forwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{Position, RadioConfig, Station};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::{Builder, Simulation};

#[path = "../benches/support/length.rs"]
mod length;

use length::Length;

const NODES: usize = 1000;
const SOURCES: usize = 50;
const PACKETS: u32 = 100;
const PAYLOAD: u16 = 100;
/// In metres: a node in the middle has 20 other nodes within its range.
const SIDE: f64 = 1500.0;
const RANGE: f64 = 120.0;

fn main() -> io::Result<()> {
    // Paths are built until `traffic`, in seconds. In the short form only some packets have a path.
    let (traffic, end) = Length::from_command_line()?.pick((20, 30), (120, 900));
    let begin = std::time::Instant::now();
    println!(
        "| | peak memory, MB | simulated s | wall s | events, million | nodes with a path | packets arrived |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let (mut sim, nodes, sink) = network(traffic);
    report("built", &sim, &nodes, sink, begin);
    sim.run_until(Instant::ZERO + Duration::from_secs(traffic));
    report("paths formed", &sim, &nodes, sink, begin);
    sim.run_until(Instant::ZERO + Duration::from_secs(end));
    report("traffic", &sim, &nodes, sink, begin);
    let radio = sim.world().network.radio().expect("there is one");
    let neighbours: usize = (0..NODES as u32).map(|i| radio.neighbours(Station(i)).count()).sum();
    println!("\n{:.1} neighbours each", neighbours as f64 / NODES as f64);
    Ok(())
}

fn report(what: &str, sim: &Simulation, nodes: &[NodeId], sink: AppId, begin: std::time::Instant) {
    let paths =
        nodes.iter().filter(|n| sim.world().network.own_paths(**n).iter().any(|p| p.confirmed)).count();
    println!(
        "| {what} | {:.0} | {:.0} | {:.2} | {:.2} | {paths} | {} |",
        peak_memory().map_or(f64::NAN, |kib| kib as f64 * 1024.0 / 1e6),
        sim.now().saturating_since(Instant::ZERO).as_secs_f64(),
        begin.elapsed().as_secs_f64(),
        sim.events() as f64 / 1e6,
        sim.app::<PacketSink>(sink).arrived.len(),
    );
}

/// Peak resident memory of this process in KiB; available only on Linux.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn network(traffic: u64) -> (Simulation, Vec<NodeId>, AppId) {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let nodes: Vec<NodeId> = (0..NODES).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let mut random = Stream::new(1, 0, "deployment", "places");
    let place = |(i, &node): (usize, &NodeId)| {
        let [x, y] = [random.uniform() * SIDE, random.uniform() * SIDE];
        (node, if i == 0 { Position::new(SIDE / 2.0, SIDE / 2.0) } else { Position::new(x, y) })
    };
    let places: Vec<_> = nodes.iter().enumerate().map(place).collect();
    builder.radio(RadioConfig::o_qpsk(RANGE), WirelessConfig::default(), &places).expect("the radio can be");
    for (i, &node) in nodes.iter().enumerate() {
        builder.router(node, paths::Config::default(), (i > 0).then_some(NodeType::Ieee802154));
    }
    let tcp = tcp::Config { mss: PAYLOAD, timestamps: false, ..tcp::Config::default() };
    let sink = builder.app(nodes[0], Instant::ZERO, PacketSink::new(80, PAYLOAD, tcp.into()));
    for i in 1..=SOURCES {
        let source = PacketSource::new(PacketSourceConfig {
            to: nodes[0],
            port: 80,
            packets: PACKETS,
            payload: PAYLOAD,
            interval: Duration::from_secs(5),
            transport: tcp.into(),
            adaptation: None,
            subflows: 1,
        });
        let node = nodes[i * (NODES - 1) / SOURCES];
        builder.app(node, Instant::ZERO + Duration::from_secs(traffic), source);
    }
    (builder.build(), nodes, sink)
}
