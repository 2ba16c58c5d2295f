//! The dumbbell: 100 TCP flows, each between its own sender and receiver, share one 1 Gbit/s
//! bottleneck between two routers. Every data packet takes three links, and every acknowledgement
//! three links back.

use std::time::Duration as WallDuration;

use anabranch_core::tcp::Config;
use anabranch_core::time::Duration;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

mod support;

use support::{after, delivered, dumbbell};

/// Simulated seconds.
const SECONDS: u64 = 10;

fn run(c: &mut Criterion) {
    let stop = after(Duration::from_secs(SECONDS));
    let mut group = c.benchmark_group("dumbbell");
    for (name, tcp) in [("standard", Config::default()), ("modern", Config::modern())] {
        let mut sim = dumbbell(100, tcp);
        sim.run_until(stop);
        let packets = delivered(&sim);
        let share = sim.world().network.links()[0].metrics().busy.as_secs_f64() / SECONDS as f64;
        println!("{name}: {packets} packets end to end, {} events, bottleneck busy {share:.3}", sim.events());
        group
            .throughput(Throughput::Elements(packets))
            .sample_size(10)
            .measurement_time(WallDuration::from_secs(10));
        group.bench_function(format!("100 flows, 10 s, {name}"), |b| {
            b.iter(|| dumbbell(100, tcp).run_until(stop));
        });
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
