//! Nodes that cache TCP segments for others ([`anabranch_core::dtc`]), and what the link layer tells them.

use anabranch_core::dtc::{Config, FlowKey, LinkEvent, Node, Transmit, Verdict};
use anabranch_core::segment::Segment;
use anabranch_core::time::Instant;

use super::Network;
use crate::address::{address_of, node_at};
use crate::event::Event;
use crate::packet::{Ends, LinkId, NodeId, Packet, PacketHandle, Payload};
use crate::random::Stream;
use crate::trace::NodeDrop;

/// A caching node in operation.
#[derive(Debug)]
pub(super) struct Caching {
    node: Node,
    config: Config,
    random: Stream,
    /// The pending event that counts.
    armed: Option<Instant>,
}

/// A packet that the link layer takes for lost, in a while.
#[derive(Debug)]
pub(super) struct Report {
    node: NodeId,
    flow: FlowKey,
    segment: Segment,
}

impl Network {
    /// Makes a node cache segments for others. Its link layer tells it what it knows where the link has
    /// [`crate::link::LinkConfig::link_ack_timeout`].
    pub(crate) fn set_caching(&mut self, node: NodeId, config: Config, random: Stream) {
        let caching = Caching { node: Node::new(config), config, random, armed: None };
        self.nodes[node.index()].caching = Some(Box::new(caching));
    }

    /// The cache of a node, if it has one, for its figures.
    pub fn caching(&self, node: NodeId) -> Option<&Node> {
        self.nodes[node.index()].caching.as_deref().map(|caching| &caching.node)
    }

    /// A node that starts again has forgotten everything.
    pub(super) fn restart_caching(&mut self, node: NodeId) {
        if let Some(caching) = &mut self.nodes[node.index()].caching {
            caching.node = Node::new(caching.config);
            caching.armed = None;
        }
    }

    /// A packet for somebody else has arrived at a caching node.
    pub(super) fn forward_caching(&mut self, now: Instant, at: NodeId, mut handle: PacketHandle) {
        let ip = self.config.ip;
        let node = &mut self.nodes[at.index()];
        let packet = self.packets.get_mut(handle);
        let (Some(caching), Payload::Tcp(segment)) = (&mut node.caching, &mut packet.payload) else {
            // Nobody can look into a fragment.
            node.metrics.forwarded += 1;
            return self.send_on(now, at, handle);
        };
        let flow = FlowKey { source: address_of(ip, packet.src), destination: address_of(ip, packet.dst) };
        let random = (caching.random.bits() >> 32) as u32;
        match caching.node.handle_segment(now, flow, segment, random) {
            Verdict::Hold => self.drop_at(now, at, NodeDrop::Held, handle),
            verdict @ (Verdict::Forward | Verdict::Rewrite(_)) => {
                if let Verdict::Rewrite(options) = verdict {
                    segment.options = options;
                    packet.wire_len = ip.header_len() + segment.wire_len() as u32;
                    handle.wire_len = packet.wire_len;
                }
                node.metrics.forwarded += 1;
                self.send_on(now, at, handle);
            }
        }
        self.look_after_caching(now, at);
    }

    /// A caching node's time-out may be due.
    pub(crate) fn handle_caching_timer(&mut self, now: Instant, at: NodeId) {
        let node = &mut self.nodes[at.index()];
        let Some(caching) = node.caching.as_mut().filter(|c| c.armed == Some(now)) else { return };
        caching.armed = None;
        if node.up {
            caching.node.handle_timeout(now);
            self.look_after_caching(now, at);
        }
    }

    /// The link layer knows what has become of a packet, or will know when nothing comes back.
    pub(super) fn report(&mut self, now: Instant, link: LinkId, handle: PacketHandle, event: LinkEvent) {
        let link = &self.links[link.index()];
        let node = link.from();
        if self.nodes[node.index()].caching.is_none() {
            return;
        }
        let Packet { src, dst, payload: Payload::Tcp(segment), .. } = self.packets.peek(handle) else {
            return;
        };
        let ip = self.config.ip;
        let flow = FlowKey { source: address_of(ip, *src), destination: address_of(ip, *dst) };
        match event {
            LinkEvent::Acknowledged => {
                let segment = segment.clone();
                self.tell_caching(now, node, flow, &segment, event);
            }
            LinkEvent::TimedOut => {
                let wait = link.config().link_ack_timeout.unwrap_or_default();
                let report = self.overdue.insert(Report { node, flow, segment: segment.clone() });
                self.events.push(now + wait, Event::LinkTimeout(report));
            }
        }
    }

    /// The link layer has waited long enough.
    pub(crate) fn handle_link_timeout(&mut self, now: Instant, report: u32) {
        let Report { node, flow, segment } = self.overdue.remove(report);
        self.tell_caching(now, node, flow, &segment, LinkEvent::TimedOut);
    }

    fn tell_caching(&mut self, now: Instant, at: NodeId, flow: FlowKey, segment: &Segment, event: LinkEvent) {
        let node = &mut self.nodes[at.index()];
        if let Some(caching) = node.caching.as_mut().filter(|_| node.up) {
            caching.node.handle_link(now, flow, segment, event);
            self.look_after_caching(now, at);
        }
    }

    /// Sends what a caching node wants to send, and sees to its timer.
    fn look_after_caching(&mut self, now: Instant, at: NodeId) {
        while let Some(Transmit { flow, segment }) =
            self.caching_mut(at).and_then(|c| c.node.poll_transmit(now))
        {
            // Both ends are ours: the node has seen them in packets of this network.
            let (Some(src), Some(dst)) = (node_at(flow.source), node_at(flow.destination)) else { continue };
            self.nodes[at.index()].metrics.repeated += 1;
            let (hop_limit, octets) = (self.config.hop_limit, segment.wire_len());
            let handle = self.make_packet(at, Ends::new(src, dst), hop_limit, octets, Payload::Tcp(segment));
            self.send_on(now, at, handle);
        }
        let Some(caching) = self.caching_mut(at) else { return };
        // A repetition that is due already waits for its turn: time must move on.
        let due = caching.node.next_timeout().map(|due| due.max(now));
        if let Some(due) = due.filter(|due| caching.armed.is_none_or(|armed| *due < armed)) {
            caching.armed = Some(due);
            self.events.push(due, Event::Caching(at));
        }
    }

    fn caching_mut(&mut self, node: NodeId) -> Option<&mut Caching> {
        self.nodes[node.index()].caching.as_deref_mut()
    }
}
