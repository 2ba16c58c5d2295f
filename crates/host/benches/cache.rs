//! Cost of one forwarded segment in the cache of a router: the node's part, and with the packet.

mod support;

use std::hint::black_box;

use anabranch_host::packets::{Offload, PacketCache};
use anabranch_wire::ip::{self, Header, Protocol};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};

use support::{LIMITS, Traffic, busy, forward};

/// Rounds of one measurement, and the number of measurements.
const ROUNDS: usize = 1000;
const MEASUREMENTS: usize = 300;

/// Processor time of this thread in nanoseconds.
fn processor() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The node's part in processor time, the least and the median of many measurements: other
/// processes disturb the wall clock, and what they leave in the processor's caches some
/// measurements.
fn node(_: &mut Criterion) {
    for connections in [1, 100, 4_000] {
        let (mut node, mut traffic, mut next) = busy(connections, ROUNDS);
        let mut all = Vec::new();
        for _ in 0..MEASUREMENTS {
            let begin = processor();
            forward(&mut node, &next);
            all.push((processor() - begin) / (2 * ROUNDS as u64));
            next = traffic.take(ROUNDS);
        }
        all.sort_unstable();
        let (least, median) = (all[0], all[MEASUREMENTS / 2]);
        println!(
            "router's node, {connections} connections: {least} ns per segment at least, {median} median"
        );
    }
}

fn packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("router's cache, per packet");
    group.throughput(Throughput::Elements(2));
    for (name, checksum) in [("checksum verified", false), ("checksum left to a device", true)] {
        let mut traffic = Traffic::new(100);
        let mut cache = PacketCache::new(LIMITS.config());
        group.bench_function(name, |b| {
            b.iter_batched(
                || {
                    let packets = traffic.next().map(|(flow, segment)| {
                        let mut packet = Vec::new();
                        let header = Header::new(flow.source, flow.destination, Protocol::TCP);
                        ip::emit_tcp(&header, &segment, &mut packet).expect("a legal packet");
                        packet
                    });
                    (traffic.now, packets)
                },
                |(now, packets)| {
                    for packet in &packets {
                        black_box(cache.handle_packet(now, packet, Offload { checksum, segments: false }));
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, node, packet);
criterion_main!(benches);
