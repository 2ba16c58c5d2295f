//! Hook for nodes that cache TCP segments for other nodes ([`anabranch_core::dtc`]), and the
//! notifications of their link layer.

use anabranch_core::dtc::{Config, FlowKey, LinkEvent, Node, Transmit, Verdict};
use anabranch_core::segment::Segment;
use anabranch_core::time::Instant;

use super::{Hook, Sites};
use crate::address::{address_of, node_at};
use crate::event::{Event, HookId};
use crate::network::Network;
use crate::network::forwarding::Past;
use crate::network::medium::LinkNews;
use crate::numbered::Numbered;
use crate::packet::{Ends, IpVersion, LinkId, NodeId, Packet, PacketHandle, Payload};
use crate::random::Stream;
use crate::trace::NodeDrop;

/// All caching nodes of a network.
#[derive(Debug, Default)]
pub(in crate::network) struct Caching {
    sites: Sites<Site>,
    /// Packets whose link-layer acknowledgement will not arrive.
    overdue: Numbered<Report>,
}

/// State of a caching node.
#[derive(Debug)]
struct Site {
    node: Node,
    config: Config,
    random: Stream,
    /// Time of the pending timer event that is valid.
    armed: Option<Instant>,
}

/// A packet that the link layer will consider lost.
#[derive(Debug)]
struct Report {
    node: NodeId,
    flow: FlowKey,
    segment: Segment,
}

/// Event: the timer of a node may be due.
const TIMER: u32 = 0;
/// Event: a link-layer acknowledgement has not arrived in time. The other number identifies the
/// report.
const OVERDUE: u32 = 1;

fn flow(ip: IpVersion, packet: &Packet) -> FlowKey {
    FlowKey { source: address_of(ip, packet.src), destination: address_of(ip, packet.dst) }
}

impl Network {
    /// Makes a node cache segments for other nodes. Its link layer reports the fate of packets on
    /// links with [`crate::link::LinkConfig::link_ack_timeout`].
    pub(crate) fn set_caching(&mut self, node: NodeId, config: Config, random: Stream) {
        let site = Site { node: Node::new(config), config, random, armed: None };
        self.hooks.caching.sites.insert(node, site);
        self.add_hook(node, Caching::ID);
    }

    /// The cache of a node, if it has one, for metrics.
    pub fn caching(&self, node: NodeId) -> Option<&Node> {
        self.hooks.caching.sites.get(node).map(|site| &site.node)
    }
}

impl Hook for Caching {
    const ID: HookId = HookId(0);
    /// A cache reads sequence numbers, which only the first fragment of a packet has.
    const LOOKS_INSIDE: bool = true;

    fn on_node(net: &mut Network, _: Instant, at: NodeId, up: bool) {
        if let Some(site) = net.hooks.caching.sites.get_mut(at).filter(|_| up) {
            site.node = Node::new(site.config);
            site.armed = None;
        }
    }

    /// Forwards or holds back a segment. Fragments and other transports are not touched.
    fn on_passage(net: &mut Network, now: Instant, at: NodeId, mut handle: PacketHandle) -> bool {
        let ip = net.config.ip;
        let Some(site) = net.hooks.caching.sites.get_mut(at) else { return false };
        let packet = net.packets.get_mut(handle);
        let flow = flow(ip, packet);
        let Payload::Tcp(segment) = &mut packet.payload else {
            net.pass_on(now, at, Past::NONE, handle);
            return true;
        };
        let random = (site.random.bits() >> 32) as u32;
        match site.node.handle_segment(now, flow, segment, random) {
            Verdict::Hold => net.drop_at(now, at, NodeDrop::Held, handle),
            verdict @ (Verdict::Forward | Verdict::Rewrite(_)) => {
                if let Verdict::Rewrite(options) = verdict {
                    segment.options = options;
                    packet.wire_len = ip.header_len() + segment.wire_len() as u32;
                    handle.wire_len = packet.wire_len;
                }
                net.pass_on(now, at, Past::NONE, handle);
            }
        }
        Self::look_after(net, now, at);
        true
    }

    /// The link layer knows the fate of a packet now, or will know it when no acknowledgement
    /// arrives.
    fn on_link(net: &mut Network, now: Instant, link: LinkId, news: LinkNews) {
        let LinkNews::Outcome { handle, event } = news else { return };
        let packet = net.packets.peek(handle);
        let Payload::Tcp(segment) = &packet.payload else { return };
        let (flow, segment) = (flow(net.config.ip, packet), segment.clone());
        let link = net.graph.link(link);
        let node = link.from();
        match event {
            LinkEvent::Acknowledged => Self::tell(net, now, node, flow, &segment, event),
            LinkEvent::TimedOut => {
                let wait = link.config().link_ack_timeout.unwrap_or_default();
                let at = net.hooks.caching.overdue.insert(Report { node, flow, segment });
                net.events.push(now + wait, Event::Hook { hook: Self::ID, at, what: OVERDUE });
            }
        }
    }

    fn handle_event(net: &mut Network, now: Instant, at: u32, what: u32) {
        if what == OVERDUE {
            let Report { node, flow, segment } = net.hooks.caching.overdue.remove(at);
            return Self::tell(net, now, node, flow, &segment, LinkEvent::TimedOut);
        }
        let at = NodeId(at);
        let site = net.hooks.caching.sites.get_mut(at);
        let Some(site) = site.filter(|site| site.armed == Some(now)) else { return };
        site.armed = None;
        if net.graph.is_up(at) {
            site.node.handle_timeout(now);
            Self::look_after(net, now, at);
        }
    }
}

impl Caching {
    fn tell(net: &mut Network, now: Instant, at: NodeId, flow: FlowKey, segment: &Segment, event: LinkEvent) {
        let up = net.is_up(at);
        if let Some(site) = net.hooks.caching.sites.get_mut(at).filter(|_| up) {
            site.node.handle_link(now, flow, segment, event);
            Self::look_after(net, now, at);
        }
    }

    /// Sends what the caching node has to send, and sets its timer.
    fn look_after(net: &mut Network, now: Instant, at: NodeId) {
        while let Some(Transmit { flow, segment }) =
            net.hooks.caching.sites.get_mut(at).and_then(|site| site.node.poll_transmit(now))
        {
            // Both addresses belong to nodes: the cache took them from packets of this network.
            let (Some(src), Some(dst)) = (node_at(flow.source), node_at(flow.destination)) else { continue };
            net.relays[at.index()].metrics.repeated += 1;
            let (hop_limit, octets) = (net.config.hop_limit, segment.wire_len());
            let handle = net.make_packet(at, Ends::new(src, dst), hop_limit, octets, Payload::Tcp(segment));
            net.send_on(now, at, Past::NONE, handle);
        }
        let Some(site) = net.hooks.caching.sites.get_mut(at) else { return };
        // A retransmission that is already due waits for an event at `now`: simulated time must
        // advance.
        let due = site.node.next_timeout().map(|due| due.max(now));
        if let Some(due) = due.filter(|due| site.armed.is_none_or(|armed| *due < armed)) {
            site.armed = Some(due);
            net.events.push(due, Event::Hook { hook: Self::ID, at: at.0, what: TIMER });
        }
    }
}
