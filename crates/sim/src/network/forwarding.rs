//! Forwarding: packets are made, sent over the next link of their route, fragmented, dropped or
//! delivered; each hop reduces the hop limit.
//!
//! Further functions of nodes are hooks ([`super::hook`]); transmission over a link is the task of
//! its medium ([`super::medium`]). A packet over cables through nodes without hooks calls neither.

use anabranch_core::segment::Segment;
use anabranch_core::time::Instant;
use anabranch_wire::ip::UdpDatagram;

use super::graph::Forwarding;
use super::problem::{ErrorLimit, Problem};
use super::{Fragmentation, Network, NodeMetrics};
use crate::event::HookId;
use crate::fragment::{self, Reassembly};
use crate::packet::{Ends, LinkId, NodeId, Packet, PacketHandle, Payload, Whole};
use crate::trace::{NodeDrop, Point};

/// The set of hooks of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct HookSet(u8);

impl HookSet {
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(super) fn contains(self, hook: HookId) -> bool {
        self.0 & 1 << hook.0 != 0
    }

    pub(super) fn insert(&mut self, hook: HookId) {
        self.0 |= 1 << hook.0;
    }
}

/// Forwarding state of a node.
#[derive(Debug, Default)]
pub(super) struct Relay {
    identification: u32,
    pub(super) hooks: HookSet,
    /// Whether packets that arrive here leave the simulation.
    pub(super) outside: bool,
    pub(super) metrics: NodeMetrics,
    pub(super) reassembly: Reassembly,
    pub(super) errors: ErrorLimit,
}

/// History of a packet at a node, for a router that may have to find another route. It fits into a
/// register, because every hop passes it on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Past {
    /// The previous hop, or [`NodeId::BROADCAST`] for none.
    previous: NodeId,
    /// Number of times that this node gave the packet another route.
    pub(super) rerouted: u8,
}

impl Past {
    /// History of a packet at its source.
    pub(super) const NONE: Self = Self { previous: NodeId::BROADCAST, rerouted: 0 };

    #[inline]
    pub(super) fn from(neighbour: NodeId) -> Self {
        Self { previous: neighbour, rerouted: 0 }
    }

    /// The neighbour from which the packet came; `None` at its source.
    #[inline]
    pub(super) fn previous(self) -> Option<NodeId> {
        (self.previous != NodeId::BROADCAST).then_some(self.previous)
    }

    /// The history after one more change of route.
    pub(super) fn again(self) -> Self {
        Self { rerouted: self.rerouted + 1, ..self }
    }
}

/// Where a packet goes from a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Over this link.
    Link(LinkId),
    /// There is no route.
    Nowhere,
    /// A hook has taken the packet.
    Taken,
}

impl From<Option<LinkId>> for Way {
    #[inline]
    fn from(link: Option<LinkId>) -> Self {
        link.map_or(Self::Nowhere, Self::Link)
    }
}

/// A message that is not TCP and has arrived at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) at: NodeId,
    /// The neighbour from which it came.
    pub(super) from: NodeId,
    /// Its source and destination.
    pub(super) src: NodeId,
    pub(super) dst: NodeId,
    pub(super) hop_limit: u8,
}

/// A segment that has reached its destination.
#[derive(Debug)]
pub struct Delivery {
    /// Destination node.
    pub node: NodeId,
    /// Source node.
    pub src: NodeId,
    /// Number of the path that it took; 0 if it had none.
    pub path: u8,
    /// The segment.
    pub segment: Segment,
}

impl Network {
    /// Sends a segment from a node.
    pub fn send(&mut self, now: Instant, ends: Ends, segment: Segment) {
        let octets = segment.wire_len();
        self.send_own(now, ends, octets, Payload::Tcp(segment));
    }

    /// Sends a datagram from a node.
    pub fn send_datagram(&mut self, now: Instant, ends: Ends, datagram: UdpDatagram) {
        let octets = datagram.wire_len();
        self.send_own(now, ends, octets, Payload::Udp(datagram));
    }

    #[inline(always)]
    fn send_own(&mut self, now: Instant, ends: Ends, octets: usize, payload: Payload) {
        if !self.graph.is_up(ends.src) {
            return;
        }
        self.relays[ends.src.index()].metrics.sent += 1;
        let handle = self.make_packet(ends.src, ends, self.config.hop_limit, octets, payload);
        self.send_on(now, ends.src, Past::NONE, handle);
    }

    /// Makes a packet with `octets` bytes after the IP header. `maker` is the node that makes it,
    /// as its source or on behalf of another node.
    #[inline]
    pub(super) fn make_packet(
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
        let relay = &mut self.relays[maker.index()];
        relay.identification = relay.identification.wrapping_add(1);
        let packet = Packet {
            id: self.next_packet,
            src,
            dst,
            wire_len: self.config.ip.header_len() + octets as u32,
            identification: relay.identification,
            hop_limit,
            traffic_class,
            path,
            outer: None,
            payload,
        };
        self.next_packet += 1;
        self.packets.insert(packet)
    }

    /// Handles a packet at the far end of a link. Returns a segment if the packet was for that node
    /// and completes one.
    pub(super) fn arrive(&mut self, now: Instant, link: LinkId, handle: PacketHandle) -> Option<Delivery> {
        let this = self.graph.link(link);
        self.arrive_at(now, (link, this.from(), this.to()), handle)
    }

    /// As [`Network::arrive`], for a link whose ends are known.
    #[inline(always)]
    pub(super) fn arrive_at(
        &mut self,
        now: Instant,
        (link, from, at): (LinkId, NodeId, NodeId),
        mut handle: PacketHandle,
    ) -> Option<Delivery> {
        self.watch(now, link, Point::Received, handle);
        let node = self.graph.nodes[at.index()];
        let relay = &mut self.relays[at.index()];
        if !node.up {
            self.drop_at(now, at, NodeDrop::Down, handle);
            return None;
        }
        if handle.dst == at || handle.dst == NodeId::ALL_RPL_NODES {
            if !relay.hooks.is_empty() {
                self.tell_of_arrival(now, link, handle);
            }
            return self.receive(now, at, from, handle);
        }
        // Checked before the forwarding flag: a packet to a host that does not forward counts as a
        // hop-limit drop if its hop limit is used up.
        if handle.hop_limit <= 1 {
            self.drop_at(now, at, NodeDrop::HopLimit, handle);
            return None;
        }
        handle.hop_limit -= 1;
        if node.forwarding == Forwarding::Off {
            self.drop_at(now, at, NodeDrop::NoRoute, handle);
            return None;
        }
        if !relay.hooks.is_empty() && self.take_from_passage(now, at, handle) {
            return None;
        }
        self.pass_on(now, at, Past::from(from), handle);
        None
    }

    #[inline(always)]
    fn receive(&mut self, now: Instant, at: NodeId, from: NodeId, handle: PacketHandle) -> Option<Delivery> {
        let relay = &mut self.relays[at.index()];
        // The node's router is simulated, also where its transports run outside.
        if relay.outside && (relay.hooks.is_empty() || !self.packets.peek(handle).is_routing()) {
            self.depart(now, at, handle);
            return None;
        }
        // The common case first: an unfragmented segment leaves the slab without a copy of the
        // other fields.
        let (src, path, segment) = match self.packets.remove_segment(handle) {
            Some(whole) => whole,
            None => {
                let Packet { src, dst, identification, hop_limit, path, payload, .. } =
                    self.packets.remove(handle);
                let whole = match payload {
                    Payload::Fragment(piece) => {
                        let of = (identification, handle.ecn);
                        let (ecn, whole) = relay.reassembly.handle_fragment(now, src, of, piece)?;
                        whole.marked(ecn)
                    }
                    Payload::Tcp(segment) => Whole::Tcp(segment),
                    Payload::Udp(datagram) => Whole::Udp(datagram),
                    Payload::Opaque(opaque) => Whole::Opaque(opaque),
                };
                match whole {
                    Whole::Tcp(segment) => (src, path, segment),
                    other => {
                        self.hear(now, Heard { at, from, src, dst, hop_limit }, other);
                        return None;
                    }
                }
            }
        };
        relay.metrics.received += 1;
        Some(Delivery { node: at, src, path, segment })
    }

    /// Passes a message that is not TCP to a hook of its node or to an application.
    pub(super) fn hear(&mut self, now: Instant, heard: Heard, message: Whole) {
        let Heard { at, src, .. } = heard;
        if self.take_message(now, heard, &message) {
            return;
        }
        match message {
            Whole::Udp(datagram) => self.keep_datagram(at, src, datagram),
            Whole::Opaque(opaque) => match self.parse_datagram(at, src, &opaque) {
                Some(datagram) => self.keep_datagram(at, src, datagram),
                None if self.answer_echo(now, heard, &opaque) => {}
                None => self.refuse_protocol(now, heard, opaque),
            },
            Whole::Tcp(_) => unreachable!("segments are delivered to hosts"),
        }
    }

    /// Handles a broadcast packet at one of the receiving nodes.
    pub(super) fn receive_from_all(&mut self, now: Instant, at: NodeId, from: NodeId, handle: PacketHandle) {
        let Packet { src, dst, hop_limit, payload, .. } = self.packets.remove(handle);
        let heard = Heard { at, from, src, dst, hop_limit };
        match payload {
            _ if !self.is_up(at) => {}
            Payload::Udp(datagram) => self.hear(now, heard, Whole::Udp(datagram)),
            // A broadcast message that no hook takes is ignored and not counted.
            Payload::Opaque(opaque) => {
                self.take_message(now, heard, &Whole::Opaque(opaque));
            }
            Payload::Tcp(_) | Payload::Fragment(_) => {}
        }
    }

    /// Forwards a packet that is for another node.
    #[inline(always)]
    pub(super) fn pass_on(&mut self, now: Instant, at: NodeId, past: Past, handle: PacketHandle) {
        self.relays[at.index()].metrics.forwarded += 1;
        self.send_on(now, at, past, handle);
    }

    /// Sends a packet over the next link of its route.
    pub(super) fn send_on(&mut self, now: Instant, at: NodeId, past: Past, handle: PacketHandle) {
        match self.next_link(now, at, past, handle) {
            Way::Link(link) => self.send_over(now, link, past, handle),
            Way::Nowhere => self.drop_at(now, at, NodeDrop::NoRoute, handle),
            Way::Taken => {}
        }
    }

    /// The link by which a packet leaves a node.
    #[inline(always)]
    pub(super) fn next_link(&mut self, now: Instant, at: NodeId, past: Past, handle: PacketHandle) -> Way {
        if !self.relays[at.index()].hooks.is_empty()
            && let Some(way) = self.route_by_hook(now, at, past, handle)
        {
            return way;
        }
        self.graph.next(at, handle.dst, || self.packets.peek(handle).path).into()
    }

    /// Sends a packet over a link, whole or in fragments.
    #[inline(always)]
    pub(super) fn send_over(&mut self, now: Instant, link: LinkId, past: Past, handle: PacketHandle) {
        if handle.wire_len <= self.graph.link(link).mtu() {
            self.transmit(now, link, past, handle);
        } else {
            self.send_in_pieces(now, link, handle);
        }
    }

    #[cold]
    fn send_in_pieces(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        let (at, mtu) = (self.graph.link(link).from(), self.graph.link(link).mtu());
        let number = || {
            self.next_packet += 1;
            self.next_packet - 1
        };
        let pieces = match self.config.fragmentation {
            Fragmentation::Allowed => fragment::split(self.packets.peek(handle), mtu, self.config.ip, number),
            Fragmentation::Forbidden => None,
        };
        let Some(pieces) = pieces else {
            self.graph.link_mut(link).count_too_big();
            let packet = self.packets.peek(handle).clone();
            self.report_problem(now, at, &packet, Problem::TooBig(mtu));
            self.drop_at(now, at, NodeDrop::TooBig, handle);
            return;
        };
        self.packets.remove(handle);
        self.relays[at.index()].metrics.fragmented += 1;
        for piece in pieces {
            let handle = self.packets.insert(piece);
            self.transmit(now, link, Past::NONE, handle);
        }
    }

    #[cold]
    pub(super) fn drop_at(&mut self, now: Instant, node: NodeId, reason: NodeDrop, handle: PacketHandle) {
        let packet = self.packets.remove(handle);
        let metrics = &mut self.relays[node.index()].metrics;
        match reason {
            NodeDrop::NoRoute => metrics.no_route += 1,
            NodeDrop::HopLimit => metrics.hop_limit += 1,
            NodeDrop::TooBig => metrics.too_big += 1,
            NodeDrop::Down => metrics.down += 1,
            NodeDrop::Held => metrics.held += 1,
            NodeDrop::WaitedInVain => metrics.waited_in_vain += 1,
        }
        let problem = match reason {
            NodeDrop::NoRoute if packet.dst.index() < self.graph.node_count() => Some(Problem::NoRoute),
            NodeDrop::NoRoute | NodeDrop::WaitedInVain => Some(Problem::NoSuchAddress),
            NodeDrop::HopLimit => Some(Problem::HopLimit),
            // Reported where the MTU is known; the others are silent.
            NodeDrop::TooBig | NodeDrop::Down | NodeDrop::Held => None,
        };
        if let Some(problem) = problem {
            self.report_problem(now, node, &packet, problem);
        }
        self.observers.tell(|o| o.on_node_drop(now, node, reason, &packet));
    }
}
