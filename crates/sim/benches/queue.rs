//! The bare event queue in the hold model: with n events pending, take the next and schedule
//! another.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::engine::EventQueue;
use anabranch_sim::random::Stream;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Operations per measured iteration.
const HOLDS: u64 = 100_000;

fn increments(kind: &str) -> Vec<Duration> {
    let mut stream = Stream::new(1, 0, "bench", kind);
    let draw = |s: &mut Stream| match kind {
        "uniform" => s.range(0..=2_000_000),
        _ => (s.exponential() * 1e6) as u64,
    };
    (0..1 << 16).map(|_| Duration::from_nanos(draw(&mut stream))).collect()
}

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("hold");
    group.throughput(Throughput::Elements(HOLDS)).sample_size(20);
    for kind in ["exponential", "uniform"] {
        let increments = increments(kind);
        for pending in [10usize, 1_000, 100_000] {
            let mut queue = EventQueue::new();
            for i in 0..pending {
                queue.push(Instant::ZERO + increments[i & 0xffff], [i as u64, 0]);
            }
            let mut i = 0;
            group.bench_function(BenchmarkId::new(kind, pending), |b| {
                b.iter(|| {
                    for _ in 0..HOLDS {
                        let (now, event) = queue.pop().expect("never empty");
                        queue.push(now + increments[i & 0xffff], event);
                        i += 1;
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
