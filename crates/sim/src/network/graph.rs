//! The graph: nodes with their names, links, and the state of static routing. It holds no packets
//! and schedules no events.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_core::time::Instant;

use crate::link::{Link, LinkConfig};
use crate::packet::{LinkId, MediumId, NodeId};
use crate::random::Stream;
use crate::routing::{self, Edge, Metric, Routes};

/// Whether a node forwards packets for other nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// The node forwards, as routers, gateways and relaying sensor nodes do.
    On,
    /// The node does not forward; no route leads through it.
    Off,
}

/// State of a node that every hop reads. Names are stored elsewhere, so that many nodes fit into
/// the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) forwarding: Forwarding,
    pub(super) up: bool,
}

/// A change that routing does not know yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Link(LinkId, bool),
    Node(NodeId, bool),
}

/// A static route that was set explicitly.
#[derive(Clone, Copy, Debug)]
struct Pin {
    at: NodeId,
    to: NodeId,
    link: LinkId,
}

/// A route for an interface: packets with path number `path` to `to` leave by `link`.
#[derive(Clone, Copy, Debug)]
struct Interface {
    to: NodeId,
    path: u8,
    link: LinkId,
}

/// Nodes, links and static routes.
#[derive(Debug)]
pub struct Graph {
    pub(super) nodes: Vec<Node>,
    names: Vec<String>,
    pub(super) links: Vec<Link>,
    /// The links that begin at each node, sorted by far end and link id.
    leaving: Vec<Vec<(NodeId, LinkId)>>,
    metric: Metric,
    routes: Routes,
    pins: Vec<Pin>,
    /// Indexed by node; shorter if the last nodes have none.
    interfaces: Vec<Vec<Interface>>,
    /// Links that routing considers up.
    known_links: Vec<bool>,
    known_nodes: Vec<bool>,
    /// Changes that routing will learn, and when.
    changes: VecDeque<(Instant, Change)>,
}

impl Graph {
    pub(super) fn new(metric: Metric) -> Self {
        Self {
            nodes: Vec::new(),
            names: Vec::new(),
            links: Vec::new(),
            leaving: Vec::new(),
            metric,
            routes: Routes::default(),
            pins: Vec::new(),
            interfaces: Vec::new(),
            known_links: Vec::new(),
            known_nodes: Vec::new(),
            changes: VecDeque::new(),
        }
    }

    pub(super) fn add_node(&mut self, name: &str, forwarding: Forwarding) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { forwarding, up: true });
        self.names.push(name.to_owned());
        self.leaving.push(Vec::new());
        self.known_nodes.push(true);
        id
    }

    /// Adds one direction of a cable. `stream` makes its random stream for a purpose.
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: LinkConfig,
        stream: impl Fn(&str) -> Stream,
    ) -> LinkId {
        self.add(Link::new(from, to, config, stream))
    }

    /// The name of a link, which also names its random streams.
    pub(crate) fn link_name(&self, link: LinkId) -> String {
        let this = self.link(link);
        // Several cables may join the same two nodes; the count of earlier ones makes the name
        // unique and independent of links elsewhere.
        let twins = self.links_between(this.from(), this.to()).filter(|other| *other < link).count();
        format!("link {}>{} {twins}", self.node_name(this.from()), self.node_name(this.to()))
    }

    /// Adds one direction of a link that a medium with stations operates.
    pub(super) fn add_link_over_air(
        &mut self,
        (from, to): (NodeId, NodeId),
        medium: MediumId,
        config: &Arc<LinkConfig>,
    ) -> LinkId {
        self.add(Link::over_air(from, to, medium, config))
    }

    fn add(&mut self, link: Link) -> LinkId {
        let (from, to) = (link.from(), link.to());
        let id = LinkId(self.links.len() as u32);
        self.links.push(link);
        let leaving = &mut self.leaving[from.index()];
        leaving.insert(leaving.partition_point(|other| *other < (to, id)), (to, id));
        self.known_links.push(true);
        id
    }

    /// Makes `at` send packets for `to` over `link` while the link is up.
    pub fn pin_route(&mut self, at: NodeId, to: NodeId, link: LinkId) {
        self.pins.push(Pin { at, to, link });
    }

    /// Makes `at` send packets for `to` with path number `path` over `link`, whether the link is up
    /// or not. While the link is down, these packets are dropped; there is no alternative route.
    /// Path 0 stands for the shortest route. If two links are set for one path, the first applies.
    pub fn pin_path(&mut self, at: NodeId, to: NodeId, path: u8, link: LinkId) {
        if self.interfaces.len() <= at.index() {
            self.interfaces.resize(at.index() + 1, Vec::new());
        }
        self.interfaces[at.index()].push(Interface { to, path, link });
    }

    /// Number of nodes. Their ids count from 0.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Name of a node.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.names[node.index()]
    }

    /// Names of all nodes, indexed by id.
    pub(super) fn node_names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// The node with this name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|n| n == name).map(|i| NodeId(i as u32))
    }

    /// Whether a node is up.
    #[inline]
    pub fn is_up(&self, node: NodeId) -> bool {
        self.nodes[node.index()].up
    }

    /// All links, indexed by id.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// A link.
    #[inline]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, link: LinkId) -> &mut Link {
        &mut self.links[link.index()]
    }

    /// Ids of the links that are not cables.
    pub(super) fn wireless_links(&self) -> Vec<LinkId> {
        let numbered = (0..).map(LinkId).zip(&self.links);
        numbered.filter(|(_, link)| link.is_wireless()).map(|(id, _)| id).collect()
    }

    /// The links from one node to another, sorted by id.
    pub fn links_between(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = LinkId> {
        let leaving = &self.leaving[from.index()];
        let first = leaving.partition_point(|(end, _)| *end < to);
        leaving[first..].iter().take_while(move |(end, _)| *end == to).map(|(_, link)| *link)
    }

    /// The first link from one node to another.
    pub fn find_link(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        self.links_between(from, to).next()
    }

    /// The neighbours to which links of a node lead, each with the first link to it.
    pub(super) fn neighbours(&self, at: NodeId) -> impl Iterator<Item = (NodeId, LinkId)> {
        self.leaving[at.index()].chunk_by(|a, b| a.0 == b.0).map(|links| links[0])
    }

    /// The links that a packet currently takes from one node to another; `None` if it would not
    /// arrive.
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let mut path = Vec::new();
        let mut at = from;
        while at != to {
            let link = self.routes.next(at, to)?;
            at = self.link(link).to();
            path.push(link);
            // A path longer than the number of nodes has a loop. Pinned routes can contradict each
            // other.
            if path.len() > self.nodes.len() {
                return None;
            }
        }
        Some(path)
    }

    /// Whether path numbers stand for interfaces, which were set explicitly.
    pub(crate) fn has_interfaces(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// The link by which a packet for `to` leaves `at`. `path` gives the number of its path.
    #[inline]
    pub(super) fn next(&self, at: NodeId, to: NodeId, path: impl FnOnce() -> u8) -> Option<LinkId> {
        if self.has_interfaces()
            && let Some(link) = self.interface(at, to, path)
        {
            return Some(link);
        }
        self.routes.next(at, to)
    }

    #[cold]
    fn interface(&self, at: NodeId, to: NodeId, path: impl FnOnce() -> u8) -> Option<LinkId> {
        // `path` reads the packet, so it is called only if an interface is set for this
        // destination.
        let mut here = self.interfaces.get(at.index())?.iter().filter(|i| i.to == to).peekable();
        here.peek()?;
        let path = path();
        here.find(|i| i.path == path).map(|i| i.link)
    }

    /// Records a change that routing learns at `due`. Times must not decrease from call to call.
    pub(super) fn note_change(&mut self, due: Instant, change: Change) {
        self.changes.push_back((due, change));
    }

    /// Makes routing learn the changes that are due. Routes take them into account when they are
    /// computed again.
    pub(super) fn learn_changes(&mut self, now: Instant) {
        while let Some((_, change)) = self.changes.pop_front_if(|(due, _)| *due <= now) {
            match change {
                Change::Link(link, up) => self.known_links[link.index()] = up,
                Change::Node(node, up) => self.known_nodes[node.index()] = up,
            }
        }
    }

    /// Computes all routes from the routing state. `lengths` has the length of each link for
    /// [`Metric::Hops`] if it differs from that of a cable.
    pub(super) fn compute_routes(&mut self, lengths: &[Option<u64>]) {
        let usable = |link: LinkId, l: &Link| {
            self.known_links[link.index()]
                && self.known_nodes[l.from().index()]
                && self.known_nodes[l.to().index()]
        };
        let edge = |(i, l): (usize, &Link)| {
            let link = LinkId(i as u32);
            let weight = match self.metric {
                Metric::Hops => lengths[i].unwrap_or(routing::HOP),
                Metric::Delay => l.config().delay.as_nanos(),
            };
            usable(link, l).then_some(Edge { link, from: l.from(), to: l.to(), weight })
        };
        let edges: Vec<Edge> = self.links.iter().enumerate().filter_map(edge).collect();
        let forwards = |n: NodeId| self.nodes[n.index()].forwarding == Forwarding::On;
        let mut routes = Routes::compute(self.nodes.len(), &edges, forwards);
        // Pins last: a pinned route replaces the shortest one as long as its link is usable.
        for pin in &self.pins {
            if usable(pin.link, &self.links[pin.link.index()]) {
                routes.set(pin.at, pin.to, pin.link);
            }
        }
        self.routes = routes;
    }
}
