//! What a scenario may choose about Multipath TCP. What holds for each subflow is said by the
//! transfer's TCP profile.

use anabranch_core::mptcp::prediction::Adaptation;
use anabranch_core::mptcp::{self, Reinjection, SchedulerKind};
use anabranch_core::tcp::{self, AdaptivePhases, CongestionAlgorithm, DsnWidth};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policies::{Named, Policies};
use super::tcp::empty_range;

/// How the congestion windows of the subflows grow and shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SubflowCongestion {
    /// A-NewReno: NewReno between two windows, with a constant time-out, all by the number of hops
    /// of the subflow's path.
    Adaptive,
    /// The same, but from two hops on the window that delivers most is explored and then held.
    AdaptiveExploreHold,
    /// Each subflow by this algorithm, of which "coupled" is made for subflows.
    #[serde(untagged)]
    Each(Named<CongestionAlgorithm>),
}

/// Choices of Multipath TCP (RFC 8684).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MptcpSection {
    /// Who sends what where.
    pub scheduler: Named<SchedulerKind>,
    /// When data that has been sent on a subflow is sent on another, too.
    pub reinjection: Reinjection,
    /// How the congestion windows of the subflows grow and shrink; as in the TCP profile if none is
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<SubflowCongestion>,
    /// Subflows at a time, 1 to 8: one on each of the node's best paths.
    pub subflows: u8,
    /// Octets of the data sequence numbers that are sent: 4 or 8.
    pub dsn_width: u8,
}

impl Default for MptcpSection {
    fn default() -> Self {
        Self {
            scheduler: Named::Ours(SchedulerKind::FastestRtt),
            reinjection: Reinjection::Opportunistic,
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
    /// What it means for subflows that are as `tcp` says, or the key at fault and what is wrong
    /// with it.
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
            Some(SubflowCongestion::Each(named)) => {
                let congestion = named.find(policies).map_err(|message| ("congestion", message))?;
                if let CongestionAlgorithm::AdaptiveNewReno(bounds) = congestion
                    && let Some((message, _)) = empty_range(&bounds)
                {
                    return Err(("congestion", message));
                }
                congestion
            }
            // The adaptation fills in the windows when the path is known.
            Some(SubflowCongestion::Adaptive | SubflowCongestion::AdaptiveExploreHold) | None => {
                tcp.congestion
            }
        };
        let config = mptcp::Config {
            tcp: tcp::Config { congestion, ..tcp },
            scheduler: self.scheduler.find(policies).map_err(|message| ("scheduler", message))?,
            reinjection: self.reinjection,
            dsn_width,
            // A subflow that is being closed still counts when its successor joins.
            max_subflows,
        };
        let with = |phases| Some(Adaptation { phases, ..Adaptation::default() });
        let adaptation = match self.congestion {
            Some(SubflowCongestion::Adaptive) => with(AdaptivePhases::Grow),
            Some(SubflowCongestion::AdaptiveExploreHold) => with(AdaptivePhases::ExploreHold),
            Some(SubflowCongestion::Each(_)) | None => None,
        };
        Ok(MptcpSpec { config, subflows: self.subflows.into(), adaptation })
    }
}
