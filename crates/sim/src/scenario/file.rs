//! What a scenario file says, word for word. What it means is [`super::Scenario`].

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
use super::traffic::TrafficSection;
use super::units::{Probability, ProbabilityVisitor, QueueSize, Rate, Size, Span};
use super::wifi::WifiSection;
use crate::link::discipline::DisciplineConfig;
use crate::network::Fragmentation;
use crate::routing::Metric;
use crate::world::Failure;

/// A network and what goes on in it.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(title = "Anabranch scenario"))]
pub struct FileConfig {
    /// What it is called in reports.
    #[serde(default)]
    pub name: String,
    /// What it is about, for a reader.
    #[serde(default)]
    pub description: String,
    /// Root of all random streams, unless the command line says another.
    #[serde(default = "one")]
    pub seed: u64,
    /// The simulation ends at this time if it has not ended before.
    #[serde(default = "an_hour")]
    pub stop: Span,
    /// What holds for the network as a whole.
    #[serde(default)]
    pub network: NetworkSection,
    /// TCP profiles by name; "default" is for those who name none.
    // In boxes, since a map has room for eleven.
    #[serde(default)]
    pub tcp: BTreeMap<String, Box<TcpProfile>>,
    /// Profiles of caching nodes by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dtc: BTreeMap<String, DtcProfile>,
    /// Profiles of RDCA by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rdca: BTreeMap<String, RdcaProfile>,
    /// Pools of send buffers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub buffers: BTreeMap<String, BuffersProfile>,
    /// The IEEE 802.15.4 channel of the nodes that have a `position`. A scenario has this or
    /// `wifi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<RadioSection>,
    /// Packets follow paths that the nodes build, and not static routes. Only with `radio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathsSection>,
    /// The IEEE 802.11 channel of the nodes that have a `position`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiSection>,
    /// Nodes on the IEEE 802.11 channel look for routes when they need them. Only with `wifi` and
    /// IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aodv: Option<AodvSection>,
    /// The nodes.
    #[serde(default)]
    pub node: Vec<NodeSection>,
    /// Groups of nodes that are alike. They come after the nodes of `[[node]]`, in the order of the
    /// file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodesSection>,
    /// What holds for places that are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSection>,
    /// Nodes that are chosen once all places are known, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group: GroupsSection,
    /// The links between them.
    #[serde(default)]
    pub link: Vec<LinkSection>,
    /// Nodes and links out of a GraphML file. A scenario that is resolved has them as `[[node]]`
    /// and `[[link]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologySection>,
    /// Routes that differ from the shortest.
    #[serde(default)]
    pub route: Vec<RouteSection>,
    /// What is carried.
    #[serde(default)]
    pub transfer: Vec<TransferSection>,
    /// Packets that sources make as time goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficSection>,
    /// What is measured in parts of a run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probe: BTreeMap<String, ProbeSection>,
    /// What breaks, heals or changes.
    #[serde(default)]
    pub event: Vec<EventSection>,
    /// What changes at random.
    #[serde(default, rename = "random-event", skip_serializing_if = "Vec::is_empty")]
    pub random_event: Vec<RandomEventSection>,
    /// What holds in real time; only with a node that is `host = "tun"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<EmulationSection>,
    /// Names for settings, for `--set` and for axes of a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alias: BTreeMap<String, Alias>,
    /// Axes of a sweep: dotted paths as in `--set`, each with its values. Every combination is one
    /// scenario.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<serde_json::Value>>,
}

impl Default for FileConfig {
    /// What an empty file says.
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

/// What holds for the network as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSection {
    /// The Internet Protocol spoken: 4 (headers of 20 octets) or 6 (40).
    pub ip: u8,
    /// Whether a packet that exceeds the next link's MTU is cut there, or dropped.
    pub fragmentation: Fragmentation,
    /// What routing minimises.
    pub metric: Metric,
    /// From a failure or recovery until routes follow it.
    pub convergence: Span,
    /// Hop limit of every packet, 1 to 255.
    pub hop_limit: u8,
}

impl Default for NetworkSection {
    fn default() -> Self {
        let network = crate::network::NetworkConfig::default();
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
    /// Its name, by which all else calls it.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub kind: NodeKind,
    /// Where it is, in metres: east and north of the origin. A node with a position is on the air,
    /// beside what cables it has; the others are not.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::node::some_place")]
    pub position: Option<[f64; 2]>,
    /// How it moves. A node that moves is on the air, also without a `position`, and needs `[aodv]`
    /// or `[paths]`; its cables stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobility: Option<MobilityName>,
    /// macCslPeriod of this node, in place of that in `csl` of `[radio]`, up to its `max_period`:
    /// how often the node samples the channel, and sleeps in between. "0 s" for a node that never
    /// sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csl_period: Option<Span>,
    /// Its energy level, for the gateway table of SET.
    #[serde(default)]
    pub energy: Energy,
    /// Names of its first-hop neighbours in the low-power network, for the gateway table of SET.
    /// Where none are given, the nodes of kind "node" next to it are.
    #[serde(default)]
    pub neighbours: Vec<String>,
    /// The profile by which it caches TCP segments for others (distributed TCP caching); it does
    /// not if none is given, or "off". Not for kind "host", which passes nothing on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    pub dtc: Option<String>,
    /// Its interfaces, in order: names of links that begin or end here. Transfers name those that
    /// they use, and packets keep to the way that begins there, in both directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// The pool for the send buffers of its connections. Without one each connection has what its
    /// TCP profile says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<String>,
    /// What stands for its transports: the simulator, or the kernel behind a TUN device. Not for
    /// kind "gateway".
    #[serde(default, skip_serializing_if = "HostKind::is_default")]
    pub host: HostKind,
    /// The network namespace of its TUN device; that of the program if none is given. One that does
    /// not exist is made, and removed in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// The name of its TUN device; "anabranch" and the node's index if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl NodeSection {
    /// A node of which nothing else is said.
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
        }
    }
}

/// A link, or several that are alike. Both directions are alike, unless `back` says otherwise. Two
/// nodes have at most one link between them.
///
/// With `via` the table makes a chain: a link between each two neighbours from `from` over the
/// nodes of `via` to `to`. An end with `{i}`, the `name` of `[[nodes]]`, makes one chain for each
/// of these nodes, in which `{i}` is the same number everywhere; "r{i}-{n}" is the last node of a
/// row. Without `via` one end may be several nodes, each of which gets such a link: the `name` of
/// `[[nodes]]`, a pattern such as "n*", or a group, whose nodes each run chooses anew.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkSection {
    /// Its name, for paths of `--set` and sweeps. No two links share one. In a chain `{i}` stands
    /// for the number of the link, from 1 on. Where an end has `{i}`, it stands for the number of
    /// that node, and `{j}` for that of the link in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node at one end, or several.
    pub from: String,
    /// The nodes between the ends of a chain, in order: names of nodes and of `[[nodes]]`, whose
    /// nodes are all in the chain. If `from` or `to` has `{i}`, each chain has the node or row of
    /// its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The node at the other end, or several.
    pub to: String,
    /// What differs at single links of a table that makes several: keys of `[[link]]` by the name
    /// of the link, or by a pattern. A path such as `link.hop3.loss` of `--set` leads here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub only: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    /// `false` leaves the links of this table out.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enabled: bool,
    /// Rate of each direction. Beside a `trace` that says when packets may leave it need not be
    /// given, and is no more than what routing and closed forms take the link for; they take the
    /// mean of the trace if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Delay of each direction, from the end of transmission to arrival. It need not be given
    /// beside a `trace` of delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// What rate or delay follow in time, as files have it; in both directions, unless `back` has a
    /// `trace`, `rate` or `delay` of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSection>,
    /// What waits for each transmitter at most.
    #[serde(default = "hundred_packets")]
    pub queue: QueueSize,
    /// How waiting packets are treated.
    #[serde(default, skip_serializing_if = "is_drop_tail")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "drop-tail")))]
    pub discipline: WordOrTable<DisciplineConfig>,
    /// A packet of a transport that understands ECN is marked if more than this waits with it. For
    /// the discipline "drop-tail".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<QueueSize>,
    /// Largest IP packet in octets.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u32,
    /// How packets are lost: a probability, or a table for Gilbert-Elliott.
    #[serde(default)]
    pub loss: Loss,
    /// Factors on the loss by kind of packet.
    #[serde(default)]
    pub loss_factors: FactorsSection,
    /// Given if the link layer acknowledges every packet, for a caching node (`dtc`) at the link's
    /// beginning: how long after a packet's arrival that node waits for the acknowledgement. The
    /// link layer repeats nothing, and TCP does not hear of it: without a caching node the key has
    /// no effect. An acknowledgement takes no time of its own. "off" is the same as no key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    #[cfg_attr(feature = "schema", schemars(with = "OrOff<Span>"))]
    pub link_ack_timeout: Option<Span>,
    /// Given if the link layer repeats packets that the channel has lost. It cannot stand beside
    /// `link_ack_timeout`, which is for a link layer that repeats nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    #[cfg_attr(feature = "schema", schemars(with = "OrOff<ArqSection>"))]
    pub arq: Option<ArqSection>,
    /// How much longer each packet takes than `delay`, by a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "or_off")]
    #[cfg_attr(feature = "schema", schemars(with = "OrOff<JitterSection>"))]
    pub jitter: Option<JitterSection>,
    /// Probability that a packet arrives late, and so perhaps behind others.
    #[serde(default, skip_serializing_if = "is_never")]
    pub reordering: Probability,
    /// How late, at most: evenly distributed from 0. Only with `reordering`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Span", extend("default" = "50 ms")))]
    pub lateness: Option<Span>,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "is_never")]
    pub duplication: Probability,
    /// From the start of one transmission to that of the next, at least: a radio that waits until
    /// its packet is out of earshot, some hops on.
    #[serde(default = "at_once", skip_serializing_if = "is_at_once")]
    pub spacing: Span,
    /// What differs in the direction from `to` to `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<BackSection>,
}

impl LinkSection {
    /// Names of the files with its traces.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let back = self.back.as_ref().and_then(|back| back.trace.as_ref());
        let traces = self.trace.iter().chain(back);
        let files = traces.flat_map(|trace| [&trace.mahimahi, &trace.rate, &trace.delay]);
        files.flatten().map(String::as_str)
    }
}

fn hundred_packets() -> QueueSize {
    QueueSize(crate::link::QueueLimit::Packets(100))
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

/// What differs in a link's direction back.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BackSection {
    /// Rate. It does not follow the link's `trace`, if none is given here.
    pub rate: Option<Rate>,
    /// Delay. It does not follow the link's `trace`, if none is given here.
    pub delay: Option<Span>,
    /// What rate or delay follow in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSection>,
    /// What waits for the transmitter at most.
    pub queue: Option<QueueSize>,
    /// How waiting packets are treated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discipline: Option<WordOrTable<DisciplineConfig>>,
    /// What may wait before packets are marked.
    pub ecn_threshold: Option<QueueSize>,
    /// From the start of one transmission to that of the next.
    pub spacing: Option<Span>,
    /// Whether the link layer repeats packets, or "off".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arq: Option<OrOff<ArqSection>>,
    /// How much longer each packet takes, or "off".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<OrOff<JitterSection>>,
    /// Largest IP packet in octets.
    pub mtu: Option<u32>,
    /// How packets are lost.
    pub loss: Option<Loss>,
    /// Factors on the loss by kind of packet.
    pub loss_factors: Option<FactorsSection>,
}

/// A link layer that repeats what its channel has lost (RFC 3366): stop-and-wait. The transmitter
/// keeps a packet until it has arrived or is given up, so packets arrive in order, and wait behind
/// one that is repeated. That a packet has arrived or was lost is known for certain, and costs the
/// other direction nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ArqSection {
    /// How often a packet is repeated at most, the persistence: 0 to 10,000.
    pub limit: u32,
    /// From the end of a transmission that was lost to the next one.
    pub delay: Span,
}

/// A distribution of what is added to the delay of each packet: exactly one of `uniform`, `normal`,
/// `exponential` and `pareto`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct JitterSection {
    /// Evenly from 0 to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uniform: Option<Span>,
    /// Normal, without what is less than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normal: Option<NormalSection>,
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential: Option<Span>,
    /// Pareto: many short times and a few long ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pareto: Option<ParetoSection>,
    /// `true` lets packets overtake others that take longer. Otherwise a packet arrives with the
    /// one before it at the earliest, so that it may take longer than the distribution says.
    #[serde(skip_serializing_if = "is_no")]
    pub overtaking: bool,
}

/// A normal distribution of times, without what is less than 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NormalSection {
    /// Mean of the whole distribution; that of what is left is longer.
    pub mean: Span,
    /// Standard deviation of the whole distribution.
    pub deviation: Span,
}

/// A Pareto distribution of times: they are longer than x with the probability (`least`/x)^`shape`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParetoSection {
    /// The shortest time, more than 0.
    pub least: Span,
    /// The less, the more long times: more than 0, up to 100. With 1 and less the mean is that of
    /// `most`.
    pub shape: f64,
    /// The longest time; the distribution is without what is longer.
    #[serde(default = "ten_seconds")]
    pub most: Span,
}

fn ten_seconds() -> Span {
    Span(anabranch_core::time::Duration::from_secs(10))
}

/// What the rate and the delay of a link follow in time. Files are relative to the scenario.
/// `mahimahi` or `rate` may be given, or neither, and `delay`. Both directions of a link follow a
/// trace on their own: neither takes what the other could have sent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TraceSection {
    /// A file in the format of mahimahi: each line is a time in whole milliseconds at which a
    /// packet of 1500 octets may leave. After the last line all begins anew. Smaller packets share
    /// what `mm-link` counts as 1504 octets, each with 4 more than its own, and may leave in parts;
    /// what is not used is lost. Packets wait in the queue until they leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mahimahi: Option<String>,
    /// A CSV file with rows `time,rate`, the first at time 0: `0.5,2000000` (seconds and bit/s) or
    /// `500 ms,2 Mbit/s`. Each rate holds until the next, also for a packet that has begun, and the
    /// last for ever. At a rate of 0 nothing leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// A CSV file with rows `time,delay`, the first at time 0: `0.5,0.02` (seconds) or
    /// `500 ms,20 ms`. A packet has the delay of the moment at which it leaves the transmitter, and
    /// keeps it; none overtakes those before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// At the time of the last row of `rate` or `delay` all begins anew; its value has no effect
    /// then.
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
    /// For packets with data, and those that open or close a connection.
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

/// How packets are lost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Loss {
    /// Each with this probability.
    Bernoulli(Probability),
    /// In bursts.
    GilbertElliott(GilbertElliottSection),
}

impl Default for Loss {
    fn default() -> Self {
        Self::Bernoulli(Probability(0.0))
    }
}

/// A channel of two states. With `good_to_bad` and `bad_to_good` it steps before every packet, and
/// begins good: a silent link does not change. With `mean_good` and `mean_bad` it changes in time,
/// whether packets come or not, and is as it is when a packet's transmission begins: each state
/// lasts for a time of an exponential distribution, and the link begins as it is in the long run.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GilbertElliottSection {
    /// Probability to turn bad, per packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_to_bad: Option<Probability>,
    /// Probability to turn good, per packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_to_good: Option<Probability>,
    /// Mean of the times for which it is good, 100 µs or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_good: Option<Span>,
    /// Mean of the times for which it is bad, 100 µs or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bad: Option<Span>,
    /// Loss probability while good.
    #[serde(default)]
    pub loss_good: Probability,
    /// Loss probability while bad.
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

/// A route that differs from the shortest.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouteSection {
    /// The node that decides.
    pub at: String,
    /// The destination that this is about.
    pub to: String,
    /// The neighbour to which packets go.
    pub via: String,
    /// The route is for packets that keep to this interface, by the name of its link; for all
    /// others if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

/// How octets are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TransferKind {
    /// One TCP connection from end to end, without a request.
    Tcp,
    /// One Multipath TCP connection from end to end, without a request: a subflow on each of the
    /// sender's interfaces, or on each of its paths, as `[paths]` has nodes build them, or one over
    /// the static route.
    Mptcp,
    /// A request, as SET makes it, and then TCP from end to end: the gateways only route and
    /// fragment.
    EndToEnd,
    /// A request, and then one TCP connection to a gateway and another from there.
    Split,
    /// SET: several of those at once, through several gateways.
    Set,
}

impl TransferKind {
    /// It begins with a request, as SET makes it.
    pub fn has_request(self) -> bool {
        match self {
            Self::Tcp | Self::Mptcp => false,
            Self::EndToEnd | Self::Split | Self::Set => true,
        }
    }
}

/// The number of gateways that a model finds best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// With the least latency by the closed form.
    Best,
}

/// Gateways: how many, or which.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected a number of gateways, a list of their names, or \"best\"")]
pub enum GatewayChoice {
    /// At most that many; SET chooses.
    Count(u32),
    /// These, the primary first: names, patterns such as "gw*", or the `name` of `[[nodes]]`.
    Names(Vec<String>),
    /// As many as the latency model finds best for this file and network. SET only.
    Best(Best),
}

/// Octets that are carried from one node to another.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransferSection {
    /// Its name in reports; "transfer 1", "transfer 2", ... if none is given. With `count`, `{i}`
    /// stands for the number of each, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of transfers that are alike, 0 for none; one if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// How. Where `--set` or an axis of `[sweep]` chooses, keys of the file that the choice does
    /// not read are left aside.
    pub kind: TransferKind,
    /// The sender. `from` or `to` may be the `name` of `[[nodes]]`, such as "n{i}": there is a
    /// transfer for each of these nodes, and `{i}` in `name` stands for the number of the node.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// How much. One of `bytes` and `file` is given, or neither for a transfer of kind "tcp" or
    /// "mptcp" that never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// The content of this file, relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When it begins.
    #[serde(default = "at_once")]
    pub start: Span,
    /// When the sender closes a transfer without `bytes` and `file`; it goes on to the end of the
    /// simulation if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// A transfer without `bytes` and `file` that comes and goes, over a new connection each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<RepeatSection>,
    /// Names of the sender's interfaces that it uses. Kind "mptcp" has a subflow on each, at most
    /// 8, and on all interfaces of the sender if none is given. Kind "tcp" keeps to one: with
    /// `count`, the transfers take the interfaces in turn. Not for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<String>>,
    /// Port of the receiver; 25000 and so on in the order of the file if none is given. With
    /// `count`, that of the first. Only for kinds "tcp" and "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The TCP profile of the receiver; that of `tcp` if none is given. Only for kinds "tcp" and
    /// "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_receiver: Option<String>,
    /// From this long after `start` on the receiver's application reads nothing more. Only for
    /// kinds "tcp" and "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_for: Option<Span>,
    /// The TCP profile; of each subflow, for kind "mptcp".
    #[serde(default = "default_profile")]
    pub tcp: String,
    /// The TCP profile between gateway and receiver; that of `tcp` if none is given. Split and SET
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_wireless: Option<String>,
    /// The gateways: how many at most, or which, or "best" for as many as the latency model finds
    /// best; for split 1, or names of which the nearest is taken. Split and SET only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateways: Option<GatewayChoice>,
    /// The gateway through which the request goes, and plain TCP. Not for kinds "tcp" and "mptcp",
    /// which take routes or paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_gateway: Option<String>,
    /// Further choices of SET. Not for kinds "tcp" and "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<SetSection>,
    /// Further choices of Multipath TCP. Only for kind "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MptcpSection>,
}

impl TransferSection {
    /// A transfer of which nothing else is said.
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
        }
    }
}

/// A transfer that comes and goes. No new connection begins after `stop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepeatSection {
    /// How long each connection is there.
    pub on: Span,
    /// From the end of one to the beginning of the next.
    pub off: Span,
    /// How long after `start` the first begins, within `on` and `off` together.
    #[serde(default = "at_once")]
    pub offset: Span,
    /// With `count`: how much later each transfer begins than the one before it, within `on` and
    /// `off` together.
    #[serde(default = "at_once")]
    pub stagger: Span,
}

fn at_once() -> Span {
    Span(anabranch_core::time::Duration::ZERO)
}

fn default_profile() -> String {
    "default".to_owned()
}

/// What happens to the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EventAction {
    /// A node dies: needs `node`; `how` is "silent" if not given.
    FailNode,
    /// A node starts again: needs `node`.
    RecoverNode,
    /// A link goes down, both directions: needs `from` and `to`.
    LinkDown,
    /// A link comes up, both directions: needs `from` and `to`.
    LinkUp,
    /// The direction from `from` to `to` of a link gets another rate: needs `rate`. It holds for
    /// packets whose transmission has not begun.
    SetRate,
    /// The direction from `from` to `to` of a cable gets another delay: needs `delay`. A packet
    /// that has left the transmitter keeps its delay, and none overtakes those before it: with a
    /// shorter delay the next packets arrive with the last one of the longer delay, or later. Only
    /// `reordering` and `overtaking` of the link let packets overtake.
    SetDelay,
    /// The direction from `from` to `to` of a cable loses packets in another way: needs `loss`. It
    /// holds for packets whose transmission has not begun.
    SetLoss,
}

/// Something that happens to the network at a given time. Keys that its action does not need are
/// refused.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventSection {
    /// When: before `stop`.
    pub at: Span,
    /// What.
    pub action: EventAction,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How a node dies.
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
    /// How packets are lost from then on: a probability, or a table for Gilbert-Elliott.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}
