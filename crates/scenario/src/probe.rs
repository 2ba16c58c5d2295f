//! The `[probe.NAME]` section: measurements of a part of a run.

use anabranch_core::rdca::Header;
use anabranch_core::time::Instant;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::traffic::{FromName, Senders};
use super::units::Span;
use anabranch_sim::packet::NodeId;
use anabranch_sim::probe::Measure;
use anabranch_sim::probe::energy::Energy;
use anabranch_sim::probe::flows::Flows;
use anabranch_sim::probe::packets::{HopMedium, Packets};
use anabranch_sim::probe::queues::Queues;

/// Quantity that a probe measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// Energy that radios consume, by state: transmit, receive, listen, off.
    Energy,
    /// Loss, delay, jitter, reordering and throughput of flows, and the fairness among them. A flow
    /// is one direction of a connection. `run --series` writes a table with a row for each flow.
    Flows,
    /// Packets of transfers and traffic: data, and the packets that their transports add, from end
    /// to end and hop by hop.
    Packets,
    /// Number of packets in the queues of cables, and the time for which they wait.
    Queues,
}

impl ProbeKind {
    /// Whether the quantity is one of radios, so that the nodes must be on the channel.
    pub(super) fn is_of_radios(self) -> bool {
        match self {
            Self::Energy => true,
            Self::Flows | Self::Packets | Self::Queues => false,
        }
    }
}

/// A measurement of a part of a run, reported under `probe.NAME`.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeSection {
    /// Quantity to measure.
    pub kind: ProbeKind,
    /// Nodes to measure: a group, or names of nodes and patterns such as "n*". All nodes if none
    /// are given; for "energy", all nodes on the channel. For "packets" these are the sources of
    /// the packets, and hop by hop the transmitters; for "queues" the nodes at which cables begin;
    /// for "flows" the sources of the flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<FromName>,
    /// Medium of the hops that count; both if it is not given. Only for "packets".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<HopMedium>,
    /// Nodes at which the cables or flows end: names of nodes and patterns; all if it is not given.
    /// Only for "queues" and "flows".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FromName>,
    /// Time window as a transfer or a traffic, or several by a pattern; excludes `from` and
    /// `until`. The window begins with the first of them and ends with the last. A transfer ends
    /// when its sender knows that all data has arrived, or that the transfer has failed. A traffic
    /// with a `stop` ends at that time. Other traffic ends with its last packet: over UDP when that
    /// packet is generated, otherwise when the source knows that it has arrived. Transfers and
    /// traffic that do not end last until the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<String>,
    /// Start of the time window; the beginning of the run if neither this nor `during` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// End of the time window; the end of the run if neither this nor `during` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
}

/// A measurement of a part of a run, resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeSpec {
    /// Name in results.
    pub name: String,
    /// Quantity to measure.
    pub kind: ProbeKind,
    /// Nodes to measure.
    pub nodes: Senders,
    /// Medium of the hops that count; `None` for both.
    pub medium: Option<HopMedium>,
    /// Nodes at which the cables or flows end; `None` for all.
    pub to: Option<Vec<NodeId>>,
    /// Time window.
    pub during: During,
}

impl ProbeSpec {
    /// The measure of these nodes. `drawn` says whether the nodes are drawn anew for each run;
    /// `rdca` has the nodes and ports of RDCA sinks.
    pub(super) fn measure(
        &self,
        nodes: Vec<NodeId>,
        drawn: bool,
        rdca: Vec<(NodeId, u16, Header)>,
    ) -> Box<dyn Measure> {
        match self.kind {
            ProbeKind::Energy => Box::new(Energy::of(nodes, !drawn)),
            ProbeKind::Flows => Box::new(Flows::between(nodes, self.to.clone()).with_rdca_at(rdca)),
            ProbeKind::Queues => Box::new(Queues::between(nodes, self.to.clone())),
            ProbeKind::Packets => Box::new(Packets::of(nodes).over(self.medium).with_rdca_at(rdca)),
        }
    }
}

/// A part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum During {
    /// From one time to another; [`Instant::FAR_FUTURE`] stands for the end of the run.
    Moments(Instant, Instant),
    /// While these are in progress: indices of transfers and of traffic.
    These(Vec<usize>, Vec<usize>),
}
