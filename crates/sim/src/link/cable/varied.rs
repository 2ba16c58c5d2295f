//! What makes cables differ from a steady rate and delay. Most have none of it.

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::link::course::{Course, Pace, delay_at};

/// What varies at a cable.
#[derive(Debug, Default)]
pub(super) struct Varied {
    /// When packets leave; `None` leaves that to the rate.
    pub(super) pace: Option<Pace>,
    /// What it follows.
    pub(super) course: Course,
    /// What is added to the delay, if packets do not overtake.
    pub(super) jitter: Option<Jitter>,
    /// For each of the cable's packets, and perhaps for some that have arrived before.
    pub(super) ways: VecDeque<Way>,
}

/// What is decided of a packet in the link, beside its start and its arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// Leaves the transmitter.
    pub(super) end: Instant,
    /// What is added to its delay.
    pub(super) extra: Duration,
    /// Transmissions after the first.
    pub(super) repeats: u32,
}

impl Varied {
    /// Follows a course.
    pub(super) fn follow(&mut self, course: &Course) {
        self.pace = course.rate.as_ref().map(Pace::new);
        self.course = course.clone();
    }

    /// The delay of a packet that leaves the transmitter at `end`.
    pub(super) fn delay(&self, end: Instant, usual: Duration) -> Duration {
        self.course.delay.as_ref().map_or(usual, |steps| delay_at(steps, end))
    }

    /// A packet was planned, the last of all.
    pub(super) fn push(&mut self, way: Way, packets: usize) {
        let gone = self.ways.len().saturating_sub(packets);
        self.ways.drain(..gone);
        self.ways.push_back(way);
    }

    /// What is decided of packet `i` of `packets` in the link.
    pub(super) fn way(&self, i: usize, packets: usize) -> Way {
        self.ways[self.ways.len() - packets + i]
    }

    /// Forgets the last ones.
    pub(super) fn truncate(&mut self, packets: usize, kept: usize) {
        self.ways.truncate(self.ways.len() - (packets - kept));
    }
}
