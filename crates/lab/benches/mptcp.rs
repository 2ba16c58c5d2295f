//! The multipath experiment: 50 nodes, one of them the data centre, deliver 4,900 packets by radio.
//! An element is a simulated second, so the throughput is the speed relative to real time. The
//! preceding minute, in which paths are built, takes time but does not count as elements.

use std::hint::black_box;
use std::time::Duration;

use anabranch_lab::experiment::Settings;
use anabranch_lab::mptcp::{Mptcp, MptcpPoint, Scheme};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn run(c: &mut Criterion) {
    let mut group = c.benchmark_group("mptcp");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for (name, scheme) in [("tcp", Scheme::Tcp), ("proposed", Scheme::Proposed)] {
        let settings = Settings::defaults(&Mptcp).with("scheme", scheme.word());
        let point = MptcpPoint::new(&settings).expect("the defaults can be");
        let outcome = point.outcome(1, 0).expect("the deployment is connected");
        let seconds = outcome.arrivals.last().copied().unwrap_or(0.0);
        println!("{name}: {} packets, {} frames, {seconds:.1} s", outcome.arrivals.len(), outcome.frames);
        group.throughput(Throughput::Elements(seconds as u64));
        group.bench_function(name, |b| b.iter(|| black_box(point.outcome(1, 0))));
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
