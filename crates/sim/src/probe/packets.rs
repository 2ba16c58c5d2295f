//! Packets of transfers and traffic by their content, from end to end and hop by hop.
//!
//! A packet is sent when the node that made it first passes it to a link. A TCP retransmission is a
//! separate packet, and so is a segment that a caching node sends for another node. A fragmented
//! packet counts once from end to end, and each of its fragments counts on its hops; fragments
//! below IP (6LoWPAN) do not count. A packet may arrive until the end of the run, but only packets
//! that are passed to a link within the window count.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::rdca::{Header, Message};
use anabranch_core::segment::Segment;
use anabranch_core::time::Instant;
use anabranch_wire::ip::UdpDatagram;
use anabranch_wire::rdca::Expected;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Figure, Measure, Series};
use crate::fragment::add_range;
use crate::link::LinkDrop;
use crate::network::ObserverId;
use crate::packet::{LinkId, NodeId, Packet, Payload, Whole};
use crate::trace::{Incident, Observer, Point};
use crate::world::World;

/// Medium of a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HopMedium {
    /// Radios.
    Air,
    /// Cables.
    Cable,
}

/// Packets that some nodes make, and packets that they pass to links.
#[derive(Debug)]
pub struct Packets {
    nodes: Vec<NodeId>,
    medium: Option<HopMedium>,
    rdca: Vec<(NodeId, u16, Header)>,
    keeps_series: bool,
    counter: Option<ObserverId>,
    /// Number of routing messages at the beginning and after the end of the window.
    routing: (u64, Option<u64>),
}

impl Packets {
    /// Measures the packets of these nodes.
    pub fn of(nodes: Vec<NodeId>) -> Self {
        Self { nodes, medium: None, rdca: Vec::new(), keeps_series: false, counter: None, routing: (0, None) }
    }

    /// Restricts hops to this medium, if one is given.
    #[must_use]
    pub fn over(mut self, medium: Option<HopMedium>) -> Self {
        self.medium = medium;
        self
    }

    /// Sets the ports of RDCA sinks. Datagrams from and to other ports are data.
    #[must_use]
    pub fn with_rdca_at(mut self, sinks: Vec<(NodeId, u16, Header)>) -> Self {
        self.rdca = sinks;
        self
    }

    fn counts_over(&self, medium: HopMedium) -> bool {
        self.medium.is_none_or(|wanted| wanted == medium)
    }

    /// Number of routing messages passed to radios so far. Those over cables count as packets.
    fn routing_messages(&self, world: &World) -> u64 {
        if !self.counts_over(HopMedium::Air) {
            return 0;
        }
        self.nodes.iter().map(|node| world.network.routing_messages(*node)).sum()
    }

    fn counter<'w>(&self, world: &'w World) -> Option<&'w Counter> {
        world.network.observer(self.counter?)
    }
}

impl Measure for Packets {
    fn begin(&mut self, _: Instant, world: &mut World) {
        self.routing.0 = self.routing_messages(world);
        let network = &mut world.network;
        let mut counts = vec![false; network.node_count()];
        self.nodes.iter().for_each(|node| counts[node.index()] = true);
        let links = network.links().iter().map(|link| {
            let from_ours = counts[link.from().index()];
            let is_cable = !link.is_wireless();
            let is_hop =
                from_ours && self.counts_over(if is_cable { HopMedium::Cable } else { HopMedium::Air });
            Link { to: link.to(), from_ours, is_hop, is_cable, under_way: VecDeque::new() }
        });
        let counter = Counter {
            links: links.collect(),
            up: (0..counts.len()).map(|node| network.is_up(NodeId(node as u32))).collect(),
            rdca: self.rdca.clone(),
            first: network.packets_made(),
            is_open: true,
            fates: Vec::new(),
            pieces: BTreeMap::new(),
            counts: Counts::default(),
            series: self.keeps_series.then(Vec::new),
        };
        self.counter = Some(network.observe(Box::new(counter)));
    }

    fn end(&mut self, _: Instant, world: &mut World) {
        self.routing.1 = Some(self.routing_messages(world));
        let counter = self.counter.and_then(|id| world.network.observer_mut::<Counter>(id));
        if let Some(counter) = counter {
            counter.is_open = false;
        }
    }

    fn figures(&self, _: Instant, world: &World) -> Vec<Figure> {
        let Counts { sent, arrived, hops, hops_arrived, routing_over_cables } =
            self.counter(world).map(|counter| counter.counts).unwrap_or_default();
        let (before, after) = self.routing;
        let over_air = after.unwrap_or_else(|| self.routing_messages(world)) - before;
        let routing = over_air + routing_over_cables;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let count = |count: u64| Some(count as f64);
        [
            ("data_sent", count(sent.data)),
            ("data_arrived", count(arrived)),
            ("delivery_ratio", share(arrived, sent.data)),
            ("control_sent", count(sent.control())),
            ("control_load", share(sent.control(), sent.data)),
            ("data_hops", count(hops.data)),
            ("hop_delivery_ratio", share(hops_arrived, hops.data)),
            ("control_hops", count(hops.control())),
            ("ack_hops", count(hops.ack)),
            ("routing_hops", count(routing)),
            ("routing_load", share(routing, sent.data)),
        ]
        .into_iter()
        .map(|(name, value)| Figure { name: name.to_owned(), value, unit: "1" })
        .collect()
    }

    fn keep_series(&mut self) {
        self.keeps_series = true;
    }

    /// For each packet that was passed to a link: the time, and 1 if it has reached the next node,
    /// else 0.
    fn series(&self, world: &World) -> Vec<Series> {
        let Some(hops) = self.counter(world).and_then(|counter| counter.series.as_ref()) else {
            return Vec::new();
        };
        let series = |name, wanted: fn(Kind) -> bool| {
            let hops = hops.iter().filter(|hop| wanted(hop.kind));
            let points = hops.map(|hop| (hop.at, f64::from(u8::from(hop.has_arrived)))).collect();
            Series { name, unit: "1", points }
        };
        vec![
            series("data_hops", |kind| kind == Kind::Data),
            series("control_hops", |kind| kind != Kind::Data),
            series("ack_hops", |kind| kind == Kind::Ack),
        ]
    }
}

/// Role of a packet in its transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Data,
    /// A TCP acknowledgement without data.
    Ack,
    /// Another packet without data.
    Control,
}

/// Numbers of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    data: u64,
    ack: u64,
    other: u64,
}

impl Tally {
    fn add(&mut self, kind: Kind) {
        match kind {
            Kind::Data => self.data += 1,
            Kind::Ack => self.ack += 1,
            Kind::Control => self.other += 1,
        }
    }

    fn control(&self) -> u64 {
        self.ack + self.other
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: Tally,
    /// Data packets that reached their destination.
    arrived: u64,
    hops: Tally,
    /// Data packets that reached the next node.
    hops_arrived: u64,
    routing_over_cables: u64,
}

/// State of a packet made since the window began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// Not passed to a link yet.
    Waiting,
    /// Data in flight.
    Sent,
    Arrived,
    /// It does not count, or does not need to arrive.
    Other,
}

#[derive(Debug)]
struct Link {
    to: NodeId,
    /// Whether the link begins at a measured node.
    from_ours: bool,
    /// Whether packets that are passed to it count.
    is_hop: bool,
    is_cable: bool,
    /// Packets passed to it within the window, in this order, which is nearly always the order of
    /// arrival. It may hold two copies of a packet.
    under_way: VecDeque<UnderWay>,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    packet: u64,
    kind: Kind,
    /// Number of the hop, over all links.
    hop: u64,
}

impl Link {
    /// A packet leaves the link: it has arrived or is lost.
    fn leave(&mut self, packet: u64) -> Option<UnderWay> {
        let at = self.under_way.iter().position(|under_way| under_way.packet == packet)?;
        self.under_way.remove(at)
    }
}

/// A packet that was passed to a link.
#[derive(Clone, Copy, Debug)]
struct Hop {
    at: Instant,
    kind: Kind,
    has_arrived: bool,
}

/// The observer, from the beginning of the window until the end of the run.
#[derive(Debug)]
struct Counter {
    links: Vec<Link>,
    /// By node.
    up: Vec<bool>,
    rdca: Vec<(NodeId, u16, Header)>,
    /// Number of the first packet made in the window.
    first: u64,
    is_open: bool,
    /// By packet number, from `first` on.
    fates: Vec<Fate>,
    /// The parts of fragmented packets that have arrived, by packet number, with the node.
    pieces: BTreeMap<u64, (NodeId, Vec<(u32, u32)>)>,
    counts: Counts,
    series: Option<Vec<Hop>>,
}

impl Counter {
    /// `None` if the packet does not belong to a transfer or traffic.
    fn kind(&self, packet: &Packet) -> Option<Kind> {
        let kind = match &packet.payload {
            _ if packet.is_routing() => return None,
            Payload::Tcp(segment) => tcp(segment),
            Payload::Udp(datagram) => self.udp(packet, datagram),
            Payload::Opaque(_) => Kind::Data,
            Payload::Fragment(piece) => match &*piece.whole {
                Whole::Tcp(segment) => tcp(segment),
                Whole::Udp(datagram) => self.udp(packet, datagram),
                Whole::Opaque(_) => Kind::Data,
            },
        };
        Some(kind)
    }

    fn udp(&self, packet: &Packet, datagram: &UdpDatagram) -> Kind {
        // A sender uses the port after its sink's, which may be the port of another sink.
        let ends = [(packet.src, datagram.src_port), (packet.dst, datagram.dst_port)];
        let Some((.., header)) = self.rdca.iter().find(|(node, port, _)| ends.contains(&(*node, *port)))
        else {
            return Kind::Data;
        };
        match header.decode(&datagram.payload, Expected::default()) {
            Ok(Message::Data(_)) | Err(_) => Kind::Data,
            Ok(_) => Kind::Control,
        }
    }

    fn sent(&mut self, now: Instant, link: LinkId, packet: &Packet) {
        let Some(kind) = self.kind(packet) else {
            let Link { is_hop, is_cable, .. } = self.links[link.index()];
            self.counts.routing_over_cables += u64::from(is_hop && is_cable);
            return;
        };
        let link = &mut self.links[link.index()];
        let from_ours = link.from_ours;
        if let Some(number) = packet.whole_id().checked_sub(self.first) {
            let number = number as usize;
            if self.fates.len() <= number {
                self.fates.resize(number + 1, Fate::Waiting);
            }
            // The first link of a packet begins at the node that made it.
            if self.fates[number] == Fate::Waiting {
                let counts = from_ours && kind == Kind::Data;
                self.fates[number] = if counts { Fate::Sent } else { Fate::Other };
                if from_ours {
                    self.counts.sent.add(kind);
                }
            }
        }
        if link.is_hop {
            let hop = self.counts.hops.data + self.counts.hops.control();
            self.counts.hops.add(kind);
            link.under_way.push_back(UnderWay { packet: packet.id, kind, hop });
            if let Some(series) = &mut self.series {
                series.push(Hop { at: now, kind, has_arrived: false });
            }
        }
    }

    fn received(&mut self, link: LinkId, packet: &Packet) {
        let link = &mut self.links[link.index()];
        if let Some(UnderWay { kind, hop, .. }) = link.leave(packet.id) {
            self.counts.hops_arrived += u64::from(kind == Kind::Data);
            if let Some(series) = &mut self.series {
                series[hop as usize].has_arrived = true;
            }
        }
        let to = link.to;
        let whole = packet.whole_id();
        let number = whole.checked_sub(self.first).map(|number| number as usize);
        let fate = number.and_then(|number| self.fates.get_mut(number));
        let Some(fate) = fate.filter(|fate| **fate == Fate::Sent) else { return };
        if to != packet.dst || !self.up[to.index()] {
            return;
        }
        if let Payload::Fragment(piece) = &packet.payload {
            let (_, here) = self.pieces.entry(whole).or_insert_with(|| (to, Vec::new()));
            add_range(here, piece.offset, piece.offset + piece.len);
            if *here != [(0, piece.whole.wire_len() as u32)] {
                return;
            }
            self.pieces.remove(&whole);
        }
        *fate = Fate::Arrived;
        self.counts.arrived += 1;
    }
}

fn tcp(segment: &Segment) -> Kind {
    if !segment.payload.is_empty() {
        Kind::Data
    } else if segment.is_pure_ack() {
        Kind::Ack
    } else {
        Kind::Control
    }
}

impl Observer for Counter {
    fn on_packet(&mut self, now: Instant, link: LinkId, point: Point, packet: &Packet) {
        match point {
            Point::Sent if self.is_open => self.sent(now, link, packet),
            Point::Sent => {}
            Point::Received => self.received(link, packet),
            // The link has not accepted this packet, but may hold a copy of it.
            Point::Dropped(LinkDrop::QueueFull) => {}
            Point::Dropped(_) => {
                self.links[link.index()].leave(packet.id);
            }
        }
    }

    fn on_incident(&mut self, _: Instant, what: Incident) {
        match what {
            Incident::NodeDown(node) => {
                self.up[node.index()] = false;
                // A node that goes down loses its incomplete packets.
                self.pieces.retain(|_, (to, _)| *to != node);
            }
            Incident::NodeUp(node) => self.up[node.index()] = true,
            Incident::LinkDown(_) | Incident::LinkUp(_) | Incident::Rate(..) => {}
        }
    }
}
