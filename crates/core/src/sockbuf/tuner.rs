//! The tuner: the connections of a host, and periodic decisions about their buffer sizes.

use alloc::vec::Vec;

use thiserror::Error;

use super::atbt;
use super::config::{Config, ConfigError, PolicyConfig};
use super::manager::Manager;
use super::policy::{Host, Policy};
use super::pool::{Assignment, Pool};
use super::sizing::{Fixed, Product, RightSizing};
use super::view::{Connection, ConnectionId, FlowView, Kind, View};
use crate::time::Instant;

/// Manages a pool of send buffers. See the [module](super) for the order of calls.
#[derive(Clone, Debug)]
pub struct Tuner {
    config: Config,
    policy: Chosen,
    pool: Pool,
    /// When the last decision was made, and when the next is due.
    decided: Option<Instant>,
    due: Instant,
    counters: Counters,
}

/// The policies; the only place that distinguishes them.
#[derive(Clone, Debug)]
enum Chosen {
    Pid(Manager),
    Atbt(atbt::Printed),
    AtbtOriginal(atbt::Original),
    RightSizing(RightSizing),
    Product(Product),
    Fixed(Fixed),
}

/// Counters of a tuner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Decisions made.
    pub decisions: u64,
    /// Decisions that did not fit into the pool, and were cut to the max-min share of the requests.
    pub cut: u64,
    /// Bandwidth reports that were negative, above 10^15 bit/s or not a number; they were ignored.
    pub bad_bandwidths: u64,
    /// Segment sizes that were zero, or too large for one segment of each connection to fit into
    /// the pool; they were ignored.
    pub bad_segments: u64,
    /// Views and closings of unknown connections; they were ignored.
    pub unknown: u64,
    /// Views of buffers that held more than their limit. The excess was withheld from others.
    pub overfull: u64,
}

/// Why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The id is already open.
    #[error("connection {} is open already", .0.0)]
    Known(ConnectionId),
    /// The MSS is zero.
    #[error("the MSS must be at least one byte")]
    NoSegment,
    /// The pool has no room for one segment of each connection. Close a connection, or use a larger
    /// pool.
    #[error(
        "one segment for each connection needs {needed} bytes, more than the threshold of {threshold} bytes"
    )]
    Full {
        /// Bytes that one segment of each connection takes.
        needed: u64,
        /// Size of the pool in bytes.
        threshold: u64,
    },
}

/// Why the size of the pool cannot be changed.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ThresholdError {
    /// The value is invalid for every configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// One segment of each connection does not fit.
    #[error(
        "one segment for each connection needs {needed} bytes, more than the new threshold of {threshold} bytes"
    )]
    Small {
        /// Bytes that one segment of each connection takes.
        needed: u64,
        /// Requested size of the pool in bytes.
        threshold: u64,
    },
}

impl Tuner {
    /// Creates an empty pool.
    ///
    /// # Errors
    /// Returns the first configuration value outside its range.
    pub fn new(now: Instant, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let policy = match config.policy {
            PolicyConfig::Pid(pid) => Chosen::Pid(Manager::new(pid)),
            PolicyConfig::Atbt => Chosen::Atbt(atbt::Printed::default()),
            PolicyConfig::AtbtOriginal => Chosen::AtbtOriginal(atbt::Original::default()),
            PolicyConfig::RightSizing => Chosen::RightSizing(RightSizing::new(config.initial)),
            PolicyConfig::Product => Chosen::Product(Product),
            PolicyConfig::Fixed(size) => Chosen::Fixed(Fixed(size)),
        };
        let pool = Pool { threshold: config.threshold, connections: Vec::new() };
        Ok(Self { config, policy, pool, decided: None, due: now, counters: Counters::default() })
    }

    /// Opens a connection with segments of up to `mss` bytes. It requests [`Config::initial`] until
    /// the next decision; if the pool is full, the connections with the largest buffers make room.
    ///
    /// # Errors
    /// The id is already open, `mss` is 0, or one segment of each connection exceeds the pool.
    pub fn open(&mut self, id: ConnectionId, kind: Kind, mss: u32) -> Result<(), OpenError> {
        let Err(place) = self.pool.find(id) else { return Err(OpenError::Known(id)) };
        if mss == 0 {
            return Err(OpenError::NoSegment);
        }
        // Each connection keeps at least one segment, so that none can be starved.
        let (needed, threshold) = (self.pool.least() + u64::from(mss), self.pool.threshold);
        if needed > threshold {
            return Err(OpenError::Full { needed, threshold });
        }
        let connection = Connection {
            id,
            kind,
            mss,
            target: self.config.initial,
            limit: 0,
            occupied: 0,
            acknowledged: 0,
            flows: Vec::new(),
            told: (0, 0),
        };
        self.pool.connections.insert(place, connection);
        self.refit();
        Ok(())
    }

    /// Closes a connection whose buffer was freed. Its memory is available at once.
    pub fn close(&mut self, id: ConnectionId) {
        let Ok(place) = self.pool.find(id) else {
            self.counters.unknown += 1;
            return;
        };
        self.pool.connections.remove(place);
        self.policy.policy().closed(id);
        self.pool.settle();
    }

    /// Changes the size of the pool. If it shrinks, targets are cut at once, and limits follow as
    /// buffers drain; until then the limits may sum to the previous size.
    ///
    /// # Errors
    /// The threshold is invalid, or has no room for one segment of each connection; nothing changes
    /// then.
    pub fn set_threshold(&mut self, threshold: u64) -> Result<(), ThresholdError> {
        Config { threshold, ..self.config }.check()?;
        let needed = self.pool.least();
        if needed > threshold {
            return Err(ThresholdError::Small { needed, threshold });
        }
        self.config.threshold = threshold;
        self.pool.threshold = threshold;
        self.refit();
        Ok(())
    }

    /// Reports the state of connections. If [`Tuner::next_timeout`] has passed, sizes are decided
    /// again, with the last views of connections that are not reported. Otherwise only drained
    /// memory is reassigned.
    pub fn handle_views(&mut self, now: Instant, views: &[View<'_>]) {
        for view in views {
            match self.pool.find(view.id) {
                Ok(place) => self.see(place, view),
                Err(_) => self.counters.unknown += 1,
            }
        }
        if now < self.due || self.pool.connections.is_empty() {
            self.refit();
            return;
        }
        let elapsed = now.saturating_since(self.decided.replace(now).unwrap_or(now));
        self.due = now + self.config.period;
        let host = Host { threshold: self.pool.threshold, elapsed, connections: &self.pool.connections };
        let sizes = self.policy.policy().sizes(&host);
        self.counters.decisions += 1;
        self.counters.cut += u64::from(self.pool.aim(&sizes));
        self.pool.settle();
    }

    /// Returns the next assignment, until `None`. Assignments must be carried out in this order;
    /// then the limits never sum to more than the pool.
    pub fn poll_assignment(&mut self) -> Option<Assignment> {
        self.pool.poll()
    }

    /// When views are due: one [`Config::period`] after the last decision. `None` without
    /// connections. Answer with [`Tuner::handle_views`].
    pub fn next_timeout(&self) -> Option<Instant> {
        (!self.pool.connections.is_empty()).then_some(self.due)
    }

    /// State of all connections, sorted by id.
    pub fn connections(&self) -> &[Connection] {
        &self.pool.connections
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Stores the valid values of a view.
    fn see(&mut self, place: usize, view: &View<'_>) {
        let others = self.pool.least() - u64::from(self.pool.connections[place].mss);
        let connection = &mut self.pool.connections[place];
        let Counters { bad_bandwidths, bad_segments, overfull, .. } = &mut self.counters;
        connection.occupied = view.occupied;
        connection.acknowledged = connection.acknowledged.max(view.acknowledged);
        *overfull += u64::from(view.occupied > connection.limit);
        let last = |interface: u32| {
            let before = connection.flows.iter().find(|flow| flow.interface == interface);
            before.and_then(|flow| flow.bandwidth)
        };
        let mut mss = 0;
        let mut flows = Vec::with_capacity(view.flows.len());
        for flow in view.flows {
            // The segments of all connections must fit into the pool, because each connection keeps
            // one.
            if flow.mss == 0 || others + u64::from(flow.mss) > self.pool.threshold {
                *bad_segments += 1;
            } else {
                mss = flow.mss.max(mss);
            }
            let bandwidth = match flow.bandwidth {
                Some(reported) if !(0.0..=MOST_BANDWIDTH).contains(&reported) => {
                    *bad_bandwidths += 1;
                    last(flow.interface)
                }
                reported => reported,
            };
            flows.push(FlowView { bandwidth, ..*flow });
        }
        connection.flows = flows;
        if mss > 0 {
            connection.mss = mss;
        }
    }

    /// Applies the decided sizes to the current connections and segments.
    fn refit(&mut self) {
        let targets: Vec<u64> = self.pool.connections.iter().map(|connection| connection.target).collect();
        self.pool.aim(&targets);
        self.pool.settle();
    }
}

impl Chosen {
    fn policy(&mut self) -> &mut dyn Policy {
        match self {
            Self::Pid(manager) => manager,
            Self::Atbt(printed) => printed,
            Self::AtbtOriginal(original) => original,
            Self::RightSizing(sizing) => sizing,
            Self::Product(product) => product,
            Self::Fixed(fixed) => fixed,
        }
    }
}

/// Largest accepted bandwidth report in bit/s; no link is faster.
const MOST_BANDWIDTH: f64 = 1e15;
