//! A row for each flow, at the end of a run.

use anabranch_core::time::Instant;

use super::{Cell, FLOWS, Rows};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Simulation;

/// Writes a row for each flow of each probe that measures flows, after a run; a run without pending
/// events counts as lasting until `stop`. The time of a row is that of the first packet.
pub fn flows(sim: &Simulation, stop: Instant, rows: &mut impl Rows) {
    let world = sim.world();
    let end = if sim.is_idle() { sim.now().max(stop) } else { sim.now() };
    let name = |node: NodeId| world.network.node_name(node);
    for probe in sim.probes() {
        for flow in probe.flows(end, world) {
            let protocol = flow.key.protocol.name();
            let cells: [Cell<'_>; 24] = [
                flow.first_sent.into(),
                probe.name.as_str().into(),
                protocol.as_str().into(),
                name(flow.key.src).into(),
                flow.key.src_port.into(),
                name(flow.key.dst).into(),
                flow.key.dst_port.into(),
                flow.last_received.into(),
                flow.sent_packets.into(),
                flow.sent_bytes.into(),
                flow.received_packets.into(),
                flow.received_bytes.into(),
                flow.payload_bytes.into(),
                flow.lost_packets.into(),
                flow.loss_ratio.into(),
                flow.delay_mean.into(),
                flow.delay_p50.into(),
                flow.delay_p95.into(),
                flow.delay_p99.into(),
                flow.delay_max.into(),
                flow.jitter_mean.into(),
                flow.reordered_ratio.into(),
                flow.throughput.into(),
                flow.goodput.into(),
            ];
            rows.row(FLOWS, &cells);
        }
    }
}
