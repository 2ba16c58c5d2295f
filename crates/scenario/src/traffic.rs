//! The `[[traffic]]` section: sources that generate packets during the run.

use anabranch_core::time::{Duration, Instant};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mptcp::{MptcpSection, MptcpSpec};
use super::options::WordOrTable;
use super::rdca::RdcaOptions;
use super::units::{Rate, Span};
use anabranch_sim::apps::packets::Spacing;
use anabranch_sim::apps::sizes::{Law, Sizes};
use anabranch_sim::packet::NodeId;
use anabranch_sim::transport::TransportConfig;

/// Transport of the packets of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// UDP: one datagram for each packet, without retransmission.
    #[default]
    Udp,
    /// One TCP connection for each source.
    Tcp,
    /// One Multipath TCP connection for each source.
    Mptcp,
    /// RDCA over UDP.
    Rdca,
}

/// Senders of a traffic: a name or pattern, or a list of them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    untagged,
    expecting = "expected the name of a node or group, a pattern such as \"n*\", or a list of these"
)]
pub enum FromName {
    /// One name or pattern.
    One(String),
    /// Several names or patterns.
    Several(Vec<String>),
}

impl FromName {
    /// All names and patterns.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// Assignment of packets to connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// One connection for all packets of a source.
    #[default]
    One,
    /// A new connection for each packet. The delay of a packet is then the completion time of a
    /// flow, from the handshake to the last byte at the receiver; if the connection fails, the
    /// packet is lost. A node has 16,384 ports for connections, and TIME-WAIT occupies each for
    /// `time_wait` of the TCP profile (60 s). At more than 273 connections a second, set a shorter
    /// time, such as `time_wait = "1 s"`.
    Each,
}

impl Connection {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Start times of the sources of a traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// All sources begin at `start`.
    #[default]
    Same,
    /// Each source begins at a random time within one interval after `start`, so that packets of
    /// different sources do not coincide.
    Random,
}

/// Packets that one or more sources send to one sink.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrafficSection {
    /// Name in reports; "traffic N" if none is given, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Arrival process of the packets.
    pub kind: WordOrTable<Spacing>,
    /// Transport of the packets. If `--set` or an axis of `[sweep]` chooses it, keys `tcp`, `mptcp`
    /// and `rdca` in the file that the chosen transport does not use are ignored.
    #[serde(default)]
    pub over: Over,
    /// Senders: the name of a node or group, a pattern such as "n*", or a list of these. A pattern
    /// does not include the receiver.
    pub from: FromName,
    /// Receiver.
    pub to: String,
    /// Payload of a packet, 12 B to 65,000 B: a size, or a distribution such as
    /// `{ exponential = { mean = "500 B" } }`,
    /// `{ pareto = { mean = "20 kB", shape = 1.2, most = "10 MB" } }` or
    /// `{ cdf = [["1 kB", 0], ["1 MB", 1]] }`. Sizes above `most` are cut to it. The range is 20 B
    /// to 1 GB for requests, and over TCP with a distribution or `connection = "each"`. Over RDCA a
    /// distribution is limited to one datagram. Not with a `trace`, which gives the sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Sizes>,
    /// Assignment of packets to connections. Only for "tcp".
    #[serde(default, skip_serializing_if = "Connection::is_default")]
    pub connection: Connection,
    /// Mean time between two packets of a source; for on-off sources, while they are on. Excludes
    /// `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Mean rate of payload of a source; for on-off sources, while they are on. Excludes
    /// `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Time at which the sources begin.
    #[serde(default = "at_once")]
    pub start: Span,
    /// Whether the sources begin at the same time.
    #[serde(default)]
    pub phase: Phase,
    /// Time after which no packets are generated; the end of the simulation if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Largest number of packets of each source, at least 1; unlimited if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// TCP profile. Only for "tcp" and "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// RDCA profile. Only for "rdca".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdca: Option<String>,
    /// Options of Multipath TCP. Only for "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MptcpSection>,
    /// Port of the receiver; if none is given, every second port from 9100 on in the order of the
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

fn at_once() -> Span {
    Span(Duration::ZERO)
}

/// Packets that one or more sources send to one sink, resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct TrafficSpec {
    /// Name in reports.
    pub name: String,
    /// The senders.
    pub from: Senders,
    /// The receiver.
    pub to: NodeId,
    /// Transport of the packets.
    pub carrier: Carrier,
    /// Distribution of the size of a packet, in bytes.
    pub sizes: Law,
    /// Replies, if packets are requests.
    pub replies: Option<Replies>,
    /// Assignment of packets to connections.
    pub connection: Connection,
    /// Mean time between two packets of a source.
    pub interval: Duration,
    /// Arrival process of the packets.
    pub spacing: Spacing,
    /// Time at which the sources begin.
    pub start: Instant,
    /// Whether the sources begin at the same time.
    pub phase: Phase,
    /// Time after which no packets are generated.
    pub stop: Instant,
    /// Largest number of packets of each source.
    pub packets: Option<u32>,
    /// Port of the receiver. Sources that use datagrams have the next port.
    pub port: u16,
}

/// Replies to requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Replies {
    /// Distribution of the size of a reply, in bytes.
    pub sizes: Law,
    /// Time after which an unanswered request is given up, over UDP.
    pub timeout: Duration,
}

impl TrafficSpec {
    /// Size of a packet in bytes; the mean if sizes differ.
    pub fn payload(&self) -> f64 {
        self.sizes.mean()
    }

    /// Whether sources have a port for datagrams: the one after the receiver's.
    pub(crate) fn sources_hear(&self) -> bool {
        match self.carrier {
            Carrier::Rdca(_) => true,
            Carrier::Udp => self.replies.is_some(),
            Carrier::Tcp(_) | Carrier::Mptcp(_) => false,
        }
    }

    /// Whether packets are messages ([`anabranch_sim::apps::messages`]): they differ in size, have
    /// a connection each, or are answered.
    pub(crate) fn is_messages(&self) -> bool {
        let over_tcp = matches!(self.carrier, Carrier::Tcp(_));
        are_messages(over_tcp, self.replies.is_some(), self.connection, self.sizes.constant().is_none())
    }
}

/// Whether packets are messages: see [`TrafficSpec::is_messages`].
pub(super) fn are_messages(
    over_tcp: bool,
    is_answered: bool,
    connection: Connection,
    is_drawn: bool,
) -> bool {
    is_answered || over_tcp && (connection == Connection::Each || is_drawn)
}

/// Senders of a traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Senders {
    /// These nodes.
    Nodes(Vec<NodeId>),
    /// The nodes of a drawn group, by its index.
    Group(usize),
}

/// Transport of packets.
#[derive(Clone, PartialEq, Debug)]
pub enum Carrier {
    /// UDP without a further protocol.
    Udp,
    /// TCP.
    Tcp(Box<anabranch_core::tcp::Config>),
    /// Multipath TCP.
    Mptcp(Box<MptcpSpec>),
    /// RDCA over UDP.
    Rdca(Box<RdcaOptions>),
}

impl Carrier {
    /// Transport configuration of sources with connections; `None` for the others.
    pub fn transport(&self) -> Option<TransportConfig> {
        match self {
            Self::Tcp(config) => Some((**config).into()),
            Self::Mptcp(spec) => Some(spec.config.into()),
            Self::Udp | Self::Rdca(_) => None,
        }
    }
}
