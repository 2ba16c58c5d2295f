//! The send buffers of one node's connections, kept within a pool: the host's part around
//! [`anabranch_core::sockbuf::Tuner`].
//!
//! Here is what it keeps; [`crate::world`] looks at the connections, tells the tuner what the link
//! layers of the node's interfaces report, and carries out at once what is decided. What drains
//! between two decisions is passed on when it has drained. Peaks are taken after everything that
//! happens to a connection, so that no instant is missed.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::sockbuf::{self, ConnectionId, Counters, FlowView, Kind, Tuner};
use anabranch_core::time::{Duration, Instant};

use crate::packet::LinkId;
use crate::random::Stream;
use crate::stream::ConnId;

/// How the send buffers of a node are kept within a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct BuffersConfig {
    /// The pool and who divides it.
    pub tuner: sockbuf::Config,
    /// The node's interfaces: the number of the path that begins there, and the link.
    pub interfaces: Vec<(u8, LinkId)>,
    /// What link layers tell.
    pub reports: Reports,
}

/// What link layers tell of themselves (the paper's cross-layer communication, section 3.1: "Radio
/// Network Feedback", or as the MAC layer monitors it).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reports {
    /// Their rate at this moment; 0 while they are down.
    Rate,
    /// Samples of that, late, inexact and incomplete.
    Sampled(Sampling),
    /// Nothing.
    Nothing,
}

/// How link layers sample their rate. Sampling goes on while the node has connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// Time between two samples, above 0.
    pub period: Duration,
    /// Time from a sample to its use.
    pub delay: Duration,
    /// A sample is multiplied by a number drawn evenly from `1 - noise` to `1 + noise`, for each
    /// interface anew: 0 to 1.
    pub noise: f64,
    /// Probability that a sample is lost; the one before stays in use.
    pub loss: f64,
}

/// The samples of one interface.
#[derive(Clone, Debug, Default)]
struct Samples {
    /// Bit/s, and from when on they are known.
    coming: VecDeque<(Instant, f64)>,
    known: Option<f64>,
}

/// What a pool has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferMetrics {
    /// Most octets that all limits together have allowed.
    pub peak_limits: u64,
    /// Most octets that were in all buffers together.
    pub peak_held: u64,
    /// Times that a buffer held more than its limit: a fault.
    pub overfull: u64,
    /// Connections that had no room for one segment, and were refused.
    pub refused: u64,
}

/// How the pool was divided at one decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Division {
    /// When.
    pub at: Instant,
    /// What each connection had after it, by their numbers.
    pub shares: Vec<Share>,
}

/// One connection's part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share {
    /// Which; connections are numbered in the order of their opening.
    pub id: ConnectionId,
    /// Of how many flows it is made.
    pub kind: Kind,
    /// Octets that were decided.
    pub target: u64,
    /// Octets that hold.
    pub limit: u64,
    /// Octets in the buffer.
    pub occupied: u64,
    /// Bandwidth times RTT over all flows that know both, octets.
    pub product: f64,
}

/// The pool of a node, at work.
#[derive(Debug)]
pub struct Buffers {
    pub(crate) config: BuffersConfig,
    pub(crate) tuner: Tuner,
    /// By their numbers there.
    pub(crate) known: BTreeMap<ConnectionId, Buffer>,
    pub(crate) opened: u32,
    pub(crate) armed: Option<Instant>,
    /// Some limit is still above its target.
    pub(crate) drains: bool,
    pub(crate) limits: u64,
    pub(crate) held: u64,
    pub(crate) metrics: BufferMetrics,
    /// Of each interface, in the order of the configuration.
    samples: Vec<Samples>,
    /// The next sample is an event already.
    pub(crate) samples_due: bool,
    random: Stream,
    history: Vec<Division>,
}

/// One connection's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) connection: ConnId,
    pub(crate) limit: u64,
    pub(crate) held: u64,
    /// What the tuner was told last.
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

    /// The link of an interface has this rate now, bit/s.
    pub(crate) fn sample(&mut self, now: Instant, interface: usize, rate: f64, sampling: &Sampling) {
        let factor = 1.0 + sampling.noise * (2.0 * self.random.uniform() - 1.0);
        if !self.random.bernoulli(sampling.loss) {
            self.samples[interface].coming.push_back((now + sampling.delay, rate * factor));
        }
    }

    /// Samples that have come by now are in use.
    pub(crate) fn receive_samples(&mut self, now: Instant) {
        for samples in &mut self.samples {
            while let Some((_, rate)) = samples.coming.pop_front_if(|(from, _)| *from <= now) {
                samples.known = Some(rate);
            }
        }
    }

    /// The sample of an interface that is in use, bit/s.
    pub(crate) fn known_rate(&self, interface: usize) -> Option<f64> {
        self.samples[interface].known
    }

    /// Octets of the pool.
    pub fn threshold(&self) -> u64 {
        self.config.tuner.threshold
    }

    /// What it has come to.
    pub fn metrics(&self) -> BufferMetrics {
        self.metrics
    }

    /// What the tuner has counted.
    pub fn counters(&self) -> Counters {
        self.tuner.counters()
    }

    /// Octets that all limits together allow now, and octets in all buffers.
    pub fn now(&self) -> (u64, u64) {
        (self.limits, self.held)
    }

    /// Every decision, in order.
    pub fn history(&self) -> &[Division] {
        &self.history
    }

    /// The tuner's number of a connection.
    pub(crate) fn find(&self, connection: ConnId) -> Option<ConnectionId> {
        self.known.iter().find(|(_, buffer)| buffer.connection == connection).map(|(id, _)| *id)
    }

    /// What is in a connection's buffer now.
    pub(crate) fn note(&mut self, id: ConnectionId, held: u64) {
        let Some(buffer) = self.known.get_mut(&id) else { return };
        self.held = self.held - buffer.held + held;
        buffer.held = held;
        self.metrics.overfull += u64::from(held > buffer.limit);
        self.metrics.peak_held = self.metrics.peak_held.max(self.held);
    }

    /// A decision was made.
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
