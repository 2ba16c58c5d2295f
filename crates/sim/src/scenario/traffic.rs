//! What a scenario file says of packets that sources make as time goes on.

use anabranch_core::time::{Duration, Instant};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mptcp::{MptcpSection, MptcpSpec};
use super::options::WordOrTable;
use super::rdca::RdcaOptions;
use super::units::{Rate, Span};
use crate::apps::packets::Spacing;
use crate::apps::sizes::{Law, Sizes};
use crate::packet::NodeId;
use crate::transport::TransportConfig;

/// What carries the packets of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// One datagram for each packet, without repair.
    #[default]
    Udp,
    /// One TCP connection for each source.
    Tcp,
    /// One Multipath TCP connection for each source.
    Mptcp,
    /// RDCA over UDP.
    Rdca,
}

/// The senders of a traffic: a name or pattern, or a list of them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(
    untagged,
    expecting = "expected the name of a node or group, a pattern such as \"n*\", or a list of these"
)]
pub enum FromName {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl FromName {
    /// All that are named.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// Which connection carries a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// One for all packets of a source.
    #[default]
    One,
    /// One for each packet, so that its delay is a flow's completion time, from the handshake to
    /// the last octet at the receiver. Where it fails the packet is lost. A node has 16,384 ports
    /// for connections, and TIME-WAIT keeps each for `time_wait` of the TCP profile (60 s): where
    /// more than 273 begin in a second, say less, such as `time_wait = "1 s"`.
    Each,
}

impl Connection {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// When the sources of a traffic begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// All at `start`.
    #[default]
    Same,
    /// Each at a random moment within one interval after `start`, so that their packets do not all
    /// meet.
    Random,
}

/// Packets that one or more sources make and send to one sink.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrafficSection {
    /// Its name in reports; "traffic N" if none is given, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How packets follow one another.
    pub kind: WordOrTable<Spacing>,
    /// What carries them. Where `--set` or an axis of `[sweep]` chooses, `tcp`, `mptcp` and `rdca`
    /// of the file are left aside if the choice does not read them.
    #[serde(default)]
    pub over: Over,
    /// The senders: the name of a node or group, a pattern such as "n*", or a list of these. The
    /// receiver is left out of a pattern.
    pub from: FromName,
    /// The receiver.
    pub to: String,
    /// Payload of a packet, 12 B to 65,000 B: a size, or a distribution such as
    /// `{ exponential = { mean = "500 B" } }`,
    /// `{ pareto = { mean = "20 kB", shape = 1.2, most = "10 MB" } }` or
    /// `{ cdf = [["1 kB", 0], ["1 MB", 1]] }`. What is longer than `most` is cut to it. Over TCP
    /// with `connection = "each"` or a distribution, and of requests, 20 B to 1 GB; a distribution
    /// over RDCA has no more than a datagram. A `trace` says it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Sizes>,
    /// Which connection carries a packet. Only for "tcp".
    #[serde(default, skip_serializing_if = "Connection::is_default")]
    pub connection: Connection,
    /// Mean time between two packets of a source; where it is off at times, while it is on. Either
    /// this or `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Payload that a source makes per second on average; where it is off at times, while it is on.
    /// Either this or `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// When the sources begin.
    #[serde(default = "at_once")]
    pub start: Span,
    /// Whether the sources begin together.
    #[serde(default)]
    pub phase: Phase,
    /// After this time no packet is made; the end of the simulation if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Packets that each source makes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// The TCP profile. Only for "tcp" and "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// The RDCA profile. Only for "rdca".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdca: Option<String>,
    /// Further choices of Multipath TCP. Only for "mptcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MptcpSection>,
    /// Port of the receiver; 9100 and so on in the order of the file if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

fn at_once() -> Span {
    Span(Duration::ZERO)
}

/// Packets that one or more sources make and send to one sink.
#[derive(Clone, PartialEq, Debug)]
pub struct TrafficSpec {
    /// Its name in reports.
    pub name: String,
    /// The senders.
    pub from: Senders,
    /// The receiver.
    pub to: NodeId,
    /// What carries the packets.
    pub carrier: Carrier,
    /// Octets of a packet.
    pub sizes: Law,
    /// Octets of a reply, and when a request without one is given up, if packets are requests.
    pub replies: Option<Replies>,
    /// Which connection carries a packet.
    pub connection: Connection,
    /// Mean time between two packets of a source.
    pub interval: Duration,
    /// How packets follow one another.
    pub spacing: Spacing,
    /// When the sources begin.
    pub start: Instant,
    /// Whether they begin together.
    pub phase: Phase,
    /// After this no packet is made.
    pub stop: Instant,
    /// Packets of each source at most.
    pub packets: Option<u32>,
    /// Port of the receiver. Over datagrams the senders have the next one.
    pub port: u16,
}

/// Replies to packets that are requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Replies {
    /// Octets of a reply.
    pub sizes: Law,
    /// When a request without a reply is given up, over UDP.
    pub timeout: Duration,
}

impl TrafficSpec {
    /// Octets of a packet; the mean where they differ.
    pub fn payload(&self) -> f64 {
        self.sizes.mean()
    }

    /// Sources have a port for datagrams: the one behind the receiver's.
    pub(crate) fn sources_hear(&self) -> bool {
        match self.carrier {
            Carrier::Rdca(_) => true,
            Carrier::Udp => self.replies.is_some(),
            Carrier::Tcp(_) | Carrier::Mptcp(_) => false,
        }
    }

    /// Packets are messages ([`crate::apps::messages`]), since they differ, have a connection each,
    /// or are answered.
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

/// The senders of a traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Senders {
    /// These.
    Nodes(Vec<NodeId>),
    /// Those of a drawn group, by its index.
    Group(usize),
}

/// What carries packets.
#[derive(Clone, PartialEq, Debug)]
pub enum Carrier {
    /// UDP alone.
    Udp,
    /// TCP.
    Tcp(Box<anabranch_core::tcp::Config>),
    /// Multipath TCP.
    Mptcp(Box<MptcpSpec>),
    /// RDCA over UDP.
    Rdca(Box<RdcaOptions>),
}

impl Carrier {
    /// The transport of sources with connections.
    pub fn transport(&self) -> Option<TransportConfig> {
        match self {
            Self::Tcp(config) => Some((**config).into()),
            Self::Mptcp(spec) => Some(spec.config.into()),
            Self::Udp | Self::Rdca(_) => None,
        }
    }
}
