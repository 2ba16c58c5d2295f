//! The path of a packet through the cache, without a socket: from bytes to the segments of
//! [`anabranch_core::dtc`] and back.
//!
//! Packets that the cache does not understand completely pass unread ([`PacketCounters`]): a copy
//! that lacks something unknown would be another segment.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_core::dtc::{
    AckCustody, Config, Counters, Displacement, FlowKey, LinkEvent, Node, SackForEnds, Samples, Signal,
    Suppression, Timeouts, Transmit, Validation, Verdict,
};
use anabranch_core::segment::{Flags, Segment};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::{self, Header, IPV4_HEADER_LEN, IPV6_HEADER_LEN, Protocol};
use bytes::Bytes;

/// Limits of a cache on a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Memory for cached segments in bytes, at least [`SEGMENT_MEMORY`].
    pub memory: u64,
    /// Connections with a state of their own, at least 1.
    pub connections: usize,
    /// Shortest time-out of a segment.
    pub min_timeout: Duration,
}

impl Limits {
    /// Options of a node for kernel endpoints and many segments in flight. No segment is changed on
    /// its way.
    pub fn config(self) -> Config {
        // A neighbour that also caches repeats a segment no sooner than this host does.
        let soon = self.min_timeout / 2;
        Config {
            cache_segments: (self.memory / SEGMENT_MEMORY) as usize,
            flow_segments: MOST_OF_FLOW,
            cache_octets: self.memory as usize,
            connections: self.connections,
            flight: LARGEST_FLIGHT,
            samples: Samples::EachSegment,
            initial_rto: INITIAL_TIMEOUT,
            min_rto: self.min_timeout,
            validation: Validation::WithinWindow,
            displacement: Displacement::OfLongest,
            timeouts: Timeouts::LowestOfFlow,
            unanswered_repeats: UNANSWERED_REPEATS,
            repeats_per_ack: REPEATS_PER_ACK,
            suppression: Suppression::AfterTransmission { at_least: soon },
            signal: Signal::Never,
            acks: AckCustody::Repair { after: soon, at_most: 3 },
            sack: SackForEnds::Leave,
            ..Config::improved()
        }
    }
}

/// What a device does with a packet before it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The TCP checksum is still to be computed. The content is as its sender wrote it.
    pub checksum: bool,
    /// The packet is still to be cut into segments.
    pub segments: bool,
}

/// What the host must do with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ruling {
    /// Forward the packet.
    Accept,
    /// Drop the packet: the cache or the receiver has it.
    Drop,
}

/// Packets by how they were treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketCounters {
    /// Packets that were read.
    pub read: u64,
    /// Packets that the kernel would have cut into segments, and that were read.
    pub gso: u64,
    /// Packets that are not TCP, or not IP.
    pub not_tcp: u64,
    /// Fragments, and packets with IPv4 options or IPv6 extension headers.
    pub not_plain: u64,
    /// Segments with unknown options, reserved bits or urgent data.
    pub unknown: u64,
    /// Segments with a wrong length or checksum.
    pub malformed: u64,
}

/// A caching node that sees packets.
#[derive(Debug)]
pub struct PacketCache {
    node: Node,
    paths: Paths,
    counters: PacketCounters,
    /// Parts of a packet of which other parts were held back.
    parts: VecDeque<Transmit>,
    /// Refused packets of the cache, less half of those sent.
    refusals: u8,
    /// Until then every packet passes.
    passes_until: Instant,
}

impl PacketCache {
    /// Creates an empty cache.
    pub fn new(config: Config) -> Self {
        Self {
            node: Node::new(config),
            paths: Paths::new(config.connections),
            counters: PacketCounters::default(),
            parts: VecDeque::new(),
            refusals: 0,
            passes_until: Instant::ZERO,
        }
    }

    /// Handles a packet that the host is about to forward, after the host has decremented the hop
    /// limit.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8], offload: Offload) -> Ruling {
        let (header, segment) = match read(packet, offload) {
            Ok(read) => read,
            Err(unread) => {
                let counter = match unread {
                    Unread::NotTcp => &mut self.counters.not_tcp,
                    Unread::NotPlain => &mut self.counters.not_plain,
                    Unread::Unknown => &mut self.counters.unknown,
                    Unread::Malformed => &mut self.counters.malformed,
                };
                *counter += 1;
                return Ruling::Accept;
            }
        };
        self.counters.read += 1;
        let flow = FlowKey { source: header.src, destination: header.dst };
        let cut = self.paths.observe(&header, packet, &segment, offload);
        if offload.segments && segment.payload.len() > cut {
            self.counters.gso += 1;
            return self.long(now, flow, &segment, cut);
        }
        match self.node.handle_segment(now, flow, &segment, 0) {
            // The configuration rewrites nothing: endpoints see each other's options as they are.
            Verdict::Forward | Verdict::Rewrite(_) => Ruling::Accept,
            Verdict::Hold if self.passes(now) => Ruling::Accept,
            Verdict::Hold => Ruling::Drop,
        }
    }

    /// Whether every packet passes, because the kernel refuses those of the cache.
    fn passes(&self, now: Instant) -> bool {
        now < self.passes_until
    }

    /// Handles a packet that the kernel will cut into segments with payloads of at most `cut`
    /// bytes.
    fn long(&mut self, now: Instant, flow: FlowKey, segment: &Segment, cut: usize) -> Ruling {
        let queued = self.parts.len();
        let mut held = 0;
        for part in parts(segment, cut) {
            match self.node.handle_segment(now, flow, &part, 0) {
                Verdict::Hold => held += 1,
                _ => self.parts.push_back(Transmit { flow, segment: part }),
            }
        }
        let passed = self.parts.len() - queued;
        if held > 0 && !self.passes(now) {
            // The parts that pass are sent one by one.
            return Ruling::Drop;
        }
        self.parts.truncate(self.parts.len() - passed);
        Ruling::Accept
    }

    /// Handles a report of the link layer about a packet that it was given. `packet` is whole, or
    /// for [`LinkEvent::Acknowledged`] at least its headers. Its checksum is not verified.
    pub fn handle_report(&mut self, now: Instant, packet: &[u8], event: LinkEvent) {
        let offload = Offload { checksum: true, segments: false };
        let mut packet = Cow::Borrowed(packet);
        let stated = stated_len(&packet);
        if event == LinkEvent::Acknowledged && stated > packet.len() {
            // The node needs only the length of the payload.
            packet.to_mut().resize(stated, 0);
        }
        if let Ok((header, segment)) = read(&packet, offload) {
            let flow = FlowKey { source: header.src, destination: header.dst };
            self.node.handle_link(now, flow, &segment, event);
        }
    }

    /// Writes the next packet that the cache itself sends to `out`, and returns its destination.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<IpAddr> {
        loop {
            let Transmit { flow, segment } =
                self.parts.pop_front().or_else(|| self.node.poll_transmit(now))?;
            out.clear();
            if self.paths.write(flow, &segment, out).is_some() {
                return Some(flow.destination);
            }
        }
    }

    /// Handles the outcome of a packet that the cache has sent: whether the kernel has taken it.
    /// After several refusals each packet passes for some seconds, since the node takes a segment
    /// for sent that was not, and would hold back the sender's. Returns true if that time begins.
    pub fn handle_sent(&mut self, now: Instant, taken: bool) -> bool {
        if taken {
            self.refusals = self.refusals.saturating_sub(1);
            return false;
        }
        self.refusals += 2;
        if self.refusals < MOST_REFUSALS {
            return false;
        }
        self.refusals = 0;
        let begins = !self.passes(now);
        self.passes_until = now + REFUSED;
        begins
    }

    /// When to call [`PacketCache::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.node.next_timeout()
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    /// Packets so far.
    pub fn packets(&self) -> &PacketCounters {
        &self.counters
    }

    /// What the node has done so far.
    pub fn segments(&self) -> &Counters {
        self.node.counters()
    }

    /// Number of cached segments, and their payload in bytes.
    pub fn cached(&self) -> (usize, usize) {
        self.node.cached()
    }

    /// Number of connections with state.
    pub fn connections(&self) -> usize {
        self.node.connections()
    }
}

/// Why a packet passes unread.
enum Unread {
    NotTcp,
    NotPlain,
    Unknown,
    Malformed,
}

/// Reads a packet that the cache understands completely.
fn read(packet: &[u8], offload: Offload) -> Result<(Header, Segment), Unread> {
    let (header, range) = ip::parse(packet).map_err(|_| Unread::NotTcp)?;
    let plain = if header.src.is_ipv4() { IPV4_HEADER_LEN } else { IPV6_HEADER_LEN };
    if header.fragment.is_some() || range.start != plain {
        return Err(Unread::NotPlain);
    }
    if header.protocol != Protocol::TCP {
        return Err(Unread::NotTcp);
    }
    let octets = &packet[range];
    // The reserved bits, of which one is a flag of AccECN, and the flags.
    let [reserved, flags] = *octets.get(12..14).and_then(<[u8]>::first_chunk).ok_or(Unread::Malformed)?;
    if reserved & 0x0f != 0 || flags & Flags::URG.0 != 0 || ip::has_unknown_tcp_options(octets) {
        return Err(Unread::Unknown);
    }
    // A copy that the node can keep, since the packet's buffer is used again.
    let octets = Bytes::copy_from_slice(octets);
    let parse = if offload.checksum { ip::parse_tcp_offloaded } else { ip::parse_tcp };
    parse(&header, octets).map(|segment| (header, segment)).map_err(|_| Unread::Malformed)
}

/// Length of a packet as its header states it; 0 if there is no header.
fn stated_len(packet: &[u8]) -> usize {
    let word =
        |at: usize| packet.get(at..at + 2).map_or(0, |o| usize::from(u16::from_be_bytes([o[0], o[1]])));
    match packet.first().map(|first| first >> 4) {
        Some(4) => word(2),
        Some(6) => IPV6_HEADER_LEN + word(4),
        _ => 0,
    }
}

/// Cuts a segment as a device does (TCP segmentation offload).
fn parts(segment: &Segment, cut: usize) -> impl Iterator<Item = Segment> {
    let len = segment.payload.len();
    (0..len).step_by(cut).map(move |from| {
        let to = (from + cut).min(len);
        let mut flags = segment.flags;
        if from > 0 {
            flags = flags.without(Flags::CWR);
        }
        if to < len {
            flags = flags.without(Flags::FIN.with(Flags::PSH));
        }
        Segment {
            seq: segment.seq + from as u32,
            flags,
            // A slice would keep the whole packet in memory as long as one part is cached.
            payload: Bytes::copy_from_slice(&segment.payload[from..to]),
            ..segment.clone()
        }
    })
}

/// What is known of each direction of a connection: the fields of its IP headers, and its segments'
/// size. Directions whose keys collide replace each other. Then packets of the cache have default
/// fields.
#[derive(Debug)]
struct Paths(Vec<Option<Path>>);

#[derive(Clone, Copy, Debug)]
struct Path {
    flow: FlowKey,
    ports: (u16, u16),
    hop_limit: u8,
    traffic_class: u8,
    flow_label: u32,
    /// IPv4: Don't Fragment (RFC 791 section 3.1).
    dont_fragment: bool,
    /// Maximum segment size that the sender may use; 0 if it is unknown.
    mss: u16,
}

impl Paths {
    fn new(connections: usize) -> Self {
        Self(vec![None; (4 * connections).next_power_of_two()])
    }

    fn place(&self, flow: FlowKey, ports: (u16, u16)) -> usize {
        let word = |address: IpAddr| match address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits() as u64 ^ (v6.to_bits() >> 64) as u64,
        };
        let mix = |a: u64, b: u64| (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ports = u64::from(ports.0) << 16 | u64::from(ports.1);
        let mixed = mix(mix(mix(0, word(flow.source)), word(flow.destination)), ports);
        (mixed >> 32) as usize & (self.0.len() - 1)
    }

    fn find(&self, flow: FlowKey, ports: (u16, u16)) -> Option<&Path> {
        self.0[self.place(flow, ports)].as_ref().filter(|path| path.flow == flow && path.ports == ports)
    }

    /// Notes a packet. Returns the payload of full segments in bytes.
    fn observe(&mut self, header: &Header, packet: &[u8], segment: &Segment, offload: Offload) -> usize {
        let flow = FlowKey { source: header.src, destination: header.dst };
        let ports = (segment.src_port, segment.dst_port);
        let at = self.place(flow, ports);
        let known = self.find(flow, ports).map_or(0, |path| path.mss);
        let mut path = Path {
            flow,
            ports,
            hop_limit: header.hop_limit,
            traffic_class: header.traffic_class,
            flow_label: header.flow_label,
            dont_fragment: header.src.is_ipv4() && packet[6] & DONT_FRAGMENT != 0,
            mss: known,
        };
        let options = segment.options_len();
        if segment.flags.contains(Flags::SYN) {
            // Each end announces what it receives. Both directions of a path usually have the same
            // limit, so the smaller one counts for both.
            let back = FlowKey { source: flow.destination, destination: flow.source };
            let other = self.find(back, (ports.1, ports.0)).map_or(0, |path| path.mss);
            let own = segment.options.mss.unwrap_or(LEAST_MSS);
            path.mss = if segment.flags.contains(Flags::ACK) && other != 0 { own.min(other) } else { own };
            let place = self.place(back, (ports.1, ports.0));
            if let Some(other) = &mut self.0[place]
                && segment.flags.contains(Flags::ACK)
                && other.flow == back
            {
                other.mss = path.mss;
            }
        } else if !offload.segments {
            path.mss = path.mss.max((segment.payload.len() + options).min(usize::from(u16::MAX)) as u16);
        }
        self.0[at] = Some(path);
        let mss = if path.mss == 0 { LEAST_MSS } else { path.mss };
        usize::from(mss).saturating_sub(options).max(LEAST_PAYLOAD)
    }

    /// Writes the packet of a segment; `None` if it cannot be written.
    fn write(&self, flow: FlowKey, segment: &Segment, out: &mut Vec<u8>) -> Option<()> {
        let mut header = Header::new(flow.source, flow.destination, Protocol::TCP);
        let path = self.find(flow, (segment.src_port, segment.dst_port));
        if let Some(path) = path {
            header.hop_limit = path.hop_limit;
            header.traffic_class = path.traffic_class;
            header.flow_label = path.flow_label;
        }
        ip::emit_tcp(&header, segment, out).ok()?;
        if flow.source.is_ipv4() && path.is_some_and(|path| path.dont_fragment) {
            out[6] |= DONT_FRAGMENT;
            let sum = u32::from(u16::from_be_bytes([out[10], out[11]]));
            // RFC 1624 equation 3, for one word that has changed by 0x4000.
            let sum = u32::from(!(sum as u16)) + 0x4000;
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(())
    }
}

/// Memory for each cached segment in bytes: the state, and a payload of a common length.
pub const SEGMENT_MEMORY: u64 = 2 << 10;
/// Cached segments of one direction of a connection, at most.
const MOST_OF_FLOW: usize = 8192;
/// Largest flight of a sender in bytes: 16 MiB, above the largest default window of hosts
/// (net.ipv4.tcp_rmem).
const LARGEST_FLIGHT: u32 = 16 << 20;
/// Time-out of a SYN before any measurement. It is below that of the endpoints (1 s, RFC 6298
/// section 2.1) and above most round trips.
const INITIAL_TIMEOUT: Duration = Duration::from_millis(250);
/// Repetitions of a segment to a destination that has not answered yet: a flood of spoofed SYNs
/// causes at most this many copies.
const UNANSWERED_REPEATS: u8 = 3;
/// Repetitions that the SACK blocks of one acknowledgement cause: the segments of one packet of
/// 64 kB that a device would cut.
const REPEATS_PER_ACK: u8 = 64;
/// Three refusals in a row, or a few more if others come between.
const MOST_REFUSALS: u8 = 6;
/// How long packets pass after the last refusals. Copies are still sent, so as to find out whether
/// the kernel takes them again.
const REFUSED: Duration = Duration::from_secs(5);
/// The flag in the seventh byte of an IPv4 header (RFC 791 section 3.1).
const DONT_FRAGMENT: u8 = 0x40;
/// An MSS that every path of IPv6 has (RFC 8200 section 5), for connections whose SYN was not seen.
const LEAST_MSS: u16 = 1220;
/// Least payload of a part, whatever MSS a peer announces.
const LEAST_PAYLOAD: usize = 256;

#[cfg(test)]
mod tests;
