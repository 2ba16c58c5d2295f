//! Random networks of two or three paths between a node and the data centre, with the predictive
//! scheduler over all paths and over each one alone, to show that multipath is never slower than
//! the best path.

use anabranch_core::mptcp::{self, Reinjection, SchedulerKind};
use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::Builder;
use rayon::prelude::*;

/// A path: a relay between the node and the data centre.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Way {
    /// Bit rate in bit/s.
    pub rate: u64,
    /// One-way delay.
    pub delay: Duration,
    /// Loss probability of a packet, in both directions.
    pub loss: f64,
}

/// Result of a network. Times are means over the runs, in seconds; infinite if a run did not
/// deliver everything.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Number of the case.
    pub number: u64,
    /// The paths.
    pub ways: Vec<Way>,
    /// Time over all paths.
    pub together: f64,
    /// Time over each path alone.
    pub alone: Vec<f64>,
}

impl Case {
    /// The time over all paths, divided by that over the best one alone.
    pub fn ratio(&self) -> f64 {
        self.together / self.alone.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Network `number`: 2 or 3 paths, 50 to 1000 kbit/s (log-uniform), 5 to 250 ms, 0 to 3 % loss.
pub fn network(seed: u64, number: u64) -> Vec<Way> {
    let mut random = Stream::new(seed, number, "campaign mptcp-paths", "paths");
    let n = random.range(2..=3);
    (0..n)
        .map(|_| Way {
            rate: (50e3 * 20f64.powf(random.uniform())) as u64,
            delay: Duration::from_millis(random.range(5..=250)),
            loss: random.uniform() * 0.03,
        })
        .collect()
}

/// Payload of a packet in bytes, and number of packets: 200 kB.
const PAYLOAD: u16 = 500;
const PACKETS: u32 = 400;
const BEGIN: Instant = Instant::from_nanos(60_000_000_000);
const PORT: u16 = 8_765;

/// Time when the last packet was delivered over the chosen paths; infinite if it never was. A path
/// has the same channel in every choice.
fn time(seed: u64, run: u64, ways: &[Way], chosen: &[usize]) -> f64 {
    let mut builder = Builder::new(NetworkConfig::default(), seed, run);
    let [root, node] = ["dc", "node"].map(|name| builder.node(name, Forwarding::On));
    let config = paths::Config { max_paths: chosen.len() as u8, ..paths::Config::paper() };
    builder.router(root, config, None);
    builder.router(node, config, Some(NodeType::Ieee802154));
    for &i in chosen {
        let Way { rate, delay, loss } = ways[i];
        let relay = builder.node(&format!("relay {i}"), Forwarding::On);
        builder.router(relay, config, Some(NodeType::Ieee802154));
        let fast =
            LinkConfig { queue: QueueLimit::Packets(1000), ..LinkConfig::new(1_000_000_000, Duration::ZERO) };
        builder.cable(node, relay, fast);
        let slow = LinkConfig {
            queue: QueueLimit::Packets(1000),
            loss: LossModel::Bernoulli { p: loss },
            ..LinkConfig::new(rate, delay)
        };
        builder.cable(relay, root, slow);
    }
    let tcp = tcp::Config { mss: PAYLOAD + 20, timestamps: false, ..tcp::Config::default() };
    let transport = mptcp::Config {
        tcp,
        scheduler: SchedulerKind::Predictive,
        reinjection: Reinjection::Opportunistic,
        ..mptcp::Config::default()
    }
    .into();
    let sink = builder.app(root, Instant::ZERO, PacketSink::new(PORT, PAYLOAD, transport));
    let source = PacketSource::new(PacketSourceConfig {
        to: root,
        port: PORT,
        packets: PACKETS,
        payload: PAYLOAD,
        interval: Duration::from_micros(1),
        transport,
        adaptation: None,
        subflows: chosen.len(),
    });
    builder.app(node, BEGIN, source);
    let mut sim = builder.build();
    let stop = BEGIN + Duration::from_secs(1800);
    while sim.now() < stop && sim.app::<PacketSink>(sink).arrived.len() < PACKETS as usize {
        let next = sim.now() + Duration::from_secs(1);
        sim.run_until(next);
    }
    let arrived = &sim.app::<PacketSink>(sink).arrived;
    match arrived.last() {
        Some(last) if arrived.len() == PACKETS as usize => last.at.saturating_since(BEGIN).as_secs_f64(),
        _ => f64::INFINITY,
    }
}

/// Runs `count` networks, `runs` times each.
pub fn run(seed: u64, count: u64, runs: u64) -> Vec<Case> {
    let case = |number| {
        let ways = network(seed, number);
        let mean = |chosen: &[usize]| {
            (0..runs).map(|run| time(seed, number * runs + run, &ways, chosen)).sum::<f64>() / runs as f64
        };
        let all: Vec<usize> = (0..ways.len()).collect();
        let alone = all.iter().map(|&i| mean(&[i])).collect();
        Case { number, together: mean(&all), alone, ways }
    };
    (0..count).into_par_iter().map(case).collect()
}
