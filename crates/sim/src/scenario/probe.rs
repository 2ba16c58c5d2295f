//! What a scenario file says of probes: what is measured in a part of a run.

use anabranch_core::rdca::Header;
use anabranch_core::time::Instant;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::traffic::{FromName, Senders};
use super::units::Span;
use crate::packet::NodeId;
use crate::probe::Measure;
use crate::probe::energy::Energy;
use crate::probe::flows::Flows;
use crate::probe::packets::{HopMedium, Packets};
use crate::probe::queues::Queues;

/// What a probe measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// The energy that radios draw, by what they do: transmit, receive, listen, off.
    Energy,
    /// Loss, delay, jitter, reordering and throughput of flows, one direction of a connection each,
    /// and how fair the flows are to each other. `run --series` writes a table with a row for each
    /// flow.
    Flows,
    /// Packets of transfers and traffic: data and what their transports send beside it, from end to
    /// end and hop by hop.
    Packets,
    /// How long packets wait for the transmitters of cables, and how many wait.
    Queues,
}

impl ProbeKind {
    /// What it measures is that of radios: its nodes are on the air.
    pub(super) fn is_of_radios(self) -> bool {
        match self {
            Self::Energy => true,
            Self::Flows | Self::Packets | Self::Queues => false,
        }
    }
}

/// What is measured in a part of a run, under `probe.NAME` in results.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeSection {
    /// What is measured.
    pub kind: ProbeKind,
    /// The nodes: a group, or names of nodes and patterns such as "n*". If none are given, all
    /// nodes; for "energy", all on the air. For "packets" they are those that make the packets, and
    /// hop by hop those that give packets to a link; for "queues" those at which cables begin; for
    /// "flows" the sources of the flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<FromName>,
    /// Over what a hop leads that counts; over either if it is not given. Only for "packets".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<HopMedium>,
    /// Where the cables or the flows end: names of nodes and patterns; anywhere if it is not given.
    /// Only for "queues" and "flows".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FromName>,
    /// A transfer or a traffic, or several by a pattern. The window begins with the first of them
    /// and ends with the last. A transfer ends when its sender knows that everything has arrived,
    /// or that it has failed. A traffic with a `stop` ends then, whatever carries it; another one
    /// ends with its last packet: over UDP when that is made, otherwise when its source knows that
    /// it has arrived. What goes on ends with the run. Either this or `from` and `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<String>,
    /// When the window begins; the beginning of the run if neither this nor `during` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// When the window ends; the end of the run if neither this nor `during` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
}

/// What is measured in a part of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeSpec {
    /// Its name in results.
    pub name: String,
    /// What is measured.
    pub kind: ProbeKind,
    /// At which nodes.
    pub nodes: Senders,
    /// Over what a hop leads that counts; `None` is over either.
    pub medium: Option<HopMedium>,
    /// Where the cables or flows end that count; `None` is anywhere.
    pub to: Option<Vec<NodeId>>,
    /// When.
    pub during: During,
}

impl ProbeSpec {
    /// The measure of some nodes, which are `drawn` anew for each run or not. RDCA has its sinks at
    /// the nodes and ports `rdca`.
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
    /// From one moment to another; [`Instant::FAR_FUTURE`] is the end of the run.
    Moments(Instant, Instant),
    /// While these are under way: indices of transfers and of traffic.
    These(Vec<usize>, Vec<usize>),
}
