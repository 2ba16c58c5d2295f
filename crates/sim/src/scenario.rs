//! Scenario files: a network and what goes on in it, as TOML.
//!
//! Three layers: [`FileConfig`] is what was said, [`Scenario`] is what it means (every name bound,
//! every value legal), [`Plan`] is a simulation about to begin. Reading goes through [`Source`],
//! which adds overrides and knows where everything was written; [`Source::points`] spreads a sweep.

pub mod advice;
pub mod aodv;
pub mod buffers;
pub mod chain;
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

use crate::apps::Interfaces;
use crate::link::LinkConfig;
use crate::link::course::Course;
use crate::network::NetworkConfig;
use crate::packet::{LinkId, NodeId};
use crate::sim::Fault;

pub use anabranch_units as units;
pub use anabranch_units::text::{Node, Place, TextError as ScenarioError, Tree};
pub use anabranch_units::{did_you_mean, nearest};
pub use deployment::{Drawn, Undrawable};
pub use file::{FileConfig, NodeKind};
pub use plan::{Plan, Planned, PlannedSet, PlannedTraffic, PlannedTransfer};
pub use policies::Policies;
pub use source::{Source, alias};
pub use sweep::Point;

/// A scenario that can run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// What it is called in reports.
    pub name: String,
    /// Root of all random streams, unless told otherwise.
    pub seed: u64,
    /// When the simulation ends at the latest.
    pub stop: Instant,
    /// What holds for the network as a whole.
    pub network: NetworkConfig,
    /// The nodes; their index is their [`NodeId`].
    pub nodes: Vec<NodeSpec>,
    /// The links that every run has, one for each direction; their index is their
    /// [`crate::packet::LinkId`].
    pub links: Vec<LinkSpec>,
    /// The links to the nodes of drawn groups.
    pub group_links: Vec<GroupLinkSpec>,
    /// The radio channel, if there is one.
    pub radio: Option<radio::RadioSpec>,
    /// How nodes on the IEEE 802.11 channel look for routes, if they do.
    pub aodv: Option<crate::network::AodvConfig>,
    /// What is drawn anew for each run.
    pub deployment: Option<deployment::Deployment>,
    /// The nodes that move, in order.
    pub mobility: Vec<mobility::MobileSpec>,
    /// Who builds paths, if somebody does.
    pub paths: Option<paths::PathsSpec>,
    /// Routes that differ from the shortest.
    pub routes: Vec<RouteSpec>,
    /// The ways of packets that keep to an interface.
    pub ways: Vec<WaySpec>,
    /// What is carried.
    pub transfers: Vec<TransferSpec>,
    /// Packets that sources make.
    pub traffic: Vec<traffic::TrafficSpec>,
    /// What is measured in parts of a run.
    pub probes: Vec<probe::ProbeSpec>,
    /// What breaks, heals or changes, in the order of the file; links as [`Scenario::edges`] has
    /// them.
    pub faults: Vec<(Instant, Fault)>,
    /// What is drawn of such for each run.
    pub random_events: Vec<random::RandomEvent>,
    /// What holds in real time.
    pub emulation: emulation::EmulationSection,
    /// The files that it was read with: of movements.
    read_from: Vec<String>,
    advised: BTreeMap<usize, Best>,
    resolved: FileConfig,
    digest: identity::ScenarioDigest,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Its energy level, for the gateway table of SET.
    pub energy: anabranch_core::set::Energy,
    /// Its first-hop neighbours in the low-power network, for the gateway table of SET.
    pub neighbours: Vec<NodeId>,
    /// How it caches TCP segments for others, if it does.
    pub dtc: Option<anabranch_core::dtc::Config>,
    /// Its interfaces, in order.
    pub interfaces: Vec<Interface>,
    /// The pool for the send buffers of its connections, if there is one.
    pub buffers: Option<buffers::BuffersOptions>,
    /// The TUN device behind which the kernel stands for it, if it does.
    pub tun: Option<emulation::TunSpec>,
}

/// An interface of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Number of the path that begins here, from 1 on, in the whole scenario.
    pub path: u8,
    /// The link that begins here.
    pub link: LinkId,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSpec {
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// How it is.
    pub config: LinkConfig,
    /// What it follows in time.
    pub course: Course,
}

/// A link between each node of a drawn group and one other node.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupLinkSpec {
    /// Index of the group.
    pub group: usize,
    /// Where the links start; `None` is the node of the group.
    pub from: Option<NodeId>,
    /// Where they end; `None` is the node of the group.
    pub to: Option<NodeId>,
    /// How they are in this direction, and what they follow in time.
    pub there: (LinkConfig, Course),
    /// How they are in the other direction, and what they follow in time.
    pub back: (LinkConfig, Course),
}

/// A route that differs from the shortest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteSpec {
    /// The node that decides.
    pub at: NodeId,
    /// The destination that this is about.
    pub to: NodeId,
    /// The link that is taken: see [`Scenario::edges`].
    pub link: LinkId,
}

/// The link that packets of a path take at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaySpec {
    /// The node that decides.
    pub at: NodeId,
    /// The destination.
    pub to: NodeId,
    /// The path.
    pub path: u8,
    /// The link.
    pub link: LinkId,
}

/// What a transfer carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContentSpec {
    /// That many octets, whatever they are.
    Bytes(u64),
    /// The content of a file, by the name that the scenario gives it.
    File(String),
    /// Octets without end.
    Endless,
}

/// Octets that are carried from one node to another.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferSpec {
    /// Index of its `[[transfer]]`, which may make several.
    pub section: usize,
    /// Its name in reports.
    pub name: String,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// What.
    pub content: ContentSpec,
    /// When it begins.
    pub start: Duration,
    /// When the sender closes one without end.
    pub stop: Option<Instant>,
    /// How one without end comes and goes.
    pub repeat: Option<Repeat>,
    /// The sender's interfaces that it uses, if its connection has no request.
    pub interfaces: Interfaces,
    /// Port of the receiver, if its connection has no request.
    pub port: u16,
    /// When the receiver's application reads nothing more, if its connection has no request.
    pub reads_until: Instant,
    /// The TCP of the sender.
    pub tcp: anabranch_core::tcp::Config,
    /// The TCP of its peer.
    pub receiver: anabranch_core::tcp::Config,
    /// How.
    pub scheme: Scheme,
}

/// How a transfer comes and goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// How long each connection is there.
    pub on: Duration,
    /// From the end of one to the beginning of the next.
    pub off: Duration,
    /// From the start of the transfer to the first.
    pub offset: Duration,
}

impl TransferSpec {
    /// When its connections begin, and when the sender closes them, in a simulation that ends then.
    /// There is at least one.
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

/// How octets are carried.
#[derive(Clone, PartialEq, Debug)]
pub enum Scheme {
    /// One TCP connection from end to end.
    Tcp,
    /// One Multipath TCP connection from end to end.
    Mptcp(mptcp::MptcpSpec),
    /// A request to the node, and then what [`SetSpec::plan`] says.
    Set(SetSpec),
}

impl Scheme {
    /// The octets go over one connection from end to end, without a request.
    pub fn is_bulk(&self) -> bool {
        match self {
            Self::Tcp | Self::Mptcp(_) => true,
            Self::Set(_) => false,
        }
    }
}

/// What a scenario says of a transfer that begins with a request.
#[derive(Clone, PartialEq, Debug)]
pub struct SetSpec {
    /// SET sessions, or one of the baselines.
    pub plan: anabranch_core::set::Plan,
    /// Which gateways may be used.
    pub gateways: Gateways,
    /// The gateway through which the request goes.
    pub default_gateway: Option<NodeId>,
    /// The TCP between gateways and receiver.
    pub wireless: anabranch_core::tcp::Config,
    /// What `set.striping` names.
    pub striping: anabranch_core::set::StripingPolicy,
    /// Further choices.
    pub set: set::SetSection,
}

/// Which gateways may be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gateways {
    /// As many as SET finds good.
    All,
    /// At most that many.
    AtMost(u32),
    /// These, the primary first.
    These(Vec<NodeId>),
}

impl Scenario {
    /// The node of that name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(|i| NodeId(i as u32))
    }

    /// All links, with where they start and end: those of cables, then those over the air. In a run
    /// with shadowing, or with places that are drawn, some of the latter may be missing, and others
    /// be there. Links to the nodes of drawn groups are left out: see [`Scenario::cables`].
    pub fn edges(&self) -> impl Iterator<Item = (LinkId, NodeId, NodeId)> {
        let cables = self.links.iter().map(|l| (l.from, l.to));
        let air = self.radio.iter().flat_map(|radio| radio.links.iter().copied());
        cables.chain(air).enumerate().map(|(i, (from, to))| (LinkId(i as u32), from, to))
    }

    /// A link of [`Scenario::edges`] is one over the air.
    pub fn is_wireless(&self, link: LinkId) -> bool {
        link.index() >= self.links.len()
    }

    /// A trace says when packets may leave on a link.
    fn follows_rates(&self, link: LinkId) -> bool {
        self.links.get(link.index()).is_some_and(|link| link.course.rate.is_some())
    }

    /// The cables of a run: those that every run has, then those to the nodes of its groups. Where
    /// there is a link already, there is no second one.
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

    /// How a node moves, if it does.
    pub fn mobile(&self, node: NodeId) -> Option<&mobility::MobileSpec> {
        self.mobility.binary_search_by_key(&node, |mobile| mobile.node).ok().map(|at| &self.mobility[at])
    }

    /// A node is on the air.
    pub fn is_on_air(&self, node: NodeId) -> bool {
        self.radio.as_ref().is_some_and(|radio| radio.places.iter().any(|(on_air, _)| *on_air == node))
    }

    /// Some link acknowledges every packet (`link_ack_timeout`), and no node caches segments:
    /// nothing hears of it.
    pub fn has_unheard_link_acks(&self) -> bool {
        let of_groups = self.group_links.iter().flat_map(|link| [&link.there.0, &link.back.0]);
        let mut links = self.links.iter().map(|link| &link.config).chain(of_groups);
        links.any(|link| link.link_ack_timeout.is_some()) && self.nodes.iter().all(|node| node.dtc.is_none())
    }

    /// What `gateways = "best"` stands for, by the index of the transfer that says so.
    /// [`Scenario::resolved`] has the number.
    pub fn advised(&self) -> &BTreeMap<usize, Best> {
        &self.advised
    }

    /// What was said, with every default filled in, every TCP profile complete and the number that
    /// `gateways = "best"` stands for; without sweep axes and profiles that nothing uses.
    pub fn resolved(&self) -> &FileConfig {
        &self.resolved
    }
}

#[cfg(test)]
mod tests;
