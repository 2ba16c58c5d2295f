//! The experiment `rdca`: 100 nodes with 802.11 radios and AODV, 7 senders at 4 kB/s, 100 s. An element is a simulated
//! second, so that the throughput says how many times faster than real time it goes.

use std::hint::black_box;
use std::time::Duration;

use anabranch_lab::rdca::{Config, Protocol, RdcaPoint};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn run(c: &mut Criterion) {
    let mut group = c.benchmark_group("rdca");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for (name, protocol) in [("rdca", Protocol::Rdca), ("newreno", Protocol::NewReno)] {
        let config = Config { protocol, senders: 7, ..Config::default() };
        let seconds = config.duration.as_secs_f64();
        let point = RdcaPoint::new(config);
        group.throughput(Throughput::Elements(seconds as u64));
        group.bench_function(name, |b| b.iter(|| black_box(point.outcome(1, 0))));
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
