//! Metrics of pools of send buffers.

use anabranch_core::sockbuf::Kind;

use super::super::NodeSpec;
use super::{Metrics, put};
use anabranch_sim::buffers::{BufferMetrics, Buffers};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Simulation;

/// Adds the metrics of each pool (`buffers.NODE.…`) of a run.
pub(super) fn metrics(metrics: &mut Metrics, nodes: &[NodeSpec], sim: &Simulation) {
    for (i, node) in nodes.iter().enumerate() {
        let Some(pool) = sim.world().buffers(NodeId(i as u32)) else { continue };
        let place = format!("buffers.{}", node.name);
        let BufferMetrics { peak_limits, peak_held, overfull, refused } = pool.metrics();
        let (limits, held) = pool.now();
        let octets = [
            ("memory_bytes", pool.threshold()),
            ("peak_limits_bytes", peak_limits),
            ("peak_held_bytes", peak_held),
            ("limits_bytes", limits),
            ("held_bytes", held),
        ];
        for (name, value) in octets {
            put(metrics, &place, name, Some(value as f64), "B");
        }
        put(metrics, &place, "striped_limit_mean_bytes", mean_limit(pool, Kind::Striped), "B");
        put(metrics, &place, "single_limit_mean_bytes", mean_limit(pool, Kind::Single), "B");
        let counts = [
            ("decisions", pool.counters().decisions),
            ("decisions_cut", pool.counters().cut),
            ("connections_refused", refused),
            ("overfull", overfull),
        ];
        for (name, value) in counts {
            put(metrics, &place, name, Some(value as f64), "1");
        }
    }
}

/// The mean limit of connections of a kind over all decisions; `None` if there were none.
fn mean_limit(pool: &Buffers, kind: Kind) -> Option<f64> {
    let shares = pool.history().iter().flat_map(|division| &division.shares);
    let (sum, count) = shares
        .filter(|share| share.kind == kind)
        .fold((0.0, 0u64), |(sum, count), share| (sum + share.limit as f64, count + 1));
    (count > 0).then(|| sum / count as f64)
}
