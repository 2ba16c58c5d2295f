//! The experiment `rdca`: 100 nodes with 802.11 radios and AODV, 7 senders at 4 kB/s, 100 s. An
//! element is a simulated second, so the throughput is the speed relative to real time.

use std::hint::black_box;
use std::time::Duration;

use anabranch_lab::experiment::Settings;
use anabranch_lab::rdca::{Protocol, Rdca, RdcaPoint};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn run(c: &mut Criterion) {
    let mut group = c.benchmark_group("rdca");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for (name, protocol) in [("rdca", Protocol::Rdca), ("newreno", Protocol::NewReno)] {
        let settings = Settings::defaults(&Rdca).with("protocol", protocol.word()).with("senders", 7);
        let point = RdcaPoint::new(&settings).expect("it can be");
        group.throughput(Throughput::Elements(100));
        group.bench_function(name, |b| b.iter(|| black_box(point.outcome(1, 0))));
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
