//! Transmissions on the air over time.

use anabranch_core::time::Instant;
use anabranch_sim::sim::Simulation;

/// Times at which segments were passed to a node's radio, in seconds since the sources began,
/// ascending.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Activity {
    /// Data segments.
    pub data: Vec<f64>,
    /// For each data segment, whether it reached the next node.
    pub arrived: Vec<bool>,
    /// Acknowledgements.
    pub acks: Vec<f64>,
}

impl Activity {
    /// Reads what the probe [`super::AIR`] recorded of a run whose sources began at `begin`.
    pub(super) fn of(sim: &Simulation, begin: Instant) -> Self {
        let points = |name| sim.probed_series(super::AIR, name).expect("it was asked to keep them").points;
        let seconds = |at: Instant| at.saturating_since(begin).as_secs_f64();
        let (data, arrived) =
            points("data_hops").into_iter().map(|(at, arrived)| (seconds(at), arrived == 1.0)).unzip();
        let acks = points("ack_hops").into_iter().map(|(at, _)| seconds(at)).collect();
        Self { data, arrived, acks }
    }

    /// Number of data segments and acknowledgements passed to a radio until this time.
    pub fn transmissions(&self, until: f64) -> usize {
        count(&self.data, until) + count(&self.acks, until)
    }

    /// Share of the data segments passed to a radio until this time that eventually reached the
    /// next node; 0 without any.
    pub fn delivery_ratio(&self, until: f64) -> f64 {
        let sent = &self.arrived[..count(&self.data, until)];
        sent.iter().filter(|arrived| **arrived).count() as f64 / sent.len().max(1) as f64
    }
}

/// Number of times that are not later than `until`.
fn count(times: &[f64], until: f64) -> usize {
    times.partition_point(|at| *at <= until)
}
