//! Cost of one forwarded segment in the cache of a router: the node's part, and with the packet.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::dtc::{FlowKey, Node};
use anabranch_core::segment::{Flags, Options, Segment, SeqNumber, Timestamps};
use anabranch_core::time::{Duration, Instant};
use anabranch_host::packets::{Limits, Offload, PacketCache};
use anabranch_wire::ip::{self, Header, Protocol};
use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const MSS: u32 = 1448;
/// Segments in flight of each connection.
const FLIGHT: u32 = 64;
const LIMITS: Limits =
    Limits { memory: 1 << 30, connections: 1 << 16, min_timeout: Duration::from_millis(10) };

fn flow(forth: bool) -> FlowKey {
    let [client, server] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
    if forth {
        FlowKey { source: client, destination: server }
    } else {
        FlowKey { source: server, destination: client }
    }
}

/// Rounds of connections with a full window: each sends a segment, and receives the acknowledgement
/// of the segment that it sent [`FLIGHT`] rounds ago.
struct Traffic {
    connections: u32,
    payload: Bytes,
    now: Instant,
    turn: u32,
}

impl Traffic {
    fn new(connections: u32) -> Self {
        let payload = Bytes::from(vec![0; MSS as usize + 1]).slice(..MSS as usize);
        Self { connections, payload, now: Instant::ZERO, turn: 0 }
    }

    /// The next segment and the acknowledgement that follows it.
    fn next(&mut self) -> [(FlowKey, Segment); 2] {
        let (round, connection) = (self.turn / self.connections, self.turn % self.connections);
        self.turn += 1;
        self.now += Duration::from_nanos(2_000);
        let (client, server) = (1024 + (connection % 60_000) as u16, 80 + (connection / 60_000) as u16);
        let stamps = Timestamps { value: round, echo: round };
        let options = Options { timestamps: Some(stamps), ..Options::default() };
        let data = Segment {
            src_port: client,
            dst_port: server,
            seq: SeqNumber(round.wrapping_mul(MSS)),
            ack: SeqNumber(1),
            flags: Flags::ACK,
            window: 1000,
            options,
            payload: self.payload.clone(),
            ..Segment::default()
        };
        let ack = Segment {
            src_port: server,
            dst_port: client,
            seq: SeqNumber(1),
            ack: SeqNumber(round.saturating_sub(FLIGHT).wrapping_mul(MSS)),
            payload: Bytes::new(),
            ..data.clone()
        };
        [(flow(true), data), (flow(false), ack)]
    }
}

fn node(c: &mut Criterion) {
    let mut group = c.benchmark_group("router's node, per segment");
    group.throughput(Throughput::Elements(2));
    for connections in [1, 100, 4_000] {
        let mut traffic = Traffic::new(connections);
        let mut node = Node::new(LIMITS.config());
        let step = |traffic: &mut Traffic, node: &mut Node| {
            for (flow, segment) in &traffic.next() {
                black_box(node.handle_segment(traffic.now, *flow, segment, 0));
            }
            // A driver asks once for each batch of packets; here it asks for each pair.
            while let Some(own) = node.poll_transmit(traffic.now) {
                black_box(own);
            }
            if node.next_timeout().is_some_and(|at| at <= traffic.now) {
                node.handle_timeout(traffic.now);
            }
        };
        for _ in 0..connections * FLIGHT {
            step(&mut traffic, &mut node);
        }
        assert_eq!(node.counters().unacceptable, 0);
        group.bench_function(BenchmarkId::from_parameter(connections), |b| {
            b.iter(|| step(&mut traffic, &mut node));
        });
    }
    group.finish();
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
