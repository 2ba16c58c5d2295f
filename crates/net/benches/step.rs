//! Cost of one step of the tuner per socket: reading two options and the queue, and the decision.
//! It uses idle sockets on the loopback device, so that sizes hardly change.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use anabranch_core::sockbuf::{self, PidConfig, PolicyConfig};
use anabranch_core::time::{Duration, Instant};
use anabranch_net::sockbuf::{Config, Tuner};
use anabranch_net::tcp_info::TcpInfo;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn connected(number: usize) -> Vec<(Arc<TcpStream>, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("it is bound");
    let connect = || {
        let near = TcpStream::connect(to).expect("a way there");
        (Arc::new(near), listener.accept().expect("somebody").0)
    };
    (0..number).map(|_| connect()).collect()
}

fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    let policies = [
        ("pid", PolicyConfig::Pid(PidConfig::paper())),
        ("atbt", PolicyConfig::Atbt),
        ("fixed", PolicyConfig::Fixed(64_000)),
    ];
    for (name, policy) in policies {
        for number in [3, 300] {
            let sockets = connected(number);
            let pool = sockbuf::Config { threshold: 1 << 30, policy, ..sockbuf::Config::default() };
            let mut tuner = Tuner::new(Instant::ZERO, Config::new(pool)).expect("a legal configuration");
            for (near, _) in &sockets {
                tuner.add(near).expect("room for all");
            }
            let mut now = Instant::ZERO;
            group.throughput(Throughput::Elements(number as u64));
            group.bench_function(BenchmarkId::new(name, number), |b| {
                b.iter(|| {
                    now += Duration::from_millis(500);
                    tuner.step(now);
                });
            });
        }
    }
    group.finish();
    let sockets = connected(1);
    c.bench_function("tcp_info", |b| b.iter(|| TcpInfo::read(&sockets[0].0)));
}

criterion_group!(benches, step);
criterion_main!(benches);
