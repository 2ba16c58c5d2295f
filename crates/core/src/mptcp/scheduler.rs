//! Which subflow takes the next segment's worth of data: one trait, dispatched by an enum.
//!
//! A scheduler sees the paths as they are and decides for one chunk; it keeps no data and knows no sequence numbers.

mod blest;
mod daps;
mod fastest;
mod predictive;
mod redundant;
mod round_robin;

use blest::Blest;
use daps::Daps;
use fastest::FastestRtt;
use predictive::Predictive;
use redundant::Redundant;
use round_robin::RoundRobin;

use super::config::{Config, SchedulerKind};
use crate::tcp::Push;
use crate::time::Duration;

/// A path that could take data, if it has room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathView {
    /// Index of the subflow.
    pub(crate) index: usize,
    /// Of one segment at the bottleneck, if known.
    pub(crate) service: Option<Duration>,
    /// Until the bottleneck is free of what was sent already.
    pub(crate) wait: Duration,
    /// Probability that a segment is lost: what the owner has told, or the share of those sent that was sent again.
    pub(crate) loss: f64,
    /// A time-out is being repaired.
    pub(crate) stuck: bool,
    /// Smoothed, or what the owner expects, or the initial time-out.
    pub(crate) rtt: Duration,
    pub(crate) rttvar: Duration,
    pub(crate) min_rtt: Duration,
    /// Largest payload, octets.
    pub(crate) mss: u32,
    /// Octets.
    pub(crate) cwnd: u32,
    /// Octets; `u32::MAX` is unbounded.
    pub(crate) ssthresh: u32,
    /// Octets in flight.
    pub(crate) in_flight: u32,
    /// Present retransmission time-out.
    pub(crate) rto: Duration,
    /// Octets that would leave at once.
    pub(crate) room: u32,
    /// Some chunk is not on it yet.
    pub(crate) lacks: bool,
}

impl PathView {
    /// How long a segment that leaves now is under way: half of the least round trip, and what it waits at the
    /// bottleneck; before that is known, a round trip more, since a handshake shows nothing of what data takes.
    /// A loss costs a round trip.
    pub(crate) fn arrival(&self) -> Duration {
        let least = self.min_rtt.min(self.rtt);
        let once = match self.service {
            Some(service) => least / 2 + self.wait + service,
            None => least / 2 + self.rtt,
        };
        let lost = self.loss.clamp(0.0, 0.9);
        once + Duration::from_secs_f64(self.rtt.as_secs_f64() * lost / (1.0 - lost))
    }

    /// Silence for that long means that something was lost.
    pub(crate) fn overdue(&self) -> Duration {
        self.rtt + (self.rttvar * 4).max(self.rtt / 4)
    }

    /// A whole segment, or all of `left` octets, would leave at once.
    pub(crate) fn takes(&self, left: u64) -> bool {
        u64::from(self.room) >= u64::from(self.mss).min(left).max(1)
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Octets never assigned.
    pub(crate) unsent: u64,
    /// Octets that the peer's window allows beyond what is acknowledged on the level of data.
    pub(crate) window: u64,
    /// Octets assigned and not acknowledged on the level of data.
    pub(crate) in_flight: u64,
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
    /// What is late on a slow subflow, where a faster one with room would bring it earlier.
    Rescue,
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
    Blest(Blest),
    Daps(Daps),
    Predictive(Predictive),
}

impl AnyScheduler {
    pub(crate) fn new(config: &Config) -> Self {
        match config.scheduler {
            SchedulerKind::RoundRobin => Self::RoundRobin(RoundRobin::default()),
            SchedulerKind::Redundant => Self::Redundant(Redundant),
            SchedulerKind::FastestRtt => Self::FastestRtt(FastestRtt),
            SchedulerKind::Blest => Self::Blest(Blest::default()),
            SchedulerKind::Daps => Self::Daps(Daps),
            SchedulerKind::Predictive => Self::Predictive(Predictive::new(config.tcp.push == Push::Window)),
        }
    }
}

impl Scheduler for AnyScheduler {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        match self {
            Self::FastestRtt(s) => s.pick(demand, paths),
            Self::RoundRobin(s) => s.pick(demand, paths),
            Self::Redundant(s) => s.pick(demand, paths),
            Self::Blest(s) => s.pick(demand, paths),
            Self::Daps(s) => s.pick(demand, paths),
            Self::Predictive(s) => s.pick(demand, paths),
        }
    }
}
