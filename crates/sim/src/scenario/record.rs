//! What a run has to say for itself: the resolved scenario, its hash, and metrics by name with their units.

use std::collections::BTreeMap;

use anabranch_core::tcp::Info;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::file::FileConfig;
use super::{Plan, PlannedTransfer, Scenario};
use crate::apps::{BulkSender, Outcome, Sink};
use crate::sim::Simulation;

/// A figure with its unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Metric {
    /// The figure; `null` in JSON if there is none, as for a transfer that has not ended.
    pub value: Option<f64>,
    /// Its unit: `1`, `s`, `B`, `bit/s`.
    pub unit: &'static str,
}

/// Metrics by name.
pub type Metrics = BTreeMap<String, Metric>;

/// The JSON Schema of scenario files.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(FileConfig).to_value()
}

impl Scenario {
    /// The resolved scenario as JSON with sorted keys: equal scenarios give equal text. The seed is not part
    /// of it.
    pub fn canonical_json(&self) -> String {
        let mut value = serde_json::to_value(self.resolved()).expect("a scenario has only string keys");
        if let Some(object) = value.as_object_mut() {
            object.remove("seed");
        }
        value.to_string()
    }

    /// The resolved scenario as a scenario file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self.resolved()).expect("a scenario has only string keys")
    }

    /// SHA-256 of [`Scenario::canonical_json`], in hexadecimal.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.canonical_json().as_bytes());
        digest.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    /// The figures of a run: of each TCP transfer (`transfer.NAME.…`), of each direction of a link
    /// (`link.A>B.…`).
    pub fn metrics(&self, plan: &[PlannedTransfer], sim: &Simulation) -> Metrics {
        let mut metrics = Metrics::new();
        for planned in plan {
            self.transfer_metrics(&mut metrics, planned, sim);
        }
        let network = &sim.world().network;
        for link in network.links() {
            let place = format!("link.{}>{}", network.node_name(link.from()), network.node_name(link.to()));
            let m = link.metrics();
            let figures = [
                ("packets", m.delivered, "1"),
                ("bytes", m.delivered_bytes, "B"),
                ("dropped_queue_full", m.dropped_full, "1"),
                ("dropped_loss", m.dropped_loss, "1"),
                ("dropped_down", m.dropped_down + m.cut, "1"),
                ("dropped_mtu", m.dropped_mtu, "1"),
                ("queue_peak_packets", m.peak_packets, "1"),
                ("queue_peak_bytes", m.peak_bytes, "B"),
            ];
            for (name, value, unit) in figures {
                put(&mut metrics, &place, name, Some(value as f64), unit);
            }
            put(&mut metrics, &place, "busy_s", Some(m.busy.as_secs_f64()), "s");
        }
        metrics
    }

    fn transfer_metrics(&self, metrics: &mut Metrics, planned: &PlannedTransfer, sim: &Simulation) {
        let spec = &self.transfers[planned.index];
        let place = format!("transfer.{}", spec.name);
        let sender = sim.app::<BulkSender>(planned.sender);
        let received = sim.app::<Sink>(planned.sink).transfers.last();
        let since_start =
            |t: anabranch_core::time::Instant| Some(t.saturating_since(sender.started?).as_secs_f64());
        let delivered = received.map_or(0, |t| t.bytes);
        let took = received.and_then(|t| since_start(t.last));
        let complete = sender.outcome == Outcome::Done;
        let goodput = took.filter(|s| *s > 0.0).map(|s| delivered as f64 * 8.0 / s);
        put(metrics, &place, "latency_s", took.filter(|_| complete), "s");
        put(metrics, &place, "establishment_s", sender.opened.and_then(since_start), "s");
        put(metrics, &place, "goodput_bit_per_s", goodput, "bit/s");
        put(metrics, &place, "delivered_bytes", Some(delivered as f64), "B");
        put(metrics, &place, "delivered", Some(f64::from(u8::from(complete))), "1");
        let info = sender.info.as_ref();
        let count = |f: fn(&Info) -> u64| info.map(|i| f(i) as f64);
        put(metrics, &place, "retransmissions", count(|i| i.retransmissions), "1");
        put(metrics, &place, "timeouts", count(|i| i.timeouts), "1");
        put(metrics, &place, "fast_retransmits", count(|i| i.fast_retransmits), "1");
        let srtt = info.and_then(|i| i.srtt).map(|d| d.as_secs_f64());
        put(metrics, &place, "srtt_s", srtt, "s");
    }

    /// Runs a scenario of plain TCP transfers to its end, for one seed and run number.
    pub fn run(&self, seed: u64, run: u64, files: &BTreeMap<String, bytes::Bytes>) -> (Simulation, Metrics) {
        let Plan { builder, transfers, .. } = self.plan(seed, run, files);
        let mut sim = builder.build();
        sim.run_until(self.stop);
        let metrics = self.metrics(&transfers, &sim);
        (sim, metrics)
    }
}

fn put(metrics: &mut Metrics, place: &str, name: &str, value: Option<f64>, unit: &'static str) {
    metrics.insert(format!("{place}.{name}"), Metric { value, unit });
}
