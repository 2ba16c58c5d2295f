//! Hook for nodes that build paths: a router ([`anabranch_core::paths`]) on each of these nodes,
//! its messages, and the routes of packets with a path number.
//!
//! Messages are ICMPv6 over any link to a neighbour. Traffic between the root and a node follows
//! the node's paths. Traffic between two other nodes goes up until a node knows the way down.

mod facts;

use std::collections::VecDeque;

use anabranch_core::paths::{Config, NodeType, Output, OwnPath, Router, ShortAddress};
use anabranch_core::time::Instant;
use anabranch_wire::ip::Protocol;
use bytes::Bytes;

use super::{Hook, Sites};
use crate::control;
use crate::event::{Event, HookId};
use crate::frames::short_address;
use crate::network::Network;
use crate::network::forwarding::{Heard, Past, Relay, Way};
use crate::network::graph::Graph;
use crate::network::medium::LinkNews;
use crate::packet::{Ends, LinkId, NodeId, Opaque, Packet, PacketHandle, Payload, Whole};
use crate::random::Stream;

/// All routers of a network.
#[derive(Debug, Default)]
pub(in crate::network) struct Paths {
    /// Root of all paths.
    root: Option<NodeId>,
    sites: Sites<Site>,
    /// Nodes whose paths have changed, to be reported to their applications.
    pub(in crate::network) news: VecDeque<NodeId>,
    /// Number of messages that could not be parsed.
    unread: u64,
    /// The message that was parsed last. A broadcast message is the same for each of its receivers,
    /// so it is parsed once.
    read: Option<Read>,
}

/// A parsed message.
#[derive(Debug)]
struct Read {
    ends: (NodeId, NodeId),
    octets: Bytes,
    /// `None` if it could not be parsed.
    message: Option<control::Message>,
}

/// State of a router.
#[derive(Debug)]
struct Site {
    router: Router,
    random: Stream,
    armed: Option<Instant>,
    /// The paths that have been reported to applications.
    known: Vec<u8>,
}

impl Site {
    fn word(&mut self) -> u32 {
        (self.random.bits() >> 32) as u32
    }
}

/// The node with a short address.
fn node_of(address: ShortAddress) -> NodeId {
    NodeId(u32::from(address).wrapping_sub(1))
}

impl Network {
    /// Gives a node a router. The first root is the root of all paths. At most 65,533 nodes have a
    /// short address.
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
        let paths = &mut self.hooks.paths;
        if kind.is_none() || paths.root.is_none() {
            paths.root = Some(node);
        }
        paths.sites.insert(node, Site { router, random, armed: None, known: Vec::new() });
        self.add_hook(node, Paths::ID);
    }

    /// A node's own paths to the root, best first.
    pub fn own_paths(&self, node: NodeId) -> &[OwnPath] {
        self.router(node).map_or(&[], Router::paths)
    }

    /// A node's router, for metrics.
    pub fn router(&self, node: NodeId) -> Option<&Router> {
        self.hooks.paths.sites.get(node).map(|site| &site.router)
    }

    /// The root of the paths, if nodes build paths.
    pub fn root(&self) -> Option<NodeId> {
        self.hooks.paths.root
    }

    /// Takes a node whose paths have changed; it is reported once for each change.
    pub(crate) fn take_path_news(&mut self) -> Option<NodeId> {
        self.hooks.paths.news.pop_front()
    }

    /// Whether a node has a router, so that its packets do not follow the static routes.
    pub(crate) fn has_router(&self, at: NodeId) -> bool {
        self.has_hook(at, Paths::ID)
    }
}

impl Hook for Paths {
    const ID: HookId = HookId(1);

    /// Tells the routers which of their links are cables, and starts them.
    fn start(net: &mut Network, now: Instant) {
        let Network { graph, relays, hooks, .. } = net;
        let nodes: Vec<NodeId> = hooks.paths.sites.nodes().collect();
        for &node in &nodes {
            let Some(site) = hooks.paths.sites.get_mut(node) else { continue };
            for (to, link) in neighbours(graph, relays, node) {
                if !graph.link(link).is_wireless() {
                    site.router.set_reliable(short_address(to));
                }
            }
        }
        for node in nodes {
            Self::with_router(net, now, node, |router, random| router.start(now, random));
        }
    }

    /// A node that starts again has lost its state.
    fn on_node(net: &mut Network, now: Instant, at: NodeId, up: bool) {
        if up {
            Self::with_router(net, now, at, |router, random| router.reset(now, random));
        }
    }

    /// The root learns where the path of a packet leads.
    fn on_arrival(net: &mut Network, _: Instant, link: LinkId, handle: PacketHandle) {
        let (from, at) = (net.graph.link(link).from(), net.graph.link(link).to());
        let &Packet { src, path, .. } = net.packets.peek(handle);
        if path != 0 && net.root() == Some(at) {
            Self::note_passage(net, at, short_address(src), path, (from, None));
        }
    }

    fn on_route(
        net: &mut Network,
        now: Instant,
        at: NodeId,
        past: Past,
        handle: PacketHandle,
    ) -> Option<Way> {
        Some(Self::next_on_path(net, now, at, past.previous(), handle).into())
    }

    fn on_message(net: &mut Network, now: Instant, heard: Heard, message: &Whole) -> bool {
        match message {
            Whole::Opaque(opaque) if opaque.is_rpl() => {
                Self::handle_control(net, now, heard.at, (heard.from, heard.dst), &opaque.octets);
                true
            }
            Whole::Tcp(_) | Whole::Udp(_) | Whole::Opaque(_) => false,
        }
    }

    fn on_link(net: &mut Network, now: Instant, link: LinkId, news: LinkNews) {
        let (at, neighbour) = (net.graph.link(link).from(), net.graph.link(link).to());
        let neighbour = short_address(neighbour);
        match news {
            LinkNews::Transmissions { attempts, acknowledged } => {
                let Some(site) = Self::site(net, at) else { return };
                if site.router.note_transmissions(now, neighbour, attempts, acknowledged) {
                    Self::with_router(net, now, at, |router, random| {
                        router.handle_link_change(now, random);
                    });
                }
            }
            LinkNews::NeighbourLost => {
                Self::with_router(net, now, at, |router, random| {
                    router.handle_neighbour_lost(now, neighbour, random);
                });
            }
            LinkNews::Outcome { .. } => {}
        }
    }

    /// The timer of a router may be due.
    fn handle_event(net: &mut Network, now: Instant, at: u32, _: u32) {
        let at = NodeId(at);
        let Some(site) = Self::site(net, at).filter(|site| site.armed == Some(now)) else { return };
        site.armed = None;
        net.look_at_links(now, at);
        Self::with_router(net, now, at, |router, random| router.handle_timeout(now, random));
    }
}

/// The neighbours with routers, each with the first link to it.
fn neighbours(graph: &Graph, relays: &[Relay], at: NodeId) -> impl Iterator<Item = (NodeId, LinkId)> {
    graph.neighbours(at).filter(|(to, _)| relays[to.index()].hooks.contains(Paths::ID))
}

/// The first link to a neighbour that has a router.
fn link_to(graph: &Graph, relays: &[Relay], at: NodeId, to: NodeId) -> Option<LinkId> {
    let is_router = relays.get(to.index())?.hooks.contains(Paths::ID);
    graph.find_link(at, to).filter(|_| is_router)
}

impl Paths {
    fn site(net: &mut Network, at: NodeId) -> Option<&mut Site> {
        net.hooks.paths.sites.get_mut(at)
    }

    /// Handles a message from a neighbour.
    fn handle_control(
        net: &mut Network,
        now: Instant,
        at: NodeId,
        (from, to): (NodeId, NodeId),
        octets: &Bytes,
    ) {
        let ends = (from, to);
        let known = net.hooks.paths.read.take().filter(|read| read.ends == ends && read.octets == *octets);
        let read = known.unwrap_or_else(|| {
            let message = control::read(from, to, octets);
            Read { ends, octets: octets.clone(), message }
        });
        let from = short_address(from);
        let to_all = to == NodeId::ALL_RPL_NODES;
        match &read.message {
            None => net.hooks.paths.unread += 1,
            Some(message) => Self::with_router(net, now, at, |router, random| match message {
                control::Message::Dis => router.handle_dis(now, from, to_all, random),
                control::Message::Dio(dio) => router.handle_dio(now, from, dio, to_all, random),
                control::Message::Dao(dao) => router.handle_dao(now, from, dao),
                control::Message::DaoAck(ack) => router.handle_dao_ack(ack),
            }),
        }
        net.hooks.paths.read = Some(read);
    }

    /// Passes an event to a router, then sends its messages, sets its timer and informs its
    /// applications.
    fn with_router(net: &mut Network, now: Instant, at: NodeId, happens: impl FnOnce(&mut Router, u32)) {
        if !net.is_up(at) {
            return;
        }
        let Some(site) = Self::site(net, at) else { return };
        let random = site.word();
        happens(&mut site.router, random);
        while let Some(output) = Self::site(net, at).and_then(|site| site.router.poll_output()) {
            Self::say(net, now, at, &output);
        }
        let Some(site) = Self::site(net, at) else { return };
        let confirmed = || site.router.paths().iter().filter(|p| p.confirmed).map(|p| p.id);
        // Compared with the known paths, so that applications hear of real changes only.
        let changed = !confirmed().eq(site.known.iter().copied());
        if changed {
            site.known = confirmed().collect();
        }
        let due = site.router.next_timeout().map(|due| due.max(now));
        if let Some(due) = due.filter(|due| site.armed.is_none_or(|armed| *due < armed)) {
            site.armed = Some(due);
            net.events.push(due, Event::Hook { hook: Self::ID, at: at.0, what: 0 });
        }
        if changed {
            net.hooks.paths.news.push_back(at);
        }
    }

    /// Sends a message: to one neighbour, or over every cable and once over the air.
    fn say(net: &mut Network, now: Instant, at: NodeId, output: &Output) {
        let to = match output {
            Output::Dio(_) | Output::Dis { to: None } => NodeId::ALL_RPL_NODES,
            Output::DioTo { to, .. }
            | Output::Dis { to: Some(to) }
            | Output::Dao { to, .. }
            | Output::DaoAck { to, .. } => node_of(*to),
        };
        let root = net.root().unwrap_or(at);
        let octets = control::write(at, to, root, output);
        let payload = Payload::Opaque(Opaque { protocol: Protocol::ICMPV6, octets });
        if to != NodeId::ALL_RPL_NODES {
            let Some(link) = link_to(&net.graph, &net.relays, at, to) else { return };
            let handle = Self::make_control(net, at, to, payload);
            return net.transmit(now, link, Past::NONE, handle);
        }
        let links = neighbours(&net.graph, &net.relays, at).map(|(_, link)| link);
        let cables: Vec<LinkId> = links.filter(|link| !net.graph.link(*link).is_wireless()).collect();
        for link in cables {
            let handle = Self::make_control(net, at, to, payload.clone());
            net.transmit(now, link, Past::NONE, handle);
        }
        if net.can_broadcast(at) {
            let handle = Self::make_control(net, at, to, payload);
            net.broadcast(now, at, handle);
        }
    }

    /// The hop limit keeps the message on the link (RFC 6550 section 6).
    fn make_control(net: &mut Network, at: NodeId, to: NodeId, payload: Payload) -> PacketHandle {
        let octets = match &payload {
            Payload::Opaque(opaque) => opaque.octets.len(),
            Payload::Tcp(_) | Payload::Udp(_) | Payload::Fragment(_) => 0,
        };
        net.make_packet(at, Ends::new(at, to), u8::MAX, octets, payload)
    }

    /// The link by which a packet leaves a node that has a router. `from` is the neighbour from
    /// which it came.
    fn next_on_path(
        net: &mut Network,
        now: Instant,
        at: NodeId,
        from: Option<NodeId>,
        handle: PacketHandle,
    ) -> Option<LinkId> {
        let &Packet { src, dst, path, .. } = net.packets.peek(handle);
        let Network { graph, relays, hooks, .. } = net;
        let root = hooks.paths.root?;
        let site = hooks.paths.sites.get(at)?;
        let (up, down) = (short_address(src), short_address(dst));
        // Never straight back: two nodes that each consider the other the next hop would exchange
        // the packet until its hop limit is used up.
        let hop = |site: &Site, end, path, upward| {
            let hop = site.router.next_hop(end, path, upward)?;
            let to = node_of(hop.to);
            Some((link_to(graph, relays, at, to)?, hop.path_id)).filter(|_| Some(to) != from)
        };
        // Path number that is no longer known here: the best path replaces it, as long as there is
        // one.
        let mut stale = None;
        let found = if dst == root {
            // The packet keeps its number, so nodes further on follow the same path.
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
            Self::with_router(net, now, at, |router, _| router.handle_stale_route(from, down, path));
        } else if found.is_none() && at != src && at != root {
            Self::with_router(net, now, at, |router, _| router.handle_missing_route(now));
        }
        let (link, path) = found?;
        if let (true, Some(from)) = (dst == root, from) {
            let next = short_address(net.graph.link(link).to());
            Self::note_passage(net, at, up, path, (from, Some(next)));
        }
        net.packets.get_mut(handle).path = path;
        Some(link)
    }

    /// Notes a packet that has passed upward or has reached the root.
    fn note_passage(
        net: &mut Network,
        at: NodeId,
        end: ShortAddress,
        path: u8,
        (from, next): (NodeId, Option<ShortAddress>),
    ) {
        if let Some(site) = Self::site(net, at) {
            site.router.handle_passage(end, path, short_address(from), next);
        }
    }
}
