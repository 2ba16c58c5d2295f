//! The experiment `sockbuf`: three wireless links, 4 and 8 connections of one host, background
//! traffic, 400 s. An element is a simulated second, so the throughput is the speed relative to
//! real time.

use std::hint::black_box;
use std::time::Duration;

use anabranch_lab::experiment::Settings;
use anabranch_lab::sockbuf::{Sockbuf, SockbufPoint};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn run(c: &mut Criterion) {
    let mut group = c.benchmark_group("sockbuf");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for connections in [4, 8] {
        let settings = Settings::defaults(&Sockbuf).with("connections", connections).with("duration", "400s");
        group.throughput(Throughput::Elements(400));
        let point = SockbufPoint::new(&settings).expect("it can be");
        group.bench_function(format!("{connections}"), |b| b.iter(|| black_box(point.outcome(1, 0))));
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
