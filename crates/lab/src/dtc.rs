//! The experiment of the DTC paper (Dunkels, Alonso, Voigt, Ritter: "Distributed TCP Caching for
//! Wireless Sensor Networks", section V). TCP carries several hundred segments over a chain of
//! nodes, with and without nodes that cache and retransmit segments.
//!
//! Code map: [`TEMPLATE`] is the scenario and how parameters change it; `meter` counts packets;
//! [`tables`], [`figures`] and [`claims`] reproduce section V, and [`reproduction`] combines them.

pub mod claims;
mod config;
pub mod figures;
mod meter;
mod open;
pub mod reproduction;
pub mod tables;

use anabranch_core::dtc::FlowKey;
use anabranch_core::segment::Segment;
use anabranch_model::dtc::{self as model, Reading};
use anabranch_scenario::{Plan, Scenario};
use anabranch_sim::address::address_of;
use anabranch_sim::apps::BulkSender;
use anabranch_sim::network::NetworkConfig;
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::Station;
use anabranch_sim::sim::Simulation;

pub use config::{Chain, Mode, TEMPLATE};
pub use meter::{Counts, Sample};

use crate::experiment::template::Templated;
use crate::experiment::{
    self, Chance, Experiment, Measured, Metric, Parameter, ParameterError, Point, RunError, Settings,
};
use meter::Meter;

/// Published numbers: see [`crate::targets`].
pub(crate) const TARGETS: &str = include_str!("dtc/targets.toml");

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Dtc;

impl Experiment for Dtc {
    fn name(&self) -> &'static str {
        "dtc"
    }

    fn about(&self) -> &'static str {
        "segments over a chain of nodes that cache and repeat them, or do not"
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

    fn arrays(&self) -> &'static [Metric] {
        ARRAYS
    }

    fn point(&self, settings: &Settings) -> Result<Box<dyn Point>, ParameterError> {
        Ok(Box::new(DtcPoint::new(settings)?))
    }
}

/// A configuration that is ready to run.
#[derive(Debug)]
pub struct DtcPoint {
    templated: Templated,
    chain: Chain,
    /// Whether to record round trips, for the figures.
    samples: bool,
}

impl DtcPoint {
    /// Prepares a configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn new(settings: &Settings) -> Result<Self, ParameterError> {
        let settings = config::canonical(settings)?;
        Ok(Self { templated: TEMPLATE.point(&settings)?, chain: Chain::of(&settings)?, samples: false })
    }

    /// The same configuration, with round trips recorded.
    pub fn sampling(self) -> Self {
        Self { samples: true, ..self }
    }

    /// Makes one run and returns all counts, up to the acknowledgement of the last segment.
    ///
    /// # Errors
    ///
    /// The simulator refuses the network.
    pub fn counts(&self, seed: u64, run: u64) -> Result<Counts, RunError> {
        let Plan { builder, planned } = self.templated.plan(seed, run)?;
        let scenario = &self.templated.scenario;
        let transfer = planned.transfers.first().expect("the experiment has one transfer");
        let from = scenario.transfers[transfer.index].from;
        let mut sim = builder.build();
        sim.observe(Meter::new(&self.chain, self.samples));
        let goal = self.chain.octets();
        let mut before = 0;
        let mut end_to_end = 0;
        let mut local_rtt = vec![Vec::new(); if self.samples { self.chain.hops - 1 } else { 0 }];
        let mut probe = None;
        while sim.now() < scenario.stop && sim.step() {
            if self.samples && probe.is_none() {
                probe = Probe::new(&mut sim, self.chain.hops);
            }
            let opened = sim.app::<BulkSender>(transfer.sender).opened.is_some();
            let id = sim.world().connections(from).next();
            let Some(info) = id.and_then(|id| sim.world().info(from, id)) else { continue };
            end_to_end = info.timeouts + info.fast_retransmits;
            if !opened {
                before = end_to_end;
            }
            if info.bytes_acked >= goal {
                break;
            }
            if let (true, Some(probe)) = (opened, &probe) {
                probe.sample(&sim, &mut local_rtt);
            }
        }
        let mut counts = sim.take_observer::<Meter>().expect("it was put in").counts();
        counts.end_to_end = end_to_end - before;
        counts.frames = sim.world().network.radio().map(|radio| {
            let stations = (0..radio.station_count() as u32).map(Station);
            stations.map(|station| radio.metrics(station).transmissions).sum()
        });
        counts.local_rtt = local_rtt;
        Ok(counts)
    }

    fn bounds(&self) -> Result<[f64; 3], RunError> {
        let Chain { hops, segments, loss, .. } = self.chain;
        let chain = model::Chain { hops: hops as u32, segments: segments as u32, loss };
        let failed = |error: model::ModelError| RunError::Model(error.to_string());
        let hop_by_hop = model::hop_by_hop(&chain, Reading::computed()).map_err(failed)?;
        Ok([model::omniscient(&chain).map_err(failed)?, hop_by_hop.data, hop_by_hop.acks])
    }
}

impl Point for DtcPoint {
    fn scenario(&self) -> &Scenario {
        &self.templated.scenario
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.templated.texts()
    }

    fn chance(&self) -> Chance {
        // On the radio, back-offs are random even without loss.
        let random = self.chain.loss > 0.0 || self.templated.scenario.radio.is_some();
        if random { Chance::Random } else { Chance::None }
    }

    fn run(&self, seed: u64, run: u64) -> Result<Vec<Option<f64>>, RunError> {
        self.measure(seed, run).map(|measured| measured.values)
    }

    fn measure(&self, seed: u64, run: u64) -> Result<Measured, RunError> {
        let counts = self.counts(seed, run)?;
        let seconds = counts.completion.map(|span| span.as_secs_f64());
        // Counts of an incomplete transfer are not comparable, so they are left out.
        let counted = |count: u64| seconds.map(|_| count as f64);
        let bits = 8.0 * self.chain.segments as f64 * f64::from(self.chain.payload);
        let [omniscient, data, acks] = self.bounds()?;
        let values = vec![
            counted(counts.data),
            counted(counts.acks),
            counted(counts.end_to_end),
            counted(counts.resent),
            counted(counts.local),
            counted(counts.unnecessary),
            seconds,
            seconds.map(|s| bits / s),
            Some(omniscient),
            Some(data),
            Some(acks),
            counts.frames.and_then(counted),
        ];
        let by_node = counts.by_node.iter().map(|&n| n as f64).collect();
        Ok(Measured { values, arrays: vec![seconds.map(|_| by_node)] })
    }
}

/// Reads the nodes' estimates of the round trip.
#[derive(Debug)]
struct Probe {
    flow: FlowKey,
    ports: Segment,
}

impl Probe {
    /// Creates the probe; `None` before the connection has begun.
    fn new(sim: &mut Simulation, hops: usize) -> Option<Self> {
        let meter = sim.take_observer::<Meter>().expect("it was put in");
        let ports = meter.ports().cloned();
        sim.observe(meter);
        let address = |node| address_of(NetworkConfig::default().ip, NodeId(node));
        let flow = FlowKey { source: address(0), destination: address(hops as u32) };
        ports.map(|ports| Self { flow, ports })
    }

    /// Records the estimates that have changed.
    fn sample(&self, sim: &Simulation, into: &mut [Vec<Sample>]) {
        let network = &sim.world().network;
        for (i, samples) in into.iter_mut().enumerate() {
            let node = network.caching(NodeId(i as u32 + 1));
            let Some(rtt) = node.and_then(|n| n.local_rtt(self.flow, &self.ports)) else { continue };
            let rtt = rtt.as_secs_f64();
            if samples.last().is_none_or(|last| last.rtt != rtt) {
                samples.push(Sample { at: sim.now().as_secs_f64(), rtt });
            }
        }
    }
}

/// Metrics of each run, in the order of the values of `measure`.
const METRICS: &[Metric] = &[
    Metric {
        name: "data_transmissions",
        unit: "1",
        about: "data segments put on a link, over all links, until the last acknowledgement",
    },
    Metric {
        name: "ack_transmissions",
        unit: "1",
        about: "TCP acknowledgements put on a link, over all links",
    },
    Metric {
        name: "end_to_end_retransmissions",
        unit: "1",
        about: "time-outs and fast retransmits of the sender",
    },
    Metric {
        name: "segments_resent_by_sender",
        unit: "1",
        about: "data segments that the sender sent again",
    },
    Metric {
        name: "local_retransmissions",
        unit: "1",
        about: "data segments that nodes sent out of their caches",
    },
    Metric {
        name: "unnecessary_retransmissions",
        unit: "1",
        about: "segments sent again by the sender that reached the receiver by a copy already in the network",
    },
    Metric {
        name: "completion_s",
        unit: "s",
        about: "from the SYN until the last of the segments is acknowledged",
    },
    Metric {
        name: "throughput_bit_per_s",
        unit: "bit/s",
        about: "payload of the segments over the completion time",
    },
    Metric {
        name: "bound_omniscient",
        unit: "1",
        about: "data transmissions with perfect knowledge of the losses",
    },
    Metric {
        name: "bound_hop_by_hop_data",
        unit: "1",
        about: "data transmissions where each hop repeats until it is acknowledged",
    },
    Metric { name: "bound_hop_by_hop_acks", unit: "1", about: "acknowledgements of that scheme" },
    Metric {
        name: "frames",
        unit: "1",
        about: "frames on the air, repetitions by the MAC included; medium=radio only",
    },
];

const ARRAYS: &[Metric] = &[Metric {
    name: "transmissions_by_node",
    unit: "1",
    about: "data segments put on a link by each node between the ends, next to the sender first",
}];

#[cfg(test)]
mod tests;
