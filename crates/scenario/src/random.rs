//! Random events, drawn anew for each run.
//!
//! All draws of one `[[random-event]]` come from one stream, `(NAME, PURPOSE)` of the seed and the
//! run, in the order of the events: the time until an event if `spacing` is "poisson", its target
//! if `pick` is "one", then a value for each target.

use anabranch_core::time::{Duration, Instant};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::OrOff;
use super::units::{Probability, Span};
use anabranch_sim::apps::pace::exponential;
use anabranch_sim::loss::LossModel;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::Fault;
use anabranch_sim::world::Failure;

/// Kind of a random event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RandomAction {
    /// Links get another rate: a random factor of their own rate, the same in both directions.
    /// Needs `links` and `rate_share`.
    SetRate,
    /// Links get another delay: a random factor of their own delay, the same in both directions;
    /// see "set-delay" of `[[event]]`. Needs `links` and `delay_share`.
    SetDelay,
    /// Links get another loss probability, the same in both directions; see "set-loss" of
    /// `[[event]]`. Needs `links` and `loss_between`.
    SetLoss,
    /// Both directions of links go down. Needs `links` and `lasts`.
    LinkDown,
    /// Nodes fail. Needs `nodes` and `lasts`; `how` is "silent" if it is not given.
    FailNode,
}

/// Distribution of the time between two events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SpacingName {
    /// Constant: one event in each interval.
    #[default]
    Constant,
    /// Exponential: the events are a Poisson process.
    Poisson,
}

/// Targets of a random event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// All targets, each with its own random value.
    #[default]
    All,
    /// One target, drawn anew for each event.
    One,
}

/// Events with times, targets and values that are drawn anew for each run. Keys that the action
/// does not need are refused.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RandomEventSection {
    /// Unique name. It names the random stream, so another name gives other events.
    pub name: String,
    /// Kind of event.
    pub action: RandomAction,
    /// Affected links: names, or patterns such as "radio*".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// Affected nodes: names, or patterns such as "n*".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    /// Targets of each event.
    #[serde(default)]
    pub pick: Pick,
    /// Mean time between two events, and from `start` to the first event; "off" for no events. It
    /// must give at most 1,000,000 events.
    pub every: OrOff<Span>,
    /// Distribution of the time between two events.
    #[serde(default)]
    pub spacing: SpacingName,
    /// Time before which no event happens.
    #[serde(default = "at_once")]
    pub start: Span,
    /// Time before which all events happen; `stop` of the scenario if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Least and greatest factor on the link's rate in `[[link]]`, more than 0 and at most 1000.
    /// The factor is evenly distributed between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_share: Option<[f64; 2]>,
    /// Least and greatest factor on the link's delay in `[[link]]`, 0 to 1000. The factor is evenly
    /// distributed between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_share: Option<[f64; 2]>,
    /// Least and greatest loss probability. The probability is evenly distributed between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_between: Option<[Probability; 2]>,
    /// Duration of an outage of a link or node, more than 0. Of overlapping outages, the end of the
    /// first ends all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// How nodes fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<Failure>,
}

fn at_once() -> Span {
    Span(Duration::ZERO)
}

/// Events that are drawn anew for each run, resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomEvent {
    /// Name of the events, which also names their stream.
    pub name: String,
    /// Kind of event and possible targets.
    pub what: RandomFault,
    /// Targets of each event.
    pub pick: Pick,
    /// Mean time between two events.
    pub every: Duration,
    /// Distribution of the time between two events.
    pub spacing: SpacingName,
    /// Time before which no event happens.
    pub start: Instant,
    /// Time before which all events happen.
    pub stop: Instant,
}

/// Kind of event, with its possible targets.
#[derive(Clone, PartialEq, Debug)]
pub enum RandomFault {
    /// Links get a rate of a random factor of these rates.
    Rate {
        /// The links in both directions, with their rates in bit/s.
        links: Vec<[(LinkId, u64); 2]>,
        /// Least factor.
        least: f64,
        /// Greatest factor.
        most: f64,
    },
    /// Links get a delay of a random factor of these delays.
    Delay {
        /// The links in both directions, with their delays.
        links: Vec<[(LinkId, Duration); 2]>,
        /// Least factor.
        least: f64,
        /// Greatest factor.
        most: f64,
    },
    /// Links get a loss probability.
    Loss {
        /// The links in both directions.
        links: Vec<[LinkId; 2]>,
        /// Least probability.
        least: f64,
        /// Greatest probability.
        most: f64,
    },
    /// Links go down for a time.
    Outage {
        /// The links in both directions.
        links: Vec<[LinkId; 2]>,
        /// Duration of the outage.
        lasts: Duration,
    },
    /// Nodes fail for a time.
    Death {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// Duration of the outage.
        lasts: Duration,
        /// How the nodes fail.
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

    /// Adds the faults of the event at `at` for one target.
    fn strike(&self, at: Instant, target: usize, random: &mut Stream, faults: &mut Vec<(Instant, Fault)>) {
        match self {
            Self::Rate { links, least, most } => {
                let share = least + (most - least) * random.uniform();
                // At least 1 bit/s: a rate of 0 would be a link that is down, not a slow link.
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
    /// The faults of one run and their times.
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
