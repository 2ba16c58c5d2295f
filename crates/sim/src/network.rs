//! The network: nodes, links, the packets between them, and the ways that these take.
//!
//! Scope and limits: one interface per link end, no ARP or neighbour discovery, no ICMP (a packet that
//! cannot go on is counted and gone), one route per destination and node. Routing learns of a change
//! [`NetworkConfig::convergence`] later, everywhere at once; until then packets run into the gap.

mod adhoc;
mod aodv;
mod caching;
mod datagrams;
mod faults;
mod interfaces;
mod metrics;
mod outside;
mod paths;
mod stations;
mod wireless;

use std::collections::VecDeque;
use std::fmt;

use anabranch_core::segment::Segment;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::Protocol;

use crate::event::{Agenda, Event};
use crate::fragment::{self, Reassembly, ReassemblyMetrics};
use crate::link::{Link, LinkConfig, LinkDrop, Offer};
use crate::loss::Fate;
use crate::numbered::Numbered;
use crate::packet::{
    Ends, IpVersion, LinkId, NodeId, Opaque, Packet, PacketHandle, PacketSlab, Payload, Whole,
};
use crate::random::Stream;
use crate::routing::{self, Edge, Metric, Routes};
use crate::trace::{NodeDrop, Observer, Point};

use adhoc::{Adhoc, Past};
pub use adhoc::{AdhocConfig, AdhocMetrics};
use aodv::Aodv;
pub(crate) use aodv::RouteNews;
pub use aodv::{AodvConfig, AodvError, AodvMetrics, RouteChange};
use caching::{Caching, Report};
pub(crate) use datagrams::Datagram;
pub(crate) use faults::LastWords;
use interfaces::Interface;
use paths::Paths;
use wireless::Wireless;
pub use wireless::{FragmentForwarding, VirtualReassembly, WirelessConfig, WirelessMetrics};

/// Whether a node passes packets on that are not for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// It does, as routers, gateways and relaying sensor nodes do.
    On,
    /// It does not; no path leads through it.
    Off,
}

/// What happens to a packet that exceeds the next link's MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fragmentation {
    /// It is cut there and put together at the destination.
    #[default]
    Allowed,
    /// It is dropped and counted.
    Forbidden,
}

/// What holds for the network as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkConfig {
    /// The Internet Protocol spoken.
    pub ip: IpVersion,
    /// Whether packets may be cut.
    pub fragmentation: Fragmentation,
    /// What routing minimises.
    pub metric: Metric,
    /// From a failure or recovery until routes follow it.
    pub convergence: Duration,
    /// Hop limit of every packet sent, at least 1.
    pub hop_limit: u8,
}

impl Default for NetworkConfig {
    /// IPv6, fragmentation, fewest hops, one second, 64 hops.
    fn default() -> Self {
        Self {
            ip: IpVersion::V6,
            fragmentation: Fragmentation::Allowed,
            metric: Metric::Hops,
            convergence: Duration::from_secs(1),
            hop_limit: 64,
        }
    }
}

/// What a node has done with packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeMetrics {
    /// Packets of its own given to the network.
    pub sent: u64,
    /// Whole segments received for itself.
    pub received: u64,
    /// Packets passed on.
    pub forwarded: u64,
    /// Packets that it cut.
    pub fragmented: u64,
    /// Packets dropped without a route.
    pub no_route: u64,
    /// Packets dropped with their hop limit used up.
    pub hop_limit: u64,
    /// Packets dropped because they exceed the next link's MTU.
    pub too_big: u64,
    /// Packets that arrived while it was dead.
    pub down: u64,
    /// Packets for others that it did not forward, since it looks after them itself.
    pub held: u64,
    /// Packets for others that it sent of its own: those that it had cached or seen.
    pub repeated: u64,
    /// Packets for itself of a transport that it does not speak, or to a port where nobody listens for datagrams.
    pub not_spoken: u64,
    /// Packets dropped that had waited for a route.
    pub waited_in_vain: u64,
}

#[derive(Debug)]
struct Node {
    name: String,
    forwarding: Forwarding,
    up: bool,
    identification: u32,
    reassembly: Reassembly,
    metrics: NodeMetrics,
    caching: Option<Box<Caching>>,
    /// What arrives here leaves the simulation.
    outside: bool,
}

/// A change of which routing does not know yet.
#[derive(Clone, Copy, Debug)]
enum Change {
    Link(LinkId, bool),
    Node(NodeId, bool),
}

/// A route that was set by hand.
#[derive(Clone, Copy, Debug)]
struct Pin {
    at: NodeId,
    to: NodeId,
    link: LinkId,
}

/// A segment that has reached its destination.
#[derive(Debug)]
pub struct Delivery {
    /// Where it is.
    pub node: NodeId,
    /// Where it comes from.
    pub src: NodeId,
    /// The path that it took; 0 if none of a number.
    pub path: u8,
    /// The segment.
    pub segment: Segment,
}

/// Nodes, links, packets, routes, and the queue of events that drives them all.
pub struct Network {
    config: NetworkConfig,
    nodes: Vec<Node>,
    links: Vec<Link>,
    packets: PacketSlab,
    next_packet: u64,
    routes: Routes,
    pins: Vec<Pin>,
    interfaces: Vec<Vec<Interface>>,
    /// What routing believes to be up.
    known_links: Vec<bool>,
    known_nodes: Vec<bool>,
    changes: VecDeque<(Instant, Change)>,
    /// Packets whose link acknowledgement is awaited in vain.
    overdue: Numbered<Report>,
    /// Packets that are late, and the link that they come out of.
    late: Numbered<(LinkId, PacketHandle)>,
    /// The radio that nodes share, if there is one.
    wireless: Option<Box<Wireless>>,
    /// The 802.11 channel, if there is one.
    adhoc: Option<Box<Adhoc>>,
    /// Who builds paths, if somebody does.
    paths: Option<Box<Paths>>,
    /// Who looks for routes on demand, if somebody does.
    aodv: Option<Box<Aodv>>,
    /// Datagrams that have arrived and wait to be taken.
    datagrams: VecDeque<Datagram>,
    /// Segments that have come over the air and wait to be taken.
    delivered: VecDeque<Delivery>,
    /// Packets that have left the simulation and wait to be taken.
    departed: VecDeque<Packet>,
    /// What happens next, in the network and elsewhere.
    pub events: Agenda,
    observers: Vec<Box<dyn Observer>>,
    /// One of them wants to see connections.
    connections_watched: bool,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("config", &self.config)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// An empty network.
    pub fn new(config: NetworkConfig) -> Self {
        Self {
            config,
            nodes: Vec::new(),
            links: Vec::new(),
            packets: PacketSlab::default(),
            next_packet: 0,
            routes: Routes::default(),
            pins: Vec::new(),
            interfaces: Vec::new(),
            known_links: Vec::new(),
            known_nodes: Vec::new(),
            changes: VecDeque::new(),
            overdue: Numbered::default(),
            late: Numbered::default(),
            wireless: None,
            adhoc: None,
            paths: None,
            aodv: None,
            datagrams: VecDeque::new(),
            delivered: VecDeque::new(),
            departed: VecDeque::new(),
            events: Agenda::default(),
            observers: Vec::new(),
            connections_watched: false,
        }
    }

    /// Adds a node.
    pub fn add_node(&mut self, name: &str, forwarding: Forwarding) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let (reassembly, metrics) = (Reassembly::default(), NodeMetrics::default());
        self.nodes.push(Node {
            name: name.to_owned(),
            forwarding,
            up: true,
            identification: 0,
            reassembly,
            metrics,
            caching: None,
            outside: false,
        });
        self.known_nodes.push(true);
        id
    }

    /// Adds one direction of a link; `stream` makes its random stream for a purpose.
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: LinkConfig,
        stream: impl Fn(&str) -> Stream,
    ) -> LinkId {
        let id = LinkId(self.links.len() as u32);
        self.links.push(Link::new(from, to, config, stream));
        self.known_links.push(true);
        id
    }

    /// Makes `at` send what is for `to` over `link` whenever that is up.
    pub fn pin_route(&mut self, at: NodeId, to: NodeId, link: LinkId) {
        self.pins.push(Pin { at, to, link });
    }

    /// Adds an observer.
    pub fn observe(&mut self, mut observer: Box<dyn Observer>) {
        self.attach_to_air(&mut *observer);
        let names: Vec<&str> = self.nodes.iter().map(|n| n.name.as_str()).collect();
        let ends: Vec<_> = self.links.iter().map(|l| (l.from(), l.to())).collect();
        (0..).map(LinkId).zip(&self.links).for_each(|(id, link)| observer.on_attach_link(id, link.config()));
        observer.on_attach(&names, &ends);
        self.connections_watched |= observer.wants_connections();
        self.observers.push(observer);
    }

    /// Takes out the first observer that is `wanted`.
    pub fn take_observer(&mut self, wanted: impl Fn(&dyn Observer) -> bool) -> Option<Box<dyn Observer>> {
        let found = self.observers.iter().position(|o| wanted(&**o))?;
        let taken = self.observers.remove(found);
        self.connections_watched = self.observers.iter().any(|o| o.wants_connections());
        Some(taken)
    }

    /// What holds for all of it.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Number of nodes; their ids count from 0.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    /// The node of that name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(|i| NodeId(i as u32))
    }

    /// A node is not dead.
    #[inline]
    pub fn is_up(&self, node: NodeId) -> bool {
        self.nodes[node.index()].up
    }

    /// What a node has done with packets.
    pub fn node_metrics(&self, node: NodeId) -> &NodeMetrics {
        &self.nodes[node.index()].metrics
    }

    /// What a node's reassembly has done.
    pub fn reassembly_metrics(&self, node: NodeId) -> &ReassemblyMetrics {
        self.nodes[node.index()].reassembly.metrics()
    }

    /// All links, by their ids.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// A link.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// The first link from one node to another.
    pub fn find_link(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        self.links.iter().position(|l| l.from() == from && l.to() == to).map(|i| LinkId(i as u32))
    }

    /// Packets under way.
    pub fn packets_in_flight(&self) -> usize {
        self.packets.len()
    }

    /// The links that a packet takes from one node to another now; `None` if it would not get there.
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let mut path = Vec::new();
        let mut at = from;
        while at != to {
            let link = self.routes.next(at, to)?;
            at = self.link(link).to();
            path.push(link);
            if path.len() > self.nodes.len() {
                return None;
            }
        }
        Some(path)
    }

    /// Computes all routes from what routing knows.
    pub fn compute_routes(&mut self) {
        let usable = |link: LinkId, l: &Link| {
            self.known_links[link.index()]
                && self.known_nodes[l.from().index()]
                && self.known_nodes[l.to().index()]
        };
        let edge = |(i, l): (usize, &Link)| {
            let link = LinkId(i as u32);
            let weight = match self.config.metric {
                Metric::Hops => self.hop_length(link).unwrap_or(routing::HOP),
                Metric::Delay => l.config().delay.as_nanos(),
            };
            usable(link, l).then_some(Edge { link, from: l.from(), to: l.to(), weight })
        };
        let edges: Vec<Edge> = self.links.iter().enumerate().filter_map(edge).collect();
        let forwards = |n: NodeId| self.nodes[n.index()].forwarding == Forwarding::On;
        let mut routes = Routes::compute(self.nodes.len(), &edges, forwards);
        for pin in &self.pins {
            if usable(pin.link, &self.links[pin.link.index()]) {
                routes.set(pin.at, pin.to, pin.link);
            }
        }
        self.routes = routes;
    }

    /// A node sends a segment.
    pub fn send(&mut self, now: Instant, ends: Ends, segment: Segment) {
        let node = &mut self.nodes[ends.src.index()];
        if !node.up {
            return;
        }
        node.metrics.sent += 1;
        let (hop_limit, octets) = (self.config.hop_limit, segment.wire_len());
        let handle = self.make_packet(ends.src, ends, hop_limit, octets, Payload::Tcp(segment));
        self.send_on(now, ends.src, handle);
    }

    /// A packet with `octets` behind the IP header, that `maker` makes for itself or for others.
    #[inline]
    fn make_packet(
        &mut self,
        maker: NodeId,
        Ends { src, dst, path }: Ends,
        hop_limit: u8,
        octets: usize,
        payload: Payload,
    ) -> PacketHandle {
        let traffic_class = match &payload {
            Payload::Tcp(segment) => segment.ecn.within(0),
            Payload::Udp(_) | Payload::Opaque(_) | Payload::Fragment(_) => 0,
        };
        let node = &mut self.nodes[maker.index()];
        node.identification = node.identification.wrapping_add(1);
        let packet = Packet {
            id: self.next_packet,
            src,
            dst,
            wire_len: self.config.ip.header_len() + octets as u32,
            identification: node.identification,
            hop_limit,
            traffic_class,
            path,
            payload,
        };
        self.next_packet += 1;
        self.packets.insert(packet)
    }

    /// The head of a link's list arrives, unless the event is void. A segment comes out if it was for the
    /// node at the far end and is whole.
    pub fn handle_arrival(&mut self, now: Instant, link: LinkId, generation: u32) -> Option<Delivery> {
        let this = &mut self.links[link.index()];
        if this.generation() != generation {
            return None;
        }
        let arrival = this.arrive(now);
        self.schedule_arrival(link, arrival.next);
        let handle = arrival.handle;
        if let Some(report) = arrival.report {
            self.report(now, link, handle, report);
        }
        if arrival.lost {
            self.watch(now, link, Point::Dropped(LinkDrop::Loss), handle);
            self.packets.remove(handle);
            return None;
        }
        match arrival.fate {
            Fate::Plain => self.arrive(now, link, handle),
            Fate::Late(by) => {
                self.delay(now + by, link, handle);
                None
            }
            Fate::Twice => {
                let copy = self.packets.peek(handle).clone();
                let copy = self.packets.insert(copy);
                self.delay(now, link, copy);
                self.arrive(now, link, handle)
            }
        }
    }

    /// A packet that was made late arrives.
    pub fn handle_late(&mut self, now: Instant, slot: u32) -> Option<Delivery> {
        let (link, handle) = self.late.remove(slot);
        self.arrive(now, link, handle)
    }

    #[cold]
    fn delay(&mut self, until: Instant, link: LinkId, handle: PacketHandle) {
        let slot = self.late.insert((link, handle));
        self.events.push(until, Event::Late(slot));
    }

    /// A packet is at the far end of a link.
    #[inline]
    fn arrive(&mut self, now: Instant, link: LinkId, mut handle: PacketHandle) -> Option<Delivery> {
        let at = self.links[link.index()].to();
        self.watch(now, link, Point::Received, handle);
        let node = &mut self.nodes[at.index()];
        if !node.up {
            self.drop_at(now, at, NodeDrop::Down, handle);
            return None;
        }
        if handle.dst == at || handle.dst == NodeId::ALL_RPL_NODES {
            if self.paths.is_some() {
                self.note_arrival(link, handle);
            }
            if self.aodv.is_some() {
                self.note_aodv_arrival(now, link, handle);
            }
            return self.receive(now, at, link, handle);
        }
        if handle.hop_limit <= 1 {
            self.drop_at(now, at, NodeDrop::HopLimit, handle);
            return None;
        }
        handle.hop_limit -= 1;
        if node.forwarding == Forwarding::Off {
            self.drop_at(now, at, NodeDrop::NoRoute, handle);
            return None;
        }
        if node.caching.is_some() {
            self.forward_caching(now, at, handle);
            return None;
        }
        node.metrics.forwarded += 1;
        let from = self.links[link.index()].from();
        self.send_on_from(now, at, Some(from), handle);
        None
    }

    #[inline]
    fn receive(&mut self, now: Instant, at: NodeId, link: LinkId, handle: PacketHandle) -> Option<Delivery> {
        let node = &mut self.nodes[at.index()];
        if node.outside {
            self.depart(now, at, handle);
            return None;
        }
        let (src, path, segment) = match self.packets.remove_segment(handle) {
            Some(whole) => whole,
            None => {
                let Packet { src, dst, identification, path, payload, .. } = self.packets.remove(handle);
                let piece = match payload {
                    Payload::Fragment(piece) => piece,
                    Payload::Udp(datagram) => {
                        let from = (self.links[link.index()].from(), src, handle.hop_limit);
                        self.receive_datagram(now, at, from, datagram);
                        return None;
                    }
                    Payload::Opaque(opaque) => {
                        return self.receive_opaque(now, at, (link, src, dst), &opaque);
                    }
                    Payload::Tcp(_) => unreachable!("a segment was taken out before"),
                };
                let of = (identification, handle.ecn);
                let (ecn, whole) = node.reassembly.handle_fragment(now, src, of, piece)?;
                match whole.marked(ecn) {
                    Whole::Tcp(segment) => (src, path, segment),
                    Whole::Udp(datagram) => {
                        let from = (self.links[link.index()].from(), src, handle.hop_limit);
                        self.receive_datagram(now, at, from, datagram);
                        return None;
                    }
                    Whole::Opaque(opaque) => {
                        return self.receive_opaque(now, at, (link, src, dst), &opaque);
                    }
                }
            }
        };
        node.metrics.received += 1;
        Some(Delivery { node: at, src, path, segment })
    }

    /// What was made neither as TCP nor as UDP: a message between routers, a datagram from outside, or nothing that is
    /// spoken here.
    #[cold]
    fn receive_opaque(
        &mut self,
        now: Instant,
        at: NodeId,
        (link, src, dst): (LinkId, NodeId, NodeId),
        opaque: &Opaque,
    ) -> Option<Delivery> {
        if self.receive_opaque_datagram(at, src, opaque) {
            return None;
        }
        if opaque.protocol != Protocol::ICMPV6 || !self.has_router(at) {
            return self.not_spoken(at);
        }
        let from = self.links[link.index()].from();
        self.handle_control(now, at, (from, dst), &opaque.octets);
        None
    }

    /// A segment that has come over the air.
    #[inline]
    pub(crate) fn take_delivered(&mut self) -> Option<Delivery> {
        self.delivered.pop_front()
    }

    /// Puts a packet on the next link of its way.
    #[inline]
    fn send_on(&mut self, now: Instant, at: NodeId, handle: PacketHandle) {
        self.send_on_from(now, at, None, handle);
    }

    /// As [`Network::send_on`], with the neighbour that it came from.
    #[inline]
    fn send_on_from(&mut self, now: Instant, at: NodeId, from: Option<NodeId>, handle: PacketHandle) {
        if self.aodv.is_some() && self.has_aodv(at) {
            return self.send_by_aodv(now, at, handle, Past { previous: from, rerouted: 0 });
        }
        let Some(link) = self.next_link(now, at, from, handle) else {
            self.drop_at(now, at, NodeDrop::NoRoute, handle);
            return;
        };
        if handle.wire_len <= self.links[link.index()].mtu() {
            self.transmit(now, link, handle);
        } else {
            self.send_in_pieces(now, at, link, handle);
        }
    }

    /// The link that a packet takes from a node.
    #[inline]
    fn next_link(
        &mut self,
        now: Instant,
        at: NodeId,
        from: Option<NodeId>,
        handle: PacketHandle,
    ) -> Option<LinkId> {
        if self.paths.is_some() && self.has_router(at) {
            self.next_on_path(now, at, from, handle)
        } else if let (true, Some(link)) = (self.has_interfaces(), self.interface(at, handle)) {
            Some(link)
        } else {
            self.routes.next(at, handle.dst)
        }
    }

    #[cold]
    fn send_in_pieces(&mut self, now: Instant, at: NodeId, link: LinkId, handle: PacketHandle) {
        let mtu = self.links[link.index()].mtu();
        let number = || {
            self.next_packet += 1;
            self.next_packet - 1
        };
        let pieces = match self.config.fragmentation {
            Fragmentation::Allowed => fragment::split(self.packets.peek(handle), mtu, self.config.ip, number),
            Fragmentation::Forbidden => None,
        };
        let Some(pieces) = pieces else {
            self.links[link.index()].count_too_big();
            self.drop_at(now, at, NodeDrop::TooBig, handle);
            return;
        };
        self.packets.remove(handle);
        self.nodes[at.index()].metrics.fragmented += 1;
        for piece in pieces {
            let handle = self.packets.insert(piece);
            self.transmit(now, link, handle);
        }
    }

    #[inline]
    fn transmit(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        let this = &mut self.links[link.index()];
        if this.is_wireless() {
            return self.transmit_on_air(now, link, handle);
        }
        match this.offer(now, handle) {
            Offer::AcceptedFirst(arrival) => {
                let generation = this.generation();
                self.events.push(arrival, Event::Arrival { link, generation });
                self.watch_accepted(now, link, handle);
            }
            Offer::Accepted => self.watch_accepted(now, link, handle),
            Offer::Refused(why) => {
                self.watch(now, link, Point::Dropped(why), handle);
                self.packets.remove(handle);
            }
        }
    }

    #[inline]
    fn schedule_arrival(&mut self, link: LinkId, next: Option<Instant>) {
        if let Some(next) = next {
            let generation = self.links[link.index()].generation();
            self.events.push(next, Event::Arrival { link, generation });
        }
    }

    #[inline]
    fn watch(&mut self, now: Instant, link: LinkId, point: Point, handle: PacketHandle) {
        if !self.observers.is_empty() {
            let packet = self.packets.peek(handle);
            self.observers.iter_mut().for_each(|o| o.on_packet(now, link, point, packet));
        }
    }

    /// A cable has accepted a packet.
    #[inline]
    fn watch_accepted(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        if !self.observers.is_empty() {
            // With the mark that it has got.
            let handle = self.links[link.index()].last().unwrap_or(handle);
            let packet = self.packets.peek(handle);
            let start = self.links[link.index()].last_start().unwrap_or(now);
            for observer in &mut self.observers {
                observer.on_packet(now, link, Point::Sent, packet);
                observer.on_departure(now, link, packet.id, start);
            }
        }
    }

    #[cold]
    fn drop_at(&mut self, now: Instant, node: NodeId, reason: NodeDrop, handle: PacketHandle) {
        let packet = self.packets.remove(handle);
        let metrics = &mut self.nodes[node.index()].metrics;
        match reason {
            NodeDrop::NoRoute => metrics.no_route += 1,
            NodeDrop::HopLimit => metrics.hop_limit += 1,
            NodeDrop::TooBig => metrics.too_big += 1,
            NodeDrop::Down => metrics.down += 1,
            NodeDrop::Held => metrics.held += 1,
            NodeDrop::WaitedInVain => metrics.waited_in_vain += 1,
        }
        self.observers.iter_mut().for_each(|o| o.on_node_drop(now, node, reason, &packet));
    }
}
