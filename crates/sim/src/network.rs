//! The network: nodes, links, the packets between them, and their routes.
//!
//! Scope and limits: one interface per link end, no ARP or neighbour discovery, no ICMP (a packet
//! that cannot be forwarded is counted and dropped), one route per destination and node. Routing
//! learns of a change [`NetworkConfig::convergence`] later, at all nodes at the same time. Until
//! then packets follow the old routes.
//!
//! Code map: `graph` has nodes, links and static routes; `forwarding` moves packets over it;
//! `medium` carries packets over links; `hook` has functions of nodes besides forwarding; `faults`
//! applies failures and recoveries; `outside` is the interface to another network; `watch` informs
//! observers. A new medium or hook gets its own folder and an entry in `medium` or `hook`.

mod datagrams;
mod faults;
mod forwarding;
mod graph;
mod hook;
mod icmp;
mod medium;
mod outside;
mod problem;
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
    /// The packet is fragmented at the link and reassembled at its destination.
    #[default]
    Allowed,
    /// The packet is dropped and counted.
    Forbidden,
}

/// Options of the whole network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkConfig {
    /// Version of the Internet Protocol.
    pub ip: IpVersion,
    /// Whether packets may be fragmented.
    pub fragmentation: Fragmentation,
    /// Metric that static routing minimises.
    pub metric: Metric,
    /// Time from a failure or recovery until static routes take it into account.
    pub convergence: Duration,
    /// Initial hop limit of every packet, at least 1.
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

/// Counters of packets at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeMetrics {
    /// Packets that the node sent as their source.
    pub sent: u64,
    /// Complete segments and datagrams received for the node itself.
    pub received: u64,
    /// Packets forwarded.
    pub forwarded: u64,
    /// Packets fragmented.
    pub fragmented: u64,
    /// Packets dropped because there was no route.
    pub no_route: u64,
    /// Packets dropped because their hop limit was used up.
    pub hop_limit: u64,
    /// Packets dropped because they exceed the next link's MTU.
    pub too_big: u64,
    /// Packets that arrived while the node was down.
    pub down: u64,
    /// Packets for other nodes that were not forwarded because a hook took them over.
    pub held: u64,
    /// Packets for other nodes that the node sent on its own, from a cache or from state.
    pub repeated: u64,
    /// Packets for the node of an unsupported transport, or to a UDP port without a listener.
    pub not_spoken: u64,
    /// Packets dropped after waiting for a route.
    pub waited_in_vain: u64,
}

/// Nodes, links, packets and routes, and the event queue that drives them all. It dereferences to
/// its [`Graph`].
pub struct Network {
    config: NetworkConfig,
    graph: Graph,
    /// Indexed by node.
    relays: Vec<Relay>,
    packets: PacketSlab,
    next_packet: u64,
    media: Media,
    hooks: Hooks,
    /// Datagrams that have arrived, until they are taken.
    datagrams: VecDeque<Datagram>,
    /// Segments that have arrived over the air, until they are taken.
    delivered: VecDeque<Delivery>,
    /// Packets that have left the simulation, until they are taken.
    departed: VecDeque<Packet>,
    /// Nodes whose energy is used up, to be reported to the world.
    exhausted: VecDeque<NodeId>,
    /// Pending events of the network and of all other modules.
    pub events: Agenda,
    observers: Observers,
    /// Whether an observer wants to see connections.
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

    /// Options of the whole network.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Packet counters of a node.
    pub fn node_metrics(&self, node: NodeId) -> &NodeMetrics {
        &self.relays[node.index()].metrics
    }

    /// Reassembly counters of a node.
    pub fn reassembly_metrics(&self, node: NodeId) -> &ReassemblyMetrics {
        self.relays[node.index()].reassembly.metrics()
    }

    /// Number of packets made so far, including fragments; also the number of the next one.
    pub fn packets_made(&self) -> u64 {
        self.next_packet
    }

    /// Number of packets in flight.
    pub fn packets_in_flight(&self) -> usize {
        self.packets.len()
    }

    /// Computes all static routes from the routing state.
    pub fn compute_routes(&mut self) {
        let lengths: Vec<Option<u64>> = self.graph.links.iter().map(|link| self.link_length(link)).collect();
        self.graph.compute_routes(&lengths);
    }

    /// Starts the completed network at the beginning of simulated time.
    pub(crate) fn start(&mut self) {
        self.compute_routes();
        self.start_hooks(Instant::ZERO);
    }

    /// Whether no segment, datagram or notice waits to be taken.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.delivered.is_empty()
            && self.datagrams.is_empty()
            && self.exhausted.is_empty()
            && self.hooks.paths.news.is_empty()
            && self.hooks.aodv.news.is_empty()
    }

    /// Takes a node whose radio has used up its energy; each node is reported once.
    #[inline]
    pub(crate) fn take_exhausted(&mut self) -> Option<NodeId> {
        self.exhausted.pop_front()
    }

    /// Takes a segment that has arrived over the air.
    #[inline]
    pub(crate) fn take_delivered(&mut self) -> Option<Delivery> {
        self.delivered.pop_front()
    }
}
