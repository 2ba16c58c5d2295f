//! The `[paths]` section: multihop paths over the radio.

use anabranch_core::paths::{self, Objective};
use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Span;
use anabranch_sim::packet::NodeId;

/// Paths that the nodes build with RPL, extended to several paths for each node.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PathsSection {
    /// Root of all paths: the node of the data centre.
    pub root: String,
    /// Largest number of paths that a node keeps, 1 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_paths: Option<u8>,
    /// Objective by which paths are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// PARENT_SWITCH_THRESHOLD of `"mrhof"`, in 1/128 of a transmission: the amount by which the
    /// ETX of another path must be lower before a node switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_switch_threshold: Option<u16>,
    /// Time between two probes of a usable link that carries no traffic, at least 100 ms; 0 sends
    /// no probes. A link that is not yet measured is probed eight times as often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_interval: Option<Span>,
    /// Imin of the trickle timer, at least 1 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_min: Option<Span>,
    /// Number of doublings of Imin, 0 to 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doublings: Option<u8>,
    /// Redundancy constant k of the trickle timer; with 0 a node never suppresses its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<u8>,
    /// Longest random delay after which a node without a path sends its first DIS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dis_delay: Option<Span>,
    /// Time from the first DIS to the second, doubled after each, at least 100 ms; 0 sends no
    /// further DIS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dis_interval: Option<Span>,
    /// DAGMaxRankIncrease: amount by which the rank of a node may rise above its lowest before it
    /// gives up its paths; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rank_increase: Option<u16>,
    /// Delay before a node announces a new path upstream, at least 1 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dao_delay: Option<Span>,
    /// Initial wait for the answer to a DAO, at least 100 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dao_timeout: Option<Span>,
    /// Number of DAOs for a path before it is given up, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dao_tries: Option<u8>,
}

/// How nodes build paths. All nodes of [`super::Scenario::routers`] do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathsSpec {
    /// Configuration of the protocol.
    pub config: paths::Config,
    /// Root of all paths.
    pub root: NodeId,
}

impl PathsSection {
    /// The configuration of the protocol. An error is the key at fault and the reason.
    pub(super) fn config(&self) -> Result<paths::Config, (&'static str, String)> {
        let base = match self.objective {
            Some(Objective::Paper) => paths::Config::paper(),
            Some(objective) => paths::Config { objective, ..paths::Config::default() },
            None => paths::Config::default(),
        };
        let number = |key, value: Option<u8>, default: u8, range: std::ops::RangeInclusive<u8>| match value {
            None => Ok(default),
            Some(n) if range.contains(&n) => Ok(n),
            Some(n) => Err((key, format!("expected {} to {}, found {n}", range.start(), range.end()))),
        };
        // A radio sends a frame in milliseconds. Shorter intervals would only produce events.
        let span = |key, value: Option<Span>, default, or_zero, least: Duration| match value {
            None => Ok(default),
            Some(Span(span)) if span >= least || or_zero && span.is_zero() => Ok(span),
            Some(Span(_)) => {
                let least = least.as_millis();
                Err((key, format!("expected {}{least} ms or more", if or_zero { "0 or " } else { "" })))
            }
        };
        let [short, long] = [1, 100].map(Duration::from_millis);
        Ok(paths::Config {
            max_paths: number("max_paths", self.max_paths, base.max_paths, 1..=15)?,
            interval_min: span("interval_min", self.interval_min, base.interval_min, false, short)?,
            doublings: number("doublings", self.doublings, base.doublings, 0..=20)?,
            redundancy: self.redundancy.unwrap_or(base.redundancy),
            dis_delay: self.dis_delay.map_or(base.dis_delay, |Span(span)| span),
            dis_interval: span("dis_interval", self.dis_interval, base.dis_interval, true, long)?,
            parent_switch_threshold: self.parent_switch_threshold.unwrap_or(base.parent_switch_threshold),
            probe_interval: span("probe_interval", self.probe_interval, base.probe_interval, true, long)?,
            max_rank_increase: self.max_rank_increase.unwrap_or(base.max_rank_increase),
            dao_delay: span("dao_delay", self.dao_delay, base.dao_delay, false, short)?,
            dao_timeout: span("dao_timeout", self.dao_timeout, base.dao_timeout, false, long)?,
            dao_tries: number("dao_tries", self.dao_tries, base.dao_tries, 1..=u8::MAX)?,
            ..base
        })
    }

    /// Fills in every default.
    pub(super) fn complete(&mut self, config: &paths::Config) {
        self.max_paths = Some(config.max_paths);
        self.interval_min = Some(Span(config.interval_min));
        self.doublings = Some(config.doublings);
        self.redundancy = Some(config.redundancy);
        self.objective = Some(config.objective);
        self.parent_switch_threshold = Some(config.parent_switch_threshold);
        self.probe_interval = Some(Span(config.probe_interval));
        self.dis_delay = Some(Span(config.dis_delay));
        self.dis_interval = Some(Span(config.dis_interval));
        self.max_rank_increase = Some(config.max_rank_increase);
        self.dao_delay = Some(Span(config.dao_delay));
        self.dao_timeout = Some(Span(config.dao_timeout));
        self.dao_tries = Some(config.dao_tries);
    }
}
