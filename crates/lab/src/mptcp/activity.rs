//! What moves over the air, as time goes on.

use anabranch_core::time::Instant;
use anabranch_sim::sim::Simulation;

/// When segments were given to the radio of a node, in seconds from when the sources began, in
/// order of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Activity {
    /// Data segments.
    pub data: Vec<f64>,
    /// Whether each of them reached the next node.
    pub arrived: Vec<bool>,
    /// Acknowledgements.
    pub acks: Vec<f64>,
}

impl Activity {
    /// What the probe [`super::AIR`] has kept of a run whose sources began at `begin`.
    pub(super) fn of(sim: &Simulation, begin: Instant) -> Self {
        let points = |name| sim.probed_series(super::AIR, name).expect("it was asked to keep them").points;
        let seconds = |at: Instant| at.saturating_since(begin).as_secs_f64();
        let (data, arrived) =
            points("data_hops").into_iter().map(|(at, arrived)| (seconds(at), arrived == 1.0)).unzip();
        let acks = points("ack_hops").into_iter().map(|(at, _)| seconds(at)).collect();
        Self { data, arrived, acks }
    }

    /// Data segments and acknowledgements given to a radio until then.
    pub fn transmissions(&self, until: f64) -> usize {
        count(&self.data, until) + count(&self.acks, until)
    }

    /// Of the data segments given to a radio until then, the share that reached the next node,
    /// sooner or later; 0 if there was none.
    pub fn delivery_ratio(&self, until: f64) -> f64 {
        let sent = &self.arrived[..count(&self.data, until)];
        sent.iter().filter(|arrived| **arrived).count() as f64 / sent.len().max(1) as f64
    }
}

/// How many of the times are not later.
fn count(times: &[f64], until: f64) -> usize {
    times.partition_point(|at| *at <= until)
}
