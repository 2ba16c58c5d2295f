//! A whole SET transfer: 129 kB to a sensor node through three gateways.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

mod support;

use support::Star;

fn transfer(c: &mut Criterion) {
    let mut group = c.benchmark_group("set");
    group.sample_size(20);
    group.bench_function("129 kB through 3 gateways", |b| {
        b.iter_batched(|| Star::new(129_000), |mut star| star.run(), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, transfer);
criterion_main!(benches);
