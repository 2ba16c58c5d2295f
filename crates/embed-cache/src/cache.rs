//! The caching node with packets in place of segments.

use anabranch_core::dtc::{Config, Custody, FlowKey, LinkEvent, Node, SackForEnds, Signal, Verdict};
use anabranch_core::segment::{Flags, Segment};
use anabranch_core::time::Instant;
use anabranch_wire::ip::{self, Header, IPV6_HEADER_LEN, Protocol};
use bytes::Bytes;

use crate::api::Counters;
use crate::sizes::Sizes;

/// Longest TCP header in bytes (RFC 9293 section 3.1).
const MAX_TCP_HEADER: usize = 60;

/// Options of TCP that the cache understands: end of list, no operation, MSS, window scale,
/// SACK-permitted, SACK, timestamps.
const KNOWN_OPTIONS: [u8; 7] = [0, 1, 2, 3, 4, 5, 8];

/// The caching node of a forwarder.
#[derive(Debug)]
pub struct Cache {
    node: Node,
    /// Limit of the payload of a cached segment in bytes.
    segment: u16,
    unread: u32,
}

impl Cache {
    /// Creates a cache. Of `config` the bounds and the options that would change packets are
    /// replaced: a forwarder of this kind has no room to rewrite a header.
    pub fn new(sizes: &Sizes, config: Config) -> Self {
        let config = Config {
            cache_segments: sizes.segments.into(),
            connections: sizes.connections.into(),
            custody: Custody::UntilLinkAck,
            signal: Signal::Silent,
            sack: SackForEnds::Leave,
            ..config
        };
        Self { node: Node::new(config), segment: sizes.segment, unread: 0 }
    }

    /// Length of the longest packet that [`Cache::poll`] writes, in bytes.
    pub fn longest(&self) -> usize {
        IPV6_HEADER_LEN + MAX_TCP_HEADER + usize::from(self.segment)
    }

    /// Handles a packet that is about to be forwarded; returns true if it is to be forwarded.
    /// Allocates at most one payload.
    pub fn packet(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some((flow, segment)) = self.read(packet) else {
            self.unread = self.unread.wrapping_add(1);
            return true;
        };
        self.decide(now, flow, &segment)
    }

    /// Not inlined, so that its stack is not in use while a packet is read.
    #[inline(never)]
    fn decide(&mut self, now: Instant, flow: FlowKey, segment: &Segment) -> bool {
        // The chance to cache a segment is 1, so the random word has no effect.
        match self.node.handle_segment(now, flow, segment, 0) {
            Verdict::Forward => true,
            Verdict::Hold => false,
            // The options in `Cache::new` exclude it.
            Verdict::Rewrite(_) => true,
        }
    }

    /// Handles a report of the link layer about a packet that was forwarded or repeated. Allocates
    /// at most one payload.
    pub fn link(&mut self, now: Instant, packet: &[u8], event: LinkEvent) {
        if let Some((flow, segment)) = self.read(packet) {
            self.report(now, flow, &segment, event);
        }
    }

    /// Not inlined, as [`Cache::decide`].
    #[inline(never)]
    fn report(&mut self, now: Instant, flow: FlowKey, segment: &Segment, event: LinkEvent) {
        self.node.handle_link(now, flow, segment, event);
    }

    /// Handles expired timers.
    pub fn timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    /// When to call [`Cache::timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.node.next_timeout()
    }

    /// Writes the next packet that the cache sends to the beginning of `out`, which has at least
    /// [`Cache::longest`] bytes. Returns its length in bytes.
    pub fn poll(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let sent = self.node.poll_transmit(now)?;
        let header = Header::new(sent.flow.source, sent.flow.destination, Protocol::TCP);
        ip::write_tcp(&header, &sent.segment, out).ok()
    }

    /// What the cache has done so far. Numbers wrap at 2^32.
    pub fn counters(&self) -> Counters {
        let counters = self.node.counters();
        Counters {
            unread: self.unread,
            segments: counters.segments as u32,
            cached: counters.cached as u32,
            not_cached: counters.not_cached as u32,
            repeated: counters.local_retransmissions as u32,
            acks_repeated: counters.acks_repeated as u32,
            held: (counters.data_held + counters.data_answered + counters.acks_held) as u32,
            given_up: counters.given_up as u32,
            connections: self.node.connections() as u32,
        }
    }

    /// The segment of a packet; `None` if the packet passes unread: it is no TCP, is damaged, is a
    /// fragment, has a longer payload than the cache stores, or has options, extension headers or
    /// urgent data that a repeated packet would lack.
    fn read(&self, packet: &[u8]) -> Option<(FlowKey, Segment)> {
        let (header, payload) = ip::parse(packet).ok()?;
        if payload.start != header.wire_len() || header.protocol != Protocol::TCP {
            return None;
        }
        let octets = packet.get(payload)?;
        // Reserved bits, which experiments use.
        if octets.get(12)? & 0x0f != 0 || !has_known_options(octets) {
            return None;
        }
        let (mut segment, head) = ip::parse_tcp_header(&header, octets).ok()?;
        if segment.flags.contains(Flags::URG) {
            return None;
        }
        let payload = octets.get(head..)?;
        if payload.len() > usize::from(self.segment) {
            return None;
        }
        segment.payload = Bytes::copy_from_slice(payload);
        Some((FlowKey { source: header.src, destination: header.dst }, segment))
    }
}

/// True if a TCP header has only options of [`KNOWN_OPTIONS`]. An invalid header is left to the
/// parser.
fn has_known_options(octets: &[u8]) -> bool {
    let Some(offset) = octets.get(12) else { return false };
    let mut rest = octets.get(20..usize::from(offset >> 4) * 4).unwrap_or_default();
    while let Some(kind) = rest.first() {
        if !KNOWN_OPTIONS.contains(kind) {
            return false;
        }
        let length = match kind {
            0 => return true,
            1 => 1,
            _ => rest.get(1).map_or(0, |length| usize::from(*length)),
        };
        if length == 0 {
            return true;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    true
}
