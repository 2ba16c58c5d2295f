//! Without tables there are no time series either: nothing of this can be.

use anabranch_core::time::Instant;
use std::sync::Arc;

use anabranch_sim::scenario::{Planned, Scenario};
use anabranch_sim::sim::{Pause, Simulation};

use crate::address::{Address, RunKey};
use crate::error::Error;
use crate::points::Sweep;

/// There is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Series {}

impl Series {
    pub(crate) fn has(&self, _: &Address) -> bool {
        match *self {}
    }
}

/// There is none.
#[derive(Clone, Debug)]
pub(crate) enum PointSeries {}

impl PointSeries {
    pub(crate) fn shared(series: &Series, _: &Sweep, _: usize) -> Arc<Self> {
        match *series {}
    }

    pub(crate) fn sampler(&self, _: &Scenario, _: &Planned, _: &mut Simulation) -> Sampler {
        match *self {}
    }

    pub(crate) fn write(&self, _: RunKey, _: &Address, _: Sampler, _: &mut Simulation) -> Result<(), Error> {
        match *self {}
    }
}

/// There is none.
pub(crate) enum Sampler {}

impl Sampler {
    pub(crate) fn run_until(&mut self, _: &mut Simulation, _: Instant) -> Pause {
        match *self {}
    }
}
