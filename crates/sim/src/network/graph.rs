//! The graph: nodes and their names, links, and what static routing knows of both. It holds no
//! packets and schedules nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_core::time::Instant;

use crate::link::{Link, LinkConfig};
use crate::packet::{LinkId, MediumId, NodeId};
use crate::random::Stream;
use crate::routing::{self, Edge, Metric, Routes};

/// Whether a node passes packets on that are not for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// It does, as routers, gateways and relaying sensor nodes do.
    On,
    /// It does not; no path leads through it.
    Off,
}

/// The state of a node that every hop reads. Names are kept apart, so that many nodes fit into the
/// cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) forwarding: Forwarding,
    pub(super) up: bool,
}

/// A change of which routing does not know yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
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

/// An interface of a node: packets of path number `path` for `to` leave by `link`.
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
    /// The links that leave each node, by where they lead and by their ids.
    leaving: Vec<Vec<(NodeId, LinkId)>>,
    metric: Metric,
    routes: Routes,
    pins: Vec<Pin>,
    /// Of each node, as far as any has one.
    interfaces: Vec<Vec<Interface>>,
    /// What routing believes to be up.
    known_links: Vec<bool>,
    known_nodes: Vec<bool>,
    /// What routing will learn, and when.
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

    /// Adds one direction of a cable; `stream` makes its random stream for a purpose.
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: LinkConfig,
        stream: impl Fn(&str) -> Stream,
    ) -> LinkId {
        self.add(Link::new(from, to, config, stream))
    }

    /// The name of a link, which its random streams bear.
    pub(crate) fn link_name(&self, link: LinkId) -> String {
        let this = self.link(link);
        let twins = self.links_between(this.from(), this.to()).filter(|other| *other < link).count();
        format!("link {}>{} {twins}", self.node_name(this.from()), self.node_name(this.to()))
    }

    /// Adds one direction of a link that its medium works.
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

    /// Makes `at` send what is for `to` over `link` whenever that is up.
    pub fn pin_route(&mut self, at: NodeId, to: NodeId, link: LinkId) {
        self.pins.push(Pin { at, to, link });
    }

    /// Makes `at` send packets for `to` that bear the path number `path` by `link`, whether the
    /// link is up or not. While it is down they are dropped there: no other way is looked for. Path
    /// 0 is the shortest way. Of two links for one path the first holds.
    pub fn pin_path(&mut self, at: NodeId, to: NodeId, path: u8, link: LinkId) {
        if self.interfaces.len() <= at.index() {
            self.interfaces.resize(at.index() + 1, Vec::new());
        }
        self.interfaces[at.index()].push(Interface { to, path, link });
    }

    /// Number of nodes; their ids count from 0.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.names[node.index()]
    }

    /// The names of all nodes, by their ids.
    pub(super) fn node_names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// The node of that name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|n| n == name).map(|i| NodeId(i as u32))
    }

    /// A node is not dead.
    #[inline]
    pub fn is_up(&self, node: NodeId) -> bool {
        self.nodes[node.index()].up
    }

    /// All links, by their ids.
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

    /// The ids of the links that are not cables.
    pub(super) fn wireless_links(&self) -> Vec<LinkId> {
        let numbered = (0..).map(LinkId).zip(&self.links);
        numbered.filter(|(_, link)| link.is_wireless()).map(|(id, _)| id).collect()
    }

    /// The links from one node to another, by their ids.
    pub fn links_between(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = LinkId> {
        let leaving = &self.leaving[from.index()];
        let first = leaving.partition_point(|(end, _)| *end < to);
        leaving[first..].iter().take_while(move |(end, _)| *end == to).map(|(_, link)| *link)
    }

    /// The first link from one node to another.
    pub fn find_link(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        self.links_between(from, to).next()
    }

    /// The neighbours that links lead to from a node, each with the first link to it.
    pub(super) fn neighbours(&self, at: NodeId) -> impl Iterator<Item = (NodeId, LinkId)> {
        self.leaving[at.index()].chunk_by(|a, b| a.0 == b.0).map(|links| links[0])
    }

    /// The links that a packet takes from one node to another now; `None` if it would not get
    /// there.
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

    /// Path numbers mean interfaces, which were set by hand.
    pub(crate) fn has_interfaces(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// The link by which a packet for `to` leaves `at`; `path` is the number of its path.
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
        let mut here = self.interfaces.get(at.index())?.iter().filter(|i| i.to == to).peekable();
        here.peek()?;
        let path = path();
        here.find(|i| i.path == path).map(|i| i.link)
    }

    /// Notes what routing will learn at `due`; times do not decrease from call to call.
    pub(super) fn note_change(&mut self, due: Instant, change: Change) {
        self.changes.push_back((due, change));
    }

    /// Routing learns of the changes that are due; routes follow them when they are computed again.
    pub(super) fn learn_changes(&mut self, now: Instant) {
        while let Some((_, change)) = self.changes.pop_front_if(|(due, _)| *due <= now) {
            match change {
                Change::Link(link, up) => self.known_links[link.index()] = up,
                Change::Node(node, up) => self.known_nodes[node.index()] = up,
            }
        }
    }

    /// Computes all routes from what routing knows. `lengths` has the length of each link by
    /// [`Metric::Hops`], if it differs from that of a cable.
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
        for pin in &self.pins {
            if usable(pin.link, &self.links[pin.link.index()]) {
                routes.set(pin.at, pin.to, pin.link);
            }
        }
        self.routes = routes;
    }
}
