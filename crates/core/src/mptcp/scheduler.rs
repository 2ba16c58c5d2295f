//! Which subflow takes the next segment's worth of data: one trait, dispatched by an enum.
//! [`SchedulerKind::Custom`] is one of somebody else's.
//!
//! A scheduler sees the paths as they are and decides for one chunk; it keeps no data and knows no
//! sequence numbers.

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

/// Which subflow carries the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Scheduler"))]
pub enum SchedulerKind {
    /// The subflow with the smallest smoothed round-trip time that has room in its congestion
    /// window: the default of the Linux kernel, and the conventional scheduler of the paper.
    FastestRtt,
    /// One segment on each subflow with room in turn.
    RoundRobin,
    /// Everything on every subflow.
    Redundant,
    /// BLEST (Ferlin, Alay, Mehani, Boreli: "BLEST: Blocking estimation-based MPTCP scheduler for
    /// heterogeneous networks", IFIP Networking 2016): as the fastest round-trip time, but a
    /// segment waits if the slower path would fill the window before the segment is acknowledged.
    Blest,
    /// DAPS (Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli: "DAPS: Intelligent delay-aware packet
    /// scheduling for multipath transport", IEEE ICC 2014): by the ratio of delays, so that
    /// segments arrive in order.
    Daps,
    /// Each path takes as many segments as it delivers before the next slower one delivers its
    /// first, decided segment by segment from what is in flight: a variant of section VII of
    /// "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" (ICC 2024).
    Predictive,
    /// The scheduler of the same section as it is printed: the number of segments of each path, by
    /// the round trips of the model, is computed when the last numbers are used up, and the slowest
    /// path gets its window.
    SectionVii,
    /// A user's own.
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(CustomScheduler),
}

/// A scheduler that is not ours.
pub type CustomScheduler = Custom<dyn Scheduler>;

/// A path that could take data, if it has room.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Index of the subflow.
    pub index: usize,
    /// Of one segment at the bottleneck, if known.
    pub service: Option<Duration>,
    /// Until the bottleneck is free of what was sent already.
    pub wait: Duration,
    /// Probability that a segment is lost: what the owner has told, or the share of those sent that
    /// was sent again.
    pub loss: f64,
    /// A time-out is being repaired.
    pub stuck: bool,
    /// Smoothed, or what the owner expects, or the initial time-out.
    pub rtt: Duration,
    /// How far round-trip times are off that, on average.
    pub rttvar: Duration,
    /// The least that was measured.
    pub min_rtt: Duration,
    /// Largest payload, bytes.
    pub mss: u32,
    /// Bytes.
    pub cwnd: u32,
    /// Bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
    /// The congestion window after a time-out, in segments: w_min of A-NewReno, 1 of the others.
    pub w_min: u32,
    /// The largest congestion window, in segments; `u32::MAX` is unbounded.
    pub w_max: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// Present retransmission time-out.
    pub rto: Duration,
    /// Bytes that would leave at once.
    pub room: u32,
    /// Some chunk is not on it yet.
    pub lacks: bool,
    /// What the owner has told of the path.
    pub facts: PathFacts,
}

#[cfg(test)]
impl PathView {
    /// A path of which nothing is known but an initial time-out, with room for a window of one
    /// segment.
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
    /// How long a segment that leaves now is under way: half of the least round trip, and what it
    /// waits at the bottleneck; before that is known, a round trip more, since a handshake shows
    /// nothing of what data takes. A loss costs a round trip.
    pub fn arrival(&self) -> Duration {
        let least = self.min_rtt.min(self.rtt);
        let once = match self.service {
            Some(service) => least / 2 + self.wait + service,
            None => least / 2 + self.rtt,
        };
        let lost = self.loss.clamp(0.0, 0.9);
        once + Duration::from_secs_f64(self.rtt.as_secs_f64() * lost / (1.0 - lost))
    }

    /// Silence for that long means that something was lost.
    pub fn overdue(&self) -> Duration {
        self.rtt + (self.rttvar * 4).max(self.rtt / 4)
    }

    /// A whole segment, or all of `left` bytes, would leave at once.
    pub fn takes(&self, left: u64) -> bool {
        u64::from(self.room) >= u64::from(self.mss).min(left).max(1)
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Bytes never assigned.
    pub unsent: u64,
    /// Bytes that the peer's window allows beyond what is acknowledged on the level of data.
    pub window: u64,
    /// Bytes assigned and not acknowledged on the level of data.
    pub in_flight: u64,
    /// Bytes assigned since the beginning.
    pub assigned: u64,
}

/// What is to be done with the next chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// Nothing now, although there may be room.
    Wait,
    /// It goes on that subflow, after passing over so many bytes that were never assigned.
    Send {
        /// [`PathView::index`].
        index: usize,
        /// Bytes; less than [`Demand::unsent`].
        skip: u64,
    },
    /// A copy of what others have and this subflow lacks.
    Copy {
        /// [`PathView::index`].
        index: usize,
    },
    /// What is late on a slow subflow, where a faster one with room would bring it earlier.
    Rescue,
}

/// A scheduler. `paths` are those that carry data, in the order of opening; at least one.
pub trait Scheduler: fmt::Debug + Send {
    /// What is to be done with the next chunk. A subflow that is not among `paths` stands for
    /// [`Pick::Wait`].
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick;
}

/// One of the schedulers.
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
    /// `push` is what the connection does with little data.
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

/// What somebody else's scheduler has picked, if there is such a subflow and so much data.
fn known(pick: Pick, demand: &Demand, paths: &[PathView]) -> Pick {
    let is_there = |index| paths.iter().any(|path| path.index == index);
    match pick {
        Pick::Send { index, skip } if !is_there(index) || skip >= demand.unsent => Pick::Wait,
        Pick::Copy { index } if !is_there(index) => Pick::Wait,
        other => other,
    }
}
