//! The experiment of "Supporting High Data Rate Sensing Applications in Internet of Things" (Khan
//! and Mian), section 4: nodes near an event send at high rates to one sink over IEEE 802.11 and
//! AODV.
//!
//! Code map: [`TEMPLATE`] is the scenario and how parameters change it; [`sweeps`] makes the
//! paper's two sweeps; [`tables`], [`figures`] and [`claims`] compare with the printed results, and
//! [`reproduction`] combines them.

pub mod claims;
mod config;
pub mod figures;
mod open;
pub mod reproduction;
pub mod sweeps;
pub mod tables;

use std::collections::BTreeMap;

use anabranch_core::time::Instant;
use anabranch_scenario::traffic::{Carrier, TrafficSpec};
use anabranch_scenario::{Plan, PlannedTraffic, Scenario};
use anabranch_sim::apps::cbr::CbrSink;
use anabranch_sim::apps::packets::{Arrived, FirstSent, PacketSink};
use anabranch_sim::apps::rdca::{RdcaSink, RdcaSource};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Simulation;
use anabranch_sim::wifi::Station;

pub use config::{Protocol, TEMPLATE, rate_text};

use crate::experiment::template::Templated;
use crate::experiment::{
    self, Chance, Experiment, Metric, Parameter, ParameterError, Point, RunError, Settings,
};
use crate::stats::{jain, quantile};
use crate::work::Work;

/// Published numbers: see [`crate::targets`].
pub(crate) const TARGETS: &str = include_str!("rdca/targets.toml");

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Rdca;

impl Experiment for Rdca {
    fn name(&self) -> &'static str {
        "rdca"
    }

    fn about(&self) -> &'static str {
        "nodes near an event send much to one sink over 802.11 and AODV"
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

    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError> {
        Ok(Box::new(RdcaPoint::new(settings)?))
    }
}

/// A configuration that is ready to run.
#[derive(Debug)]
pub struct RdcaPoint(Templated);

/// A run in progress.
struct Running<'p> {
    spec: &'p TrafficSpec,
    sim: Simulation,
    planned: PlannedTraffic,
}

/// Results of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Packets of each sender that reached the application at the sink before the end of the event.
    pub delivered: Vec<u64>,
    /// Number of packets made.
    pub made: u64,
    /// Delays in seconds, from the transport's first transmission of a packet until the application
    /// at the sink had it.
    pub delays: Vec<f64>,
    /// Delays in seconds from the creation of a packet.
    pub ages: Vec<f64>,
    /// Number of data packets sent, retransmissions included.
    pub data_sent: u64,
    /// Number of data packets that reached the sink.
    pub data_received: u64,
    /// Number of control packets of the transport, in both directions.
    pub control: u64,
    /// Number of routing messages passed to a radio.
    pub routing: u64,
    /// Energy of all radios since the start of the event, in joules.
    pub energy: f64,
    /// Number of packets dropped by full interface queues.
    pub queue_drops: u64,
    /// Number of frames destroyed by collisions.
    pub collisions: u64,
    /// Number of packets that arrived out of order or with wrong content, which is a fault.
    pub wrong: u64,
    /// Number of packets that the transport reported to the applications as lost.
    pub gone: u64,
    /// Duration of the event in seconds.
    pub seconds: f64,
}

impl Outcome {
    /// Jain's fairness index of the senders; 1 if nothing was delivered.
    pub fn fairness(&self) -> f64 {
        let delivered: Vec<f64> = self.delivered.iter().map(|&n| n as f64).collect();
        jain(&delivered).unwrap_or(1.0)
    }

    /// Number of packets delivered before the end of the event.
    pub fn packets(&self) -> u64 {
        self.delivered.iter().sum()
    }
}

/// Mean of the values; `None` without values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl RdcaPoint {
    /// Prepares a configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn new(settings: &Settings) -> Result<Self, ParameterError> {
        TEMPLATE.point(settings).map(Self)
    }

    /// Traffic of the event.
    pub fn traffic(&self) -> &TrafficSpec {
        &self.0.scenario.traffic[0]
    }

    /// Packets per second offered to each sender.
    fn packets_per_second(&self) -> f64 {
        let rate = config::rate(self.0.settings.text("rate")).expect("the point was made of it");
        rate as f64 / self.packet()
    }

    /// Packet size in bytes, including RDCA's header.
    pub fn packet(&self) -> f64 {
        let header = config::header(&self.0.settings).expect("the point was made of it");
        self.traffic().payload() + header as f64
    }

    /// Makes one run.
    ///
    /// # Errors
    ///
    /// The simulator refuses the network.
    pub fn outcome(&self, seed: u64, run: u64) -> Result<Outcome, RunError> {
        let Plan { builder, mut planned } = self.0.plan(seed, run)?;
        let (mut sim, spec) = (builder.build(), self.traffic());
        sim.observe(FirstSent::new(spec.port, spec.payload() as u16));
        sim.run_until(spec.stop);
        let nodes = (0..self.0.scenario.nodes.len()).map(|node| NodeId(node as u32));
        let metrics = nodes.filter_map(|node| sim.world().network.adhoc_metrics(node));
        let queue_drops = metrics.map(|metrics| metrics.queue_drops).sum();
        let collisions = stations(&sim).map(|s| wifi(&sim).metrics(s).collisions).sum();
        sim.run_until(self.0.scenario.stop);
        let energy = sim.probed("event", "energy_j").expect("the template has the probe");
        let packets = |figure| sim.probed("packets", figure).expect("the template has the probe") as u64;
        let [data_sent, data_received, control, routing] =
            ["data_sent", "data_arrived", "control_sent", "routing_hops"].map(packets);
        let first = sim.take_observer::<FirstSent>().expect("it was put in");
        let running = Running { spec, sim, planned: planned.traffic.remove(0) };
        let sources = &running.planned.sources;
        let seen = running.seen(&first);
        let in_time = |a: &&Seen| a.packet.at < spec.stop;
        let index: BTreeMap<NodeId, usize> =
            sources.iter().enumerate().map(|(i, (node, _))| (*node, i)).collect();
        let mut delivered = vec![0; sources.len()];
        for seen in seen.iter().filter(in_time) {
            if let Some(&i) = index.get(&seen.packet.from) {
                delivered[i] += 1;
            }
        }
        let (wrong, gone) = running.faults();
        let event = spec.stop.saturating_since(spec.start);
        Ok(Outcome {
            delivered,
            made: sources.len() as u64 * (event.as_secs_f64() * self.packets_per_second()) as u64,
            delays: seen
                .iter()
                .filter_map(|s| Some(s.packet.at.saturating_since(s.sent?).as_secs_f64()))
                .collect(),
            ages: seen.iter().map(|s| s.packet.at.saturating_since(s.packet.made).as_secs_f64()).collect(),
            data_sent,
            data_received,
            control,
            routing,
            energy,
            queue_drops,
            collisions,
            wrong,
            gone,
            seconds: event.as_secs_f64(),
        })
    }

    /// Finds the highest throughput of datagrams at the sink in one run, in bytes per second, and
    /// the rate that gives it. `rates` are in bytes per second of each sender, ascending.
    ///
    /// After two consecutive rates with less than three quarters of the highest throughput, the
    /// remaining rates are skipped, since more traffic only increases losses; `work` is told of
    /// them as if they had run.
    ///
    /// # Errors
    ///
    /// As [`RdcaPoint::outcome`].
    pub fn capacity(&self, rates: &[u64], run: u64, work: &Work<'_>) -> Result<(f64, u64), RunError> {
        let (mut best, mut beyond) = ((0.0, 0), 0);
        for &rate in rates {
            if beyond < 2 {
                let settings = self.0.settings.clone().with("protocol", Protocol::Datagrams.word());
                let found = Self::new(&settings.with("rate", rate_text(rate)))?.outcome(work.seed, run)?;
                let throughput = found.packets() as f64 * self.packet() / found.seconds;
                beyond = if throughput < 0.75 * best.0 { beyond + 1 } else { 0 };
                if throughput > best.0 {
                    best = (throughput, rate);
                }
            }
            work.ran();
        }
        Ok(best)
    }
}

impl Running<'_> {
    /// Packets that reached the sink's application, with the time of their first transmission.
    fn seen(&self, first: &FirstSent) -> Vec<Seen> {
        let Self { spec, sim, planned } = self;
        match spec.carrier {
            Carrier::Rdca(_) => {
                let sources: BTreeMap<NodeId, &RdcaSource> =
                    planned.sources.iter().map(|(node, app)| (*node, sim.app(*app))).collect();
                let sent = |p: &Arrived| sources.get(&p.from)?.sent().get(p.number as usize).copied();
                let arrived = sim.app::<RdcaSink>(planned.sink).arrived.iter();
                arrived.map(|p| Seen { packet: *p, sent: sent(p) }).collect()
            }
            Carrier::Udp => {
                let arrived = sim.app::<CbrSink>(planned.sink).arrived.iter();
                arrived.map(|p| Seen { packet: *p, sent: Some(p.made) }).collect()
            }
            Carrier::Tcp(_) | Carrier::Mptcp(_) => {
                let arrived = sim.app::<PacketSink>(planned.sink).arrived.iter();
                arrived.map(|p| Seen { packet: *p, sent: first.time(p.from, p.number) }).collect()
            }
        }
    }

    /// Number of faulty packets, and number of packets reported as lost.
    fn faults(&self) -> (u64, u64) {
        let (sim, sink) = (&self.sim, self.planned.sink);
        match self.spec.carrier {
            Carrier::Rdca(_) => {
                let sink: &RdcaSink = sim.app(sink);
                (sink.wrong, sink.gone)
            }
            Carrier::Udp => (sim.app::<CbrSink>(sink).wrong, 0),
            Carrier::Tcp(_) | Carrier::Mptcp(_) => (sim.app::<PacketSink>(sink).wrong, 0),
        }
    }
}

/// A packet at the sink.
#[derive(Clone, Copy)]
struct Seen {
    packet: Arrived,
    sent: Option<Instant>,
}

fn wifi(sim: &Simulation) -> &anabranch_sim::wifi::Wifi {
    sim.world().network.wifi().expect("there is one")
}

fn stations(sim: &Simulation) -> impl Iterator<Item = Station> {
    (0..wifi(sim).station_count() as u32).map(Station)
}

impl Point for RdcaPoint {
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
        let outcome = self.outcome(seed, run)?;
        let octets = |packets: u64| packets as f64 * self.packet() / outcome.seconds;
        let share = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
        let packets = outcome.packets();
        Ok(vec![
            Some(octets(packets)),
            Some(octets(outcome.made)),
            share(outcome.data_received, outcome.data_sent),
            mean(&outcome.delays),
            quantile(&outcome.delays, 0.95),
            mean(&outcome.ages),
            share(outcome.control, outcome.data_sent),
            share(outcome.routing, outcome.data_sent),
            (packets > 0).then(|| 1000.0 * outcome.energy / packets as f64),
            Some((outcome.data_sent - outcome.data_received) as f64),
            Some(outcome.queue_drops as f64),
            Some(outcome.collisions as f64),
            Some(outcome.fairness()),
            Some(outcome.gone as f64),
            Some(outcome.wrong as f64),
        ])
    }
}

/// Metrics of each run, in the order of the values of `run`.
const METRICS: &[Metric] = &[
    Metric {
        name: "throughput_byte_per_s",
        unit: "B/s",
        about: "whole packets at the sink's application, of all senders, while the event lasts",
    },
    Metric { name: "offered_byte_per_s", unit: "B/s", about: "whole packets made, of all senders" },
    Metric {
        name: "delivery_ratio",
        unit: "1",
        about: "of the data packets that left the senders, repetitions too, the share that came to the sink",
    },
    Metric {
        name: "delay_mean_s",
        unit: "s",
        about: "mean time from a packet's first sending to the sink's application",
    },
    Metric { name: "delay_p95_s", unit: "s", about: "19 of 20 packets took no longer" },
    Metric {
        name: "age_mean_s",
        unit: "s",
        about: "mean time from a packet's making to the sink's application",
    },
    Metric { name: "control_load", unit: "1", about: "control packets of the transport, per data packet" },
    Metric { name: "routing_load", unit: "1", about: "routing messages at every hop, per data packet" },
    Metric {
        name: "energy_j_per_1000_packets",
        unit: "J",
        about: "drawn by all radios to send and receive, per 1000 packets delivered",
    },
    Metric {
        name: "packets_lost",
        unit: "1",
        about: "data packets that left a sender and did not come to the sink, repetitions too",
    },
    Metric { name: "queue_drops", unit: "1", about: "packets that a full interface queue has dropped" },
    Metric { name: "collisions", unit: "1", about: "frames that others destroyed, at any node" },
    Metric { name: "fairness", unit: "1", about: "Jain's index of what was delivered of each sender" },
    Metric { name: "packets_gone", unit: "1", about: "packets that the applications were told are lost" },
    Metric { name: "packets_wrong", unit: "1", about: "packets out of order or with wrong bytes: a fault" },
];

#[cfg(test)]
mod tests;
