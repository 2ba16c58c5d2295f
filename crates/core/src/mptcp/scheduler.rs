//! Which subflow takes the next segment's worth of data: one trait, dispatched by an enum.
//!
//! A scheduler sees the paths as they are and decides for one chunk; it keeps no data and knows no sequence numbers.

mod fastest;
mod redundant;
mod round_robin;

use fastest::FastestRtt;
use redundant::Redundant;
use round_robin::RoundRobin;

use super::config::SchedulerKind;
use super::info::PathFacts;
use crate::time::{Duration, Instant};

/// A path that could take data, if it has room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathView {
    /// Index of the subflow.
    pub(crate) index: usize,
    pub(crate) facts: PathFacts,
    /// Smoothed, or what the owner expects, or the initial time-out.
    pub(crate) rtt: Duration,
    pub(crate) rttvar: Duration,
    pub(crate) min_rtt: Duration,
    pub(crate) rto: Duration,
    /// Largest payload, octets.
    pub(crate) mss: u32,
    /// Octets.
    pub(crate) cwnd: u32,
    /// Octets; `u32::MAX` is unbounded.
    pub(crate) ssthresh: u32,
    /// Octets in flight.
    pub(crate) in_flight: u32,
    /// Octets that would leave at once.
    pub(crate) room: u32,
    /// Some chunk is not on it yet.
    pub(crate) lacks: bool,
}

impl PathView {
    /// A whole segment, or all of `left` octets, would leave at once.
    pub(crate) fn takes(&self, left: u64) -> bool {
        u64::from(self.room) >= u64::from(self.mss).min(left).max(1)
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) now: Instant,
    /// Octets never assigned.
    pub(crate) unsent: u64,
    /// Octets that the peer's window allows beyond what is acknowledged on the level of data.
    pub(crate) window: u64,
    /// Octets assigned and not acknowledged on the level of data.
    pub(crate) in_flight: u64,
    /// No more will be written, so that the end of the transfer is known.
    pub(crate) closed: bool,
}

/// What is to be done with the next chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pick {
    /// Nothing now, although there may be room.
    Wait,
    /// It goes on that subflow, after passing over so many octets that were never assigned.
    Send { index: usize, skip: u64 },
    /// A copy of what others have and this subflow lacks.
    Copy { index: usize },
}

/// A scheduler. `paths` are those that carry data, in the order of opening; at least one.
pub(crate) trait Scheduler {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick;
}

/// One of the schedulers.
#[derive(Clone, Debug)]
pub(crate) enum AnyScheduler {
    FastestRtt(FastestRtt),
    RoundRobin(RoundRobin),
    Redundant(Redundant),
}

impl AnyScheduler {
    pub(crate) fn new(kind: SchedulerKind) -> Self {
        match kind {
            SchedulerKind::RoundRobin => Self::RoundRobin(RoundRobin::default()),
            SchedulerKind::Redundant => Self::Redundant(Redundant),
            _ => Self::FastestRtt(FastestRtt),
        }
    }
}

impl Scheduler for AnyScheduler {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        match self {
            Self::FastestRtt(s) => s.pick(demand, paths),
            Self::RoundRobin(s) => s.pick(demand, paths),
            Self::Redundant(s) => s.pick(demand, paths),
        }
    }
}
