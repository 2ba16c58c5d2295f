//! What a scenario file says of paths over the radio.

use anabranch_core::paths::{self, Objective};
use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Span;
use crate::packet::NodeId;

/// Paths that nodes build with RPL and its extension by several paths for each node.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PathsSection {
    /// The node to which all paths lead: the data centre.
    pub root: String,
    /// Paths that a node keeps, 1 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_paths: Option<u8>,
    /// How paths are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// PARENT_SWITCH_THRESHOLD of `"mrhof"` in 1/128 of a transmission: by how much the ETX of
    /// another path must be lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_switch_threshold: Option<u16>,
    /// Time between two probes of a link that could be used and is not; an eighth of it while the
    /// link is not measured; 100 ms and more; 0 sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_interval: Option<Span>,
    /// Imin of the trickle timer, 1 ms and more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_min: Option<Span>,
    /// Doublings of Imin, 0 to 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doublings: Option<u8>,
    /// k, the redundancy constant of the trickle timer; 0 never keeps a node silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<u8>,
    /// Time within which a node without a path sends the first DIS, at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dis_delay: Option<Span>,
    /// Time from the first DIS to the second, doubled after each, 100 ms and more; 0 sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dis_interval: Option<Span>,
    /// DAGMaxRankIncrease: how far the rank of a node may rise above its lowest before it gives its
    /// paths up; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rank_increase: Option<u16>,
    /// How long a new path waits before it is told upstream, 1 ms and more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dao_delay: Option<Span>,
    /// How long a DAO waits for its answer at first, 100 ms and more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dao_timeout: Option<Span>,
    /// DAOs for one path before it is given up, 1 and more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dao_tries: Option<u8>,
}

/// How nodes build paths. All do: [`super::Scenario::routers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathsSpec {
    /// How.
    pub config: paths::Config,
    /// The node to which all paths lead.
    pub root: NodeId,
}

impl PathsSection {
    /// How paths are built, or the key at fault and what is wrong with it.
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
        // A radio sends a frame in milliseconds: shorter times are events without end.
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

    /// As it is, every default written out.
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
