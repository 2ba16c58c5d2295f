//! Rates and delays that vary in time, as files say: [`Opportunities`] in the format of mahimahi,
//! [`Steps`] as CSV.
//!
//! All of a course is known before a run, so a cable still decides when a packet comes when it will
//! arrive, and needs no event of its own for a step.

mod read;
mod steps;

use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};

pub use steps::Steps;

/// Octets of an opportunity, as `mm-link` counts them: a packet of 1500 octets and the header that
/// its TUN device puts before it.
const OPPORTUNITY: u32 = 1504;
/// Octets that `mm-link` counts for a packet beside its own.
const HEADER: u32 = 4;
/// Octets of IP packets in an opportunity, for a mean rate.
const USUAL_PACKET: u64 = 1500;

/// What one direction of a link follows in time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// When packets may leave; the rate of the link's configuration if there is none.
    pub rate: Option<RateCourse>,
    /// From the end of transmission to arrival, in nanoseconds by the end of transmission; the
    /// delay of the configuration if there is none.
    pub delay: Option<Arc<Steps>>,
}

impl Course {
    /// Nothing varies.
    pub fn is_none(&self) -> bool {
        self.rate.is_none() && self.delay.is_none()
    }
}

/// When the packets of a link may leave.
#[derive(Clone, PartialEq, Debug)]
pub enum RateCourse {
    /// At these moments.
    Opportunities(Arc<Opportunities>),
    /// At these rates, in bit/s. An octet leaves at the rate of its own moment, so that a packet
    /// may begin at one rate and end at another.
    Steps(Arc<Steps>),
}

impl RateCourse {
    /// The mean rate in bit/s, at least 1: over one round if it repeats, and else over the time
    /// until the last value holds.
    pub fn mean_rate(&self) -> u64 {
        match self {
            Self::Opportunities(opportunities) => opportunities.mean_rate(),
            Self::Steps(steps) => steps.mean(),
        }
        .max(1)
    }

    /// Octets of packets that could have left until then, counted as packets of 1500 octets.
    pub fn capacity(&self, until: Instant) -> u64 {
        match self {
            Self::Opportunities(opportunities) => opportunities.until(until).saturating_mul(USUAL_PACKET),
            Self::Steps(steps) => u64::try_from(steps.sum(until) / 8_000_000_000).unwrap_or(u64::MAX),
        }
    }
}

/// Moments at which 1500 octets may leave, as a file for mahimahi's `mm-link` has them: a whole
/// number of milliseconds on each line, in order. The same again follows after the last of them.
///
/// Packets share an opportunity, and one that does not fit into what is left of it goes on in the
/// next. What is not used is lost; a packet that comes at the moment of an opportunity or later has
/// missed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    /// In order; the last one is more than 0.
    millis: Vec<u32>,
}

impl Opportunities {
    /// Nanoseconds until the same follows again.
    fn round(&self) -> u64 {
        u64::from(self.millis.last().copied().unwrap_or(1)) * 1_000_000
    }

    /// The moment of an opportunity, from 0 on.
    fn time(&self, number: u64) -> Instant {
        let each = self.millis.len() as u64;
        let within = u64::from(self.millis[(number % each) as usize]) * 1_000_000;
        Instant::from_nanos((number / each).saturating_mul(self.round()).saturating_add(within))
    }

    /// The number of the opportunities until then, which is that of the first later one.
    pub fn until(&self, now: Instant) -> u64 {
        let (rounds, within) = (now.as_nanos() / self.round(), now.as_nanos() % self.round());
        let passed = self.millis.partition_point(|millis| u64::from(*millis) * 1_000_000 <= within);
        rounds * self.millis.len() as u64 + passed as u64
    }

    /// In bit/s, if all packets have 1500 octets.
    pub fn mean_rate(&self) -> u64 {
        let bits = self.millis.len() as u128 * u128::from(USUAL_PACKET) * 8;
        (bits * 1_000_000_000 / u128::from(self.round())) as u64
    }
}

/// A transmitter that follows a course.
#[derive(Debug)]
pub(super) enum Pace {
    Opportunities {
        course: Arc<Opportunities>,
        /// The next one of which something is left.
        next: u64,
        /// Octets left of it, more than 0.
        left: u32,
    },
    Steps(Arc<Steps>),
}

impl Pace {
    pub(super) fn new(course: &RateCourse) -> Self {
        match course {
            RateCourse::Opportunities(course) => {
                Self::Opportunities { course: Arc::clone(course), next: 0, left: OPPORTUNITY }
            }
            RateCourse::Steps(steps) => Self::Steps(Arc::clone(steps)),
        }
    }

    /// The rate in bit/s at a moment, where there is one.
    pub(super) fn rate(&self, now: Instant) -> Option<u64> {
        match self {
            Self::Opportunities { .. } => None,
            Self::Steps(steps) => Some(steps.value(now)),
        }
    }

    /// When a packet that comes now would leave the queue, the last one before it being done at
    /// `free_at`.
    pub(super) fn start(&self, now: Instant, free_at: Instant) -> Instant {
        match self {
            // What has begun at this moment or before is gone.
            Self::Opportunities { course, .. } if free_at <= now => course.time(course.until(now)),
            Self::Opportunities { .. } => free_at,
            Self::Steps(_) => free_at.max(now),
        }
    }

    /// Sends a packet from `start` on: when its last octet is gone, and when the next one may
    /// begin.
    pub(super) fn send(&mut self, start: Instant, octets: u32) -> (Instant, Instant) {
        let Self::Opportunities { course, next, left } = self else {
            let Self::Steps(steps) = self else { unreachable!("there are two courses") };
            let end = steps.after(start, u128::from(octets) * 8_000_000_000);
            return (end, end);
        };
        if course.time(*next) < start {
            let before = Instant::from_nanos(start.as_nanos().saturating_sub(1));
            (*next, *left) = (course.until(before), OPPORTUNITY);
        }
        let mut rest = octets + HEADER;
        loop {
            let part = rest.min(*left);
            (rest, *left) = (rest - part, *left - part);
            let end = course.time(*next);
            if *left == 0 {
                (*next, *left) = (*next + 1, OPPORTUNITY);
            }
            if rest == 0 {
                return (end, course.time(*next));
            }
        }
    }

    /// What ends by then has left when all is cut at `now`. Transmissions that begin and end with
    /// an opportunity of this moment have not: else it would matter which of two events comes
    /// first.
    pub(super) fn last_before(&self, now: Instant) -> Instant {
        match self {
            Self::Opportunities { .. } => Instant::from_nanos(now.as_nanos().saturating_sub(1)),
            Self::Steps(_) => now,
        }
    }

    /// All that was to leave after `now` does not: when the next packet may begin, that was planned
    /// for `free_at`.
    pub(super) fn cut(&mut self, now: Instant, free_at: Instant) -> Instant {
        match self {
            Self::Steps(_) => free_at.min(now),
            Self::Opportunities { course, next, left } => {
                (*next, *left) = (course.until(now), OPPORTUNITY);
                course.time(*next)
            }
        }
    }
}

/// A delay by the moment at which a packet leaves the transmitter.
pub(super) fn delay_at(steps: &Steps, end: Instant) -> Duration {
    Duration::from_nanos(steps.value(end))
}

#[cfg(test)]
mod tests;
