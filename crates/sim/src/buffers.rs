//! The pool for the send buffers of one node's connections: the state of the host around
//! [`anabranch_core::sockbuf::Tuner`].
//!
//! This module holds the state. [`crate::world`] observes the connections, passes reports of the
//! link layers to the tuner, and carries out decisions immediately. Memory that drains between two
//! decisions is redistributed when it has drained. Peaks are updated after every event of a
//! connection.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::sockbuf::{self, ConnectionId, Counters, FlowView, Kind, Tuner};
use anabranch_core::time::{Duration, Instant};

use crate::packet::LinkId;
use crate::random::Stream;
use crate::stream::ConnId;

/// Options of a node's pool of send buffers.
#[derive(Clone, PartialEq, Debug)]
pub struct BuffersConfig {
    /// The pool and its policy.
    pub tuner: sockbuf::Config,
    /// The node's interfaces: the number of the path that begins there, and the link.
    pub interfaces: Vec<(u8, LinkId)>,
    /// Rate reports of link layers.
    pub reports: Reports,
}

/// Rate reports of link layers (the paper's cross-layer communication, section 3.1: "Radio Network
/// Feedback", or as monitored by the MAC layer).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reports {
    /// The true rate at every time; 0 while a link is down.
    Rate,
    /// Samples of the rate with delay, noise and loss.
    Sampled(Sampling),
    /// No reports.
    Nothing,
}

/// Errors of sampled rates. Link layers sample while the node has connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// Time between two samples, more than 0.
    pub period: Duration,
    /// Delay from taking a sample to its use.
    pub delay: Duration,
    /// A sample is multiplied by a random factor, evenly distributed from `1 - noise` to
    /// `1 + noise`, for each interface separately: 0 to 1.
    pub noise: f64,
    /// Probability that a sample is lost; the previous one then stays in use.
    pub loss: f64,
}

/// The samples of one interface.
#[derive(Clone, Debug, Default)]
struct Samples {
    /// Rate in bit/s, and the time from which it is known.
    coming: VecDeque<(Instant, f64)>,
    known: Option<f64>,
}

/// Counters of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferMetrics {
    /// Peak of the sum of all limits, in bytes.
    pub peak_limits: u64,
    /// Peak of the sum of all buffer contents, in bytes.
    pub peak_held: u64,
    /// Number of times that a buffer held more than its limit, which is an error of the simulator.
    pub overfull: u64,
    /// Connections that were refused for lack of room for one segment.
    pub refused: u64,
}

/// Division of the pool at one decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Division {
    /// Time of the decision.
    pub at: Instant,
    /// The share of each connection after it, by connection number.
    pub shares: Vec<Share>,
}

/// Share of one connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share {
    /// Number of the connection, in the order of opening.
    pub id: ConnectionId,
    /// Number of flows of which it consists.
    pub kind: Kind,
    /// Size that was decided, in bytes.
    pub target: u64,
    /// Limit in force, in bytes.
    pub limit: u64,
    /// Buffer contents in bytes.
    pub occupied: u64,
    /// Bandwidth times RTT in bytes, over all flows for which both are known.
    pub product: f64,
}

/// State of a node's pool.
#[derive(Debug)]
pub struct Buffers {
    pub(crate) config: BuffersConfig,
    pub(crate) tuner: Tuner,
    /// By the tuner's connection number.
    pub(crate) known: BTreeMap<ConnectionId, Buffer>,
    pub(crate) opened: u32,
    pub(crate) armed: Option<Instant>,
    /// Whether some limit is still above its target.
    pub(crate) drains: bool,
    pub(crate) limits: u64,
    pub(crate) held: u64,
    pub(crate) metrics: BufferMetrics,
    /// By interface, in the order of the configuration.
    samples: Vec<Samples>,
    /// Whether the next sample is already scheduled.
    pub(crate) samples_due: bool,
    random: Stream,
    history: Vec<Division>,
}

/// The buffer of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) connection: ConnId,
    pub(crate) limit: u64,
    pub(crate) held: u64,
    /// Contents that the tuner was last told, in bytes.
    pub(crate) seen: u64,
}

impl Buffers {
    pub(crate) fn new(config: BuffersConfig, random: Stream) -> Result<Self, sockbuf::ConfigError> {
        Ok(Self {
            tuner: Tuner::new(Instant::ZERO, config.tuner)?,
            known: BTreeMap::new(),
            opened: 0,
            armed: None,
            drains: false,
            limits: 0,
            held: 0,
            metrics: BufferMetrics::default(),
            samples: vec![Samples::default(); config.interfaces.len()],
            samples_due: false,
            random,
            config,
            history: Vec::new(),
        })
    }

    /// Samples the rate of an interface's link, in bit/s.
    pub(crate) fn sample(&mut self, now: Instant, interface: usize, rate: f64, sampling: &Sampling) {
        let factor = 1.0 + sampling.noise * (2.0 * self.random.uniform() - 1.0);
        if !self.random.bernoulli(sampling.loss) {
            self.samples[interface].coming.push_back((now + sampling.delay, rate * factor));
        }
    }

    /// Puts samples that have arrived into use.
    pub(crate) fn receive_samples(&mut self, now: Instant) {
        for samples in &mut self.samples {
            while let Some((_, rate)) = samples.coming.pop_front_if(|(from, _)| *from <= now) {
                samples.known = Some(rate);
            }
        }
    }

    /// The sample of an interface that is in use, in bit/s.
    pub(crate) fn known_rate(&self, interface: usize) -> Option<f64> {
        self.samples[interface].known
    }

    /// Size of the pool in bytes.
    pub fn threshold(&self) -> u64 {
        self.config.tuner.threshold
    }

    /// Counters of the pool.
    pub fn metrics(&self) -> BufferMetrics {
        self.metrics
    }

    /// Counters of the tuner.
    pub fn counters(&self) -> Counters {
        self.tuner.counters()
    }

    /// The sum of all limits, and the sum of all buffer contents, in bytes.
    pub fn now(&self) -> (u64, u64) {
        (self.limits, self.held)
    }

    /// All decisions, in order.
    pub fn history(&self) -> &[Division] {
        &self.history
    }

    /// The tuner's number of a connection.
    pub(crate) fn find(&self, connection: ConnId) -> Option<ConnectionId> {
        self.known.iter().find(|(_, buffer)| buffer.connection == connection).map(|(id, _)| *id)
    }

    /// Records the contents of a connection's buffer.
    pub(crate) fn note(&mut self, id: ConnectionId, held: u64) {
        let Some(buffer) = self.known.get_mut(&id) else { return };
        self.held = self.held - buffer.held + held;
        buffer.held = held;
        self.metrics.overfull += u64::from(held > buffer.limit);
        self.metrics.peak_held = self.metrics.peak_held.max(self.held);
    }

    /// Records a decision.
    pub(crate) fn remember(&mut self, at: Instant) {
        let product = |flows: &[FlowView]| {
            let each = |flow: &FlowView| Some(flow.bandwidth? * flow.rtt?.as_secs_f64() / 8.0);
            flows.iter().filter_map(each).sum()
        };
        let shares = self.tuner.connections().iter().map(|c| Share {
            id: c.id,
            kind: c.kind,
            target: c.target,
            limit: c.limit,
            occupied: c.occupied,
            product: product(&c.flows),
        });
        let shares = shares.collect();
        self.history.push(Division { at, shares });
    }
}
