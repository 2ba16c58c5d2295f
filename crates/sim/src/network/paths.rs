//! The path builder at work: a router ([`anabranch_core::paths`]) on each node that has one, its messages, and the way
//! of a packet that bears a path's number.
//!
//! Messages are ICMPv6 over whatever leads to a neighbour. Traffic between the root and a node follows the node's paths;
//! between two others it goes up until a node knows the way down.

use std::collections::VecDeque;

use anabranch_core::paths::{Config, Metrics, NodeType, Output, OwnPath, Router, ShortAddress};
use anabranch_core::time::Instant;
use anabranch_wire::ip::Protocol;
use bytes::Bytes;

use super::Network;
use crate::control;
use crate::event::Event;
use crate::frames::short_address;
use crate::packet::{Ends, LinkId, NodeId, Opaque, Packet, PacketHandle, Payload};
use crate::random::Stream;

/// All routers of a network.
#[derive(Debug)]
pub(super) struct Paths {
    root: NodeId,
    routers: Vec<Option<Site>>,
    /// Nodes whose paths have changed, for their applications.
    news: VecDeque<NodeId>,
    /// Messages that could not be read.
    unread: u64,
}

/// A router in operation.
#[derive(Debug)]
struct Site {
    router: Router,
    random: Stream,
    armed: Option<Instant>,
    /// The links that leave the node, by where they lead; made when the network is complete.
    links: Vec<(NodeId, LinkId)>,
    /// The paths that applications know of.
    known: Vec<u8>,
}

impl Site {
    fn word(&mut self) -> u32 {
        (self.random.bits() >> 32) as u32
    }

    fn link(&self, to: NodeId) -> Option<LinkId> {
        let at = self.links.binary_search_by_key(&to, |l| l.0).ok()?;
        Some(self.links[at].1)
    }
}

impl Paths {
    /// The links that leave a node, by where they lead.
    pub(super) fn links_of(&self, node: NodeId) -> Option<&[(NodeId, LinkId)]> {
        Some(&self.routers.get(node.index())?.as_ref()?.links)
    }
}

/// The node of a short address.
fn node_of(address: ShortAddress) -> NodeId {
    NodeId(u32::from(address).wrapping_sub(1))
}

impl Network {
    /// Gives a node a router; the first that is a root is the data centre. At most 65,533 nodes have a short address.
    pub(crate) fn set_router(
        &mut self,
        node: NodeId,
        config: Config,
        kind: Option<NodeType>,
        random: Stream,
    ) {
        let address = short_address(node);
        let router = match kind {
            Some(kind) => Router::node(config, address, kind),
            None => Router::root(config, address),
        };
        let paths = self.paths.get_or_insert_with(|| {
            Box::new(Paths { root: node, routers: Vec::new(), news: VecDeque::new(), unread: 0 })
        });
        if kind.is_none() {
            paths.root = node;
        }
        let index = node.index();
        if paths.routers.len() <= index {
            paths.routers.resize_with(index + 1, || None);
        }
        paths.routers[index] =
            Some(Site { router, random, armed: None, links: Vec::new(), known: Vec::new() });
    }

    /// The network is complete: routers learn which links they have and start.
    pub(crate) fn start_routers(&mut self, now: Instant) {
        let Some(paths) = &mut self.paths else { return };
        for (i, link) in self.links.iter().enumerate() {
            let is_router = |n: NodeId| paths.routers.get(n.index()).is_some_and(Option::is_some);
            if !is_router(link.from()) || !is_router(link.to()) {
                continue;
            }
            if let Some(site) = &mut paths.routers[link.from().index()] {
                site.links.push((link.to(), LinkId(i as u32)));
            }
        }
        for site in paths.routers.iter_mut().flatten() {
            site.links.sort_unstable();
            site.links.dedup_by_key(|l| l.0);
        }
        let links = &self.links;
        for site in paths.routers.iter_mut().flatten() {
            for &(to, link) in &site.links {
                if !links[link.index()].is_wireless() {
                    site.router.set_reliable(short_address(to));
                }
            }
        }
        let nodes: Vec<u32> =
            (0..).zip(&paths.routers).filter(|(_, site)| site.is_some()).map(|(i, _)| i).collect();
        for node in nodes {
            self.with_router(now, NodeId(node), |router, random| router.start(now, random));
        }
    }

    /// A node's own paths to the root, best first.
    pub fn own_paths(&self, node: NodeId) -> &[OwnPath] {
        self.router(node).map_or(&[], Router::paths)
    }

    /// A node's router, for its figures.
    pub fn router(&self, node: NodeId) -> Option<&Router> {
        let site = self.paths.as_ref()?.routers.get(node.index())?.as_ref()?;
        Some(&site.router)
    }

    /// The root of the paths, if they are built.
    pub fn root(&self) -> Option<NodeId> {
        self.paths.as_ref().map(|paths| paths.root)
    }

    /// A node whose paths have changed, once for each change.
    pub(crate) fn take_path_news(&mut self) -> Option<NodeId> {
        self.paths.as_mut()?.news.pop_front()
    }

    /// A router's time-out may be due.
    pub(crate) fn handle_router_timer(&mut self, now: Instant, at: NodeId) {
        let Some(site) = self.site(at).filter(|site| site.armed == Some(now)) else { return };
        site.armed = None;
        self.look_at_links(now, at);
        self.with_router(now, at, |router, random| router.handle_timeout(now, random));
    }

    /// A message has come from a neighbour.
    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        at: NodeId,
        (from, to): (NodeId, NodeId),
        octets: &Bytes,
    ) {
        let Some(message) = control::read(from, to, octets) else {
            if let Some(paths) = &mut self.paths {
                paths.unread += 1;
            }
            return;
        };
        let from = short_address(from);
        let to_all = to == NodeId::ALL_RPL_NODES;
        self.with_router(now, at, |router, random| match &message {
            control::Message::Dis => router.handle_dis(now, from, to_all, random),
            control::Message::Dio(dio) => router.handle_dio(now, from, dio, to_all, random),
            control::Message::Dao(dao) => router.handle_dao(now, from, dao),
            control::Message::DaoAck(ack) => router.handle_dao_ack(ack),
        });
    }

    /// The link layer of a node does not reach a neighbour any more.
    pub(super) fn neighbour_lost(&mut self, now: Instant, at: NodeId, neighbour: NodeId) {
        let lost = short_address(neighbour);
        self.with_router(now, at, |router, random| router.handle_neighbour_lost(now, lost, random));
    }

    /// The link layer of a node has sent a frame to a neighbour that many times.
    pub(super) fn note_transmissions(
        &mut self,
        now: Instant,
        (at, neighbour): (NodeId, NodeId),
        attempts: u8,
        acknowledged: bool,
    ) {
        let Some(site) = self.site(at) else { return };
        if site.router.note_transmissions(now, short_address(neighbour), attempts, acknowledged) {
            self.with_router(now, at, |router, random| router.handle_link_change(now, random));
        }
    }

    /// A node that starts again has forgotten everything.
    pub(super) fn restart_router(&mut self, now: Instant, at: NodeId) {
        self.with_router(now, at, |router, random| router.reset(now, random));
    }

    /// What a router is to know of the link to a neighbour.
    pub(super) fn tell_router(&mut self, at: NodeId, neighbour: ShortAddress, metrics: Metrics) {
        if let Some(site) = self.site(at) {
            site.router.set_link(neighbour, metrics);
        }
    }

    fn site(&mut self, at: NodeId) -> Option<&mut Site> {
        self.paths.as_mut()?.routers.get_mut(at.index())?.as_mut()
    }

    /// Something happens to a router: what it wants to say is sent, its timer set, its applications told.
    fn with_router(&mut self, now: Instant, at: NodeId, happens: impl FnOnce(&mut Router, u32)) {
        if !self.is_up(at) {
            return;
        }
        let Some(site) = self.site(at) else { return };
        let random = site.word();
        happens(&mut site.router, random);
        while let Some(output) = self.site(at).and_then(|site| site.router.poll_output()) {
            self.say(now, at, &output);
        }
        let Some(site) = self.site(at) else { return };
        let known: Vec<u8> = site.router.paths().iter().filter(|p| p.confirmed).map(|p| p.id).collect();
        let changed = known != site.known;
        site.known = known;
        let due = site.router.next_timeout().map(|due| due.max(now));
        if let Some(due) = due.filter(|due| site.armed.is_none_or(|armed| *due < armed)) {
            site.armed = Some(due);
            self.events.push(due, Event::Router(at));
        }
        if let (true, Some(paths)) = (changed, &mut self.paths) {
            paths.news.push_back(at);
        }
    }

    /// A message leaves: to one neighbour, or on every cable and once on the air.
    fn say(&mut self, now: Instant, at: NodeId, output: &Output) {
        let to = match output {
            Output::Dio(_) | Output::Dis { to: None } => NodeId::ALL_RPL_NODES,
            Output::DioTo { to, .. }
            | Output::Dis { to: Some(to) }
            | Output::Dao { to, .. }
            | Output::DaoAck { to, .. } => node_of(*to),
        };
        let root = self.root().unwrap_or(at);
        let octets = control::write(at, to, root, output);
        let payload = Payload::Opaque(Opaque { protocol: Protocol::ICMPV6, octets });
        let Some(site) = self.site(at) else { return };
        if to != NodeId::ALL_RPL_NODES {
            let Some(link) = site.link(to) else { return };
            let handle = self.make_control(at, to, payload);
            return self.transmit(now, link, handle);
        }
        let cables: Vec<LinkId> = site.links.iter().map(|l| l.1).collect();
        for link in cables {
            if !self.links[link.index()].is_wireless() {
                let handle = self.make_control(at, to, payload.clone());
                self.transmit(now, link, handle);
            }
        }
        if self.is_on_air(at) {
            let handle = self.make_control(at, to, payload);
            self.broadcast(now, at, handle);
        }
    }

    /// RFC 6550 section 6: messages stay on the link.
    fn make_control(&mut self, at: NodeId, to: NodeId, payload: Payload) -> PacketHandle {
        let octets = match &payload {
            Payload::Opaque(opaque) => opaque.octets.len(),
            Payload::Tcp(_) | Payload::Udp(_) | Payload::Fragment(_) => 0,
        };
        self.make_packet(at, Ends::new(at, to), u8::MAX, octets, payload)
    }

    /// The link that a packet takes from a node that has a router; `from` is the neighbour that it came from.
    pub(super) fn next_on_path(
        &mut self,
        now: Instant,
        at: NodeId,
        from: Option<NodeId>,
        handle: PacketHandle,
    ) -> Option<LinkId> {
        let &Packet { src, dst, path, .. } = self.packets.peek(handle);
        let paths = self.paths.as_mut()?;
        let root = paths.root;
        let site = paths.routers.get_mut(at.index())?.as_mut()?;
        let (up, down) = (short_address(src), short_address(dst));
        // Never straight back: two nodes that each take the other for the way out would pass a packet to and fro.
        let hop = |site: &Site, end, path, upward| {
            let hop = site.router.next_hop(end, path, upward)?;
            let to = node_of(hop.to);
            Some((site.link(to)?, hop.path_id)).filter(|_| Some(to) != from)
        };
        // A path that is not known here any more: the best takes its place, as long as there is one.
        let mut stale = None;
        let found = if dst == root {
            // It keeps its number: from here on the path leads where it goes.
            hop(site, up, path, true).or_else(|| hop(site, up, 0, true).map(|(link, _)| (link, path)))
        } else if src == root || at == root {
            let found = hop(site, down, path, false);
            stale = from.filter(|_| found.is_none() && path != 0);
            found.or_else(|| hop(site, down, 0, false))
        } else {
            hop(site, down, path, false)
                .or_else(|| hop(site, down, 0, false))
                .or_else(|| hop(site, up, 0, true))
        };
        if let Some(from) = stale.map(short_address) {
            self.with_router(now, at, |router, _| router.handle_stale_route(from, down, path));
        } else if found.is_none() && at != src && at != root {
            self.with_router(now, at, |router, _| router.handle_missing_route(now));
        }
        let (link, path) = found?;
        if let (true, Some(from)) = (dst == root, from) {
            let next = short_address(self.links[link.index()].to());
            self.note_passage(at, up, path, (from, Some(next)));
        }
        self.packets.get_mut(handle).path = path;
        Some(link)
    }

    /// A packet has passed upward, or has come to the root.
    pub(super) fn note_passage(
        &mut self,
        at: NodeId,
        end: ShortAddress,
        path: u8,
        (from, next): (NodeId, Option<ShortAddress>),
    ) {
        if let Some(site) = self.site(at) {
            site.router.handle_passage(end, path, short_address(from), next);
        }
    }

    /// A packet has come to its destination: the root learns where its path leads.
    pub(super) fn note_arrival(&mut self, link: LinkId, handle: PacketHandle) {
        let (from, at) = (self.links[link.index()].from(), self.links[link.index()].to());
        let &Packet { src, path, .. } = self.packets.peek(handle);
        if path != 0 && self.root() == Some(at) {
            self.note_passage(at, short_address(src), path, (from, None));
        }
    }

    /// A node has a router, so its packets do not follow the static routes.
    pub(crate) fn has_router(&self, at: NodeId) -> bool {
        self.paths.as_ref().is_some_and(|p| p.routers.get(at.index()).is_some_and(Option::is_some))
    }
}
