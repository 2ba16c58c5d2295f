//! Cost of one forwarded segment at a caching node: the decision, the reports of the link layer and
//! the timer.

use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::dtc::{Config, FlowKey, LinkEvent, Node};
use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const MSS: u32 = 100;

fn address(last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))
}

/// One round of a connection: data and its acknowledgement, with or without the other work.
struct Traffic {
    node: Node,
    now: Instant,
    payload: Bytes,
    round: u32,
    reports: bool,
}

impl Traffic {
    fn step(&mut self, port: u16) {
        let forth = FlowKey { source: address(1), destination: address(2) };
        let back = FlowKey { source: address(2), destination: address(1) };
        let data = Segment {
            src_port: port,
            dst_port: 80,
            seq: SeqNumber(self.round.wrapping_mul(MSS)),
            flags: Flags::ACK,
            payload: self.payload.clone(),
            ..Segment::default()
        };
        let (ack, flags) = (data.seq_end(), Flags::ACK);
        let ack = Segment { src_port: 80, dst_port: port, ack, flags, ..Segment::default() };
        for (flow, segment) in [(forth, &data), (back, &ack)] {
            self.now += Duration::from_micros(500);
            black_box(self.node.handle_segment(self.now, flow, segment, self.round));
            if self.reports {
                self.node.handle_link(self.now, flow, segment, LinkEvent::Acknowledged);
                while let Some(own) = self.node.poll_transmit(self.now) {
                    black_box(own);
                }
                if self.node.next_timeout().is_some_and(|at| at <= self.now) {
                    self.node.handle_timeout(self.now);
                }
            }
        }
    }
}

fn decision(c: &mut Criterion) {
    let mut group = c.benchmark_group("caching node, per segment");
    group.throughput(Throughput::Elements(2));
    for (name, config) in [("paper", Config::paper()), ("improved", Config::improved())] {
        for (work, reports) in [("decision", false), ("decision, reports and timer", true)] {
            for connections in [1u16, 16] {
                let payload = Bytes::from(vec![0; MSS as usize + 1]).slice(..MSS as usize);
                let mut traffic =
                    Traffic { node: Node::new(config), now: Instant::ZERO, payload, round: 0, reports };
                let mut port = 0;
                group.bench_function(BenchmarkId::new(format!("{name}, {work}"), connections), |b| {
                    b.iter(|| {
                        port = (port + 1) % connections;
                        traffic.round = traffic.round.wrapping_add(u32::from(port == 0));
                        traffic.step(port);
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, decision);
criterion_main!(benches);
