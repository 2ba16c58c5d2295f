//! Results of a run: the resolved scenario, its hash, and metrics by name with their units.

mod buffers;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::coap::Counters;
use anabranch_core::set::{Moments, PhaseSpan, TransferPhase};
use anabranch_core::tcp::Info;
use anabranch_core::time::{Duration, Instant};

use super::deployment::Undrawable;
#[cfg(feature = "schema")]
use super::file::FileConfig;
use super::{
    ContentSpec, Plan, Planned, PlannedCoap, PlannedSet, PlannedTraffic, PlannedTransfer, Scenario, Scheme,
    TransferSpec,
};
use anabranch_sim::apps::coap::CoapEnd;
use anabranch_sim::apps::set::{SetNode, SetRelay, SetSender};
use anabranch_sim::apps::{BulkSender, MultipathInfo, Outcome, Sink};
use anabranch_sim::link::discipline::DisciplineConfig;
use anabranch_sim::packet::NodeId;
use anabranch_sim::probe::Figure;
use anabranch_sim::sim::Simulation;

/// A number with its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Metric {
    /// The value; `null` in JSON if there is none, such as the latency of a transfer that was not
    /// delivered.
    pub value: Option<f64>,
    /// Unit: `1`, `s`, `B`, `bit/s`, `J`.
    pub unit: &'static str,
}

/// Metrics by name.
pub type Metrics = BTreeMap<String, Metric>;

/// Name of the metric with the duration of runs that have no latency:
/// `transfer.NAME.latency_censored_s` for `transfer.NAME.latency_s`. `None` if `metric` is not the
/// latency of a transfer.
pub fn censored_by(metric: &str) -> Option<String> {
    let place = metric.strip_prefix("transfer.")?.strip_suffix(".latency_s")?;
    Some(format!("transfer.{place}.latency_censored_s"))
}

/// The JSON Schema of scenario files.
#[cfg(feature = "schema")]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(FileConfig).to_value()
}

impl Scenario {
    /// The resolved scenario as JSON with sorted keys: equal scenarios give equal text. The seed is
    /// not included.
    pub fn canonical_json(&self) -> String {
        let mut value = serde_json::to_value(self.erased()).expect("a scenario has only string keys");
        if let Some(object) = value.as_object_mut() {
            object.remove("seed");
        }
        // `Value::to_string` would go through `fmt`, which takes twice as long.
        serde_json::to_string(&value).expect("a value is JSON")
    }

    /// The resolved scenario as JSON, with keys in the order of the reference.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self.erased()).expect("a scenario has only string keys")
    }

    /// The resolved scenario as a scenario file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self.erased()).expect("a scenario has only string keys")
    }

    /// The resolved scenario behind `erased_serde`. Its hundreds of types are compiled once for all
    /// formats, and once more for the digest, which is made for each point of a sweep.
    fn erased(&self) -> &dyn erased_serde::Serialize {
        self.resolved()
    }

    /// The metrics of a run: of each transfer (`transfer.NAME.…`), each direction of a link
    /// (`link.A>B.…`, and `link.A>B.air.…` over the air next to a cable), each node on the channel
    /// (`radio.NODE.…`), each probe (`probe.NAME.…`), each pool of send buffers (`buffers.NODE.…`),
    /// and each node that has dropped packets (`node.NAME.…`). A run without pending events counts
    /// as lasting until `stop`.
    pub fn metrics(&self, plan: &Planned, sim: &Simulation) -> Metrics {
        let end = if sim.is_idle() { sim.now().max(self.stop) } else { sim.now() };
        self.metrics_until(plan, sim, end)
    }

    /// [`Scenario::metrics`] of a run that has lasted until `end`.
    pub fn metrics_until(&self, plan: &Planned, sim: &Simulation, end: Instant) -> Metrics {
        let mut metrics = Metrics::new();
        for planned in &plan.transfers {
            self.transfer_metrics(&mut metrics, planned, sim, end);
        }
        for planned in &plan.coaps {
            self.coap_metrics(&mut metrics, planned, sim, end);
        }
        for planned in &plan.sets {
            self.set_metrics(&mut metrics, planned, plan, sim, end);
        }
        for planned in &plan.traffic {
            traffic::metrics(&mut metrics, &self.traffic[planned.index], planned, sim, end);
        }
        let network = &sim.world().network;
        let cables = network.links().iter().filter(|link| !link.is_wireless());
        let cables: BTreeSet<(NodeId, NodeId)> = cables.map(|link| (link.from(), link.to())).collect();
        for link in network.links() {
            let (from, to) = (link.from(), link.to());
            // A moving node has a link to every other node; most of these links never carry a
            // packet.
            if link.is_wireless() && (self.mobile(from).is_some() || self.mobile(to).is_some()) {
                continue;
            }
            let beside = if link.is_wireless() && cables.contains(&(from, to)) { ".air" } else { "" };
            let place = format!("link.{}>{}{beside}", network.node_name(from), network.node_name(to));
            let m = link.metrics();
            let figures = [
                ("packets", m.delivered, "1"),
                ("bytes", m.delivered_bytes, "B"),
                ("dropped_queue_full", m.dropped_full, "1"),
                ("dropped_loss", m.dropped_loss, "1"),
                ("dropped_down", m.dropped_down + m.cut, "1"),
                ("dropped_mtu", m.dropped_mtu, "1"),
            ];
            for (name, value, unit) in figures {
                put(&mut metrics, &place, name, Some(value as f64), unit);
            }
            let is_managed = link.config().discipline != DisciplineConfig::DropTail;
            if is_managed {
                put(&mut metrics, &place, "dropped_early", Some(m.dropped_early as f64), "1");
            }
            if is_managed || link.config().ecn_threshold.is_some() {
                put(&mut metrics, &place, "ecn_marked", Some(m.marked as f64), "1");
            }
            // A node on the channel has one queue and one transmitter for all its links.
            if !link.is_wireless() {
                put(&mut metrics, &place, "queue_peak_packets", Some(m.peak_packets as f64), "1");
                put(&mut metrics, &place, "queue_peak_bytes", Some(m.peak_bytes as f64), "B");
                put(&mut metrics, &place, "busy_s", Some(link.busy(end).as_secs_f64()), "s");
            }
            if link.config().arq.is_some() {
                put(&mut metrics, &place, "arq_retransmissions", Some(link.repeated(end) as f64), "1");
            }
            if let Some(capacity) = link.cable().and_then(|cable| cable.capacity(end)) {
                put(&mut metrics, &place, "trace_bytes", Some(capacity as f64), "B");
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let Some((place, figures)) = network.medium_figures(end, NodeId(i as u32)) else { continue };
            let place = format!("{place}.{}", node.name);
            figures
                .into_iter()
                .for_each(|(name, value, unit)| put(&mut metrics, &place, name, Some(value), unit));
        }
        buffers::metrics(&mut metrics, &self.nodes, sim);
        self.node_metrics(&mut metrics, sim);
        for probe in sim.probes() {
            let place = format!("probe.{}", probe.name);
            for Figure { name, value, unit } in probe.figures(end, sim.world()) {
                put(&mut metrics, &place, &name, value, unit);
            }
        }
        metrics
    }

    /// Packets dropped by nodes, not by links. Nodes without drops have no metrics.
    fn node_metrics(&self, metrics: &mut Metrics, sim: &Simulation) {
        for (i, node) in self.nodes.iter().enumerate() {
            let m = sim.world().network.node_metrics(NodeId(i as u32));
            let figures = [
                ("dropped_no_route", m.no_route),
                ("dropped_hop_limit", m.hop_limit),
                ("dropped_down", m.down),
            ];
            for (name, value) in figures.into_iter().filter(|(_, value)| *value > 0) {
                put(metrics, &format!("node.{}", node.name), name, Some(value as f64), "1");
            }
        }
    }

    fn transfer_metrics(
        &self,
        metrics: &mut Metrics,
        planned: &PlannedTransfer,
        sim: &Simulation,
        end: Instant,
    ) {
        let spec = &self.transfers[planned.index];
        let place = format!("transfer.{}", spec.name);
        let (sender, sink) = (planned.latest(sim), sim.app::<Sink>(planned.sink));
        let started = sim.app::<BulkSender>(planned.sender).started;
        let since = |began: Option<Instant>, t: Instant| Some(t.saturating_since(began?).as_secs_f64());
        let delivered = match spec.repeat {
            Some(_) => sink.bytes(),
            // A restarted sender begins again with the first byte.
            None => sink.transfers.last().map_or(0, |t| t.bytes),
        };
        let last = sink.transfers.last().map(|t| t.last);
        let done = sender.outcome == Outcome::Done;
        let complete = last.filter(|_| sender.octets().is_some_and(|octets| delivered >= octets));
        let goodput = goodput_until(spec, started, delivered, complete.unwrap_or(end));
        let latency = last.filter(|_| done).and_then(|last| since(started, last));
        put(metrics, &place, "latency_s", latency, "s");
        put_censored(metrics, (&place, spec), started, latency.is_none(), end);
        let establishment = sender.opened.and_then(|opened| since(sender.started, opened));
        put(metrics, &place, "establishment_s", establishment, "s");
        put(metrics, &place, "goodput_bit_per_s", goodput, "bit/s");
        put(metrics, &place, "delivered_bytes", Some(delivered as f64), "B");
        put(metrics, &place, "delivered", Some(f64::from(u8::from(done))), "1");
        let current = |app| sim.app::<BulkSender>(app).current(sim.world(), spec.from).0;
        let infos: Vec<Info> = planned.all_senders().filter_map(current).collect();
        // A sender without a connection has sent nothing.
        let count = |f: fn(&Info) -> u64| Some(infos.iter().map(f).sum::<u64>() as f64);
        put(metrics, &place, "retransmissions", count(|i| i.retransmissions), "1");
        put(metrics, &place, "timeouts", count(|i| i.timeouts), "1");
        put(metrics, &place, "fast_retransmits", count(|i| i.fast_retransmits), "1");
        let (info, multipath) = sender.current(sim.world(), spec.from);
        let srtt = info.and_then(|i| i.srtt).map(|d| d.as_secs_f64());
        put(metrics, &place, "srtt_s", srtt, "s");
        if spec.repeat.is_some() {
            put(metrics, &place, "connections", Some(sink.transfers.len() as f64), "1");
        }
        if let Some(multipath) = &multipath {
            multipath_metrics(metrics, &place, multipath);
        }
    }

    fn coap_metrics(&self, metrics: &mut Metrics, planned: &PlannedCoap, sim: &Simulation, end: Instant) {
        let spec = &self.transfers[planned.index];
        let place = format!("transfer.{}", spec.name);
        let started = sim.app::<CoapEnd>(planned.client).started;
        let receiver = sim.app::<CoapEnd>(planned.receiver);
        let (delivered, received) = (receiver.octets(), receiver.received);
        let latency = received.and_then(|at| Some(at.saturating_since(started?).as_secs_f64()));
        put(metrics, &place, "latency_s", latency, "s");
        put_censored(metrics, (&place, spec), started, latency.is_none(), end);
        let goodput = goodput_until(spec, started, delivered, received.unwrap_or(end));
        put(metrics, &place, "goodput_bit_per_s", goodput, "bit/s");
        put(metrics, &place, "delivered_bytes", Some(delivered as f64), "B");
        put(metrics, &place, "delivered", Some(f64::from(u8::from(received.is_some()))), "1");
        let ends = [planned.client, planned.server].map(|app| sim.app::<CoapEnd>(app).counters());
        let sum = |count: fn(&Counters) -> u64| Some(ends.iter().map(count).sum::<u64>() as f64);
        put(metrics, &place, "datagrams", sum(|counters| counters.sent), "1");
        put(metrics, &place, "retransmissions", sum(|counters| counters.retransmissions), "1");
        put(metrics, &place, "timeouts", sum(|counters| counters.timeouts), "1");
    }

    fn set_metrics(
        &self,
        metrics: &mut Metrics,
        planned: &PlannedSet,
        plan: &Planned,
        sim: &Simulation,
        end: Instant,
    ) {
        let spec = &self.transfers[planned.index];
        let place = format!("transfer.{}", spec.name);
        let figures = SetFigures::of(planned, plan, sim);
        let sender = sim.app::<SetSender>(planned.sender);
        let complete = sim.app::<SetNode>(planned.node).completed;
        let goodput = goodput_until(spec, sender.started, figures.delivered, complete.unwrap_or(end));
        let relays = plan.relays.iter().map(|(gateway, relay)| {
            sim.app::<SetRelay>(*relay).current_wireless_totals(sim.world(), *gateway).retransmissions
        });
        let retransmissions = sender.current_retransmissions(sim.world(), spec.from) + relays.sum::<u64>();
        put(metrics, &place, "latency_s", figures.latency.map(|d| d.as_secs_f64()), "s");
        put_censored(metrics, (&place, spec), sender.started, figures.latency.is_none(), end);
        put(metrics, &place, "establishment_s", figures.establishment.map(|d| d.as_secs_f64()), "s");
        if is_striped(spec) {
            phase_metrics(metrics, &place, sender);
        }
        put(metrics, &place, "goodput_bit_per_s", goodput, "bit/s");
        put(metrics, &place, "delivered_bytes", Some(figures.delivered as f64), "B");
        put(metrics, &place, "delivered", Some(f64::from(u8::from(figures.latency.is_some()))), "1");
        put(metrics, &place, "retransmissions", Some(retransmissions as f64), "1");
        put(metrics, &place, "sessions", Some(figures.sessions as f64), "1");
        put(metrics, &place, "gateway_drops", Some(figures.gateway_drops as f64), "1");
        put(metrics, &place, "gateway_queue_peak_bytes", Some(figures.gateway_queue_peak_bytes as f64), "B");
    }

    /// Runs a scenario to its end, for one seed and run number.
    ///
    /// # Errors
    ///
    /// If the nodes cannot be placed as the scenario requires.
    pub fn run(
        &self,
        seed: u64,
        run: u64,
        files: &BTreeMap<String, bytes::Bytes>,
    ) -> Result<(Simulation, Metrics), Undrawable> {
        let Plan { builder, planned } = self.plan(seed, run, files)?;
        let mut sim = builder.build();
        sim.run_until(self.stop);
        let metrics = self.metrics(&planned, &sim);
        Ok((sim, metrics))
    }
}

/// Whether a transfer is SET, and not one of the baselines that its machines also run.
pub(super) fn is_striped(spec: &TransferSpec) -> bool {
    matches!(&spec.scheme, Scheme::Set(set) if set.plan == anabranch_core::set::Plan::Stripe)
}

/// Durations of the phases at the sender.
fn phase_metrics(metrics: &mut Metrics, place: &str, sender: &SetSender) {
    let spans: Vec<PhaseSpan> = sender.moments().into_iter().flat_map(Moments::phases).collect();
    for (i, phase) in TransferPhase::ALL.into_iter().enumerate() {
        let span = spans.get(i).map(|span| span.length().as_secs_f64());
        put(metrics, place, &format!("phase.{}_s", phase.name()), span, "s");
    }
}

/// Results of a transfer that began with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SetFigures {
    /// Time from the request until the last byte was delivered in order; `None` if it was not.
    pub latency: Option<Duration>,
    /// Time from the request until the first session was open; `None` if none was. For the
    /// baselines: until the node had answered and the connection for the data was open.
    pub establishment: Option<Duration>,
    /// Bytes read from the node's receive buffer.
    pub delivered: u64,
    /// TCP retransmissions of this sender, and of the gateways to nodes.
    pub retransmissions: u64,
    /// Number of sessions that were opened or attempted.
    pub sessions: usize,
    /// Packets that the gateways' queues dropped.
    pub gateway_drops: u64,
    /// Peak length in bytes of the gateways' queues.
    pub gateway_queue_peak_bytes: u64,
}

impl SetFigures {
    /// Reads the results during or after a run.
    pub fn of(planned: &PlannedSet, plan: &Planned, sim: &Simulation) -> Self {
        let sender = sim.app::<SetSender>(planned.sender);
        let node = sim.app::<SetNode>(planned.node);
        let since_start = |t: Instant| Some(t.saturating_since(sender.started?));
        let mut figures = Self {
            latency: node.completed.and_then(since_start),
            establishment: sender.established.and_then(since_start),
            delivered: node.delivered.len() as u64,
            retransmissions: sender.retransmissions(),
            sessions: sender.sessions().len(),
            ..Self::default()
        };
        for (gateway, relay) in &plan.relays {
            figures.retransmissions += sim.app::<SetRelay>(*relay).wireless_totals().retransmissions;
            let out = sim.world().network.links().iter().filter(|l| l.from() == *gateway);
            for link in out {
                figures.gateway_drops += link.metrics().dropped_full;
                figures.gateway_queue_peak_bytes =
                    figures.gateway_queue_peak_bytes.max(link.metrics().peak_bytes);
            }
        }
        figures
    }

    /// Bytes delivered divided by the latency, in bit/s.
    pub fn goodput(&self) -> Option<f64> {
        let seconds = self.latency?.as_secs_f64();
        (seconds > 0.0).then(|| self.delivered as f64 * 8.0 / seconds)
    }
}

/// Rate of delivery in bit/s, from the request (or its scheduled time) until `until`: the end of
/// the delivery, or of the run. `None` if no time has passed.
fn goodput_until(
    spec: &TransferSpec,
    started: Option<Instant>,
    delivered: u64,
    until: Instant,
) -> Option<f64> {
    let started = started.unwrap_or(Instant::ZERO + spec.start);
    let seconds = until.saturating_since(started).as_secs_f64();
    (seconds > 0.0).then(|| delivered as f64 * 8.0 / seconds)
}

/// Adds the duration of a limited transfer that was not delivered, whether it was in progress or
/// had failed when the run ended. The latency is censored: it is longer than this duration.
fn put_censored(
    metrics: &mut Metrics,
    (place, spec): (&str, &TransferSpec),
    started: Option<Instant>,
    is_undelivered: bool,
    end: Instant,
) {
    let has_end = !matches!(spec.content, ContentSpec::Endless) && spec.repeat.is_none();
    let time = end.saturating_since(started.unwrap_or(Instant::ZERO + spec.start));
    if is_undelivered && has_end && !time.is_zero() {
        put(metrics, place, "latency_censored_s", Some(time.as_secs_f64()), "s");
    }
}

/// Metrics of a Multipath TCP connection and of each of its subflows (`transfer.NAME.subflow.N.…`),
/// numbered from 0 in the order of opening.
fn multipath_metrics(metrics: &mut Metrics, place: &str, multipath: &MultipathInfo) {
    put(metrics, place, "reinjections", Some(multipath.connection.reinjections as f64), "1");
    put(metrics, place, "subflows", Some(multipath.subflows.len() as f64), "1");
    for subflow in &multipath.subflows {
        let place = format!("{place}.subflow.{}", subflow.id.0);
        put(metrics, &place, "path", Some(subflow.path.0.into()), "1");
        put(metrics, &place, "assigned_bytes", Some(subflow.bytes_assigned as f64), "B");
        put(metrics, &place, "retransmissions", Some(subflow.tcp.retransmissions as f64), "1");
        put(metrics, &place, "timeouts", Some(subflow.tcp.timeouts as f64), "1");
        put(metrics, &place, "srtt_s", subflow.tcp.srtt.map(|srtt| srtt.as_secs_f64()), "s");
    }
}

fn put(metrics: &mut Metrics, place: &str, name: &str, value: Option<f64>, unit: &'static str) {
    metrics.insert(format!("{place}.{name}"), Metric { value, unit });
}
