//! The network: nodes, links, the packets between them, and the ways that these take.
//!
//! Scope and limits: one interface per link end, no ARP or neighbour discovery, no ICMP (a packet
//! that cannot go on is counted and gone), one route per destination and node. Routing learns of a
//! change [`NetworkConfig::convergence`] later, everywhere at once; until then packets run into the
//! gap.
//!
//! Code map: `graph` is nodes, links and static routes; `forwarding` moves packets over it;
//! `medium` is what carries them over links, `hook` what nodes do with them beside forwarding;
//! `faults` is what breaks and heals, `outside` where another world begins, `watch` tells
//! observers. A new medium or hook is a folder of its own and its lines in `medium` or `hook`.

mod datagrams;
mod faults;
mod forwarding;
mod graph;
mod hook;
mod medium;
mod outside;
mod watch;

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};

use anabranch_core::time::{Duration, Instant};

use crate::event::Agenda;
use crate::fragment::ReassemblyMetrics;
use crate::packet::{IpVersion, NodeId, Packet, PacketSlab};
use crate::routing::Metric;

pub(crate) use datagrams::Datagram;
pub(crate) use faults::LastWords;
pub use forwarding::Delivery;
use forwarding::Relay;
pub use graph::{Forwarding, Graph};
use hook::Hooks;
pub(crate) use hook::RouteNews;
pub use hook::*;
use medium::Media;
pub use medium::*;
pub use watch::ObserverId;
use watch::Observers;

/// What happens to a packet that exceeds the MTU of the next link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Fragmentation {
    /// It is cut there and reassembled at the destination.
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
    /// Packets for itself of a transport that it does not speak, or to a port where nobody listens
    /// for datagrams.
    pub not_spoken: u64,
    /// Packets dropped that had waited for a route.
    pub waited_in_vain: u64,
}

/// Nodes, links, packets, routes, and the queue of events that drives them all. It is read as its
/// [`Graph`].
pub struct Network {
    config: NetworkConfig,
    graph: Graph,
    /// By node.
    relays: Vec<Relay>,
    packets: PacketSlab,
    next_packet: u64,
    media: Media,
    hooks: Hooks,
    /// Datagrams that have arrived and wait to be taken.
    datagrams: VecDeque<Datagram>,
    /// Segments that have come over the air and wait to be taken.
    delivered: VecDeque<Delivery>,
    /// Packets that have left the simulation and wait to be taken.
    departed: VecDeque<Packet>,
    /// Nodes whose energy is used up, for the world.
    exhausted: VecDeque<NodeId>,
    /// What happens next, in the network and elsewhere.
    pub events: Agenda,
    observers: Observers,
    /// One of them wants to see connections.
    connections_watched: bool,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("config", &self.config)
            .field("links", &self.graph.links)
            .finish_non_exhaustive()
    }
}

impl Deref for Network {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl DerefMut for Network {
    fn deref_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }
}

impl Network {
    /// An empty network.
    pub fn new(config: NetworkConfig) -> Self {
        Self {
            config,
            graph: Graph::new(config.metric),
            relays: Vec::new(),
            packets: PacketSlab::default(),
            next_packet: 0,
            media: Media::default(),
            hooks: Hooks::default(),
            datagrams: VecDeque::new(),
            delivered: VecDeque::new(),
            departed: VecDeque::new(),
            exhausted: VecDeque::new(),
            events: Agenda::default(),
            observers: Observers::default(),
            connections_watched: false,
        }
    }

    /// Adds a node.
    pub fn add_node(&mut self, name: &str, forwarding: Forwarding) -> NodeId {
        self.relays.push(Relay::default());
        self.graph.add_node(name, forwarding)
    }

    /// What holds for all of it.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// What a node has done with packets.
    pub fn node_metrics(&self, node: NodeId) -> &NodeMetrics {
        &self.relays[node.index()].metrics
    }

    /// What a node's reassembly has done.
    pub fn reassembly_metrics(&self, node: NodeId) -> &ReassemblyMetrics {
        self.relays[node.index()].reassembly.metrics()
    }

    /// Packets made so far, fragments included: the number of the next one.
    pub fn packets_made(&self) -> u64 {
        self.next_packet
    }

    /// Packets under way.
    pub fn packets_in_flight(&self) -> usize {
        self.packets.len()
    }

    /// Computes all static routes from what routing knows.
    pub fn compute_routes(&mut self) {
        let lengths: Vec<Option<u64>> = self.graph.links.iter().map(|link| self.link_length(link)).collect();
        self.graph.compute_routes(&lengths);
    }

    /// The network is complete, and time begins.
    pub(crate) fn start(&mut self) {
        self.compute_routes();
        self.start_hooks(Instant::ZERO);
    }

    /// Nothing waits to be taken: no segment, no datagram, no news.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.delivered.is_empty()
            && self.datagrams.is_empty()
            && self.exhausted.is_empty()
            && self.hooks.paths.news.is_empty()
            && self.hooks.aodv.news.is_empty()
    }

    /// A node whose radio has used up its energy, once for each.
    #[inline]
    pub(crate) fn take_exhausted(&mut self) -> Option<NodeId> {
        self.exhausted.pop_front()
    }

    /// A segment that has come over the air.
    #[inline]
    pub(crate) fn take_delivered(&mut self) -> Option<Delivery> {
        self.delivered.pop_front()
    }
}
