//! AODV at work: a router ([`anabranch_core::aodv`]) on each node that has one, its messages, and the packets that wait
//! for a route.
//!
//! Messages are UDP over IPv4. Packets wait as in ns-2.35's `aodv/aodv_rqueue.cc`: so many, for so long, and the oldest
//! makes room.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::aodv::{self, PORT, Passage, Route, RouteState, Router, To, Transmit, Undelivered};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::UdpDatagram;
use bytes::Bytes;

use super::Network;
use super::adhoc::{Outbound, Past};
use crate::address::{address_of, node_at};
use crate::event::Event;
use crate::numbered::Numbered;
use crate::packet::{Ends, IpVersion, LinkId, NodeId, PacketHandle, Payload};
use crate::random::Stream;
use crate::trace::NodeDrop;

/// How a node takes part in AODV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AodvConfig {
    /// The router.
    pub router: aodv::Config,
    /// Packets that wait for a route at a node, over all destinations: 64, ns-2's AODV_RTQ_MAX_LEN. One more, and the
    /// oldest is dropped.
    pub buffer: usize,
    /// How long they wait at most: 30 s, ns-2's AODV_RTQ_TIMEOUT.
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

/// Why a node cannot speak AODV.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AodvError {
    /// The network speaks IPv6.
    #[error("AODV is for IPv4 (RFC 3561)")]
    NotIpv4,
    /// The node is not on an 802.11 channel.
    #[error("AODV needs an 802.11 radio on the node")]
    NotOnAir,
}

/// What has become of packets that wait for a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AodvMetrics {
    /// Packets that had to wait, once for each time.
    pub waited: u64,
    /// Packets dropped since others came, or since they had waited too long.
    pub waited_in_vain: u64,
    /// Packets dropped since no route was found.
    pub not_found: u64,
}

/// What a node has learned of a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteChange {
    /// There is a route that packets have waited for.
    Found,
    /// There is none, as far as AODV could look.
    Failed,
    /// The route has broken, here or further on.
    Broken,
}

/// The same, and where and whereto.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RouteNews {
    pub(crate) node: NodeId,
    pub(crate) to: NodeId,
    pub(crate) change: RouteChange,
}

/// All routers of a network.
#[derive(Debug, Default)]
pub(super) struct Aodv {
    sites: Vec<Option<Site>>,
    news: VecDeque<RouteNews>,
    /// Messages that wait for a moment, so that neighbours do not all speak at once.
    delayed: Numbered<(NodeId, PacketHandle)>,
}

/// A router in operation.
#[derive(Debug)]
struct Site {
    router: Router,
    config: AodvConfig,
    random: Stream,
    /// For the next message.
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

    /// When there may be something to do.
    fn due(&self) -> Option<Instant> {
        let oldest = self.waiting.front().map(|w| w.since + self.config.buffer_time);
        [self.router.next_timeout(), oldest].into_iter().flatten().min()
    }
}

/// Routers know addresses; [`Network::set_aodv`] sees to it that all are of IPv4.
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
        let aodv = self.aodv.get_or_insert_default();
        let index = node.index();
        if aodv.sites.len() <= index {
            aodv.sites.resize_with(index + 1, || None);
        }
        aodv.sites[index] = Some(site);
        Ok(())
    }

    /// The network is complete: Hellos begin, if they are wanted.
    pub(crate) fn start_aodv(&mut self, now: Instant) {
        let sites = self.aodv.as_ref().map_or(0, |a| a.sites.len());
        for node in (0..sites as u32).map(NodeId) {
            self.attend_aodv(now, node);
        }
    }

    /// A node's AODV router, for its figures.
    pub fn aodv(&self, node: NodeId) -> Option<&Router> {
        Some(&self.speaker(node)?.router)
    }

    /// What has become of packets that waited for a route at a node.
    pub fn aodv_metrics(&self, node: NodeId) -> Option<&AodvMetrics> {
        Some(&self.speaker(node)?.metrics)
    }

    /// Packets that wait for a route at a node.
    pub fn aodv_waiting(&self, node: NodeId) -> usize {
        self.speaker(node).map_or(0, |site| site.waiting.len())
    }

    /// What a node has learned of a destination, in order.
    #[inline]
    pub(crate) fn take_route_news(&mut self) -> Option<RouteNews> {
        self.aodv.as_mut()?.news.pop_front()
    }

    /// Applications have something to learn.
    #[inline]
    pub(crate) fn has_news_for_applications(&self) -> bool {
        !self.datagrams.is_empty() || self.aodv.as_ref().is_some_and(|a| !a.news.is_empty())
    }

    #[inline]
    pub(super) fn has_aodv(&self, node: NodeId) -> bool {
        self.aodv.is_some() && self.speaker(node).is_some()
    }

    fn speaker(&self, node: NodeId) -> Option<&Site> {
        self.aodv.as_ref()?.sites.get(node.index())?.as_ref()
    }

    fn speaker_mut(&mut self, node: NodeId) -> Option<&mut Site> {
        self.aodv.as_mut()?.sites.get_mut(node.index())?.as_mut()
    }

    /// A packet goes where the router says, or waits.
    pub(super) fn send_by_aodv(&mut self, now: Instant, at: NodeId, handle: PacketHandle, past: Past) {
        self.route_by_aodv(now, at, handle, past);
        self.attend_aodv(now, at);
    }

    fn route_by_aodv(&mut self, now: Instant, at: NodeId, handle: PacketHandle, past: Past) {
        let source = self.packets.peek(handle).src;
        let Some(site) = self.speaker_mut(at) else { return };
        let (destination, previous) = (address(handle.dst), past.previous.map(address));
        let route = match previous {
            None => site.router.route(now, destination),
            Some(previous) => site.router.forward(now, destination, previous),
        };
        match route {
            Route::Via(next) => {
                let passage = Passage { source: address(source), destination, previous, next: Some(next) };
                site.router.note_use(now, passage);
                let link = node_at(next.into()).and_then(|next| self.adhoc_link(at, next));
                match link {
                    Some(link) => self.send_by_link(now, at, link, handle, past),
                    // The other end is heard, and does not hear this one.
                    None => self.drop_at(now, at, NodeDrop::NoRoute, handle),
                }
            }
            Route::Discovering => self.wait_for_route(now, at, Waiting { handle, past, since: now }),
            Route::Unreachable => self.drop_at(now, at, NodeDrop::NoRoute, handle),
        }
    }

    fn send_by_link(&mut self, now: Instant, at: NodeId, link: LinkId, handle: PacketHandle, past: Past) {
        if handle.wire_len > self.links[link.index()].mtu() {
            self.send_in_pieces(now, at, link, handle);
        } else {
            self.transmit_adhoc(now, link, handle, past);
        }
    }

    fn wait_for_route(&mut self, now: Instant, at: NodeId, waiting: Waiting) {
        self.drop_overdue(now, at);
        let Some(site) = self.speaker_mut(at) else { return };
        site.metrics.waited += 1;
        site.waiting.push_back(waiting);
        while let Some(site) = self.speaker_mut(at).filter(|site| site.waiting.len() > site.config.buffer) {
            let oldest = site.waiting.pop_front();
            self.drop_waiting(now, at, oldest);
        }
    }

    /// What has waited for too long goes.
    fn drop_overdue(&mut self, now: Instant, at: NodeId) {
        while let Some(site) = self.speaker_mut(at) {
            let patience = site.config.buffer_time;
            let Some(overdue) = site.waiting.pop_front_if(|w| w.since + patience <= now) else { return };
            self.drop_waiting(now, at, Some(overdue));
        }
    }

    fn drop_waiting(&mut self, now: Instant, at: NodeId, waiting: Option<Waiting>) {
        let Some(waiting) = waiting else { return };
        if let Some(site) = self.speaker_mut(at) {
            site.metrics.waited_in_vain += 1;
        }
        self.drop_at(now, at, NodeDrop::WaitedInVain, waiting.handle);
    }

    /// A packet has come to its destination.
    pub(super) fn note_aodv_arrival(&mut self, now: Instant, link: LinkId, handle: PacketHandle) {
        let (from, at) = (self.links[link.index()].from(), self.links[link.index()].to());
        let source = self.packets.peek(handle).src;
        let passage = Passage {
            source: address(source),
            destination: address(at),
            previous: Some(address(from)),
            next: None,
        };
        if let Some(site) = self.speaker_mut(at) {
            site.router.note_use(now, passage);
        }
    }

    /// A message has come from a neighbour.
    pub(super) fn handle_routing_message(
        &mut self,
        now: Instant,
        at: NodeId,
        (from, ttl): (NodeId, u8),
        payload: &Bytes,
    ) {
        let Some(site) = self.speaker_mut(at) else { return };
        site.router.handle_message(now, address(from), ttl, payload);
        self.attend_aodv(now, at);
    }

    /// The link layer has given up a packet for a neighbour. What waited for it too is routed again, or dropped;
    /// answers how many were routed.
    pub(super) fn handle_link_break(
        &mut self,
        now: Instant,
        at: NodeId,
        neighbour: NodeId,
        failed: Outbound,
        waiting: Vec<Outbound>,
    ) -> u64 {
        let packet = self.packets.peek(failed.handle);
        let message = match &packet.payload {
            Payload::Udp(datagram) if datagram.dst_port == PORT => datagram.payload.first().copied(),
            Payload::Udp(_) | Payload::Tcp(_) | Payload::Opaque(_) | Payload::Fragment(_) => None,
        };
        let undelivered = Undelivered { source: address(packet.src), destination: address(packet.dst) };
        let Some(site) = self.speaker_mut(at) else { return 0 };
        match message {
            None => site.router.handle_link_break(now, address(neighbour), Some(undelivered)),
            Some(REPLY) => site.router.handle_reply_lost(now, address(neighbour)),
            Some(_) => site.router.handle_link_break(now, address(neighbour), None),
        }
        let mut rerouted = 0;
        if message.is_some() {
            self.packets.remove(failed.handle);
        } else {
            rerouted += u64::from(self.route_again(now, at, failed));
        }
        for outbound in waiting {
            rerouted += u64::from(self.route_again(now, at, outbound));
        }
        self.attend_aodv(now, at);
        rerouted
    }

    /// Another way for a packet, if there may be one; false if it is dropped.
    fn route_again(&mut self, now: Instant, at: NodeId, Outbound { handle, past, .. }: Outbound) -> bool {
        let reroutes = self.reroutes();
        let Some(site) = self.speaker_mut(at) else { return false };
        let known = site.router.entry(address(handle.dst));
        // Others have been told of the break: to ask for the sake of their packets would tell them again.
        let hope = past.previous.is_none()
            || known.is_some_and(|entry| entry.is_valid() || entry.state == RouteState::Repairing);
        if past.rerouted >= reroutes || !hope {
            self.drop_at(now, at, NodeDrop::NoRoute, handle);
            return false;
        }
        self.route_by_aodv(now, at, handle, Past { rerouted: past.rerouted + 1, ..past });
        true
    }

    /// A router's time-out may be due.
    pub(crate) fn handle_aodv_timer(&mut self, now: Instant, at: NodeId) {
        let up = self.is_up(at);
        let Some(site) = self.speaker_mut(at).filter(|site| site.armed == Some(now)) else { return };
        site.armed = None;
        if up {
            site.router.handle_timeout(now);
            self.drop_overdue(now, at);
            self.attend_aodv(now, at);
        }
    }

    /// A message that was delayed goes out.
    pub(crate) fn handle_delayed(&mut self, now: Instant, slot: u32) {
        let Some(aodv) = &mut self.aodv else { return };
        let (at, handle) = aodv.delayed.remove(slot);
        if self.is_up(at) {
            self.broadcast_adhoc(now, at, handle);
        } else {
            self.packets.remove(handle);
        }
    }

    /// A node dies, with all that waits there.
    pub(super) fn stop_aodv(&mut self, now: Instant, at: NodeId) {
        while let Some(waiting) = self.speaker_mut(at).and_then(|site| site.waiting.pop_front()) {
            self.drop_at(now, at, NodeDrop::Down, waiting.handle);
        }
    }

    /// A node that starts again has forgotten everything.
    pub(super) fn restart_aodv(&mut self, now: Instant, at: NodeId) {
        if let Some(site) = self.speaker_mut(at) {
            site.router.reset(now);
            self.attend_aodv(now, at);
        }
    }

    /// What a router wants to say is said, what it has learned is acted upon, its timer set.
    fn attend_aodv(&mut self, now: Instant, at: NodeId) {
        loop {
            while let Some(site) = self.speaker_mut(at) {
                let Some(transmit) = site.router.poll_transmit(site.word) else { break };
                site.draw();
                self.say_by_aodv(now, at, transmit);
            }
            match self.speaker_mut(at).and_then(|site| site.router.poll_event()) {
                Some(event) => self.handle_aodv_event(now, at, event),
                None => break,
            }
        }
        let Some(site) = self.speaker_mut(at) else { return };
        let due = site.due().map(|due| due.max(now));
        if let Some(due) = due.filter(|due| site.armed.is_none_or(|armed| *due < armed)) {
            site.armed = Some(due);
            self.events.push(due, Event::Aodv(at));
        }
    }

    fn handle_aodv_event(&mut self, now: Instant, at: NodeId, event: aodv::Event) {
        match event {
            aodv::Event::Found { destination } => {
                self.tell_of_route(at, destination, RouteChange::Found);
                for Waiting { handle, past, .. } in self.waiting_for(at, destination) {
                    self.route_by_aodv(now, at, handle, past);
                }
            }
            aodv::Event::Failed { destination } => {
                self.tell_of_route(at, destination, RouteChange::Failed);
                for Waiting { handle, .. } in self.waiting_for(at, destination) {
                    if let Some(site) = self.speaker_mut(at) {
                        site.metrics.not_found += 1;
                    }
                    self.drop_at(now, at, NodeDrop::NoRoute, handle);
                }
            }
            aodv::Event::Broken { destinations } => {
                for destination in destinations {
                    self.tell_of_route(at, destination, RouteChange::Broken);
                }
            }
        }
    }

    fn tell_of_route(&mut self, at: NodeId, destination: Ipv4Addr, change: RouteChange) {
        let exist = self.nodes.len();
        let to = node_at(destination.into()).filter(|to| to.index() < exist);
        if let (Some(to), Some(aodv)) = (to, &mut self.aodv) {
            aodv.news.push_back(RouteNews { node: at, to, change });
        }
    }

    /// Takes out the packets that wait for a route there, in order.
    fn waiting_for(&mut self, at: NodeId, destination: Ipv4Addr) -> Vec<Waiting> {
        let mut found = Vec::new();
        let Some(site) = self.speaker_mut(at) else { return found };
        site.waiting.retain(|waiting| {
            let stays = address(waiting.handle.dst) != destination;
            if !stays {
                found.push(*waiting);
            }
            stays
        });
        found
    }

    fn say_by_aodv(&mut self, now: Instant, at: NodeId, message: Transmit) {
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
        let handle = self.make_packet(at, Ends::new(at, dst), ttl, octets, Payload::Udp(datagram));
        if dst == NodeId::BROADCAST {
            if delay.is_zero() {
                self.broadcast_adhoc(now, at, handle);
            } else if let Some(aodv) = &mut self.aodv {
                let slot = aodv.delayed.insert((at, handle));
                self.events.push(now + delay, Event::Delayed(slot));
            }
            return;
        }
        match self.adhoc_link(at, dst) {
            Some(link) => self.transmit_adhoc(now, link, handle, Past::default()),
            None => {
                self.packets.remove(handle);
            }
        }
    }
}

/// The first octet of an RREP (RFC 3561 section 5.2).
const REPLY: u8 = 2;
