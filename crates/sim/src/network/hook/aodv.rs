//! Hook for AODV: a router ([`anabranch_core::aodv`]) on each node that uses it, its messages, and
//! the packets that wait for a route.
//!
//! Messages are UDP over IPv4. The packet buffer follows ns-2.35's `aodv/aodv_rqueue.cc`: it has a
//! capacity, each packet waits for a limited time, and a full buffer drops the oldest packet.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::aodv::{self, PORT, Passage, Route, RouteState, Router, To, Transmit, Undelivered};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::UdpDatagram;

use super::{Hook, Sites};
use crate::address::{address_of, node_at};
use crate::event::{Event, HookId};
use crate::network::Network;
use crate::network::forwarding::{Heard, Past, Way};
use crate::network::graph::Graph;
use crate::network::medium::{GivenBack, Outbound};
use crate::numbered::Numbered;
use crate::packet::{Ends, IpVersion, LinkId, NodeId, PacketHandle, Payload, Whole, is_of_aodv};
use crate::random::Stream;
use crate::trace::NodeDrop;

/// AODV options of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AodvConfig {
    /// Options of the router.
    pub router: aodv::Config,
    /// Largest number of packets that wait for a route at a node, over all destinations: 64, ns-2's
    /// AODV_RTQ_MAX_LEN. A further packet replaces the oldest one.
    pub buffer: usize,
    /// Longest time for which a packet waits: 30 s, ns-2's AODV_RTQ_TIMEOUT.
    pub buffer_time: Duration,
}

impl From<aodv::Config> for AodvConfig {
    fn from(router: aodv::Config) -> Self {
        Self { router, buffer: 64, buffer_time: Duration::from_secs(30) }
    }
}

impl Default for AodvConfig {
    fn default() -> Self {
        aodv::Config::default().into()
    }
}

/// Reason why a node cannot use AODV.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AodvError {
    /// The network uses IPv6.
    #[error("AODV is for IPv4 (RFC 3561)")]
    NotIpv4,
    /// The node is not on an IEEE 802.11 channel.
    #[error("AODV needs an 802.11 radio on the node")]
    NotOnAir,
}

/// Counters of packets that wait for a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AodvMetrics {
    /// Packets that had to wait; a packet counts each time.
    pub waited: u64,
    /// Packets dropped because the buffer was full or they had waited too long.
    pub waited_in_vain: u64,
    /// Packets dropped because no route was found.
    pub not_found: u64,
}

/// News of a node's route to a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteChange {
    /// A route was found for waiting packets.
    Found,
    /// The route discovery failed.
    Failed,
    /// The route has broken, at this node or further on.
    Broken,
}

/// A change, with the node that reports it and the destination of the route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RouteNews {
    pub(crate) node: NodeId,
    pub(crate) to: NodeId,
    pub(crate) change: RouteChange,
}

/// All routers of a network.
#[derive(Debug, Default)]
pub(in crate::network) struct Aodv {
    sites: Sites<Site>,
    pub(in crate::network) news: VecDeque<RouteNews>,
    /// Messages that are delayed at random, so that neighbours do not send at the same time.
    delayed: Numbered<(NodeId, PacketHandle)>,
}

/// State of a router.
#[derive(Debug)]
struct Site {
    router: Router,
    config: AodvConfig,
    random: Stream,
    /// Random word for the jitter of the next message.
    word: u32,
    armed: Option<Instant>,
    /// Packets that wait for a route, the oldest first.
    waiting: VecDeque<Waiting>,
    metrics: AodvMetrics,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    handle: PacketHandle,
    past: Past,
    since: Instant,
}

impl Site {
    fn draw(&mut self) {
        self.word = (self.random.bits() >> 32) as u32;
    }

    /// Next time at which there may be something to do.
    fn due(&self) -> Option<Instant> {
        let oldest = self.waiting.front().map(|w| w.since + self.config.buffer_time);
        [self.router.next_timeout(), oldest].into_iter().flatten().min()
    }
}

/// IPv4 address of a node; [`Network::set_aodv`] refuses networks with IPv6.
fn address(node: NodeId) -> Ipv4Addr {
    match address_of(IpVersion::V4, node) {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

impl Network {
    /// Gives a node a router.
    pub(crate) fn set_aodv(
        &mut self,
        node: NodeId,
        config: AodvConfig,
        random: Stream,
    ) -> Result<(), AodvError> {
        if self.config.ip != IpVersion::V4 {
            return Err(AodvError::NotIpv4);
        }
        if self.wifi_station(node).is_none() {
            return Err(AodvError::NotOnAir);
        }
        let router = Router::new(config.router, address(node), Instant::ZERO);
        let (waiting, metrics) = (VecDeque::new(), AodvMetrics::default());
        let mut site = Site { router, config, random, word: 0, armed: None, waiting, metrics };
        site.draw();
        self.hooks.aodv.sites.insert(node, site);
        self.add_hook(node, Aodv::ID);
        Ok(())
    }

    /// A node's AODV router, for metrics.
    pub fn aodv(&self, node: NodeId) -> Option<&Router> {
        self.hooks.aodv.sites.get(node).map(|site| &site.router)
    }

    /// Counters of packets that waited for a route at a node.
    pub fn aodv_metrics(&self, node: NodeId) -> Option<&AodvMetrics> {
        self.hooks.aodv.sites.get(node).map(|site| &site.metrics)
    }

    /// Number of packets that wait for a route at a node.
    pub fn aodv_waiting(&self, node: NodeId) -> usize {
        self.hooks.aodv.sites.get(node).map_or(0, |site| site.waiting.len())
    }

    /// Takes the next route change, in order.
    #[inline]
    pub(crate) fn take_route_news(&mut self) -> Option<RouteNews> {
        self.hooks.aodv.news.pop_front()
    }

    /// Whether there is news for applications.
    #[inline]
    pub(crate) fn has_news_for_applications(&self) -> bool {
        !self.datagrams.is_empty() || !self.hooks.aodv.news.is_empty()
    }
}

impl Hook for Aodv {
    const ID: HookId = HookId(2);
    const TAKES_BACK: bool = true;

    /// Starts Hello messages, if enabled.
    fn start(net: &mut Network, now: Instant) {
        let nodes: Vec<NodeId> = net.hooks.aodv.sites.nodes().collect();
        nodes.into_iter().for_each(|node| Self::attend(net, now, node));
    }

    /// A node that goes down loses its waiting packets; one that starts again has lost its state.
    fn on_node(net: &mut Network, now: Instant, at: NodeId, up: bool) {
        if up {
            if let Some(site) = Self::site(net, at) {
                site.router.reset(now);
            }
            return Self::attend(net, now, at);
        }
        while let Some(waiting) = Self::site(net, at).and_then(|site| site.waiting.pop_front()) {
            net.drop_at(now, at, NodeDrop::Down, waiting.handle);
        }
    }

    fn on_arrival(net: &mut Network, now: Instant, link: LinkId, handle: PacketHandle) {
        let (from, at) = (net.graph.link(link).from(), net.graph.link(link).to());
        let source = net.packets.peek(handle).src;
        let passage = Passage {
            source: address(source),
            destination: address(at),
            previous: Some(address(from)),
            next: None,
        };
        if let Some(site) = Self::site(net, at) {
            site.router.note_use(now, passage);
        }
    }

    /// Sends a packet as the router says, or buffers it.
    fn on_route(
        net: &mut Network,
        now: Instant,
        at: NodeId,
        past: Past,
        handle: PacketHandle,
    ) -> Option<Way> {
        Self::route(net, now, at, handle, past);
        Self::attend(net, now, at);
        Some(Way::Taken)
    }

    fn on_message(net: &mut Network, now: Instant, heard: Heard, message: &Whole) -> bool {
        let Whole::Udp(datagram) = message else { return false };
        let Some(site) = Self::site(net, heard.at).filter(|_| is_of_aodv(datagram)) else {
            return false;
        };
        site.router.handle_message(now, address(heard.from), heard.hop_limit, &datagram.payload);
        Self::attend(net, now, heard.at);
        true
    }

    /// Packets that waited for the neighbour are also routed again, or dropped.
    fn on_undelivered(net: &mut Network, now: Instant, link: LinkId, back: GivenBack) -> u64 {
        let (at, neighbour) = (net.graph.link(link).from(), net.graph.link(link).to());
        let GivenBack { failed, waiting, reroutes } = back;
        let packet = net.packets.peek(failed.handle);
        let message = match &packet.payload {
            Payload::Udp(datagram) if is_of_aodv(datagram) => datagram.payload.first().copied(),
            Payload::Udp(_) | Payload::Tcp(_) | Payload::Opaque(_) | Payload::Fragment(_) => None,
        };
        let undelivered = Undelivered { source: address(packet.src), destination: address(packet.dst) };
        let Some(site) = Self::site(net, at) else { return 0 };
        match message {
            None => site.router.handle_link_break(now, address(neighbour), Some(undelivered)),
            // The router needs to know about a lost reply: the link may work in one direction only.
            Some(REPLY) => site.router.handle_reply_lost(now, address(neighbour)),
            Some(_) => site.router.handle_link_break(now, address(neighbour), None),
        }
        let mut rerouted = 0;
        if message.is_some() {
            // A routing message is addressed to this neighbour, so there is no other route.
            net.packets.remove(failed.handle);
        } else {
            rerouted += u64::from(Self::route_again(net, now, at, failed, reroutes));
        }
        for outbound in waiting {
            rerouted += u64::from(Self::route_again(net, now, at, outbound, reroutes));
        }
        Self::attend(net, now, at);
        rerouted
    }

    /// The timer of a router may be due, or a delayed message is sent.
    fn handle_event(net: &mut Network, now: Instant, at: u32, what: u32) {
        if what == DELAYED {
            let (at, handle) = net.hooks.aodv.delayed.remove(at);
            if net.is_up(at) {
                net.broadcast(now, at, handle);
            } else {
                net.packets.remove(handle);
            }
            return;
        }
        let at = NodeId(at);
        let up = net.is_up(at);
        let Some(site) = Self::site(net, at).filter(|site| site.armed == Some(now)) else { return };
        site.armed = None;
        if up {
            site.router.handle_timeout(now);
            Self::drop_overdue(net, now, at);
            Self::attend(net, now, at);
        }
    }
}

/// The link over the air to a neighbour, if the neighbour can receive from this node.
fn link_to(graph: &Graph, at: NodeId, to: NodeId) -> Option<LinkId> {
    graph.links_between(at, to).find(|link| graph.link(*link).is_wireless())
}

impl Aodv {
    fn site(net: &mut Network, at: NodeId) -> Option<&mut Site> {
        net.hooks.aodv.sites.get_mut(at)
    }

    fn route(net: &mut Network, now: Instant, at: NodeId, handle: PacketHandle, past: Past) {
        let source = net.packets.peek(handle).src;
        let Some(site) = Self::site(net, at) else { return };
        let (destination, previous) = (address(handle.dst), past.previous().map(address));
        let route = match previous {
            None => site.router.route(now, destination),
            Some(previous) => site.router.forward(now, destination, previous),
        };
        match route {
            Route::Via(next) => {
                let passage = Passage { source: address(source), destination, previous, next: Some(next) };
                site.router.note_use(now, passage);
                let link = node_at(next.into()).and_then(|next| link_to(&net.graph, at, next));
                match link {
                    Some(link) => net.send_over(now, link, past, handle),
                    // The link is unidirectional: this node receives from the other end, but not
                    // the reverse.
                    None => net.drop_at(now, at, NodeDrop::NoRoute, handle),
                }
            }
            Route::Discovering => Self::wait_for_route(net, now, at, Waiting { handle, past, since: now }),
            Route::Unreachable => net.drop_at(now, at, NodeDrop::NoRoute, handle),
        }
    }

    fn wait_for_route(net: &mut Network, now: Instant, at: NodeId, waiting: Waiting) {
        Self::drop_overdue(net, now, at);
        let Some(site) = Self::site(net, at) else { return };
        site.metrics.waited += 1;
        site.waiting.push_back(waiting);
        while let Some(site) = Self::site(net, at).filter(|site| site.waiting.len() > site.config.buffer) {
            let oldest = site.waiting.pop_front();
            Self::drop_waiting(net, now, at, oldest);
        }
    }

    /// Drops packets that have waited too long.
    fn drop_overdue(net: &mut Network, now: Instant, at: NodeId) {
        while let Some(site) = Self::site(net, at) {
            let patience = site.config.buffer_time;
            let Some(overdue) = site.waiting.pop_front_if(|w| w.since + patience <= now) else { return };
            Self::drop_waiting(net, now, at, Some(overdue));
        }
    }

    fn drop_waiting(net: &mut Network, now: Instant, at: NodeId, waiting: Option<Waiting>) {
        let Some(waiting) = waiting else { return };
        if let Some(site) = Self::site(net, at) {
            site.metrics.waited_in_vain += 1;
        }
        net.drop_at(now, at, NodeDrop::WaitedInVain, waiting.handle);
    }

    /// Finds another route for a packet, if there may be one. Returns false if the packet is
    /// dropped.
    fn route_again(
        net: &mut Network,
        now: Instant,
        at: NodeId,
        Outbound { handle, past, .. }: Outbound,
        reroutes: u8,
    ) -> bool {
        let Some(site) = Self::site(net, at) else { return false };
        let known = site.router.entry(address(handle.dst));
        // For a packet of another node, route errors have been sent already; a discovery on its
        // behalf would send them again.
        let hope = past.previous().is_none()
            || known.is_some_and(|entry| entry.is_valid() || entry.state == RouteState::Repairing);
        if past.rerouted >= reroutes || !hope {
            net.drop_at(now, at, NodeDrop::NoRoute, handle);
            return false;
        }
        Self::route(net, now, at, handle, past.again());
        true
    }

    /// Sends the router's messages, acts on its events, and sets its timer.
    fn attend(net: &mut Network, now: Instant, at: NodeId) {
        // An event can produce further messages, so both queues are polled until both are empty.
        loop {
            while let Some(site) = Self::site(net, at) {
                let Some(transmit) = site.router.poll_transmit(site.word) else { break };
                site.draw();
                Self::say(net, now, at, transmit);
            }
            match Self::site(net, at).and_then(|site| site.router.poll_event()) {
                Some(event) => Self::learn(net, now, at, event),
                None => break,
            }
        }
        let Some(site) = Self::site(net, at) else { return };
        let due = site.due().map(|due| due.max(now));
        if let Some(due) = due.filter(|due| site.armed.is_none_or(|armed| *due < armed)) {
            site.armed = Some(due);
            net.events.push(due, Event::Hook { hook: Self::ID, at: at.0, what: TIMER });
        }
    }

    fn learn(net: &mut Network, now: Instant, at: NodeId, event: aodv::Event) {
        match event {
            aodv::Event::Found { destination } => {
                Self::tell_of_route(net, at, destination, RouteChange::Found);
                for Waiting { handle, past, .. } in Self::waiting_for(net, at, destination) {
                    Self::route(net, now, at, handle, past);
                }
            }
            aodv::Event::Failed { destination } => {
                Self::tell_of_route(net, at, destination, RouteChange::Failed);
                for Waiting { handle, .. } in Self::waiting_for(net, at, destination) {
                    if let Some(site) = Self::site(net, at) {
                        site.metrics.not_found += 1;
                    }
                    net.drop_at(now, at, NodeDrop::NoRoute, handle);
                }
            }
            aodv::Event::Broken { destinations } => {
                for destination in destinations {
                    Self::tell_of_route(net, at, destination, RouteChange::Broken);
                }
            }
        }
    }

    fn tell_of_route(net: &mut Network, at: NodeId, destination: Ipv4Addr, change: RouteChange) {
        let exist = net.graph.node_count();
        if let Some(to) = node_at(destination.into()).filter(|to| to.index() < exist) {
            net.hooks.aodv.news.push_back(RouteNews { node: at, to, change });
        }
    }

    /// Takes out the packets that wait for a route to a destination, in order.
    fn waiting_for(net: &mut Network, at: NodeId, destination: Ipv4Addr) -> Vec<Waiting> {
        let mut found = Vec::new();
        let Some(site) = Self::site(net, at) else { return found };
        site.waiting.retain(|waiting| {
            let stays = address(waiting.handle.dst) != destination;
            if !stays {
                found.push(*waiting);
            }
            stays
        });
        found
    }

    fn say(net: &mut Network, now: Instant, at: NodeId, message: Transmit) {
        let Transmit { to, ttl, delay, payload } = message;
        let datagram = UdpDatagram { src_port: PORT, dst_port: PORT, payload };
        let octets = datagram.wire_len();
        let dst = match to {
            To::Broadcast => NodeId::BROADCAST,
            To::Neighbour(address) => match node_at(address.into()) {
                Some(node) => node,
                None => return,
            },
        };
        let handle = net.make_packet(at, Ends::new(at, dst), ttl, octets, Payload::Udp(datagram));
        if dst == NodeId::BROADCAST {
            if delay.is_zero() {
                net.broadcast(now, at, handle);
            } else {
                let at = net.hooks.aodv.delayed.insert((at, handle));
                net.events.push(now + delay, Event::Hook { hook: Self::ID, at, what: DELAYED });
            }
            return;
        }
        match link_to(&net.graph, at, dst) {
            Some(link) => net.transmit(now, link, Past::NONE, handle),
            None => {
                net.packets.remove(handle);
            }
        }
    }
}

/// First byte of an RREP (RFC 3561 section 5.2).
const REPLY: u8 = 2;

/// Event: the timer of a router may be due.
const TIMER: u32 = 0;
/// Event: a delayed message is due. The other number identifies the message.
const DELAYED: u32 = 1;
