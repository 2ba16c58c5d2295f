//! State of cables whose rate or delay is not constant. Most cables have none.

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::link::course::{Course, Pace, delay_at};

/// State of a cable that varies.
#[derive(Debug, Default)]
pub(super) struct Varied {
    /// When packets leave; `None` if the rate determines it.
    pub(super) pace: Option<Pace>,
    /// The course that the cable follows.
    pub(super) course: Course,
    /// Random addition to the delay, if packets do not overtake.
    pub(super) jitter: Option<Jitter>,
    /// Plans of the cable's packets, and perhaps of some that have arrived before.
    pub(super) ways: VecDeque<Way>,
}

/// Plan of a packet in the link, besides its start and arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// Time at which it leaves the transmitter.
    pub(super) end: Instant,
    /// Addition to its delay.
    pub(super) extra: Duration,
    /// Number of retransmissions.
    pub(super) repeats: u32,
}

impl Varied {
    /// Makes the cable follow a course.
    pub(super) fn follow(&mut self, course: &Course) {
        self.pace = course.rate.as_ref().map(Pace::new);
        self.course = course.clone();
    }

    /// The delay of a packet that leaves the transmitter at `end`.
    pub(super) fn delay(&self, end: Instant, usual: Duration) -> Duration {
        self.course.delay.as_ref().map_or(usual, |steps| delay_at(steps, end))
    }

    /// Adds the plan of the last packet.
    pub(super) fn push(&mut self, way: Way, packets: usize) {
        let gone = self.ways.len().saturating_sub(packets);
        self.ways.drain(..gone);
        self.ways.push_back(way);
    }

    /// The plan of packet `i` of `packets` in the link.
    pub(super) fn way(&self, i: usize, packets: usize) -> Way {
        self.ways[self.ways.len() - packets + i]
    }

    /// Removes the plans after the first `kept` packets.
    pub(super) fn truncate(&mut self, packets: usize, kept: usize) {
        self.ways.truncate(self.ways.len() - (packets - kept));
    }
}
