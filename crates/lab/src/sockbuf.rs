//! The experiment of "An Adaptive Buffer Tuning Mechanism for striped transport layer connection on
//! multi-homed mobile host" (Khan and Huh), section 4: how the memory of a host with three wireless
//! interfaces is divided.
//!
//! Code map: [`TEMPLATE`] is the scenario and how parameters change it; `meter` summarises a run.
//! [`settings`] are the paper's four, [`response`] measures the control loop; [`tables`],
//! [`figures`] and [`claims`] compare with the printed results, and [`reproduction`] combines them.

pub mod claims;
mod config;
pub mod figures;
mod meter;
mod open;
pub mod reproduction;
pub mod response;
pub mod settings;
pub mod tables;

use anabranch_scenario::Scenario;

pub use config::{Constants, TEMPLATE, Tuner};

use crate::experiment::template::Templated;
use crate::experiment::{
    self, Chance, Experiment, Measured, Metric, Parameter, ParameterError, Point, RunError, Settings,
};
use meter::Network;
pub use meter::{ARRAYS, METRICS, Outcome};

/// Published numbers: see [`crate::targets`].
pub(crate) const TARGETS: &str = include_str!("sockbuf/targets.toml");

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Sockbuf;

impl Experiment for Sockbuf {
    fn name(&self) -> &'static str {
        "sockbuf"
    }

    fn about(&self) -> &'static str {
        "a host with three wireless interfaces and little memory: who gets the send buffers"
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

    fn arrays(&self) -> &'static [Metric] {
        ARRAYS
    }

    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError> {
        Ok(Box::new(SockbufPoint::new(settings)?))
    }
}

/// A configuration that is ready to run.
#[derive(Debug)]
pub struct SockbufPoint(Templated);

impl SockbufPoint {
    /// Prepares a configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn new(settings: &Settings) -> Result<Self, ParameterError> {
        TEMPLATE.point(&config::canonical(settings)?).map(Self)
    }

    /// Makes one run.
    ///
    /// # Errors
    ///
    /// The simulator refuses the network.
    pub fn outcome(&self, seed: u64, run: u64) -> Result<Outcome, RunError> {
        meter::measure(Network::new(&self.0, seed, run)?)
    }
}

impl Point for SockbufPoint {
    fn scenario(&self) -> &Scenario {
        &self.0.scenario
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.0.texts()
    }

    fn chance(&self) -> Chance {
        Chance::Random
    }

    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError> {
        Ok(self.outcome(seed, run)?.values())
    }

    fn measure(&self, seed: u64, run: u64) -> Result<Measured, RunError> {
        let outcome = self.outcome(seed, run)?;
        Ok(Measured { values: outcome.values(), arrays: outcome.arrays() })
    }
}

#[cfg(test)]
pub(crate) mod tests;
