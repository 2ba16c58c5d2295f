//! Events whose times, targets and values are drawn anew for each run.
//!
//! All draws of one `[[random-event]]` come from one stream, `(NAME, PURPOSE)` of the seed and the
//! run, in the order of the events: the wait before an event if `spacing` is "poisson", its target
//! if `pick` is "one", then a value for each target.

use anabranch_core::time::{Duration, Instant};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::OrOff;
use super::units::{Probability, Span};
use crate::apps::pace::exponential;
use crate::loss::LossModel;
use crate::packet::{LinkId, NodeId};
use crate::random::Stream;
use crate::sim::Fault;
use crate::world::Failure;

/// What happens at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RandomAction {
    /// Links get another rate, the same share of their own in both directions: needs `links` and
    /// `rate_share`.
    SetRate,
    /// Links get another delay, the same share of their own in both directions, as `[[event]]` sets
    /// it: needs `links` and `delay_share`.
    SetDelay,
    /// Links lose each packet with another probability, the same in both directions, as `[[event]]`
    /// sets it: needs `links` and `loss_between`.
    SetLoss,
    /// Links go down, both directions: needs `links` and `lasts`.
    LinkDown,
    /// Nodes die: needs `nodes` and `lasts`; `how` is "silent" if not given.
    FailNode,
}

/// How random events follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SpacingName {
    /// One after each interval.
    #[default]
    Constant,
    /// A Poisson process.
    Poisson,
}

/// Whom a random event concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// All targets, each with a value of its own.
    #[default]
    All,
    /// One of the targets, drawn anew each time.
    One,
}

/// Events whose times, targets and values are drawn anew for each run. Keys that the action does
/// not need are refused.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RandomEventSection {
    /// Its name, of its own: what is drawn depends on it.
    pub name: String,
    /// What happens.
    pub action: RandomAction,
    /// Names of links, or patterns such as "radio*".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// Names of nodes, or patterns such as "n*".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    /// Whom each event concerns.
    #[serde(default)]
    pub pick: Pick,
    /// Mean time from one event to the next, and from `start` to the first; "off" for no event.
    pub every: OrOff<Span>,
    /// How the events follow one another.
    #[serde(default)]
    pub spacing: SpacingName,
    /// No event comes before.
    #[serde(default = "at_once")]
    pub start: Span,
    /// Every event comes before this time; `stop` of the scenario if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// The least and the greatest share of the rate in `[[link]]` that a link gets, evenly
    /// distributed between them: more than 0, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_share: Option<[f64; 2]>,
    /// The least and the greatest share of the delay in `[[link]]` that a link gets, evenly
    /// distributed between them: from 0 on, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_share: Option<[f64; 2]>,
    /// The least and the greatest probability with which a link loses a packet, evenly distributed
    /// between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_between: Option<[Probability; 2]>,
    /// How long a link is down, or a node dead. Overlapping outages end with the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// How nodes die.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<Failure>,
}

fn at_once() -> Span {
    Span(Duration::ZERO)
}

/// Events that are drawn anew for each run.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomEvent {
    /// Its name, and that of its stream.
    pub name: String,
    /// What happens, and to whom it can.
    pub what: RandomFault,
    /// Whom each event concerns.
    pub pick: Pick,
    /// Mean time between two events.
    pub every: Duration,
    /// How they follow one another.
    pub spacing: SpacingName,
    /// They begin after this time.
    pub start: Instant,
    /// They come before this time.
    pub stop: Instant,
}

/// What happens at random, and to whom it can.
#[derive(Clone, PartialEq, Debug)]
pub enum RandomFault {
    /// Links, there and back with their rates in bit/s, get a share of these.
    Rate {
        /// The links.
        links: Vec<[(LinkId, u64); 2]>,
        /// Least share.
        least: f64,
        /// Greatest share.
        most: f64,
    },
    /// Links, there and back with their delays, get a share of these.
    Delay {
        /// The links.
        links: Vec<[(LinkId, Duration); 2]>,
        /// Least share.
        least: f64,
        /// Greatest share.
        most: f64,
    },
    /// Links, there and back, lose packets with a probability.
    Loss {
        /// The links.
        links: Vec<[LinkId; 2]>,
        /// Least probability.
        least: f64,
        /// Greatest probability.
        most: f64,
    },
    /// Links, there and back, are down for a while.
    Outage {
        /// The links.
        links: Vec<[LinkId; 2]>,
        /// For so long.
        lasts: Duration,
    },
    /// Nodes are dead for a while.
    Death {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// For so long.
        lasts: Duration,
        /// How they die.
        how: Failure,
    },
}

impl RandomFault {
    fn targets(&self) -> usize {
        match self {
            Self::Rate { links, .. } => links.len(),
            Self::Delay { links, .. } => links.len(),
            Self::Loss { links, .. } | Self::Outage { links, .. } => links.len(),
            Self::Death { nodes, .. } => nodes.len(),
        }
    }

    /// Second name of the stream.
    fn purpose(&self) -> &'static str {
        match self {
            Self::Rate { .. } => "rates",
            Self::Delay { .. } => "delays",
            Self::Loss { .. } => "losses",
            Self::Outage { .. } => "outages",
            Self::Death { .. } => "deaths",
        }
    }

    /// One target's part of the event at `at`.
    fn strike(&self, at: Instant, target: usize, random: &mut Stream, faults: &mut Vec<(Instant, Fault)>) {
        match self {
            Self::Rate { links, least, most } => {
                let share = least + (most - least) * random.uniform();
                // A link that sends nothing is down, and not slow.
                let rate = |rate: u64| ((rate as f64 * share) as u64).max(1);
                faults.extend(links[target].map(|(link, nominal)| (at, Fault::Rate(link, rate(nominal)))));
            }
            Self::Delay { links, least, most } => {
                let share = least + (most - least) * random.uniform();
                let delay = |delay: Duration| Duration::from_secs_f64(delay.as_secs_f64() * share);
                faults.extend(links[target].map(|(link, nominal)| (at, Fault::Delay(link, delay(nominal)))));
            }
            Self::Loss { links, least, most } => {
                let p = least + (most - least) * random.uniform();
                let loss = if p > 0.0 { LossModel::Bernoulli { p } } else { LossModel::None };
                faults.extend(links[target].map(|link| (at, Fault::Loss(link, loss))));
            }
            Self::Outage { links, lasts } => {
                faults.extend(links[target].map(|link| (at, Fault::LinkDown(link))));
                faults.extend(links[target].map(|link| (at + *lasts, Fault::LinkUp(link))));
            }
            Self::Death { nodes, lasts, how } => {
                faults.push((at, Fault::NodeFails(nodes[target], *how)));
                faults.push((at + *lasts, Fault::NodeRecovers(nodes[target])));
            }
        }
    }
}

impl RandomEvent {
    /// What happens in one run, and when.
    pub fn draw(&self, seed: u64, run: u64) -> Vec<(Instant, Fault)> {
        let mut random = Stream::new(seed, run, &self.name, self.what.purpose());
        let mut faults = Vec::new();
        let mut at = self.start;
        loop {
            at += match self.spacing {
                SpacingName::Constant => self.every,
                SpacingName::Poisson => exponential(self.every, &mut random),
            };
            if at >= self.stop {
                return faults;
            }
            let targets = self.what.targets();
            let struck = match self.pick {
                Pick::All => 0..targets,
                Pick::One => {
                    let one = random.range(0..=targets as u64 - 1) as usize;
                    one..one + 1
                }
            };
            for target in struck {
                self.what.strike(at, target, &mut random, &mut faults);
            }
        }
    }
}
