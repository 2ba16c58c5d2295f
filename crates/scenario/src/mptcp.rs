//! Options of Multipath TCP. The TCP profile of the transfer applies to each subflow.

use anabranch_core::mptcp::prediction::Adaptation;
use anabranch_core::mptcp::{self, Reinjection, SchedulerKind};
use anabranch_core::tcp::{self, AdaptivePhases, CongestionAlgorithm, DsnWidth};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policies::{Named, Policies};
use super::tcp::empty_range;

/// Congestion control of the subflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SubflowCongestion {
    /// A-NewReno: the window stays between two bounds, and the time-out is constant. Both follow
    /// from the number of hops of the subflow's path.
    Adaptive,
    /// As "adaptive", but on paths of two or more hops the subflow explores which window delivers
    /// most and then holds it.
    AdaptiveExploreHold,
    /// This algorithm on each subflow. Only "coupled" takes the other subflows into account.
    #[serde(untagged)]
    Each(Named<CongestionAlgorithm>),
}

/// Options of Multipath TCP (RFC 8684).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MptcpSection {
    /// Scheduler: assigns segments to subflows.
    pub scheduler: Named<SchedulerKind>,
    /// When data that was sent on one subflow is sent again on another.
    pub reinjection: Reinjection,
    /// Congestion control of the subflows; that of the TCP profile if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<SubflowCongestion>,
    /// Largest number of simultaneous subflows, 1 to 8, one on each of the node's best paths.
    pub subflows: u8,
    /// Length of the data sequence numbers that are sent, in bytes: 4 or 8.
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

/// Options of a Multipath TCP transfer, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MptcpSpec {
    /// Configuration of both ends.
    pub config: mptcp::Config,
    /// Largest number of simultaneous subflows, one on each of the sender's best paths.
    pub subflows: usize,
    /// Derivation of windows and time-outs from the length of the path, for adaptive congestion
    /// control.
    pub adaptation: Option<Adaptation>,
}

impl MptcpSection {
    /// The resolved options for subflows with the profile `tcp`. An error is the key at fault and
    /// the reason.
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
            // The adaptation sets the windows once the path is known.
            Some(SubflowCongestion::Adaptive | SubflowCongestion::AdaptiveExploreHold) | None => {
                tcp.congestion
            }
        };
        let config = mptcp::Config {
            tcp: tcp::Config { congestion, ..tcp },
            scheduler: self.scheduler.find(policies).map_err(|message| ("scheduler", message))?,
            reinjection: self.reinjection,
            dsn_width,
            // One more than the limit: a subflow that is being closed still counts when its
            // successor joins.
            max_subflows,
            ..mptcp::Config::default()
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
