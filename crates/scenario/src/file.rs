//! The keys and values of a scenario file, as written. [`super::Scenario`] is the checked form.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Tree;
use super::alias::Alias;
use super::aodv::AodvSection;
use super::buffers::BuffersProfile;
use super::chain::Via;
use super::coap::CoapProfile;
use super::deployment::{DeploymentSection, GroupsSection, NodesSection};
use anabranch_core::set::Energy;
use anabranch_units::text;
use toml::de::DeTable;

use super::dtc::DtcProfile;
use super::emulation::{EmulationSection, HostKind};
use super::mobility::MobilityName;
use super::mptcp::MptcpSection;
pub use super::node::NodeKind;
use super::options::{OrOff, WordOrTable, or_off};
use super::paths::PathsSection;
use super::probe::ProbeSection;
use super::radio::RadioSection;
use super::random::RandomEventSection;
use super::rdca::RdcaProfile;
use super::set::SetSection;
use super::tcp::TcpProfile;
use super::topology::TopologySection;
use super::traffic::{FromName, TrafficSection};
use super::units::{Probability, ProbabilityVisitor, QueueSize, Rate, Size, Span};
use super::wifi::WifiSection;
use anabranch_sim::link::discipline::DisciplineConfig;
use anabranch_sim::network::Fragmentation;
use anabranch_sim::routing::Metric;
use anabranch_sim::world::Failure;

/// A scenario: a network and the traffic and events in it.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(title = "Anabranch scenario"))]
pub struct FileConfig {
    /// Name of the scenario in reports.
    #[serde(default)]
    pub name: String,
    /// Description of the scenario for its readers. It has no effect on results.
    #[serde(default)]
    pub description: String,
    /// Seed of all random streams, unless the command line gives another.
    #[serde(default = "one")]
    pub seed: u64,
    /// Simulated time at which a run ends if it has not ended before.
    #[serde(default = "an_hour")]
    pub stop: Span,
    /// Options of the whole network.
    #[serde(default)]
    pub network: NetworkSection,
    /// TCP profiles by name. The profile "default" applies where no profile is named.
    // Boxed, because a node of a BTreeMap has room for eleven entries, also when it holds one.
    #[serde(default)]
    pub tcp: BTreeMap<String, Box<TcpProfile>>,
    /// Profiles of caching nodes (distributed TCP caching) by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dtc: BTreeMap<String, DtcProfile>,
    /// RDCA profiles by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rdca: BTreeMap<String, RdcaProfile>,
    /// CoAP profiles by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coap: BTreeMap<String, CoapProfile>,
    /// Pools of send buffers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub buffers: BTreeMap<String, BuffersProfile>,
    /// The IEEE 802.15.4 channel shared by all nodes that have a `position`. A scenario has either
    /// this section or `wifi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<RadioSection>,
    /// Multihop paths that the nodes build themselves; they replace static routes. Needs `radio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathsSection>,
    /// The IEEE 802.11 channel shared by all nodes that have a `position`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiSection>,
    /// On-demand routing (AODV) for the nodes on the IEEE 802.11 channel. Needs `wifi` and IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aodv: Option<AodvSection>,
    /// Nodes, one a table.
    #[serde(default)]
    pub node: Vec<NodeSection>,
    /// Groups of similar nodes. They follow the nodes of `[[node]]`, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodesSection>,
    /// Options for positions that are drawn at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSection>,
    /// Named groups of nodes that are chosen after all positions are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group: GroupsSection,
    /// Links between nodes.
    #[serde(default)]
    pub link: Vec<LinkSection>,
    /// Nodes and links from a GraphML file. The resolved scenario lists them as `[[node]]` and
    /// `[[link]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologySection>,
    /// Static routes that differ from the shortest path.
    #[serde(default)]
    pub route: Vec<RouteSection>,
    /// Data transfers from one node to another.
    #[serde(default)]
    pub transfer: Vec<TransferSection>,
    /// Traffic sources, which generate packets during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficSection>,
    /// Measurements of parts of a run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probe: BTreeMap<String, ProbeSection>,
    /// Failures, recoveries and changes of links at given times.
    #[serde(default)]
    pub event: Vec<EventSection>,
    /// Failures and changes of links at random times.
    #[serde(default, rename = "random-event", skip_serializing_if = "Vec::is_empty")]
    pub random_event: Vec<RandomEventSection>,
    /// Options of emulation in real time. Only with a node that has `host = "tun"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<EmulationSection>,
    /// Short names for settings, for `--set` and for axes of a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alias: BTreeMap<String, Alias>,
    /// Axes of a sweep: dotted paths as in `--set`, each with a list of values. Every combination
    /// of values is one scenario.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<serde_json::Value>>,
}

impl Default for FileConfig {
    /// The configuration that an empty file describes.
    fn default() -> Self {
        text::read_tree(&Tree::new(0..0, DeTable::new())).expect("every key has a default")
    }
}

fn one() -> u64 {
    1
}

fn an_hour() -> Span {
    Span(anabranch_core::time::Duration::from_secs(3600))
}

/// Options of the whole network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSection {
    /// Version of the Internet Protocol: 4 (headers of 20 bytes) or 6 (headers of 40 bytes).
    pub ip: u8,
    /// What happens to a packet that exceeds the MTU of its next link.
    pub fragmentation: Fragmentation,
    /// Metric that static routing minimises.
    pub metric: Metric,
    /// Time from a failure or recovery until static routes take it into account.
    pub convergence: Span,
    /// Initial hop limit of every packet, 1 to 255.
    pub hop_limit: u8,
}

impl Default for NetworkSection {
    fn default() -> Self {
        let network = anabranch_sim::network::NetworkConfig::default();
        Self {
            ip: 6,
            fragmentation: Fragmentation::Allowed,
            metric: Metric::Hops,
            convergence: Span(network.convergence),
            hop_limit: network.hop_limit,
        }
    }
}

/// A node.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeSection {
    /// Unique name, by which other sections refer to the node.
    pub name: String,
    /// Role of the node.
    #[serde(default)]
    pub kind: NodeKind,
    /// Coordinates in metres, east and north of the origin. A node with a position is on the radio
    /// or Wi-Fi channel, in addition to its cables. A node without a position (and without
    /// `mobility`) is not.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::node::some_place")]
    pub position: Option<[f64; 2]>,
    /// How the node moves. A moving node is on the channel even without a `position`, and needs
    /// `[aodv]` or `[paths]`. Motion does not affect its cables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobility: Option<MobilityName>,
    /// macCslPeriod of this node: the interval between two samples of the channel, between which
    /// the node sleeps. It replaces the period in `csl` of `[radio]` and is at most its
    /// `max_period`. "0 s" stands for a node that never sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csl_period: Option<Span>,
    /// Energy level in the gateway table of SET.
    #[serde(default)]
    pub energy: Energy,
    /// Names of the node's first-hop neighbours in the low-power network, for the gateway table of
    /// SET. If empty, these are the adjacent nodes of kind "node".
    #[serde(default)]
    pub neighbours: Vec<String>,
    /// Name of the profile for distributed TCP caching: the node caches TCP segments that it
    /// forwards. Without a profile, or with "off", it does not cache. Not for kind "host", which
    /// does not forward.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    pub dtc: Option<String>,
    /// Interfaces of the node, in order: names of links with an end at this node, and "radio" for
    /// the radio. Transfers select interfaces by these names. The packets of a connection keep to
    /// the path that begins at its interface, in both directions. A TUN end has a device with the
    /// interface's name, and an address, for each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// Name of the pool for the send buffers of the node's connections. Without a pool, each
    /// connection has the buffer of its TCP profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<String>,
    /// Whether the transport protocols of the node are simulated, or run in a Linux kernel behind a
    /// TUN device.
    #[serde(default, skip_serializing_if = "HostKind::is_default")]
    pub host: HostKind,
    /// Network namespace of the TUN device; that of the program if none is given. A namespace that
    /// does not exist is created, and removed at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Name of the TUN device; "anabranch" followed by the index of the node if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Name of a second TUN device of a node that is on a radio and has links: packets of nodes
    /// that are on the radio only use this device, others use `device`. Without it, all packets
    /// use `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio_device: Option<String>,
    /// Addresses of hosts behind the TUN end, as in `["2001:db8::/64"]`: the network carries the
    /// packets that the namespace forwards for these hosts. Other TUN ends get routes to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
}

impl NodeSection {
    /// A node with this name and kind, and the defaults for all other keys.
    pub fn new(name: impl Into<String>, kind: NodeKind) -> Self {
        Self {
            name: name.into(),
            kind,
            position: None,
            mobility: None,
            csl_period: None,
            energy: Energy::default(),
            neighbours: Vec::new(),
            dtc: None,
            interfaces: Vec::new(),
            buffers: None,
            host: HostKind::default(),
            netns: None,
            device: None,
            radio_device: None,
            prefixes: Vec::new(),
        }
    }
}

/// A link, or several similar links. `back` describes how the direction from `to` to `from`
/// differs. Two nodes have at most one link between them.
///
/// With `via` the table describes a chain: a link between each two neighbours on the way from
/// `from` through the nodes of `via` to `to`. An end with `{i}`, the `name` of `[[nodes]]`, makes
/// one chain for each of these nodes. `{i}` is then the same number everywhere in the chain, and
/// "r{i}-{n}" is the last node of a row. Without `via`, one end may stand for several nodes, each
/// of which gets such a link: the `name` of `[[nodes]]`, a pattern such as "n*", or a group, whose
/// nodes are chosen anew for each run.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkSection {
    /// Unique name, for paths of `--set` and sweeps. In a chain, `{i}` stands for the number of the
    /// link, from 1. Where an end has `{i}`, it stands for the number of that node, and `{j}` for
    /// the number of the link in its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Node or nodes at one end.
    pub from: String,
    /// Nodes between the ends of a chain, in order: names of nodes, or of `[[nodes]]`, all of whose
    /// nodes are in the chain. If `from` or `to` has `{i}`, each chain takes the node or the row
    /// with its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// Node or nodes at the other end.
    pub to: String,
    /// Different values for single links of a table that describes several: keys of `[[link]]` by
    /// the name of the link or by a pattern. A path of `--set` such as `link.hop3.loss` sets a
    /// value here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub only: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    /// `false` removes the links of this table.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: bool,
    /// Transmission rate of each direction. With a `trace` of rates or of transmission times it is
    /// optional and affects only routing and closed forms, which otherwise use the mean rate of the
    /// trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay of each direction, from the end of the transmission to the arrival.
    /// Optional with a `trace` of delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Files that give rate or delay over time. The trace applies to both directions, unless `back`
    /// has its own `trace`, `rate` or `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceSection>>,
    /// Capacity of the queue in front of each transmitter, without the packet in transmission.
    /// Packets are dropped when the queue is full.
    #[serde(default = "hundred_packets")]
    pub queue: QueueSize,
    /// Queueing discipline of each transmitter.
    #[serde(default, skip_serializing_if = "is_drop_tail")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "drop-tail")))]
    pub discipline: WordOrTable<DisciplineConfig>,
    /// Queue length above which packets of ECN-capable transports are marked; the packet counts as
    /// part of the queue. For the discipline "drop-tail".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<QueueSize>,
    /// Largest IP packet in bytes, at least 68.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u32,
    /// Loss of packets: a probability for independent losses, or a Gilbert-Elliott table for
    /// bursts.
    #[serde(default)]
    pub loss: Loss,
    /// Factors on the loss probability by kind of packet, at least 0.
    #[serde(default)]
    pub loss_factors: FactorsSection,
    /// Time for which a caching node (`dtc`) at the link's beginning waits for a link-layer
    /// acknowledgement, counted from the arrival of the packet. The key declares that the link
    /// layer acknowledges every packet but does not retransmit. TCP is not told, so the key has no
    /// effect without a caching node. An acknowledgement takes no transmission time of its own.
    /// "off" is the default.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    #[cfg_attr(feature = "schema", schemars(with = "OrOff<Span>"))]
    pub link_ack_timeout: Option<Span>,
    /// Retransmission by the link layer (ARQ). Excludes `link_ack_timeout`, which declares a link
    /// layer that does not retransmit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    #[cfg_attr(feature = "schema", schemars(with = "OrOff<ArqSection>"))]
    pub arq: Option<ArqSection>,
    /// Random delay that is added to `delay` for each packet.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    #[cfg_attr(feature = "schema", schemars(with = "OrOff<JitterSection>"))]
    pub jitter: Option<Box<JitterSection>>,
    /// Probability that a packet is delayed by up to `lateness`, so that later packets may overtake
    /// it.
    #[serde(default, skip_serializing_if = "is_never")]
    pub reordering: Probability,
    /// Largest additional delay of a late packet, evenly distributed from 0. Only with
    /// `reordering`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Span", extend("default" = "50 ms")))]
    pub lateness: Option<Span>,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "is_never")]
    pub duplication: Probability,
    /// Least time from the start of one transmission to the start of the next. It models a radio
    /// that waits until its packet has been forwarded out of interference range, some hops further
    /// on.
    #[serde(default = "at_once", skip_serializing_if = "is_at_once")]
    pub spacing: Span,
    /// Values that differ in the direction from `to` to `from`.
    // Boxed as `trace` and `jitter` are: most links have none, and sweeps keep thousands of
    // scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Box<BackSection>>,
}

impl LinkSection {
    /// Names of the trace files of both directions.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let back = self.back.as_ref().and_then(|back| back.trace.as_ref());
        let traces = self.trace.as_deref().into_iter().chain(back);
        let files = traces.flat_map(|trace| [&trace.mahimahi, &trace.rate, &trace.delay]);
        files.flatten().map(String::as_str)
    }
}

fn hundred_packets() -> QueueSize {
    QueueSize(anabranch_sim::link::QueueLimit::Packets(100))
}

fn is_drop_tail(discipline: &WordOrTable<DisciplineConfig>) -> bool {
    *discipline == WordOrTable::default()
}

fn yes() -> bool {
    true
}

fn is_yes(enabled: &bool) -> bool {
    *enabled
}

fn is_at_once(span: &Span) -> bool {
    *span == at_once()
}

fn is_never(p: &Probability) -> bool {
    p.0 == 0.0
}

pub(super) fn fifty_ms() -> Span {
    Span(anabranch_core::time::Duration::from_millis(50))
}

fn ethernet_mtu() -> u32 {
    1500
}

/// Values that differ in the direction from `to` to `from`. A key that is not given is as in the
/// other direction.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BackSection {
    /// Transmission rate. If it is given, this direction follows only a `trace` in `back`, not the
    /// link's.
    pub rate: Option<Rate>,
    /// Propagation delay. If it is given, this direction follows only a `trace` in `back`, not the
    /// link's.
    pub delay: Option<Span>,
    /// Files that give rate or delay over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSection>,
    /// Capacity of the queue in front of the transmitter.
    pub queue: Option<QueueSize>,
    /// Queueing discipline of the transmitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discipline: Option<WordOrTable<DisciplineConfig>>,
    /// Queue length above which packets of ECN-capable transports are marked.
    pub ecn_threshold: Option<QueueSize>,
    /// Least time from the start of one transmission to the start of the next.
    pub spacing: Option<Span>,
    /// Retransmission by the link layer, or "off" for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arq: Option<OrOff<ArqSection>>,
    /// Random delay that is added to `delay`, or "off" for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<OrOff<JitterSection>>,
    /// Largest IP packet in bytes.
    pub mtu: Option<u32>,
    /// Loss of packets: a probability, or a Gilbert-Elliott table.
    pub loss: Option<Loss>,
    /// Factors on the loss probability by kind of packet.
    pub loss_factors: Option<FactorsSection>,
}

/// A link layer that retransmits lost packets (ARQ, RFC 3366): stop-and-wait. The transmitter keeps
/// a packet until it has arrived or is given up. Packets therefore arrive in order, and later ones
/// wait behind a retransmission. The model assumes perfect feedback: the transmitter knows whether
/// each packet has arrived, and the acknowledgement takes no capacity of the other direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ArqSection {
    /// Largest number of retransmissions of a packet (its persistence), 0 to 10,000.
    pub limit: u32,
    /// Time from the end of a lost transmission to the start of the next attempt.
    pub delay: Span,
}

/// Distribution of the random delay that is added to `delay` for each packet. Exactly one of
/// `uniform`, `normal`, `exponential` and `pareto` is given.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct JitterSection {
    /// Uniform distribution from 0 to this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uniform: Option<Span>,
    /// Normal distribution, truncated to values of at least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normal: Option<NormalSection>,
    /// Exponential distribution with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential: Option<Span>,
    /// Pareto distribution: many short times and a few long ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pareto: Option<ParetoSection>,
    /// `true` lets packets overtake others with a longer delay. Otherwise packets arrive in order:
    /// a packet arrives no earlier than the one before it, so its delay may exceed the drawn value.
    #[serde(skip_serializing_if = "is_no")]
    pub overtaking: bool,
}

/// A normal distribution of times, truncated to values of at least 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NormalSection {
    /// Mean before truncation. The mean of the truncated distribution is longer.
    pub mean: Span,
    /// Standard deviation before truncation.
    pub deviation: Span,
}

/// A truncated Pareto distribution of times. Before truncation, a time exceeds x with probability
/// (`least`/x)^`shape`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParetoSection {
    /// Shortest time, more than 0.
    pub least: Span,
    /// Shape, more than 0 and at most 100. A smaller shape gives more long times. For a shape of at
    /// most 1 the mean is finite only because of `most`.
    pub shape: f64,
    /// Longest time; the distribution is truncated there.
    #[serde(default = "ten_seconds")]
    pub most: Span,
}

fn ten_seconds() -> Span {
    Span(anabranch_core::time::Duration::from_secs(10))
}

/// Files that give the rate or the delay of a link over time, relative to the scenario. `delay` can
/// be combined with either `mahimahi` or `rate`. Each direction follows the trace on its own:
/// neither uses capacity that the other has left.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TraceSection {
    /// Trace in mahimahi format: each line is a time in whole milliseconds at which a packet of
    /// 1500 bytes may leave. The trace repeats after its last line. Smaller packets share an
    /// opportunity, which `mm-link` counts as 1504 bytes; each of them takes 4 bytes more than its
    /// length and may leave in parts. Unused opportunities are lost. Packets wait in the queue
    /// until they leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mahimahi: Option<String>,
    /// CSV file with rows `time,rate`, the first at time 0: `0.5,2000000` (seconds and bit/s) or
    /// `500 ms,2 Mbit/s`. Each rate holds until the next row, also for a packet in transmission;
    /// the last rate holds to the end. At a rate of 0 nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// CSV file with rows `time,delay`, the first at time 0: `0.5,0.02` (seconds) or
    /// `500 ms,20 ms`. A packet takes the delay that holds when it leaves the transmitter. Packets
    /// do not overtake each other when the delay falls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Whether `rate` and `delay` repeat: the trace starts again at the time of its last row, whose
    /// value then has no effect.
    #[serde(skip_serializing_if = "is_no")]
    pub repeat: bool,
}

fn is_no(value: &bool) -> bool {
    !*value
}

/// Factors on the loss probability by kind of packet.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FactorsSection {
    /// For packets with data, and for packets that open or close a connection.
    pub data: f64,
    /// For pure acknowledgements.
    pub ack: f64,
    /// For the link layer's own acknowledgements.
    pub link_ack: f64,
}

impl Default for FactorsSection {
    fn default() -> Self {
        Self { data: 1.0, ack: 1.0, link_ack: 1.0 }
    }
}

/// Loss model of a link.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Loss {
    /// Independent losses with this probability.
    Bernoulli(Probability),
    /// Losses in bursts.
    GilbertElliott(GilbertElliottSection),
}

impl Default for Loss {
    fn default() -> Self {
        Self::Bernoulli(Probability(0.0))
    }
}

/// A channel with a good and a bad state (Gilbert-Elliott). With `good_to_bad` and `bad_to_good`
/// the state may change before every packet; the channel begins in the good state and does not
/// change while the link is silent. With `mean_good` and `mean_bad` the state changes over time,
/// with or without packets, and each state lasts for an exponentially distributed time. A packet
/// then meets the state at the start of its transmission, and the channel begins in its stationary
/// distribution.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GilbertElliottSection {
    /// Probability per packet of a change from good to bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_to_bad: Option<Probability>,
    /// Probability per packet of a change from bad to good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_to_good: Option<Probability>,
    /// Mean duration of the good state, at least 100 µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_good: Option<Span>,
    /// Mean duration of the bad state, at least 100 µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bad: Option<Span>,
    /// Loss probability in the good state.
    #[serde(default)]
    pub loss_good: Probability,
    /// Loss probability in the bad state.
    #[serde(default = "certain")]
    pub loss_bad: Probability,
}

fn certain() -> Probability {
    Probability(1.0)
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable;
        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability such as 0.02 or \"2 %\", or a Gilbert-Elliott table")
            }
            fn visit_f64<E: serde::de::Error>(self, p: f64) -> Result<Loss, E> {
                ProbabilityVisitor.visit_f64(p).map(Loss::Bernoulli)
            }
            fn visit_i64<E: serde::de::Error>(self, p: i64) -> Result<Loss, E> {
                ProbabilityVisitor.visit_i64(p).map(Loss::Bernoulli)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Loss, E> {
                ProbabilityVisitor.visit_str(text).map(Loss::Bernoulli)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                GilbertElliottSection::deserialize(MapAccessDeserializer::new(map)).map(Loss::GilbertElliott)
            }
        }
        deserializer.deserialize_any(NumberOrTable)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let probability = generator.subschema_for::<Probability>();
        let table = generator.subschema_for::<GilbertElliottSection>();
        json_schema!({ "anyOf": [probability, table] })
    }
}

/// A static route that differs from the shortest path.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouteSection {
    /// Node at which the route applies.
    pub at: String,
    /// Destination of the route.
    pub to: String,
    /// Next hop: a neighbour of `at`.
    pub via: String,
    /// Interface, by the name of its link. The route then applies only to packets that keep to this
    /// interface; without this key it applies to all other packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

/// Protocol of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TransferKind {
    /// One TCP connection from end to end, without a request.
    Tcp,
    /// One Multipath TCP connection from end to end, without a request. It has a subflow on each of
    /// the sender's interfaces, or on each path that `[paths]` has the nodes build, or one subflow
    /// over the static route.
    Mptcp,
    /// CoAP: a block-wise transfer over UDP datagrams. The profile's `method` says whether the
    /// sender puts the data, or the receiver gets them.
    Coap,
    /// A request, as in SET, and then one TCP connection from end to end. Gateways only route and
    /// fragment.
    EndToEnd,
    /// A request, as in SET, and then one TCP connection to a gateway and another from the gateway
    /// to the receiver.
    Split,
    /// SET: several such split connections at the same time, through several gateways.
    Set,
}

impl TransferKind {
    /// Whether the transfer begins with a request, as in SET.
    pub fn has_request(self) -> bool {
        match self {
            Self::Tcp | Self::Mptcp | Self::Coap => false,
            Self::EndToEnd | Self::Split | Self::Set => true,
        }
    }
}

/// The number of gateways that the latency model finds best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// The number of gateways with the lowest latency by the closed form.
    Best,
}

/// The gateways of a transfer: a number or names.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected a number of gateways, a list of their names, or \"best\"")]
pub enum GatewayChoice {
    /// At most this number of gateways; SET selects them.
    Count(u32),
    /// These gateways, the primary one first: names, patterns such as "gw*", or the `name` of
    /// `[[nodes]]`.
    Names(Vec<String>),
    /// The number of gateways that the latency model finds best for this file and network. SET
    /// only.
    Best(Best),
}

/// A data transfer from one node to another.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransferSection {
    /// Name in reports; "transfer 1", "transfer 2" and so on if none is given. With `count`, `{i}`
    /// stands for the number of each transfer, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of identical transfers: one if it is not given, 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Protocol. If `--set` or an axis of `[sweep]` chooses it, keys in the file that the chosen
    /// kind does not use are ignored.
    pub kind: TransferKind,
    /// Sender. `from` or `to` may be the `name` of `[[nodes]]`, such as "n{i}": this makes one
    /// transfer for each of these nodes, and `{i}` in `name` stands for the number of the node.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Amount of data. Either `bytes` or `file` is given; a transfer of kind "tcp" or "mptcp" may
    /// have neither and is then unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// File whose content is transferred, relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Time at which the transfer begins.
    #[serde(default = "at_once")]
    pub start: Span,
    /// Time at which the sender closes an unlimited transfer (without `bytes` and `file`); the end
    /// of the simulation if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Switches an unlimited transfer (without `bytes` and `file`) on and off, with a new
    /// connection each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<RepeatSection>,
    /// Names of the sender's interfaces to use. Kind "mptcp" opens a subflow on each, at most 8; on
    /// all interfaces of the sender if none is given. Kind "tcp" uses one; with `count`, the
    /// transfers take the interfaces in turn. Not for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<String>>,
    /// Port of the receiver; 25000, 25001 and so on in the order of the file if none is given. With
    /// `count`, the port of the first transfer. Only for kinds "tcp", "mptcp" and "coap", where it
    /// is the port of the server; Wireshark expects CoAP on port 5683.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// TCP profile of the receiver; that of `tcp` if none is given. Only for kinds "tcp" and
    /// "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_receiver: Option<String>,
    /// Time from `start` after which the receiver's application stops reading. Only for kinds "tcp"
    /// and "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_for: Option<Span>,
    /// TCP profile of the transfer; for kind "mptcp", of each subflow.
    #[serde(default = "default_profile")]
    pub tcp: String,
    /// TCP profile between gateway and receiver; that of `tcp` if none is given. Only for kinds
    /// "split" and "set".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_wireless: Option<String>,
    /// Gateways: their largest number, their names, or "best" for the number that the latency model
    /// finds best; all gateways if it is not given. Kind "split" takes 1, or names of which it uses
    /// the nearest. Only for kinds "split" and "set".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateways: Option<GatewayChoice>,
    /// Gateway over which an end with a link to it sends the request and plain TCP. Without this
    /// key they follow the static routes. Not for kinds "tcp", "mptcp" and "coap", which follow
    /// routes or paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_gateway: Option<String>,
    /// Options of SET. Not for kinds "tcp", "mptcp" and "coap".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<SetSection>,
    /// Options of Multipath TCP. Only for kind "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MptcpSection>,
    /// CoAP profile. Only for kind "coap".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coap: Option<String>,
}

impl TransferSection {
    /// A transfer of this kind between these nodes, with the defaults for all other keys.
    pub fn new(kind: TransferKind, from: impl Into<String>, to: impl Into<String>) -> Self {
        Self {
            name: None,
            count: None,
            kind,
            from: from.into(),
            to: to.into(),
            bytes: None,
            file: None,
            start: at_once(),
            stop: None,
            repeat: None,
            interfaces: None,
            port: None,
            tcp_receiver: None,
            reads_for: None,
            tcp: default_profile(),
            tcp_wireless: None,
            gateways: None,
            default_gateway: None,
            set: None,
            mptcp: None,
            coap: None,
        }
    }
}

/// On and off times of an unlimited transfer. No new connection begins after `stop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepeatSection {
    /// Duration of each connection.
    pub on: Span,
    /// Time from the end of a connection to the start of the next.
    pub off: Span,
    /// Time from `start` to the first connection; at most `on` and `off` together.
    #[serde(default = "at_once")]
    pub offset: Span,
    /// With `count`: additional offset of each transfer relative to the one before it; at most
    /// `on` and `off` together.
    #[serde(default = "at_once")]
    pub stagger: Span,
}

fn at_once() -> Span {
    Span(anabranch_core::time::Duration::ZERO)
}

fn default_profile() -> String {
    "default".to_owned()
}

/// A change of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EventAction {
    /// A node fails. Needs `node`; `how` is "silent" if it is not given.
    FailNode,
    /// A node starts again. Needs `node`.
    RecoverNode,
    /// Both directions of a link go down. Needs `from` and `to`.
    LinkDown,
    /// Both directions of a link come up. Needs `from` and `to`.
    LinkUp,
    /// The direction from `from` to `to` of a link gets another rate. Needs `rate`. The new rate
    /// applies to packets whose transmission has not begun.
    SetRate,
    /// The direction from `from` to `to` of a cable gets another delay. Needs `delay`. Packets that
    /// have left the transmitter keep their delay, and later packets do not overtake them: after a
    /// decrease, the next packets arrive no earlier than the last one with the longer delay. Only
    /// `reordering` and `overtaking` of the link let packets overtake.
    SetDelay,
    /// The direction from `from` to `to` of a cable gets another loss model. Needs `loss`. It
    /// applies to packets whose transmission has not begun.
    SetLoss,
    /// A jammer sends without a pause for `lasts`. `nodes`, by default all nodes on the air, find
    /// their channel busy and receive no frame; a frame that has begun is lost. Frames of `nodes`
    /// to other nodes are not disturbed. A node that is jammed twice is jammed until the later end.
    Jam,
}

/// A change of the network at a given time. Keys that the action does not need are refused.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventSection {
    /// Time of the event, before `stop`.
    pub at: Span,
    /// Kind of change.
    pub action: EventAction,
    /// Node that fails or starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How the node fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<Failure>,
    /// One end of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The other end of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The new rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The new delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// The new loss model: a probability, or a Gilbert-Elliott table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Nodes near the jammer: the name of a node or of `[[nodes]]`, a pattern such as "n*", or a
    /// list of these; all nodes on the air if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<FromName>,
    /// How long the jammer sends, more than 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
}
