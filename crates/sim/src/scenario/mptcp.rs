//! What a scenario may choose about Multipath TCP. What holds for each subflow is said by the transfer's TCP profile.

use anabranch_core::mptcp::prediction::Adaptation;
use anabranch_core::mptcp::{self, Reinjection, SchedulerKind};
use anabranch_core::tcp::{self, CongestionAlgorithm, DsnWidth};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policies::{Policies, PolicyName};

/// Who sends what where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// The subflow with the smallest round-trip time that has room in its window.
    FastestRtt,
    /// One segment on each subflow with room in turn.
    RoundRobin,
    /// Everything on every subflow.
    Redundant,
    /// As "fastest-rtt", but a slow path waits when it would hold up the window.
    Blest,
    /// By the ratio of delays, so that segments arrive in order.
    Daps,
    /// Each path takes what it delivers before the next slower one delivers its first.
    Predictive,
    /// One that the program has brought along.
    #[serde(untagged)]
    Custom(PolicyName),
}

/// When data that has been sent on a subflow is sent on another, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MptcpReinjectionName {
    /// When its subflow is closed.
    OnFailure,
    /// Also when the retransmission timer of its subflow runs out.
    OnTimeout,
    /// Also when it holds back the window while another subflow has room.
    Opportunistic,
}

/// How the congestion windows of the subflows grow and shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MptcpCongestionName {
    /// RFC 5681 and 6582, each subflow for itself.
    Newreno,
    /// RFC 9438, each subflow for itself.
    Cubic,
    /// RFC 6356: all subflows together take no more than one connection would on the best path.
    Coupled,
    /// TCP Westwood+, each subflow for itself.
    Westwood,
    /// BBR version 3, each subflow for itself.
    Bbr,
    /// NewReno between two windows, with a constant time-out, all by the number of hops of the path that is used first.
    Adaptive,
}

/// Choices of Multipath TCP (RFC 8684).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MptcpSection {
    /// Who sends what where.
    pub scheduler: SchedulerName,
    /// When data that has been sent on a subflow is sent on another, too.
    pub reinjection: MptcpReinjectionName,
    /// How the congestion windows of the subflows grow and shrink; as in the TCP profile if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<MptcpCongestionName>,
    /// Subflows at a time, 1 to 8: one on each of the node's best paths.
    pub subflows: u8,
    /// Octets of the data sequence numbers that are sent: 4 or 8.
    pub dsn_width: u8,
}

impl Default for MptcpSection {
    fn default() -> Self {
        Self {
            scheduler: SchedulerName::FastestRtt,
            reinjection: MptcpReinjectionName::Opportunistic,
            congestion: None,
            subflows: mptcp::Config::default().max_subflows,
            dsn_width: 4,
        }
    }
}

/// What a scenario says of a Multipath TCP transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MptcpSpec {
    /// Both ends of the connection.
    pub config: mptcp::Config,
    /// Subflows at a time, one on each of the sender's best paths.
    pub subflows: usize,
    /// How windows and time-outs follow from the length of the path, if they do.
    pub adaptation: Option<Adaptation>,
}

impl MptcpSection {
    /// What it means for subflows that are as `tcp` says, or the key at fault and what is wrong with it.
    pub(super) fn spec(
        &self,
        tcp: tcp::Config,
        policies: &Policies,
    ) -> Result<MptcpSpec, (&'static str, String)> {
        let max_subflows = mptcp::Config::default().max_subflows;
        if !(1..=max_subflows).contains(&self.subflows) {
            return Err(("subflows", format!("expected 1 to {max_subflows}, found {}", self.subflows)));
        }
        let dsn_width = match self.dsn_width {
            4 => DsnWidth::Four,
            8 => DsnWidth::Eight,
            other => return Err(("dsn_width", format!("expected 4 or 8, found {other}"))),
        };
        let congestion = match self.congestion {
            Some(MptcpCongestionName::Newreno) => CongestionAlgorithm::NewReno,
            Some(MptcpCongestionName::Cubic) => CongestionAlgorithm::Cubic,
            Some(MptcpCongestionName::Coupled) => CongestionAlgorithm::Coupled,
            Some(MptcpCongestionName::Westwood) => CongestionAlgorithm::Westwood,
            Some(MptcpCongestionName::Bbr) => CongestionAlgorithm::Bbr,
            // The adaptation fills in the windows when the path is known.
            Some(MptcpCongestionName::Adaptive) | None => tcp.congestion,
        };
        let config = mptcp::Config {
            tcp: tcp::Config { congestion, ..tcp },
            scheduler: self.scheduler.kind(policies).map_err(|message| ("scheduler", message))?,
            reinjection: self.reinjection.into(),
            dsn_width,
            // A subflow that is being closed still counts when its successor joins.
            max_subflows,
        };
        let adaptation = (self.congestion == Some(MptcpCongestionName::Adaptive)).then(Adaptation::default);
        Ok(MptcpSpec { config, subflows: self.subflows.into(), adaptation })
    }
}

impl SchedulerName {
    fn kind(self, policies: &Policies) -> Result<SchedulerKind, String> {
        Ok(match self {
            Self::FastestRtt => SchedulerKind::FastestRtt,
            Self::RoundRobin => SchedulerKind::RoundRobin,
            Self::Redundant => SchedulerKind::Redundant,
            Self::Blest => SchedulerKind::Blest,
            Self::Daps => SchedulerKind::Daps,
            Self::Predictive => SchedulerKind::Predictive,
            Self::Custom(name) => SchedulerKind::Custom(policies.find_scheduler(name)?),
        })
    }
}

impl From<MptcpReinjectionName> for Reinjection {
    fn from(name: MptcpReinjectionName) -> Self {
        match name {
            MptcpReinjectionName::OnFailure => Self::OnFailure,
            MptcpReinjectionName::OnTimeout => Self::OnTimeout,
            MptcpReinjectionName::Opportunistic => Self::Opportunistic,
        }
    }
}
