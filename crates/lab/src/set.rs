//! The experiment of the SET paper: a file striped over split-TCP sessions through several
//! gateways, and the baselines of section 6. The network is that of Figure 9: a correspondent node,
//! gateways on separate wired links, behind each of them a row of `hops` wireless links, and the
//! node at the end.
//!
//! Code map: [`TEMPLATE`] is the scenario and how parameters change it; `radio` places the nodes on
//! a channel; [`transfer`] is the same transfer for the closed form; [`figures`] and [`claims`]
//! reproduce section 6, and [`reproduction`] combines them.

pub mod claims;
mod config;
pub mod figures;
mod model;
mod open;
mod radio;
pub mod reproduction;

use std::collections::BTreeMap;

use anabranch_scenario::record::SetFigures;
use anabranch_scenario::{Plan, Scenario};
use anabranch_sim::apps::set::SetSender;

pub use config::{Failing, Scheme, TEMPLATE, canonical, losses, quantities};
pub use model::{Equations, transfer};

use crate::experiment::template::Templated;
use crate::experiment::{
    self, Chance, Experiment, Metric, Parameter, ParameterError, Point, RunError, Settings,
};

/// Published numbers: see [`crate::targets`].
pub(crate) const TARGETS: &str = include_str!("set/targets.toml");

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

    fn build(&self) -> &'static str {
        experiment::BUILD
    }

    fn parameters(&self) -> &'static [Parameter] {
        TEMPLATE.parameters
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError> {
        Ok(Box::new(SetPoint::new(settings)?))
    }
}

/// A configuration that is ready to run, with its closed form.
#[derive(Debug)]
pub struct SetPoint {
    templated: Templated,
    model: Option<f64>,
}

impl SetPoint {
    /// Prepares a configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn new(settings: &Settings) -> Result<Self, ParameterError> {
        let settings = canonical(settings)?;
        Ok(Self { templated: TEMPLATE.point(&settings)?, model: model::latency(&settings)? })
    }

    fn is_radio(&self) -> bool {
        self.templated.scenario.radio.is_some()
    }
}

impl Point for SetPoint {
    fn scenario(&self) -> &Scenario {
        &self.templated.scenario
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.templated.texts()
    }

    fn chance(&self) -> Chance {
        // On the radio, back-offs are random even without loss.
        let losses = losses(&self.templated.settings).expect("the point was made of them");
        let random = self.is_radio() || losses.iter().any(|loss| *loss > 0.0);
        if random { Chance::Random } else { Chance::None }
    }

    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError> {
        let figures = simulate(&self.templated.scenario, seed, run)?;
        Ok(vec![
            figures.latency.map(|d| d.as_secs_f64()),
            figures.establishment.map(|d| d.as_secs_f64()),
            figures.goodput(),
            Some(figures.retransmissions as f64),
            Some(figures.gateway_drops as f64),
            // A radio's queue counts packets, and only those that it refuses.
            (!self.is_radio()).then_some(figures.gateway_queue_peak_bytes as f64),
            self.model,
        ])
    }
}

/// Runs the scenario until its first transfer has ended at both ends, and returns the transfer's
/// figures.
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
        about: "from the request until the last byte is delivered in order",
    },
    Metric {
        name: "establishment_s",
        unit: "s",
        about: "from the request until the first session is open, or the baseline's connection",
    },
    Metric { name: "goodput_bit_per_s", unit: "bit/s", about: "bytes delivered over the latency" },
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
