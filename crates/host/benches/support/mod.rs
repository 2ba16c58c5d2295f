//! Traffic of a router's cache.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::dtc::{FlowKey, Node};
use anabranch_core::segment::{Flags, Options, Segment, SeqNumber, Timestamps};
use anabranch_core::time::{Duration, Instant};
use anabranch_host::packets::Limits;
use bytes::Bytes;

const MSS: u32 = 1448;
/// Segments in flight of each connection.
const FLIGHT: u32 = 64;
pub(crate) const LIMITS: Limits =
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
pub(crate) struct Traffic {
    connections: u32,
    payload: Bytes,
    pub(crate) now: Instant,
    turn: u32,
}

impl Traffic {
    pub(crate) fn new(connections: u32) -> Self {
        let payload = Bytes::from(vec![0; MSS as usize + 1]).slice(..MSS as usize);
        Self { connections, payload, now: Instant::ZERO, turn: 0 }
    }

    /// The next segment and the acknowledgement that follows it.
    pub(crate) fn next(&mut self) -> [(FlowKey, Segment); 2] {
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

    /// The segments of `rounds` rounds.
    pub(crate) fn take(&mut self, rounds: usize) -> Vec<Forwarded> {
        let mut all = Vec::with_capacity(2 * rounds);
        for _ in 0..rounds {
            let pair = self.next();
            all.extend(pair.map(|(flow, segment)| (self.now, flow, segment)));
        }
        all
    }
}

/// A segment and its time.
pub(crate) type Forwarded = (Instant, FlowKey, Segment);

/// A node through which each connection has sent a full window, and the next `rounds` segments and
/// acknowledgements.
pub(crate) fn busy(connections: u32, rounds: usize) -> (Node, Traffic, Vec<Forwarded>) {
    let (mut traffic, mut node) = (Traffic::new(connections), Node::new(LIMITS.config()));
    forward(&mut node, &traffic.take((connections * FLIGHT) as usize));
    assert_eq!((node.counters().unacceptable, node.counters().not_cached), (0, 0));
    let next = traffic.take(rounds);
    (node, traffic, next)
}

/// Forwards segments, as a driver does.
pub(crate) fn forward(node: &mut Node, segments: &[Forwarded]) {
    for (now, flow, segment) in segments {
        black_box(node.handle_segment(*now, *flow, segment, 0));
        // A driver asks once for each batch of packets.
        while let Some(own) = node.poll_transmit(*now) {
            black_box(own);
        }
        if node.next_timeout().is_some_and(|at| at <= *now) {
            node.handle_timeout(*now);
        }
    }
}
