//! A caching node allocates nothing for a segment of a known connection.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::dtc::{Config, FlowKey, LinkEvent, Node, Verdict};
use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::counting::allocations;
use bytes::Bytes;

const MSS: usize = 100;

/// Sends data and acknowledgements of `connections` connections in turn, link reports, and
/// occasional retransmissions. Returns the number of segments and of allocations after a warm-up.
fn steady(config: Config, connections: u16) -> (u64, u64) {
    let address = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
    let forth = FlowKey { source: address(1), destination: address(2) };
    let back = FlowKey { source: address(2), destination: address(1) };
    // A slice as in drivers: the buffer is already shared.
    let payload = Bytes::from(vec![0_u8; MSS + 1]).slice(..MSS);
    let mut node = Node::new(config);
    let mut now = Instant::ZERO;
    let mut segments = 0;
    let mut before = 0;
    for round in 0..2_000_u32 {
        if round == 1_000 {
            before = allocations();
            segments = 0;
        }
        for port in 0..connections {
            now += Duration::from_millis(1);
            let data = Segment {
                src_port: port,
                dst_port: 80,
                seq: SeqNumber(round * MSS as u32),
                flags: Flags::ACK,
                payload: payload.clone(),
                ..Segment::default()
            };
            let flags = Flags::ACK;
            let ack =
                Segment { src_port: 80, dst_port: port, ack: data.seq_end(), flags, ..Segment::default() };
            segments += 2;
            assert_eq!(node.handle_segment(now, forth, &data, round), Verdict::Forward);
            let event = if round % 8 == 0 { LinkEvent::TimedOut } else { LinkEvent::Acknowledged };
            node.handle_link(now, forth, &data, event);
            while node.poll_transmit(now).is_some() {}
            now += Duration::from_millis(1);
            if node.next_timeout().is_some_and(|at| at <= now) {
                node.handle_timeout(now);
            }
            assert_eq!(node.handle_segment(now, back, &ack, round), Verdict::Forward);
        }
    }
    (segments, allocations() - before)
}

#[test]
fn known_connections_allocate_nothing() {
    for config in [Config::paper(), Config::improved(), Config { cache_segments: 4, ..Config::improved() }] {
        assert_eq!(steady(config, 8), (16_000, 0));
    }
}
