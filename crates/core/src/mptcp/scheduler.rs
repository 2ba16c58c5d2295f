//! Schedulers: which subflow sends the next chunk. One trait, dispatched by an enum;
//! [`SchedulerKind::Custom`] holds a user's own implementation.
//!
//! A scheduler sees the current state of the paths and decides about one chunk. It stores no data
//! and knows no sequence numbers.

mod blest;
mod daps;
mod fastest;
mod predictive;
mod redundant;
mod round_robin;
mod section_vii;

use alloc::boxed::Box;
use core::fmt;

use blest::Blest;
use daps::Daps;
use fastest::FastestRtt;
use predictive::Predictive;
use redundant::Redundant;
use round_robin::RoundRobin;
use section_vii::SectionVii;

use super::info::PathFacts;
use crate::policy::Custom;
use crate::tcp::Push;
use crate::time::Duration;

/// Scheduler: which subflow carries the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Scheduler"))]
pub enum SchedulerKind {
    /// The subflow with the smallest smoothed round-trip time that has room in its congestion
    /// window: the default of the Linux kernel, and the conventional scheduler of the paper.
    FastestRtt,
    /// One segment on each subflow with room in turn.
    RoundRobin,
    /// All data on every subflow.
    Redundant,
    /// BLEST (Ferlin, Alay, Mehani, Boreli: "BLEST: Blocking estimation-based MPTCP scheduler for
    /// heterogeneous networks", IFIP Networking 2016): like `fastest-rtt`, but a segment waits if
    /// the slower path would fill the window before the segment is acknowledged.
    Blest,
    /// DAPS (Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli: "DAPS: Intelligent delay-aware packet
    /// scheduling for multipath transport", IEEE ICC 2014): assigns by the ratio of delays, so that
    /// segments arrive in order.
    Daps,
    /// Each path gets as many segments as it delivers before the next slower path delivers its
    /// first. The decision is made for each segment from the data in flight: a variant of section
    /// VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" (ICC 2024).
    Predictive,
    /// The scheduler of the same section as printed. The number of segments of each path follows
    /// from the model's round-trip times and is computed when the previous numbers are used up; the
    /// slowest path gets its window.
    SectionVii,
    /// A scheduler supplied by the user.
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(CustomScheduler),
}

impl SchedulerKind {
    /// All schedulers of this crate.
    pub const ALL: [Self; 7] = [
        Self::FastestRtt,
        Self::RoundRobin,
        Self::Redundant,
        Self::Blest,
        Self::Daps,
        Self::Predictive,
        Self::SectionVii,
    ];
}

/// A scheduler supplied by the user.
pub type CustomScheduler = Custom<dyn Scheduler>;

/// The state of a path that a scheduler may use.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Index of the subflow.
    pub index: usize,
    /// Time per segment at the bottleneck, if known.
    pub service: Option<Duration>,
    /// Time until the bottleneck has forwarded all sent data.
    pub wait: Duration,
    /// Probability that a segment is lost: as set by the owner, or the share of retransmitted
    /// segments.
    pub loss: f64,
    /// Whether the subflow is recovering from a time-out.
    pub stuck: bool,
    /// Round-trip time: smoothed, or expected by the owner, or the initial time-out.
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Smallest measured round-trip time.
    pub min_rtt: Duration,
    /// Largest payload in bytes.
    pub mss: u32,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow-start threshold in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
    /// Congestion window after a time-out in segments: w_min of A-NewReno, 1 for the others.
    pub w_min: u32,
    /// Largest congestion window in segments; `u32::MAX` is unbounded.
    pub w_max: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// Current retransmission time-out.
    pub rto: Duration,
    /// Bytes that would be sent at once.
    pub room: u32,
    /// Whether some chunk is not on this path yet.
    pub lacks: bool,
    /// The owner's knowledge about the path.
    pub facts: PathFacts,
}

#[cfg(test)]
impl PathView {
    /// A path without measurements, with an initial time-out and room for a window of one segment.
    fn unknown(index: usize) -> Self {
        let rto = Duration::from_secs(1);
        Self {
            index,
            service: None,
            wait: Duration::ZERO,
            loss: 0.0,
            stuck: false,
            rtt: rto,
            rttvar: Duration::ZERO,
            min_rtt: rto,
            mss: 100,
            cwnd: 100,
            ssthresh: u32::MAX,
            w_min: 1,
            w_max: u32::MAX,
            in_flight: 0,
            rto,
            room: 100,
            lacks: false,
            facts: PathFacts::default(),
        }
    }
}

impl PathView {
    /// Estimated time until a segment sent now arrives: half of the smallest round-trip time, plus
    /// the waiting and service time at the bottleneck. If the latter are unknown, one round trip is
    /// added instead, because a handshake does not measure data. A loss costs one round trip.
    pub fn arrival(&self) -> Duration {
        let least = self.min_rtt.min(self.rtt);
        let once = match self.service {
            Some(service) => least / 2 + self.wait + service,
            None => least / 2 + self.rtt,
        };
        let lost = self.loss.clamp(0.0, 0.9);
        once + Duration::from_secs_f64(self.rtt.as_secs_f64() * lost / (1.0 - lost))
    }

    /// Silence of this length indicates a loss.
    pub fn overdue(&self) -> Duration {
        self.rtt + (self.rttvar * 4).max(self.rtt / 4)
    }

    /// Whether a whole segment, or all of `left` bytes, would be sent at once.
    pub fn takes(&self, left: u64) -> bool {
        u64::from(self.room) >= u64::from(self.mss).min(left).max(1)
    }
}

/// The data to be scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Bytes never assigned.
    pub unsent: u64,
    /// Bytes that the peer's window allows beyond the DATA_ACK.
    pub window: u64,
    /// Bytes assigned and not acknowledged by DATA_ACK.
    pub in_flight: u64,
    /// Total bytes assigned.
    pub assigned: u64,
}

/// A scheduler's decision about the next chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// Send nothing now, even if there is room.
    Wait,
    /// Send new data on a subflow, after skipping bytes that were never assigned.
    Send {
        /// [`PathView::index`].
        index: usize,
        /// Bytes to skip; less than [`Demand::unsent`].
        skip: u64,
    },
    /// Send a copy of data that other subflows have sent and this one has not.
    Copy {
        /// [`PathView::index`].
        index: usize,
    },
    /// Send a copy of late data of a slow subflow, if a faster one with room would deliver it
    /// earlier.
    Rescue,
}

/// A scheduler. `paths` are the subflows that carry data, in the order of opening; at least one.
pub trait Scheduler: fmt::Debug + Send {
    /// Decides about the next chunk. A subflow that is not in `paths` means [`Pick::Wait`].
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick;
}

/// A scheduler of any kind.
#[derive(Debug)]
pub(crate) enum AnyScheduler {
    FastestRtt(FastestRtt),
    RoundRobin(RoundRobin),
    Redundant(Redundant),
    Blest(Blest),
    Daps(Daps),
    Predictive(Predictive),
    SectionVii(SectionVii),
    Custom(Box<dyn Scheduler>),
}

impl AnyScheduler {
    /// `push` tells the scheduler how the peer acknowledges.
    pub(crate) fn new(kind: SchedulerKind, push: Push) -> Self {
        match kind {
            SchedulerKind::RoundRobin => Self::RoundRobin(RoundRobin::default()),
            SchedulerKind::Redundant => Self::Redundant(Redundant),
            SchedulerKind::FastestRtt => Self::FastestRtt(FastestRtt),
            SchedulerKind::Blest => Self::Blest(Blest::default()),
            SchedulerKind::Daps => Self::Daps(Daps),
            SchedulerKind::Predictive => Self::Predictive(Predictive::new(push == Push::Window)),
            SchedulerKind::SectionVii => Self::SectionVii(SectionVii::default()),
            SchedulerKind::Custom(custom) => Self::Custom(custom.make(())),
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
            Self::SectionVii(s) => s.pick(demand, paths),
            Self::Custom(s) => known(s.pick(demand, paths), demand, paths),
        }
    }
}

/// Validates the decision of a user's scheduler: the subflow must exist, and the skipped data too.
fn known(pick: Pick, demand: &Demand, paths: &[PathView]) -> Pick {
    let is_there = |index| paths.iter().any(|path| path.index == index);
    match pick {
        Pick::Send { index, skip } if !is_there(index) || skip >= demand.unsent => Pick::Wait,
        Pick::Copy { index } if !is_there(index) => Pick::Wait,
        other => other,
    }
}
