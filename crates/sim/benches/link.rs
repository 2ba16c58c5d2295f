//! A packet over one link, and a TCP segment with its acknowledgement over one hop.

use anabranch_core::segment::Segment;
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::Sink;
use anabranch_sim::event::Event;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, Network, NetworkConfig};
use anabranch_sim::packet::Ends;
use anabranch_sim::random::Stream;
use anabranch_sim::sim::{Builder, Simulation};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

mod support;

use support::one_hop;

/// Packets per measured iteration.
const PACKETS: u64 = 10_000;

/// Enqueue, transmit, deliver: with `ahead` packets in the link, send one and take the next
/// arrival.
fn packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("packet over one link");
    group.throughput(Throughput::Elements(PACKETS));
    let lossy = LossModel::Bernoulli { p: 0.01 };
    for (name, ahead, loss) in
        [("idle", 1, LossModel::None), ("queued", 64, LossModel::None), ("lossy", 64, lossy)]
    {
        let mut network = Network::new(NetworkConfig::default());
        let [a, b] = ["a", "b"].map(|n| network.add_node(n, Forwarding::Off));
        let config = LinkConfig {
            queue: QueueLimit::Packets(1000),
            loss,
            ..LinkConfig::new(1_000_000_000, Duration::from_micros(10))
        };
        network.add_link(a, b, config, |purpose: &str| Stream::new(1, 0, "link", purpose));
        network.compute_routes();
        let segment = Segment { payload: Bytes::from(vec![0; 1440]), ..Segment::default() };
        for _ in 1..ahead {
            network.send(Instant::ZERO, Ends::new(a, b), segment.clone());
        }
        let mut now = Instant::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..PACKETS {
                    network.send(now, Ends::new(a, b), segment.clone());
                    let (at, event) = network.events.pop().expect("a packet is under way");
                    now = at;
                    if let Event::Arrival { link, generation } = event {
                        std::hint::black_box(network.handle_arrival(now, link, generation));
                    }
                }
            });
        });
    }
    group.finish();
}

/// A data segment and its acknowledgement, with both TCPs, applications and timers.
fn segment(c: &mut Criterion) {
    let mut group = c.benchmark_group("tcp over one hop");
    let mut sim = one_hop();
    let sent = |sim: &Simulation| sim.world().network.links()[0].metrics().delivered;
    let step = Duration::from_secs(1);
    let before = sent(&sim);
    sim.run_until(sim.now() + step);
    group.throughput(Throughput::Elements(sent(&sim) - before));
    group.bench_function("segment with its ack", |b| b.iter(|| sim.run_until(sim.now() + step)));
    group.finish();
}

/// A simulated day without events.
fn idle(c: &mut Criterion) {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b] = ["a", "b"].map(|n| builder.node(n, Forwarding::Off));
    builder.cable(a, b, LinkConfig::new(100_000_000, Duration::from_millis(1)));
    builder.app(b, Instant::ZERO, Sink::new(80, tcp::Config::default()));
    let mut sim = builder.build();
    c.bench_function("a simulated day of nothing", |bencher| {
        bencher.iter(|| sim.run_until(sim.now() + Duration::from_secs(86_400)));
    });
}

criterion_group!(benches, packet, segment, idle);
criterion_main!(benches);
