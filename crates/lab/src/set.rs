//! The experiment of the SET paper: a file striped over split-TCP sessions through several gateways, and the
//! baselines that section 6 compares it with. Figure 9's network: a correspondent node, gateways on wired
//! links of their own, behind each of them `hops` wireless links in a row, and the node at the end of all.
//!
//! Code map: [`Config`] is what the parameters mean; `network` makes a scenario of it; [`Config::model`] is
//! the same transfer for the closed form; [`figures`] and [`claims`] are section 6,
//! [`reproduction`] puts them together.

pub mod claims;
mod config;
pub mod figures;
mod model;
mod network;
mod parameters;
mod radio;
pub mod reproduction;

use std::collections::BTreeMap;

use anabranch_sim::apps::set::SetSender;
use anabranch_sim::scenario::record::SetFigures;
use anabranch_sim::scenario::{Plan, Scenario};

pub use config::{Config, Failing, Medium, PerGateway, Scheme, Tcp};
pub use model::Equations;

use crate::experiment::{Chance, Experiment, Metric, Parameter, ParameterError, Point, RunError, Settings};

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Set;

impl Experiment for Set {
    fn name(&self) -> &'static str {
        "set"
    }

    fn about(&self) -> &'static str {
        "a file to one node through several gateways: SET, split TCP and end-to-end TCP"
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::PARAMETERS
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError> {
        Ok(Box::new(SetPoint::new(Config::understand(settings)?)))
    }
}

/// A configuration with its scenario and its closed form, both of which every run shares.
#[derive(Debug)]
pub struct SetPoint {
    config: Config,
    scenario: Result<Scenario, RunError>,
    model: Option<f64>,
}

impl SetPoint {
    /// Ready to run.
    pub fn new(config: Config) -> Self {
        let scenario = config.scenario();
        let model = config.model_latency();
        Self { config, scenario, model }
    }
}

impl Point for SetPoint {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.config.texts()
    }

    fn chance(&self) -> Chance {
        // On the radio backoffs are random.
        let random =
            self.config.medium == Medium::Radio || self.config.wireless_loss.all().iter().any(|p| *p > 0.0);
        if random { Chance::Random } else { Chance::None }
    }

    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError> {
        let scenario = self.scenario.as_ref().map_err(RunError::clone)?;
        let figures = simulate(scenario, seed, run)?;
        Ok(vec![
            figures.latency.map(|d| d.as_secs_f64()),
            figures.establishment.map(|d| d.as_secs_f64()),
            figures.goodput(),
            Some(figures.retransmissions as f64),
            Some(figures.gateway_drops as f64),
            // A radio's queue counts packets, and only those that it refuses.
            (self.config.medium == Medium::Links).then_some(figures.gateway_queue_peak_bytes as f64),
            self.model,
        ])
    }
}

/// Runs the scenario until its first transfer is over, at both ends, and returns that one's figures.
pub fn simulate(scenario: &Scenario, seed: u64, run: u64) -> Result<SetFigures, RunError> {
    let Plan { builder, planned } = scenario.plan(seed, run, &BTreeMap::new())?;
    let mut sim = builder.build();
    let first = planned.sets.first().expect("the experiment's first transfer is one with a request");
    while sim.app::<SetSender>(first.sender).outcome().is_none() && sim.now() < scenario.stop && sim.step() {}
    Ok(SetFigures::of(first, &planned, &sim))
}

const METRICS: &[Metric] = &[
    Metric {
        name: "latency_s",
        unit: "s",
        about: "from the request until the last octet is delivered in order",
    },
    Metric {
        name: "establishment_s",
        unit: "s",
        about: "from the request until the first session is open, or the baseline's connection",
    },
    Metric { name: "goodput_bit_per_s", unit: "bit/s", about: "octets delivered over the latency" },
    Metric {
        name: "retransmissions",
        unit: "1",
        about: "segments sent again by the sender and the gateways",
    },
    Metric { name: "gateway_drops", unit: "1", about: "packets that the gateways' queues refused" },
    Metric {
        name: "gateway_queue_peak_bytes",
        unit: "B",
        about: "the most that waited in one of the gateways' queues",
    },
    Metric {
        name: "model_latency_s",
        unit: "s",
        about: "latency by the closed form, without losses and failures; none for end-to-end TCP",
    },
];

#[cfg(test)]
mod tests;
