//! The dumbbell: 100 TCP flows, each from a sender of its own to a receiver of its own, share one 1 Gbit/s
//! bottleneck between two routers. Every data packet takes three links, every acknowledgement three back.

use std::time::Duration as WallDuration;

use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::sim::{Builder, Simulation};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FLOWS: usize = 100;

fn dumbbell() -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [left, right] = ["left", "right"].map(|n| builder.node(n, Forwarding::On));
    let bottleneck = LinkConfig {
        queue: QueueLimit::Packets(1000),
        ..LinkConfig::new(1_000_000_000, Duration::from_millis(10))
    };
    builder.cable(left, right, bottleneck);
    let access = LinkConfig {
        queue: QueueLimit::Packets(1000),
        ..LinkConfig::new(1_000_000_000, Duration::from_millis(1))
    };
    let tcp = tcp::Config { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..tcp::Config::default() };
    for i in 0..FLOWS {
        let from = builder.node(&format!("s{i}"), Forwarding::Off);
        let to = builder.node(&format!("r{i}"), Forwarding::Off);
        builder.cable(from, left, access);
        builder.cable(right, to, access);
        builder.app(to, Instant::ZERO, Sink::new(80, tcp));
        let config = BulkSenderConfig { to, port: 80, content: Content::Endless, tcp };
        builder.app(from, Instant::ZERO + Duration::from_millis(i as u64), BulkSender::new(config));
    }
    builder.build()
}

/// Packets that have arrived at their destination: data and acknowledgements.
fn delivered(sim: &Simulation) -> u64 {
    let network = &sim.world().network;
    (0..network.node_count())
        .map(|n| network.node_metrics(anabranch_sim::packet::NodeId(n as u32)).received)
        .sum()
}

fn run(c: &mut Criterion) {
    let seconds = 10;
    let stop = Instant::ZERO + Duration::from_secs(seconds);
    let mut sim = dumbbell();
    sim.run_until(stop);
    let packets = delivered(&sim);
    let share = sim.world().network.links()[0].metrics().busy.as_secs_f64() / seconds as f64;
    println!("dumbbell: {packets} packets end to end, {} events, bottleneck busy {share:.3}", sim.events());
    let mut group = c.benchmark_group("dumbbell");
    group
        .throughput(Throughput::Elements(packets))
        .sample_size(10)
        .measurement_time(WallDuration::from_secs(10));
    group.bench_function("100 flows, 10 s", |b| b.iter(|| dumbbell().run_until(stop)));
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
