//! Rates and delays that vary over time, from files: [`Opportunities`] in mahimahi format,
//! [`Steps`] from CSV.
//!
//! A course is completely known before a run. A cable therefore still knows the arrival time of a
//! packet when it accepts it, and needs no event for a step.

mod read;
mod steps;

use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};

pub use steps::Steps;

/// Bytes of an opportunity as `mm-link` counts them: a packet of 1500 bytes plus the header that
/// its TUN device adds.
const OPPORTUNITY: u32 = 1504;
/// Bytes that `mm-link` adds to the length of each packet.
const HEADER: u32 = 4;
/// Bytes of IP packets in an opportunity, for a mean rate.
const USUAL_PACKET: u64 = 1500;

/// Course of one direction of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// When packets may leave; `None` for the rate in the link's configuration.
    pub rate: Option<RateCourse>,
    /// Propagation delay in nanoseconds, at the time at which a transmission ends; `None` for the
    /// delay in the link's configuration.
    pub delay: Option<Arc<Steps>>,
}

impl Course {
    /// Whether nothing varies.
    pub fn is_none(&self) -> bool {
        self.rate.is_none() && self.delay.is_none()
    }
}

/// When the packets of a link may leave.
#[derive(Clone, PartialEq, Debug)]
pub enum RateCourse {
    /// At these transmission opportunities.
    Opportunities(Arc<Opportunities>),
    /// At these rates in bit/s. Each byte leaves at the rate of its time, so the rate may change
    /// within a packet.
    Steps(Arc<Steps>),
}

impl RateCourse {
    /// The mean rate in bit/s, at least 1: over one period if it repeats, otherwise over the time
    /// until the last value holds.
    pub fn mean_rate(&self) -> u64 {
        match self {
            Self::Opportunities(opportunities) => opportunities.mean_rate(),
            Self::Steps(steps) => steps.mean(),
        }
        .max(1)
    }

    /// Bytes of packets that could have left until then, counted in packets of 1500 bytes.
    pub fn capacity(&self, until: Instant) -> u64 {
        match self {
            Self::Opportunities(opportunities) => opportunities.until(until).saturating_mul(USUAL_PACKET),
            Self::Steps(steps) => u64::try_from(steps.sum(until) / 8_000_000_000).unwrap_or(u64::MAX),
        }
    }
}

/// Transmission opportunities of 1500 bytes each, as in a file for mahimahi's `mm-link`: a whole
/// number of milliseconds on each line, in order. The sequence repeats after the last opportunity.
///
/// Packets share an opportunity, and a packet that does not fit into the rest of one continues in
/// the next. Unused opportunities are lost. A packet that arrives at the time of an opportunity
/// misses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    /// In order; the last one is more than 0.
    millis: Vec<u32>,
}

impl Opportunities {
    /// Period in nanoseconds.
    fn round(&self) -> u64 {
        u64::from(self.millis.last().copied().unwrap_or(1)) * 1_000_000
    }

    /// Time of an opportunity, numbered from 0.
    fn time(&self, number: u64) -> Instant {
        let each = self.millis.len() as u64;
        let within = u64::from(self.millis[(number % each) as usize]) * 1_000_000;
        Instant::from_nanos((number / each).saturating_mul(self.round()).saturating_add(within))
    }

    /// Number of opportunities until `now`, which is the index of the first later one.
    pub fn until(&self, now: Instant) -> u64 {
        let (rounds, within) = (now.as_nanos() / self.round(), now.as_nanos() % self.round());
        let passed = self.millis.partition_point(|millis| u64::from(*millis) * 1_000_000 <= within);
        rounds * self.millis.len() as u64 + passed as u64
    }

    /// Mean rate in bit/s, if all packets have 1500 bytes.
    pub fn mean_rate(&self) -> u64 {
        let bits = self.millis.len() as u128 * u128::from(USUAL_PACKET) * 8;
        (bits * 1_000_000_000 / u128::from(self.round())) as u64
    }
}

/// State of a transmitter that follows a course.
#[derive(Debug)]
pub(super) enum Pace {
    Opportunities {
        course: Arc<Opportunities>,
        /// Index of the next opportunity that is not used up.
        next: u64,
        /// Bytes left in it, more than 0.
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

    /// Rate in bit/s at a time, if the course has rates.
    pub(super) fn rate(&self, now: Instant) -> Option<u64> {
        match self {
            Self::Opportunities { .. } => None,
            Self::Steps(steps) => Some(steps.value(now)),
        }
    }

    /// Start of the transmission for a packet that arrives now, if the packet before it is finished
    /// at `free_at`.
    pub(super) fn start(&self, now: Instant, free_at: Instant) -> Instant {
        match self {
            // Opportunities at this time and before are lost.
            Self::Opportunities { course, .. } if free_at <= now => course.time(course.until(now)),
            Self::Opportunities { .. } => free_at,
            Self::Steps(_) => free_at.max(now),
        }
    }

    /// Sends a packet from `start`. Returns when its last byte leaves, and when the next packet may
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

    /// The latest end of transmissions that have left when all others are dropped at `now`. A
    /// transmission within an opportunity at this very time has not left; otherwise the result
    /// would depend on the order of two events.
    pub(super) fn last_before(&self, now: Instant) -> Instant {
        match self {
            Self::Opportunities { .. } => Instant::from_nanos(now.as_nanos().saturating_sub(1)),
            Self::Steps(_) => now,
        }
    }

    /// Cancels everything that was to leave after `now`. Returns when the next packet may begin,
    /// which was planned for `free_at`.
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

/// Delay of a packet that leaves the transmitter at `end`.
pub(super) fn delay_at(steps: &Steps, end: Instant) -> Duration {
    Duration::from_nanos(steps.value(end))
}

#[cfg(test)]
mod tests;
