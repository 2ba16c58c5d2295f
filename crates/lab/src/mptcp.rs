//! The experiment of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" (Guo et
//! al.), section VIII: nodes with IEEE 802.15.4 radios deliver packets to a data centre over
//! several hops and several paths.
//!
//! Code map: [`TEMPLATE`] is the scenario and how parameters change it; `activity` records
//! transmissions on the air; `round_trip` compares with section VI; [`tables`], [`figures`] and
//! [`claims`] reproduce section VIII, and [`reproduction`] combines them.

mod activity;
pub mod claims;
mod config;
pub mod figures;
mod open;
pub mod reproduction;
mod round_trip;
pub mod tables;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::radio::Channel;
use anabranch_scenario::traffic::TrafficSpec;
use anabranch_scenario::{Plan, PlannedTraffic, Scenario};
use anabranch_sim::apps::packets::{PacketSink, PacketSource};
use anabranch_sim::network::WirelessConfig;
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{Position, RadioConfig, Station, StationMetrics};
use anabranch_sim::sim::Simulation;

pub use activity::Activity;
pub use config::{Scheme, TEMPLATE};
pub use round_trip::RoundTrip;

use crate::experiment::template::Templated;
use crate::experiment::{
    self, Chance, Experiment, Metric, Parameter, ParameterError, Point, RunError, Settings,
};
use crate::stats::quantile;
use round_trip::Watch;

/// Published numbers: see [`crate::targets`].
pub(crate) const TARGETS: &str = include_str!("mptcp/targets.toml");

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Mptcp;

impl Experiment for Mptcp {
    fn name(&self) -> &'static str {
        "mptcp"
    }

    fn about(&self) -> &'static str {
        "packets of many nodes to a data centre over shared radio, several hops and several paths"
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
        Ok(Box::new(MptcpPoint::new(settings)?))
    }
}

/// A configuration that is ready to run.
#[derive(Debug)]
pub struct MptcpPoint(Templated);

/// Results of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Transmissions on the air, hop by hop.
    pub activity: Activity,
    /// Latencies in seconds, from the creation of a packet until the data centre could read it, in
    /// order of arrival.
    pub latencies: Vec<f64>,
    /// Arrival times in seconds since the sources began.
    pub arrivals: Vec<f64>,
    /// Number of packets made or to be made.
    pub expected: usize,
    /// Number of frames on the air, without acknowledgements.
    pub frames: u64,
    /// Number of frames whose destination did not acknowledge them.
    pub frames_lost: u64,
    /// Energy of all radios in joules, from the start of the sources until every source knew that
    /// all packets had arrived.
    pub energy: f64,
    /// Number of packets that reached the application twice, out of order, or with wrong content.
    pub wrong: u64,
    /// Number of connections that failed and were reopened.
    pub failures: u64,
    /// Round-trip times over the nodes' first paths, compared with the model's; `None` if none was
    /// measured over such a path.
    pub round_trip: Option<RoundTrip>,
    /// The network at the end of the run.
    pub map: Map,
}

/// Positions of the nodes and their paths to the data centre, which is the first node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Map {
    /// Positions in metres.
    pub places: Vec<Position>,
    /// Indices of the nodes with a cellular interface.
    pub multi_link: Vec<usize>,
    /// Paths as indices of nodes, from a node to the data centre. The base station has the index
    /// after the last node's.
    pub paths: Vec<Vec<usize>>,
}

impl MptcpPoint {
    /// Prepares a configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn new(settings: &Settings) -> Result<Self, ParameterError> {
        TEMPLATE.point(&config::decided(settings)?).map(Self)
    }

    /// Traffic of all nodes.
    pub fn traffic(&self) -> &TrafficSpec {
        &self.0.scenario.traffic[0]
    }

    /// Radio that all nodes share.
    fn radio(&self) -> (RadioConfig, WirelessConfig) {
        match self.0.scenario.radio.as_ref().map(|radio| radio.channel) {
            Some(Channel::Ieee802154(radio, wireless)) => (radio, wireless),
            Some(Channel::Ieee80211(_)) | None => unreachable!("the experiment's scenario has `[radio]`"),
        }
    }

    /// Makes one run.
    ///
    /// # Errors
    ///
    /// The simulator refuses the network.
    pub fn outcome(&self, seed: u64, run: u64) -> Result<Outcome, RunError> {
        let scenario = &self.0.scenario;
        let drawn = scenario.draw(seed, run)?;
        let Plan { builder, mut planned } = self.0.plan(seed, run)?;
        let (mut sim, planned) = (builder.build(), planned.traffic.remove(0));
        let sim = &mut sim;
        let (begin, stop) = (self.traffic().start, scenario.stop);
        let (radio, wireless) = self.radio();
        sim.keep_series(AIR);
        sim.observe(Watch::new(begin, radio.phy));
        sim.run_until(begin);
        let before = stations(sim);
        let expected = planned.sources.len() * self.traffic().packets.unwrap_or(0) as usize;
        // The run is over when every source knows that all packets have arrived.
        let step = Duration::from_millis(500);
        while sim.now() < stop {
            let next = (sim.now() + step).min(stop);
            sim.run_until(next);
            let done =
                planned.sources.iter().all(|(_, app)| sim.app::<PacketSource>(*app).finished.is_some());
            if done {
                break;
            }
        }
        let after = stations(sim);
        let watch = sim.take_observer::<Watch>().expect("it was put in");
        let grown = |of: fn(&StationMetrics) -> u64| {
            let sum = |all: &[StationMetrics]| all.iter().map(of).sum::<u64>();
            // A frame in transmission when the sources began may have been acknowledged since, so
            // the difference can be negative.
            sum(&after).saturating_sub(sum(&before))
        };
        let busy: Vec<f64> = before.iter().zip(&after).map(|(b, a)| busy_probability(b, a)).collect();
        let firsts = first_paths(sim, &planned);
        // No queue can hold more packets than exist.
        let all = u32::try_from(expected).unwrap_or(u32::MAX).min(LONGEST_QUEUE);
        let queue = if wireless.queue == u32::MAX { all } else { wireless.queue };
        let cellular = scenario.links.first().map(|link| link.config);
        let round_trip = watch
            .round_trip(&firsts, &busy, (&radio, queue), cellular)
            .map_err(|error| RunError::Model(error.to_string()))?;
        let paths = planned.sources.iter().flat_map(|(node, _)| sim.world().network.own_paths(*node));
        let paths = paths.map(|p| p.nodes.iter().map(|&n| usize::from(n) - 1).collect()).collect();
        let sink: &PacketSink = sim.app(planned.sink);
        let seconds = |at: Instant| at.saturating_since(begin).as_secs_f64();
        Ok(Outcome {
            activity: Activity::of(sim, begin),
            latencies: sink.arrived.iter().map(|p| p.at.saturating_since(p.made).as_secs_f64()).collect(),
            arrivals: sink.arrived.iter().map(|p| seconds(p.at)).collect(),
            expected,
            frames: grown(|m| m.transmissions),
            frames_lost: grown(|m| m.transmissions - m.broadcast - m.acknowledged),
            energy: sim.probed("packets", "energy_j").expect("the template has the probe"),
            wrong: sink.wrong,
            failures: planned
                .sources
                .iter()
                .map(|(_, app)| u64::from(sim.app::<PacketSource>(*app).failures))
                .sum(),
            round_trip,
            map: Map {
                places: drawn.places.iter().map(|(_, place)| *place).collect(),
                multi_link: drawn.groups[0].iter().map(|n| n.index()).collect(),
                paths,
            },
        })
    }
}

/// Metrics of each radio. Nodes get their radios in order, so a station has its node's number.
fn stations(sim: &Simulation) -> Vec<StationMetrics> {
    let radio = sim.world().network.radio().expect("there is one");
    (0..radio.station_count() as u32).map(|station| radio.metrics(Station(station))).collect()
}

/// Share of clear-channel assessments between two moments that found the channel busy; 0 without
/// any.
fn busy_probability(before: &StationMetrics, after: &StationMetrics) -> f64 {
    let ccas = after.ccas - before.ccas;
    let busy_ccas = after.busy_ccas - before.busy_ccas;
    StationMetrics { ccas, busy_ccas, ..StationMetrics::default() }.busy_probability()
}

/// Best path of each node that has one.
fn first_paths(sim: &Simulation, planned: &PlannedTraffic) -> Vec<Vec<NodeId>> {
    let own = planned.sources.iter().map(|(node, _)| sim.world().network.own_paths(*node));
    let first = own.filter_map(|paths| paths.iter().find(|p| p.confirmed));
    first.map(|path| path.nodes.iter().map(|&n| NodeId(u32::from(n) - 1)).collect()).collect()
}

impl Outcome {
    /// Number of data segments and acknowledgements passed to a radio since the sources began, hop
    /// by hop.
    pub fn transmissions(&self) -> u64 {
        self.activity.transmissions(f64::INFINITY) as u64
    }

    /// Number of acknowledgements among them.
    pub fn acks(&self) -> u64 {
        self.activity.acks.len() as u64
    }

    /// Share of the data segments passed to a radio that reached the next node; 0 without any.
    pub fn delivery_ratio(&self) -> f64 {
        self.activity.delivery_ratio(f64::INFINITY)
    }

    /// Throughput in bit/s: the payload of all packets of `payload` bytes over the time until the
    /// last was delivered; `None` if not all were.
    pub fn throughput(&self, payload: f64) -> Option<f64> {
        let bits = self.expected as f64 * payload * 8.0;
        self.delivered(1.0).map(|seconds| bits / seconds)
    }

    /// Time in seconds until this share of all packets had arrived; `None` if it never did.
    pub fn delivered(&self, share: f64) -> Option<f64> {
        let needed = (share * self.expected as f64).ceil() as usize;
        self.arrivals.get(needed.checked_sub(1)?).copied()
    }

    /// Latency that this share of the delivered packets did not exceed.
    pub fn latency(&self, share: f64) -> Option<f64> {
        quantile(&self.latencies, share)
    }
}

impl Point for MptcpPoint {
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
        Ok(vec![
            Some(outcome.transmissions() as f64),
            Some(outcome.acks() as f64),
            Some(outcome.delivery_ratio()),
            outcome.latency(0.5),
            outcome.latency(0.9),
            outcome.delivered(1.0),
            outcome.delivered(0.98),
            outcome.throughput(self.traffic().payload()),
            Some(outcome.arrivals.len() as f64 / outcome.expected as f64),
            Some(outcome.frames as f64),
            Some(outcome.frames_lost as f64),
            Some(outcome.energy),
            Some(outcome.failures as f64),
            outcome.round_trip.map(|r| r.measured),
            outcome.round_trip.map(|r| r.ratio),
        ])
    }
}

/// Name of the probe of transmissions on the air.
const AIR: &str = "air";

/// Limit on the model's queue length K.
const LONGEST_QUEUE: u32 = 999_999;

const METRICS: &[Metric] = &[
    Metric {
        name: "transmissions",
        unit: "1",
        about: "TCP data segments and acknowledgements given to a radio since the sources began, every hop counts",
    },
    Metric { name: "ack_transmissions", unit: "1", about: "the acknowledgements among them" },
    Metric {
        name: "delivery_ratio",
        unit: "1",
        about: "of the data segments given to a radio, the share that reached the next node",
    },
    Metric { name: "latency_p50_s", unit: "s", about: "median time from a packet's making to its delivery" },
    Metric {
        name: "latency_p90_s",
        unit: "s",
        about: "nine of ten packets took no longer, of those delivered",
    },
    Metric { name: "delivered_all_s", unit: "s", about: "until the last packet was delivered" },
    Metric { name: "delivered_98_s", unit: "s", about: "until 98 % of the packets were delivered" },
    Metric { name: "throughput_bit_per_s", unit: "bit/s", about: "payload of all packets over that time" },
    Metric { name: "complete", unit: "1", about: "share of packets delivered in the end" },
    Metric { name: "frames", unit: "1", about: "frames on the air, without acknowledgements" },
    Metric { name: "frames_lost", unit: "1", about: "frames for one node that were not acknowledged" },
    Metric {
        name: "energy_j",
        unit: "J",
        about: "drawn by all radios, from when the sources began until all know that everything has arrived",
    },
    Metric { name: "connections_failed", unit: "1", about: "connections that were opened anew" },
    Metric {
        name: "rtt_s",
        unit: "s",
        about: "a data segment's way over a node's first path and an acknowledgement's back, on average over nodes",
    },
    Metric {
        name: "rtt_model_error",
        unit: "1",
        about: "what section VI predicts for that, fed with what the run measured, over what it was",
    },
];

#[cfg(test)]
mod tests;
