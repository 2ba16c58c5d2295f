//! Statistics of flows: loss, delay, jitter, reordering and throughput of each flow, and the
//! fairness among them.
//!
//! A flow is one direction of communication: source and destination with their ports, and the
//! protocol. A packet is sent when its source first passes it to a link, which may refuse it, or
//! when its source drops it; it then counts as lost. A retransmission is a separate packet, a
//! fragmented packet counts once, and of several copies the first counts. A packet may arrive until
//! the end of the run, but only packets that are sent within the window count.

use std::collections::BTreeMap;

use anabranch_core::rdca::{Header, Message};
use anabranch_core::segment::{Flags, Segment};
use anabranch_core::set::RangeSet;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::{Protocol, UdpDatagram};
use anabranch_wire::rdca::{Data, Expected};

use super::{Figure, Measure};
use crate::fragment::add_range;
use crate::math::{jain, quantile};
use crate::network::ObserverId;
use crate::packet::{LinkId, NodeId, Packet, Payload, Whole};
use crate::trace::{Incident, NodeDrop, Observer, Point};
use crate::world::World;

/// Transport of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlowProtocol {
    /// TCP, or a subflow of Multipath TCP.
    Tcp,
    /// UDP.
    Udp,
    /// RDCA over UDP.
    Rdca,
    /// Another protocol, by its number in the IP header.
    Other(u8),
}

impl FlowProtocol {
    /// Its name in tables: `tcp`, `udp`, `rdca` or `ip-58`.
    pub fn name(self) -> String {
        match self {
            Self::Tcp => "tcp".to_owned(),
            Self::Udp => "udp".to_owned(),
            Self::Rdca => "rdca".to_owned(),
            Self::Other(number) => format!("ip-{number}"),
        }
    }
}

/// Identity of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Source.
    pub src: NodeId,
    /// Port of the source; 0 if the protocol is neither TCP nor UDP.
    pub src_port: u16,
    /// Destination.
    pub dst: NodeId,
    /// Port of the destination; 0 if the protocol is neither TCP nor UDP.
    pub dst_port: u16,
    /// Transport.
    pub protocol: FlowProtocol,
}

/// Statistics of one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowFigures {
    /// The flow.
    pub key: FlowKey,
    /// Time at which its first packet was sent.
    pub first_sent: Instant,
    /// Time at which its last packet arrived; `None` if none did.
    pub last_received: Option<Instant>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of these packets, including IP headers.
    pub sent_bytes: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Bytes of these packets, including IP headers.
    pub received_bytes: u64,
    /// Packets that a link or a node has dropped and of which no copy arrived.
    pub lost_packets: u64,
    /// `lost_packets` divided by the number of packets that were lost or arrived; `None` if there
    /// are none.
    pub loss_ratio: Option<f64>,
    /// Bytes of payload that arrived within the window, without duplicates.
    pub payload_bytes: u64,
    /// Mean one-way delay in seconds.
    pub delay_mean: Option<f64>,
    /// Median of the delay in seconds.
    pub delay_p50: Option<f64>,
    /// 95th percentile of the delay in seconds.
    pub delay_p95: Option<f64>,
    /// 99th percentile of the delay in seconds.
    pub delay_p99: Option<f64>,
    /// Longest delay in seconds.
    pub delay_max: Option<f64>,
    /// Mean absolute difference in seconds between the delays of successive arrivals: the one-way
    /// ipdv of RFC 3393, as summed by ns-3's `FlowMonitor`. It is not the smoothed
    /// estimate of RFC 3550. `None` for fewer than two packets.
    pub jitter_mean: Option<f64>,
    /// Packets that arrived after a packet that was sent later, divided by all packets that
    /// arrived: the ratio of RFC 4737 section 3.3.
    pub reordered_ratio: Option<f64>,
    /// Bytes received, including IP headers, divided by the time from the first packet sent to the
    /// last one received, in bit/s.
    pub throughput: Option<f64>,
    /// `payload_bytes` divided by the window, in bit/s. `None` if no payload was sent, or if the
    /// window has no length.
    pub goodput: Option<f64>,
}

/// Measure of the flows between some nodes.
#[derive(Debug)]
pub struct Flows {
    from: Vec<NodeId>,
    /// Nodes at which flows end; `None` for all.
    to: Option<Vec<NodeId>>,
    rdca: Vec<(NodeId, u16, Header)>,
    begun: Instant,
    counter: Option<ObserverId>,
}

impl Flows {
    /// Measures the flows that begin and end at these nodes.
    pub fn between(from: Vec<NodeId>, to: Option<Vec<NodeId>>) -> Self {
        Self { from, to, rdca: Vec::new(), begun: Instant::ZERO, counter: None }
    }

    /// Sets the ports of RDCA sinks.
    #[must_use]
    pub fn with_rdca_at(mut self, sinks: Vec<(NodeId, u16, Header)>) -> Self {
        self.rdca = sinks;
        self
    }

    fn counter<'w>(&self, world: &'w World) -> Option<&'w Counter> {
        world.network.observer(self.counter?)
    }
}

impl Measure for Flows {
    fn begin(&mut self, now: Instant, world: &mut World) {
        self.begun = now;
        let network = &mut world.network;
        let among = |nodes: &[NodeId]| {
            let mut among = vec![false; network.node_count()];
            nodes.iter().for_each(|node| among[node.index()] = true);
            among
        };
        let counter = Counter {
            from: among(&self.from),
            to: self.to.as_deref().map(among),
            ends: network.links().iter().map(|link| (link.from(), link.to())).collect(),
            up: (0..network.node_count()).map(|node| network.is_up(NodeId(node as u32))).collect(),
            header_len: network.config().ip.header_len(),
            rdca: self.rdca.clone(),
            first: network.packets_made(),
            is_open: true,
            seen: Vec::new(),
            under_way: BTreeMap::new(),
            known: BTreeMap::new(),
            flows: Vec::new(),
        };
        self.counter = Some(network.observe(Box::new(counter)));
    }

    fn end(&mut self, _: Instant, world: &mut World) {
        let counter = self.counter.and_then(|id| world.network.observer_mut::<Counter>(id));
        if let Some(counter) = counter {
            counter.is_open = false;
        }
    }

    fn figures(&self, now: Instant, world: &World) -> Vec<Figure> {
        let flows = self.counter(world).map_or(&[][..], |counter| &counter.flows);
        let window = now.saturating_since(self.begun);
        // Flows of acknowledgements alone would distort the statistics of data.
        let flows: Vec<&Flow> = flows.iter().filter(|flow| flow.has_payload).collect();
        let sum = |of: fn(&Flow) -> u64| flows.iter().map(|flow| of(flow)).sum::<u64>();
        let (received, lost) = (sum(|flow| flow.received_packets), sum(|flow| flow.lost_packets));
        let delays = Delays::of(flows.iter().flat_map(|flow| flow.delays.iter().copied()));
        let gaps = sum(|flow| flow.received_packets.saturating_sub(1));
        let rates: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput(window)).collect();
        let mut sorted = rates.clone();
        sorted.sort_by(f64::total_cmp);
        let worst = |of: fn(&Flow) -> Option<f64>| flows.iter().filter_map(|flow| of(flow)).reduce(f64::max);
        let count = |count: u64| Some(count as f64);
        [
            ("flows", count(flows.len() as u64), "1"),
            ("sent_packets", count(sum(|flow| flow.sent_packets)), "1"),
            ("sent_bytes", count(sum(|flow| flow.sent_bytes)), "B"),
            ("received_packets", count(received), "1"),
            ("received_bytes", count(sum(|flow| flow.received_bytes)), "B"),
            ("lost_packets", count(lost), "1"),
            ("loss_ratio", ratio(lost as f64, received + lost), "1"),
            ("loss_ratio_worst", worst(Flow::loss_ratio), "1"),
            ("delay_mean_s", delays.mean, "s"),
            ("delay_p50_s", delays.p50, "s"),
            ("delay_p95_s", delays.p95, "s"),
            ("delay_p99_s", delays.p99, "s"),
            ("delay_max_s", delays.max, "s"),
            ("jitter_mean_s", ratio(seconds(sum(|flow| flow.jitter)), gaps), "s"),
            ("reordered_ratio", ratio(sum(|flow| flow.reordered) as f64, received), "1"),
            ("goodput_bit_per_s", (!rates.is_empty()).then(|| rates.iter().sum()), "bit/s"),
            ("goodput_min_bit_per_s", sorted.first().copied(), "bit/s"),
            ("goodput_p50_bit_per_s", quantile(&sorted, 0.5), "bit/s"),
            ("goodput_max_bit_per_s", sorted.last().copied(), "bit/s"),
            ("fairness", jain(&rates), "1"),
        ]
        .into_iter()
        .map(|(name, value, unit)| Figure { name: name.to_owned(), value, unit })
        .collect()
    }

    fn flows(&self, now: Instant, world: &World) -> Vec<FlowFigures> {
        let window = now.saturating_since(self.begun);
        let counter = self.counter(world);
        counter.into_iter().flat_map(|counter| &counter.flows).map(|flow| flow.figures(window)).collect()
    }
}

fn ratio(part: f64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}

fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

/// Rate in bit/s.
fn rate(octets: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (seconds > 0.0).then(|| octets as f64 * 8.0 / seconds)
}

/// A distribution of delays, in seconds.
struct Delays {
    mean: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Delays {
    fn of(nanos: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = nanos.collect();
        sorted.sort_unstable();
        // Summed in whole nanoseconds, so that the sum does not depend on the order.
        let sum: u128 = sorted.iter().map(|delay| u128::from(*delay)).sum();
        let sorted: Vec<f64> = sorted.into_iter().map(seconds).collect();
        let mean = ratio(sum as f64 / 1e9, sorted.len() as u64);
        let share = |share| quantile(&sorted, share);
        Self { mean, p50: share(0.5), p95: share(0.95), p99: share(0.99), max: sorted.last().copied() }
    }
}

/// State of a flow.
#[derive(Debug)]
struct Flow {
    key: FlowKey,
    /// Whether it carries more than acknowledgements and other control packets.
    has_payload: bool,
    first_sent: Instant,
    last_received: Option<Instant>,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    lost_packets: u64,
    /// Nanoseconds, in order of arrival.
    delays: Vec<u64>,
    /// Sum of the differences between successive delays, in nanoseconds.
    jitter: u64,
    /// `NextExp` of RFC 4737 section 3.3: one more than the highest number that has arrived.
    next: u64,
    reordered: u64,
    payload: Arrived,
}

impl Flow {
    fn new(key: FlowKey, now: Instant) -> Self {
        Self {
            key,
            has_payload: false,
            first_sent: now,
            last_received: None,
            sent_packets: 0,
            sent_bytes: 0,
            received_packets: 0,
            received_bytes: 0,
            lost_packets: 0,
            delays: Vec::new(),
            jitter: 0,
            next: 0,
            reordered: 0,
            payload: Arrived::default(),
        }
    }

    fn receive(&mut self, now: Instant, packet: &UnderWay) {
        let delay = now.saturating_since(packet.sent).as_nanos();
        if let Some(last) = self.delays.last() {
            self.jitter += delay.abs_diff(*last);
        }
        self.delays.push(delay);
        self.last_received = Some(now);
        self.received_packets += 1;
        self.received_bytes += u64::from(packet.len);
        self.lost_packets -= u64::from(packet.is_lost);
        self.reordered += u64::from(packet.number < self.next);
        self.next = self.next.max(packet.number + 1);
    }

    fn loss_ratio(&self) -> Option<f64> {
        ratio(self.lost_packets as f64, self.lost_packets + self.received_packets)
    }

    fn goodput(&self, window: Duration) -> Option<f64> {
        rate(self.payload.octets, window).filter(|_| self.has_payload)
    }

    fn figures(&self, window: Duration) -> FlowFigures {
        let Delays { mean, p50, p95, p99, max } = Delays::of(self.delays.iter().copied());
        let active = self.last_received.map(|last| last.saturating_since(self.first_sent));
        FlowFigures {
            key: self.key,
            first_sent: self.first_sent,
            last_received: self.last_received,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            received_packets: self.received_packets,
            received_bytes: self.received_bytes,
            lost_packets: self.lost_packets,
            loss_ratio: self.loss_ratio(),
            payload_bytes: self.payload.octets,
            delay_mean: mean,
            delay_p50: p50,
            delay_p95: p95,
            delay_p99: p99,
            delay_max: max,
            jitter_mean: ratio(seconds(self.jitter), self.received_packets.saturating_sub(1)),
            reordered_ratio: ratio(self.reordered as f64, self.received_packets),
            throughput: active.and_then(|time| rate(self.received_bytes, time)),
            goodput: self.goodput(window),
        }
    }
}

/// Payload that has arrived, each byte counted once: transports retransmit more than necessary.
#[derive(Debug, Default)]
struct Arrived {
    octets: u64,
    /// Origin of the numbers: a connection's initial sequence number, or an RDCA stream.
    epoch: Option<u32>,
    /// A number modulo 2^32, and its position in `numbers`.
    last: Option<(u32, u64)>,
    /// Numbers that have arrived.
    numbers: RangeSet,
}

/// Position of the first number seen: lower numbers may arrive later.
const FIRST: u64 = 1 << 62;

impl Arrived {
    /// Starts a new range of numbers, unless they have this origin already.
    fn begin(&mut self, epoch: u32) {
        if self.epoch != Some(epoch) {
            (self.epoch, self.last) = (Some(epoch), None);
            self.numbers = RangeSet::new();
        }
    }

    /// How many of the `len` numbers from `start` are new.
    fn add(&mut self, start: u32, len: u32) -> u64 {
        // Correct while numbers are less than 2^31 apart, like TCP sequence numbers.
        let at = self.last.map_or(FIRST, |(number, at)| {
            at.wrapping_add_signed(i64::from(start.wrapping_sub(number) as i32))
        });
        self.last = Some((start, at));
        self.numbers.insert(at, at + u64::from(len))
    }
}

/// A packet that was sent and has not arrived.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// Index of its flow.
    flow: usize,
    /// Number of packets of its flow that were sent before it.
    number: u64,
    sent: Instant,
    /// Bytes, including the IP header.
    len: u32,
    /// Whether it was dropped. A copy may still be in flight: a radio that receives no
    /// acknowledgement gives up a packet that has arrived.
    is_lost: bool,
}

/// Content of a packet, whole or in fragments.
enum Carried<'p> {
    Tcp(&'p Segment),
    Udp(&'p UdpDatagram),
    Opaque(Protocol, usize),
}

impl<'p> Carried<'p> {
    fn of(packet: &'p Packet) -> Self {
        match &packet.payload {
            Payload::Tcp(segment) => Self::Tcp(segment),
            Payload::Udp(datagram) => Self::Udp(datagram),
            Payload::Opaque(opaque) => Self::Opaque(opaque.protocol, opaque.octets.len()),
            Payload::Fragment(piece) => match &*piece.whole {
                Whole::Tcp(segment) => Self::Tcp(segment),
                Whole::Udp(datagram) => Self::Udp(datagram),
                Whole::Opaque(opaque) => Self::Opaque(opaque.protocol, opaque.octets.len()),
            },
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Tcp(segment) => segment.wire_len(),
            Self::Udp(datagram) => datagram.wire_len(),
            Self::Opaque(_, octets) => *octets,
        }
    }
}

/// The observer, from the beginning of the window until the end of the run.
#[derive(Debug)]
struct Counter {
    /// By node: whether flows may begin there.
    from: Vec<bool>,
    /// By node: whether flows may end there.
    to: Option<Vec<bool>>,
    /// By link: the nodes at which it begins and ends.
    ends: Vec<(NodeId, NodeId)>,
    /// By node.
    up: Vec<bool>,
    header_len: u32,
    rdca: Vec<(NodeId, u16, Header)>,
    /// Number of the first packet made in the window.
    first: u64,
    is_open: bool,
    /// By packet number, from `first` on: whether it was sent or does not count.
    seen: Vec<bool>,
    /// By packet number, with the parts that have arrived if it was fragmented.
    under_way: BTreeMap<u64, (UnderWay, Vec<(u32, u32)>)>,
    known: BTreeMap<FlowKey, usize>,
    /// In the order of their first packets.
    flows: Vec<Flow>,
}

impl Counter {
    /// The RDCA sink that sent or receives a datagram. A sender uses the port after its sink's,
    /// which may be the port of another sink.
    fn rdca_header(&self, packet: &Packet, ports: (u16, u16)) -> Option<Header> {
        let ends = [(packet.src, ports.0), (packet.dst, ports.1)];
        let at = self.rdca.iter().find(|(node, port, _)| ends.contains(&(*node, *port)));
        at.map(|(.., header)| *header)
    }

    fn key(&self, packet: &Packet, carried: &Carried<'_>) -> FlowKey {
        let (protocol, (src_port, dst_port)) = match carried {
            Carried::Tcp(segment) => (FlowProtocol::Tcp, (segment.src_port, segment.dst_port)),
            Carried::Udp(datagram) => {
                let ports = (datagram.src_port, datagram.dst_port);
                let is_rdca = self.rdca_header(packet, ports).is_some();
                (if is_rdca { FlowProtocol::Rdca } else { FlowProtocol::Udp }, ports)
            }
            Carried::Opaque(Protocol(number), _) => (FlowProtocol::Other(*number), (0, 0)),
        };
        FlowKey { src: packet.src, src_port, dst: packet.dst, dst_port, protocol }
    }

    /// The RDCA message in a datagram, if it is data.
    fn rdca_data(&self, packet: &Packet, datagram: &UdpDatagram) -> Option<Data> {
        let header = self.rdca_header(packet, (datagram.src_port, datagram.dst_port))?;
        match header.decode(&datagram.payload, Expected::default()) {
            Ok(Message::Data(data)) => Some(data),
            Ok(_) | Err(_) => None,
        }
    }

    /// Whether the packet carries data of an application.
    fn has_payload(&self, packet: &Packet, carried: &Carried<'_>, protocol: FlowProtocol) -> bool {
        match carried {
            Carried::Tcp(segment) => !segment.payload.is_empty(),
            Carried::Udp(datagram) if protocol == FlowProtocol::Rdca => {
                self.rdca_data(packet, datagram).is_some()
            }
            Carried::Udp(datagram) => !datagram.payload.is_empty(),
            Carried::Opaque(..) => true,
        }
    }

    /// Handles a packet that is seen; it is sent now if it is seen for the first time.
    fn meet(&mut self, now: Instant, packet: &Packet) {
        let whole = packet.whole_id();
        let Some(number) = whole.checked_sub(self.first).map(|number| number as usize) else { return };
        if self.seen.len() <= number {
            self.seen.resize(number + 1, false);
        }
        if std::mem::replace(&mut self.seen[number], true) || !self.is_open || packet.is_routing() {
            return;
        }
        let is_among = |nodes: &[bool], node: NodeId| nodes.get(node.index()).copied().unwrap_or(false);
        let ends_there = self.to.as_deref().is_none_or(|to| is_among(to, packet.dst));
        if !is_among(&self.from, packet.src) || !ends_there {
            return;
        }
        let carried = Carried::of(packet);
        let key = self.key(packet, &carried);
        let has_payload = self.has_payload(packet, &carried, key.protocol);
        let len = self.header_len + carried.len() as u32;
        let index = *self.known.entry(key).or_insert(self.flows.len());
        if index == self.flows.len() {
            self.flows.push(Flow::new(key, now));
        }
        let flow = &mut self.flows[index];
        let sent = UnderWay { flow: index, number: flow.sent_packets, sent: now, len, is_lost: false };
        flow.has_payload |= has_payload;
        flow.sent_packets += 1;
        flow.sent_bytes += u64::from(len);
        self.under_way.insert(whole, (sent, Vec::new()));
    }

    /// Handles the loss of a copy or fragment of the packet.
    fn lose(&mut self, packet: &Packet) {
        if let Some((under_way, _)) = self.under_way.get_mut(&packet.whole_id())
            && !under_way.is_lost
        {
            under_way.is_lost = true;
            self.flows[under_way.flow].lost_packets += 1;
        }
    }

    fn receive(&mut self, now: Instant, at: NodeId, packet: &Packet) {
        if at != packet.dst || !self.up[at.index()] {
            return;
        }
        let whole = packet.whole_id();
        let Some((under_way, pieces)) = self.under_way.get_mut(&whole) else { return };
        if let Payload::Fragment(piece) = &packet.payload {
            add_range(pieces, piece.offset, piece.offset + piece.len);
            if *pieces != [(0, piece.whole.wire_len() as u32)] {
                return;
            }
        }
        let under_way = *under_way;
        self.under_way.remove(&whole);
        let carried = Carried::of(packet);
        // Number of bytes for the numbers from a first one on: one each, or those of a packet.
        let data = match &carried {
            Carried::Udp(datagram) if self.flows[under_way.flow].key.protocol == FlowProtocol::Rdca => {
                self.rdca_data(packet, datagram)
            }
            _ => None,
        };
        let flow = &mut self.flows[under_way.flow];
        flow.receive(now, &under_way);
        // Payload that arrives after the window would make the goodput exceed the rate of the link.
        if !self.is_open {
            return;
        }
        let arrived = &mut flow.payload;
        arrived.octets += match (carried, data) {
            (Carried::Tcp(segment), _) => {
                let is_syn = segment.flags.contains(Flags::SYN);
                if is_syn {
                    arrived.begin(segment.seq.0);
                }
                let len = segment.payload.len() as u32;
                let start = segment.seq.0.wrapping_add(u32::from(is_syn));
                if len > 0 { arrived.add(start, len) } else { 0 }
            }
            (Carried::Udp(_), Some(data)) => {
                arrived.begin(data.stream.0);
                arrived.add(data.seq.0, 1) * data.payload.len() as u64
            }
            (Carried::Udp(_), None) if flow.key.protocol == FlowProtocol::Rdca => 0,
            (Carried::Udp(datagram), None) => datagram.payload.len() as u64,
            (Carried::Opaque(_, octets), _) => octets as u64,
        };
    }
}

impl Observer for Counter {
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        match point {
            Point::Sent => self.meet(now, packet),
            Point::Received => self.receive(now, self.ends[link.index()].1, packet),
            Point::Dropped(_) => {
                self.meet(now, packet);
                self.lose(packet);
            }
        }
    }

    fn on_node_drop(&mut self, now: Instant, _: NodeId, reason: NodeDrop, packet: &Packet) {
        self.meet(now, packet);
        // The cache of a node replaces a segment that it holds back.
        if reason != NodeDrop::Held {
            self.lose(packet);
        }
    }

    fn on_incident(&mut self, _: Instant, what: Incident) {
        match what {
            Incident::NodeDown(node) => {
                self.up[node.index()] = false;
                // A node that goes down loses its incomplete packets.
                let Self { under_way, flows, .. } = self;
                for (under_way, pieces) in under_way.values_mut() {
                    if flows[under_way.flow].key.dst == node && !pieces.is_empty() {
                        pieces.clear();
                        flows[under_way.flow].lost_packets += u64::from(!under_way.is_lost);
                        under_way.is_lost = true;
                    }
                }
            }
            Incident::NodeUp(node) => self.up[node.index()] = true,
            Incident::LinkDown(_) | Incident::LinkUp(_) | Incident::Rate(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::set::Range;

    use super::*;

    #[test]
    fn each_number_counts_once_whatever_the_order() {
        let mut arrived = Arrived::default();
        arrived.begin(7);
        let near_the_end = u32::MAX - 5;
        // 10 numbers across the end of the range, 10 after a gap of 10, the gap with an overlap on
        // both sides, and all of them again.
        assert_eq!(arrived.add(near_the_end, 10), 10);
        assert_eq!(arrived.add(near_the_end.wrapping_add(20), 10), 10);
        assert_eq!(arrived.add(near_the_end.wrapping_add(5), 20), 10);
        assert_eq!(arrived.add(near_the_end, 30), 0);
        // Numbers before the first one seen.
        assert_eq!(arrived.add(near_the_end.wrapping_sub(8), 10), 8);
        assert_eq!(arrived.numbers.as_slice(), [Range { start: FIRST - 8, end: FIRST + 30 }]);
        arrived.begin(7);
        assert_eq!(arrived.add(near_the_end, 1), 0, "the same epoch goes on");
        arrived.begin(8);
        assert_eq!(arrived.add(near_the_end, 1), 1);
    }
}
