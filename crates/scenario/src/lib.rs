//! Scenario files: a network and its traffic, as TOML.
//!
//! There are three layers. [`FileConfig`] holds the keys and values of a file. [`Scenario`] is the
//! checked form, in which every name is bound and every value is legal. [`Plan`] is a simulation
//! that is ready to run. [`Source`] reads a file, applies overrides and remembers the position of
//! each value; [`Source::points`] expands a sweep.

#![forbid(unsafe_code)]

pub mod advice;
pub mod aodv;
pub mod buffers;
pub mod chain;
pub mod coap;
pub mod deployment;
pub mod dtc;
pub mod emulation;
pub mod ending;
pub mod file;
pub mod identity;
pub mod mobility;
pub mod mptcp;
pub mod node;
pub mod paths;
pub mod policies;
pub mod probe;
pub mod radio;
pub mod random;
pub mod rdca;
pub mod record;
pub mod series;
pub mod set;
pub mod tcp;
pub mod topology;
pub mod traffic;
pub mod wifi;

mod check;
mod log;
mod options;
mod plan;
mod source;
mod sweep;

use std::collections::BTreeMap;

use anabranch_core::time::{Duration, Instant};
use anabranch_model::set::Best;

use anabranch_sim::apps::Interfaces;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::link::course::Course;
use anabranch_sim::network::NetworkConfig;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::sim::Fault;

pub use anabranch_units as units;
pub use anabranch_units::text::{Node, Place, TextError as ScenarioError, Tree};
pub use anabranch_units::{did_you_mean, nearest};
pub use deployment::{Drawn, Undrawable};
pub use file::{FileConfig, NodeKind};
pub use plan::{Plan, Planned, PlannedCoap, PlannedSet, PlannedTraffic, PlannedTransfer};
pub use policies::Policies;
pub use source::{Source, alias};
pub use sweep::Point;

/// A checked scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of the scenario in reports.
    pub name: String,
    /// Seed of all random streams, unless the caller gives another.
    pub seed: u64,
    /// Latest end of the simulation.
    pub stop: Instant,
    /// Options of the whole network.
    pub network: NetworkConfig,
    /// The nodes, indexed by [`NodeId`].
    pub nodes: Vec<NodeSpec>,
    /// The links that exist in every run, one for each direction, indexed by
    /// [`anabranch_sim::packet::LinkId`].
    pub links: Vec<LinkSpec>,
    /// The links to the nodes of drawn groups.
    pub group_links: Vec<GroupLinkSpec>,
    /// The IEEE 802.15.4 or IEEE 802.11 channel, if there is one.
    pub radio: Option<radio::RadioSpec>,
    /// AODV for the nodes on the IEEE 802.11 channel, if they use it.
    pub aodv: Option<anabranch_sim::network::AodvConfig>,
    /// Positions and groups that are drawn for each run.
    pub deployment: Option<deployment::Deployment>,
    /// The moving nodes, in order.
    pub mobility: Vec<mobility::MobileSpec>,
    /// How nodes build paths, if they do.
    pub paths: Option<paths::PathsSpec>,
    /// Static routes that differ from the shortest path.
    pub routes: Vec<RouteSpec>,
    /// Routes of packets that keep to an interface.
    pub ways: Vec<WaySpec>,
    /// Data transfers.
    pub transfers: Vec<TransferSpec>,
    /// Traffic sources.
    pub traffic: Vec<traffic::TrafficSpec>,
    /// Measurements of parts of a run.
    pub probes: Vec<probe::ProbeSpec>,
    /// Failures, recoveries and changes, in the order of the file. Links are indices into
    /// [`Scenario::edges`].
    pub faults: Vec<(Instant, Fault)>,
    /// Random events, drawn for each run.
    pub random_events: Vec<random::RandomEvent>,
    /// Options of emulation in real time.
    pub emulation: emulation::EmulationSection,
    /// Paths between the interfaces of TUN ends.
    pub crossings: Vec<emulation::Crossing>,
    /// Commands of an emulation, in order.
    pub commands: Vec<emulation::CommandSpec>,
    /// Names of the movement files that it was read with.
    read_from: Vec<String>,
    advised: BTreeMap<usize, Best>,
    resolved: FileConfig,
    digest: identity::ScenarioDigest,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeSpec {
    /// Unique name.
    pub name: String,
    /// Role of the node.
    pub kind: NodeKind,
    /// Energy level in the gateway table of SET.
    pub energy: anabranch_core::set::Energy,
    /// First-hop neighbours in the low-power network, for the gateway table of SET.
    pub neighbours: Vec<NodeId>,
    /// Distributed TCP caching, if the node caches.
    pub dtc: Option<anabranch_core::dtc::Config>,
    /// Interfaces, in order.
    pub interfaces: Vec<Interface>,
    /// Pool for the send buffers of the node's connections, if there is one.
    pub buffers: Option<buffers::BuffersOptions>,
    /// TUN devices behind which the kernel runs the node's transports, if it does.
    pub tun: Option<emulation::TunSpec>,
}

/// An interface of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Number of the path that begins here, from 1. It is unique in the scenario.
    pub path: u8,
    /// Where its packets leave the node.
    pub outlet: Outlet,
}

/// What an interface joins its node to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outlet {
    /// The link that begins here.
    Link(LinkId),
    /// The channel of `[radio]` or `[wifi]`.
    Radio,
}

impl Outlet {
    /// The link, if it is not the radio.
    pub fn link(self) -> Option<LinkId> {
        match self {
            Self::Link(link) => Some(link),
            Self::Radio => None,
        }
    }
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSpec {
    /// Node at which the link begins.
    pub from: NodeId,
    /// Node at which the link ends.
    pub to: NodeId,
    /// Configuration of the link.
    pub config: LinkConfig,
    /// Change of rate and delay over time.
    pub course: Course,
}

/// A link between each node of a drawn group and one other node.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupLinkSpec {
    /// Index of the group.
    pub group: usize,
    /// Node at which the links begin; `None` is the node of the group.
    pub from: Option<NodeId>,
    /// Node at which the links end; `None` is the node of the group.
    pub to: Option<NodeId>,
    /// Configuration and course in this direction.
    pub there: (LinkConfig, Course),
    /// Configuration and course in the other direction.
    pub back: (LinkConfig, Course),
}

/// A static route that differs from the shortest path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteSpec {
    /// Node at which the route applies.
    pub at: NodeId,
    /// Destination of the route.
    pub to: NodeId,
    /// Outgoing link: see [`Scenario::edges`].
    pub link: LinkId,
}

/// The link that packets of a path take at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaySpec {
    /// Node at which the route applies.
    pub at: NodeId,
    /// Destination of the packets.
    pub to: NodeId,
    /// Number of the path.
    pub path: u8,
    /// Outgoing link: see [`Scenario::edges`].
    pub link: LinkId,
}

/// Content of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContentSpec {
    /// This number of arbitrary bytes.
    Bytes(u64),
    /// The content of a file, by its name in the scenario.
    File(String),
    /// Unlimited data.
    Endless,
}

/// A data transfer from one node to another.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferSpec {
    /// Index of the `[[transfer]]` table, which may make several transfers.
    pub section: usize,
    /// Name in reports.
    pub name: String,
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// Data to transfer.
    pub content: ContentSpec,
    /// Time at which the transfer begins.
    pub start: Duration,
    /// Time at which the sender closes an unlimited transfer.
    pub stop: Option<Instant>,
    /// On and off times of an unlimited transfer.
    pub repeat: Option<Repeat>,
    /// Interfaces of the sender that the transfer uses, if it has no request.
    pub interfaces: Interfaces,
    /// Port of the node that listens, if the transfer has no request.
    pub port: u16,
    /// Time at which the receiver's application stops reading, if the transfer has no request.
    pub reads_until: Instant,
    /// TCP configuration of the sender.
    pub tcp: anabranch_core::tcp::Config,
    /// TCP configuration of its peer.
    pub receiver: anabranch_core::tcp::Config,
    /// Protocol of the transfer.
    pub scheme: Scheme,
}

/// On and off times of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// Duration of each connection.
    pub on: Duration,
    /// Time from the end of a connection to the start of the next.
    pub off: Duration,
    /// Time from the start of the transfer to the first connection.
    pub offset: Duration,
}

impl TransferSpec {
    /// The node that listens on the port: the receiver, or the server that a CoAP client reads
    /// from.
    pub fn listener(&self) -> NodeId {
        match self.scheme {
            Scheme::Coap(config) if !config.method.is_put() => self.from,
            _ => self.to,
        }
    }

    /// Start of each connection, and the time at which the sender closes it, in a simulation that
    /// ends at `end`. There is at least one.
    pub fn connections(&self, end: Instant) -> Vec<(Instant, Option<Instant>)> {
        let begin = Instant::ZERO + self.start;
        let Some(Repeat { on, off, offset }) = self.repeat else { return vec![(begin, self.stop)] };
        let mut begin = begin + offset;
        let mut all = Vec::new();
        while all.is_empty() || begin < self.stop.unwrap_or(end) {
            let until = begin + on;
            all.push((begin, Some(self.stop.map_or(until, |stop| stop.min(until)))));
            begin = until + off;
        }
        all
    }
}

/// Protocol of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub enum Scheme {
    /// One TCP connection from end to end.
    Tcp,
    /// One Multipath TCP connection from end to end.
    Mptcp(mptcp::MptcpSpec),
    /// A body over CoAP.
    Coap(anabranch_core::coap::Config),
    /// A request to the node, followed by [`SetSpec::plan`].
    Set(SetSpec),
}

impl Scheme {
    /// Whether the transfer goes from end to end, over a port of its own, without a request.
    pub fn is_bulk(&self) -> bool {
        match self {
            Self::Tcp | Self::Mptcp(_) | Self::Coap(_) => true,
            Self::Set(_) => false,
        }
    }
}

/// Options of a transfer that begins with a request.
#[derive(Clone, PartialEq, Debug)]
pub struct SetSpec {
    /// SET sessions, or one of the baselines.
    pub plan: anabranch_core::set::Plan,
    /// Gateways that may be used.
    pub gateways: Gateways,
    /// Gateway that carries the request.
    pub default_gateway: Option<NodeId>,
    /// TCP configuration between gateways and receiver.
    pub wireless: anabranch_core::tcp::Config,
    /// The policy that `set.striping` names.
    pub striping: anabranch_core::set::StripingPolicy,
    /// Other options of SET.
    pub set: set::SetSection,
}

/// Gateways that a transfer may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gateways {
    /// As many as SET selects.
    All,
    /// At most this number.
    AtMost(u32),
    /// These gateways, the primary one first.
    These(Vec<NodeId>),
}

impl Scenario {
    /// The node with this name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(|i| NodeId(i as u32))
    }

    /// All links with their ends: cables first, then links over the air. A run with shadowing or
    /// drawn positions may lack some of the latter and have others. Links to the nodes of drawn
    /// groups are not included: see [`Scenario::cables`].
    pub fn edges(&self) -> impl Iterator<Item = (LinkId, NodeId, NodeId)> {
        let cables = self.links.iter().map(|l| (l.from, l.to));
        let air = self.radio.iter().flat_map(|radio| radio.links.iter().copied());
        cables.chain(air).enumerate().map(|(i, (from, to))| (LinkId(i as u32), from, to))
    }

    /// Whether a link of [`Scenario::edges`] is over the air.
    pub fn is_wireless(&self, link: LinkId) -> bool {
        link.index() >= self.links.len()
    }

    /// Whether a trace determines when packets leave on a link.
    fn follows_rates(&self, link: LinkId) -> bool {
        self.links.get(link.index()).is_some_and(|link| link.course.rate.is_some())
    }

    /// The cables of a run: those that exist in every run, then those to the nodes of its groups. A
    /// group link between two nodes that already have a link is left out.
    pub fn cables(&self, drawn: &Drawn) -> Vec<LinkSpec> {
        let mut cables = self.links.clone();
        for spec in &self.group_links {
            for &member in &drawn.groups[spec.group] {
                let (from, to) = (spec.from.unwrap_or(member), spec.to.unwrap_or(member));
                if from == to || cables.iter().any(|link| (link.from, link.to) == (from, to)) {
                    continue;
                }
                let directed = |from, to, (config, course): &(LinkConfig, Course)| LinkSpec {
                    from,
                    to,
                    config: *config,
                    course: course.clone(),
                };
                cables.push(directed(from, to, &spec.there));
                cables.push(directed(to, from, &spec.back));
            }
        }
        cables
    }

    /// The motion of a node; `None` if it does not move.
    pub fn mobile(&self, node: NodeId) -> Option<&mobility::MobileSpec> {
        self.mobility.binary_search_by_key(&node, |mobile| mobile.node).ok().map(|at| &self.mobility[at])
    }

    /// Whether a node is on the channel.
    pub fn is_on_air(&self, node: NodeId) -> bool {
        let said = self.radio.iter().flat_map(|radio| &radio.places).map(|(node, _)| *node);
        let drawn = self.deployment.iter().flat_map(|deployment| &deployment.sites).map(|(node, _)| *node);
        said.chain(drawn).any(|on_air| on_air == node)
    }

    /// Whether some link has link-layer acknowledgements (`link_ack_timeout`) but no node caches
    /// segments, so that nothing uses them.
    pub fn has_unheard_link_acks(&self) -> bool {
        let of_groups = self.group_links.iter().flat_map(|link| [&link.there.0, &link.back.0]);
        let mut links = self.links.iter().map(|link| &link.config).chain(of_groups);
        links.any(|link| link.link_ack_timeout.is_some()) && self.nodes.iter().all(|node| node.dtc.is_none())
    }

    /// The number for each `gateways = "best"`, by the index of the transfer.
    /// [`Scenario::resolved`] contains the same number.
    pub fn advised(&self) -> &BTreeMap<usize, Best> {
        &self.advised
    }

    /// The scenario file with every default filled in, complete TCP profiles, and the number for
    /// each `gateways = "best"`; without sweep axes and unused profiles.
    pub fn resolved(&self) -> &FileConfig {
        &self.resolved
    }
}

#[cfg(test)]
mod tests;
