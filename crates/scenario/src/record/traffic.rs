//! Metrics of traffic sources.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anabranch_core::time::Instant;

use super::super::traffic::{Carrier, TrafficSpec};
use super::{Metrics, PlannedTraffic, put};
use anabranch_sim::apps::cbr::{CbrSink, CbrSource};
use anabranch_sim::apps::messages::{MessageSink, MessageSource};
use anabranch_sim::apps::packets::{Arrived, PacketSink, PacketSource};
use anabranch_sim::apps::rdca::{RdcaSink, RdcaSource};
use anabranch_sim::event::AppId;
use anabranch_sim::math::{jain, quantile};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Simulation;

/// Adds the metrics of a traffic (`traffic.NAME.…`) of a run that has lasted until `end`.
pub(super) fn metrics(
    metrics: &mut Metrics,
    spec: &TrafficSpec,
    planned: &PlannedTraffic,
    sim: &Simulation,
    end: Instant,
) {
    let place = format!("traffic.{}", spec.name);
    let arrived = &*arrived(spec, planned, sim);
    let made: u64 = planned.sources.iter().map(|(_, app)| made(spec, *app, sim)).sum();
    let seconds = end.min(spec.stop).saturating_since(spec.start).as_secs_f64();
    let in_time = arrived.iter().filter(|packet| packet.at <= spec.stop);
    let octets: f64 = in_time.map(|packet| f64::from(packet.len)).sum();
    let throughput = (seconds > 0.0).then(|| octets * 8.0 / seconds);
    let mut delays: Vec<f64> =
        arrived.iter().map(|packet| packet.at.saturating_since(packet.made).as_secs_f64()).collect();
    delays.sort_by(f64::total_cmp);
    let mean = (!delays.is_empty()).then(|| delays.iter().sum::<f64>() / delays.len() as f64);
    let delivered = arrived.len() as f64;
    put(metrics, &place, "sources", Some(planned.sources.len() as f64), "1");
    put(metrics, &place, "packets_made", Some(made as f64), "1");
    put(metrics, &place, "packets_delivered", Some(delivered), "1");
    put(metrics, &place, "delivery_ratio", (made > 0).then(|| delivered / made as f64), "1");
    put(metrics, &place, "throughput_bit_per_s", throughput, "bit/s");
    put(metrics, &place, "delay_mean_s", mean, "s");
    put(metrics, &place, "delay_p50_s", quantile(&delays, 0.5), "s");
    put(metrics, &place, "delay_p95_s", quantile(&delays, 0.95), "s");
    if spec.is_messages() {
        put(metrics, &place, "delay_p99_s", quantile(&delays, 0.99), "s");
        let failures = planned.sources.iter().map(|(_, app)| sim.app::<MessageSource>(*app).failures);
        put(metrics, &place, "failures", Some(failures.map(f64::from).sum()), "1");
    }
    put(metrics, &place, "fairness", fairness(arrived, planned), "1");
}

/// The packets that the receiver's application has received. For requests: those that have been
/// answered, with the length of the reply.
fn arrived<'s>(spec: &TrafficSpec, planned: &PlannedTraffic, sim: &'s Simulation) -> Cow<'s, [Arrived]> {
    if spec.replies.is_some() {
        let of = |(node, app): &(NodeId, AppId)| {
            let answered = sim.app::<MessageSource>(*app).answered.iter();
            answered.map(|reply| Arrived { from: *node, ..*reply }).collect::<Vec<_>>()
        };
        return planned.sources.iter().flat_map(of).collect();
    }
    if spec.is_messages() {
        return Cow::Borrowed(&sim.app::<MessageSink>(planned.sink).arrived);
    }
    Cow::Borrowed(match &spec.carrier {
        Carrier::Udp => &sim.app::<CbrSink>(planned.sink).arrived,
        Carrier::Tcp(_) | Carrier::Mptcp(_) => &sim.app::<PacketSink>(planned.sink).arrived,
        Carrier::Rdca(_) => &sim.app::<RdcaSink>(planned.sink).arrived,
    })
}

/// Number of packets that a source has generated.
fn made(spec: &TrafficSpec, source: AppId, sim: &Simulation) -> u64 {
    if spec.is_messages() {
        return sim.app::<MessageSource>(source).made.into();
    }
    match &spec.carrier {
        Carrier::Udp => sim.app::<CbrSource>(source).sent.into(),
        Carrier::Tcp(_) | Carrier::Mptcp(_) => sim.app::<PacketSource>(source).made_in_all(),
        Carrier::Rdca(_) => sim.app::<RdcaSource>(source).made_in_all(),
    }
}

/// Jain's fairness index over the sources; `None` if nothing was delivered.
fn fairness(arrived: &[Arrived], planned: &PlannedTraffic) -> Option<f64> {
    let mut delivered: BTreeMap<NodeId, f64> = planned.sources.iter().map(|(node, _)| (*node, 0.0)).collect();
    for packet in arrived {
        *delivered.entry(packet.from).or_default() += 1.0;
    }
    jain(&delivered.into_values().collect::<Vec<_>>())
}
