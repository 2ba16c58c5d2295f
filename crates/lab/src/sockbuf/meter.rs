//! Measurements of a run.

use anabranch_core::sockbuf::Kind;
use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::units::Span;
use anabranch_scenario::{Plan, PlannedTransfer};
use anabranch_sim::apps::Sink;
use anabranch_sim::buffers::{BufferMetrics, Division, Share};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::Simulation;

use super::config::FLOWS;
use crate::experiment::template::Templated;
use crate::experiment::values::quantity;
use crate::experiment::{Metric, RunError};
use crate::stats::jain;

/// Interval between samples of the throughput (section 4.2).
pub(super) const LOOK: Duration = Duration::from_secs(10);
/// Interval between samples of the buffer (section 4.2).
pub(super) const BUFFER_LOOK: Duration = Duration::from_secs(20);

/// Results of one run. Bytes are payload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Bytes that the striped connection sent on all its flows in each 10 s, including
    /// retransmissions.
    pub sent: Vec<u64>,
    /// Bytes of the striped connection that the application at the other end read in each 10 s.
    pub received: Vec<u64>,
    /// Bytes of each single connection that were read in each 10 s.
    pub singles: Vec<Vec<u64>>,
    /// All decisions.
    pub history: Vec<Division>,
    /// Times when the rates changed.
    pub steps: Vec<Instant>,
    /// Metrics of the pool.
    pub buffers: BufferMetrics,
    /// Bytes in all limits, and in all buffers, at the end.
    pub left: (u64, u64),
    /// Index of the first sample that counts: when the single connections begin.
    pub from: usize,
    /// Number of events of the simulation.
    pub events: u64,
}

/// A run about to begin.
pub(super) struct Network {
    pub(super) sim: Simulation,
    pub(super) host: NodeId,
    pub(super) striped: PlannedTransfer,
    singles: Vec<PlannedTransfer>,
    /// Times when the rates of the wireless links change.
    steps: Vec<Instant>,
    single_at: Duration,
    duration: Duration,
}

impl Network {
    /// Creates the network of one run.
    pub(super) fn new(point: &Templated, seed: u64, run: u64) -> Result<Self, RunError> {
        let scenario = &point.scenario;
        let Plan { builder, planned } = point.plan(seed, run)?;
        let name = |transfer: &PlannedTransfer| scenario.transfers[transfer.index].name.as_str();
        let named = |transfer: &&PlannedTransfer| name(transfer) == "striped";
        let striped = planned.transfers.iter().find(named).copied();
        let is_single = |transfer: &PlannedTransfer| {
            ["single", "stalled"].iter().any(|group| name(transfer).starts_with(group))
        };
        let mut steps: Vec<Instant> = planned.random.iter().map(|(at, _)| *at).collect();
        steps.dedup();
        let single_at: Span = quantity("single_at", point.settings.text("single_at"))?;
        Ok(Self {
            host: scenario.find_node("mh").expect("the template has the mobile host"),
            striped: striped.expect("the template has the striped connection"),
            singles: planned.transfers.iter().copied().filter(is_single).collect(),
            steps,
            single_at: single_at.0,
            duration: scenario.stop.saturating_since(Instant::ZERO),
            sim: builder.build(),
        })
    }
}

/// Makes one run.
pub(super) fn measure(mut network: Network) -> Result<Outcome, RunError> {
    let duration = network.duration;
    let looks = (duration.as_nanos() / LOOK.as_nanos()).max(1);
    let end = |look: u64| if look == looks { duration } else { LOOK * look };
    let mut outcome = Outcome {
        singles: vec![Vec::new(); network.singles.len()],
        // The first sample whose interval begins when the single connections do, or later.
        from: network.single_at.as_nanos().div_ceil(LOOK.as_nanos()).min(looks - 1) as usize,
        ..Outcome::default()
    };
    let mut before = Totals::default();
    for look in 1..=looks {
        network.sim.run_until(Instant::ZERO + end(look));
        let now = Totals::of(&network);
        outcome.sent.push(now.sent - before.sent);
        outcome.received.push(now.received - before.received);
        for (i, series) in outcome.singles.iter_mut().enumerate() {
            series.push(now.singles[i] - before.singles.get(i).copied().unwrap_or(0));
        }
        before = now;
    }
    let pool = network.sim.world().buffers(network.host);
    let pool = pool.ok_or_else(|| RunError::Scenario("the host has no pool".to_owned()))?;
    Ok(Outcome {
        history: pool.history().to_vec(),
        steps: network.steps,
        buffers: pool.metrics(),
        left: pool.now(),
        events: network.sim.events(),
        ..outcome
    })
}

#[derive(Default)]
struct Totals {
    sent: u64,
    received: u64,
    singles: Vec<u64>,
}

impl Totals {
    fn of(network: &Network) -> Self {
        let read = |flow: &PlannedTransfer| network.sim.app::<Sink>(flow.sink).bytes();
        Self {
            sent: sent(network),
            received: read(&network.striped),
            singles: network.singles.iter().map(read).collect(),
        }
    }
}

/// Number of bytes that the striped connection has sent.
fn sent(network: &Network) -> u64 {
    let sender = network.striped.latest(&network.sim);
    sender.current(network.sim.world(), network.host).0.map_or(0, |info| info.bytes_sent)
}

impl Outcome {
    /// Seconds that count: from the start of the single connections on.
    fn seconds(&self) -> f64 {
        (self.sent.len() - self.from) as f64 * LOOK.as_secs_f64()
    }

    fn rate(&self, octets: &[u64]) -> f64 {
        octets[self.from..].iter().sum::<u64>() as f64 * 8.0 / self.seconds()
    }

    /// Rate at which the striped connection left the host, in bit/s.
    pub fn striped_sent(&self) -> f64 {
        self.rate(&self.sent)
    }

    /// Rate at which the striped connection was read at the other end, in bit/s.
    pub fn striped_received(&self) -> f64 {
        self.rate(&self.received)
    }

    /// Rate at which each single connection was read at the other end, in bit/s.
    pub fn single_rates(&self) -> impl Iterator<Item = f64> {
        self.singles.iter().map(|octets| self.rate(octets))
    }

    /// Rate at which all single connections were read at the other end, in bit/s; `None` without
    /// any.
    pub fn single(&self) -> Option<f64> {
        (!self.singles.is_empty()).then(|| self.single_rates().sum())
    }

    /// The striped connection's part of each decision.
    pub fn striped_shares(&self) -> impl Iterator<Item = (Instant, Share)> {
        let striped = |division: &Division| {
            Some((division.at, *division.shares.iter().find(|share| share.kind == Kind::Striped)?))
        };
        self.history.iter().filter_map(striped)
    }

    /// Mean of the striped connection's limit over the decisions that count, in bytes.
    pub fn striped_buffer(&self) -> Option<f64> {
        let from = Instant::ZERO + LOOK * self.from as u64;
        let limits: Vec<f64> = self
            .striped_shares()
            .filter(|(at, _)| *at >= from)
            .map(|(_, share)| share.limit as f64)
            .collect();
        (!limits.is_empty()).then(|| limits.iter().sum::<f64>() / limits.len() as f64)
    }

    /// Jain's index over the flows: each single connection, and three times a third of the striped
    /// one.
    pub fn fairness(&self) -> f64 {
        let third = self.striped_received() / FLOWS as f64;
        let rates: Vec<f64> = self.single_rates().chain([third; FLOWS]).collect();
        jain(&rates).unwrap_or(1.0)
    }

    /// Settling time in seconds after each change of the rates: until the striped connection's
    /// target stays within a tenth of its final value, the mean over the last quarter before the
    /// next change.
    pub fn settling(&self) -> Vec<f64> {
        let end = self.history.last().map_or(Instant::ZERO, |division| division.at);
        let ends = self.steps.iter().skip(1).copied().chain([end]);
        let span = |(from, to): (Instant, Instant)| {
            let targets: Vec<(f64, f64)> = self
                .striped_shares()
                .filter(|(at, _)| *at >= from && *at < to)
                .map(|(at, share)| (at.saturating_since(from).as_secs_f64(), share.target as f64))
                .collect();
            let last = &targets[targets.len() - targets.len().div_ceil(4)..];
            let level = last.iter().map(|(_, target)| target).sum::<f64>() / last.len().max(1) as f64;
            let off = targets.iter().rev().find(|(_, target)| (target - level).abs() > 0.1 * level);
            (!targets.is_empty()).then(|| off.map_or(0.0, |(after, _)| *after))
        };
        self.steps.iter().copied().zip(ends).filter_map(span).collect()
    }

    /// A value for each of [`METRICS`].
    pub(super) fn values(&self) -> Vec<Option<f64>> {
        let settling = self.settling();
        let settled = (!settling.is_empty()).then(|| settling.iter().sum::<f64>() / settling.len() as f64);
        vec![
            Some(self.striped_sent()),
            Some(self.striped_received()),
            self.single(),
            self.striped_buffer(),
            Some(self.buffers.peak_limits as f64),
            Some(self.buffers.peak_held as f64),
            Some(self.fairness()),
            settled,
            Some(self.buffers.overfull as f64),
        ]
    }

    /// The striped connection's limit every 20 s, in bytes.
    pub fn buffer_series(&self) -> Vec<f64> {
        let looks = (LOOK * self.sent.len() as u64).as_nanos() / BUFFER_LOOK.as_nanos();
        let at = |look: u64| {
            let time = Instant::ZERO + BUFFER_LOOK * look;
            let last = self.striped_shares().take_while(|(at, _)| *at <= time).last();
            last.map_or(0.0, |(_, share)| share.limit as f64)
        };
        (1..=looks).map(at).collect()
    }

    /// The elements of each of [`ARRAYS`].
    pub(super) fn arrays(&self) -> Vec<Option<Vec<f64>>> {
        let rates = |octets: &[u64]| octets.iter().map(|n| *n as f64 * 8.0 / LOOK.as_secs_f64()).collect();
        let singles = |look: usize| self.singles.iter().map(|octets| octets[look]).sum();
        let singles: Vec<u64> = (0..self.sent.len()).map(singles).collect();
        vec![
            Some(rates(&self.sent)),
            Some(rates(&self.received)),
            (!self.singles.is_empty()).then(|| rates(&singles)),
            Some(self.buffer_series()),
        ]
    }
}

/// Metrics of each run, in the order of an outcome's values.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "striped_throughput_sent_bit_per_s",
        unit: "bit/s",
        about: "payload of the striped connection that left the host, also again, from when the single flows begin",
    },
    Metric {
        name: "striped_throughput_received_bit_per_s",
        unit: "bit/s",
        about: "payload of the striped connection that was read in order at the other end",
    },
    Metric {
        name: "single_throughput_bit_per_s",
        unit: "bit/s",
        about: "payload of all single connections together that was read",
    },
    Metric {
        name: "striped_buffer_mean_bytes",
        unit: "B",
        about: "mean size of the striped connection's buffer",
    },
    Metric {
        name: "pool_peak_bytes",
        unit: "B",
        about: "most that all buffers together were allowed, at any instant",
    },
    Metric { name: "pool_peak_held_bytes", unit: "B", about: "most that was in all buffers together" },
    Metric {
        name: "fairness",
        unit: "1",
        about: "Jain's index over the flows, the striped connection's being three",
    },
    Metric {
        name: "settling_time_s",
        unit: "s",
        about: "after a change of the rates, until the striped buffer's target stays within a tenth of what it comes to",
    },
    Metric {
        name: "buffer_overfull",
        unit: "1",
        about: "times that a buffer held more than it was allowed: a fault",
    },
];

/// Arrays of each run, in the order of an outcome's arrays.
pub const ARRAYS: &[Metric] = &[
    Metric { name: "striped_sent_series_bit_per_s", unit: "bit/s", about: "sent throughput in each 10 s" },
    Metric {
        name: "striped_received_series_bit_per_s",
        unit: "bit/s",
        about: "received throughput in each 10 s",
    },
    Metric {
        name: "single_series_bit_per_s",
        unit: "bit/s",
        about: "of all single connections in each 10 s",
    },
    Metric { name: "striped_buffer_series_bytes", unit: "B", about: "size of the striped buffer every 20 s" },
];
