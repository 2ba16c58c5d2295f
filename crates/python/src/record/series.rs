//! Time series of a run as tables.

use anabranch_core::time::Duration;
use anabranch_scenario::series::Sampler;
use anabranch_sweep::series::Columns;
use anabranch_sweep::table::Frame;

use super::*;

/// Makes a run and returns its time series by name, without empty ones.
pub(crate) fn series(
    scenario: &Scenario,
    files: &Files,
    (seed, run): (u64, u64),
    every: Duration,
    stop: &AtomicBool,
) -> Result<Vec<(&'static str, Frame)>, Fault> {
    let Plan { builder, planned } = scenario
        .plan(seed, run, files)
        .map_err(|error| Fault::new(error.to_string()).with_hint(error.hint()))?;
    let mut sim = builder.build();
    let mut sampler = Sampler::new(Columns::default(), every, scenario, &planned, &mut sim);
    sim.run_in_parts(scenario.stop, |sim, end| sampler.run_until(sim, end), || look(stop))?;
    let tables = sampler.finish(&mut sim).tables().into_iter();
    tables.map(|(name, columns)| Ok((name, Frame::new(columns)?))).collect()
}
