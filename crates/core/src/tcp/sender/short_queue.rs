//! A short queue at the bottleneck, at the owner's request: a limit on the data in flight to what
//! the path delivers in its shortest round-trip time and the permitted delay.
//!
//! Controllers that wait for losses fill the queue of the bottleneck, in which everything else of
//! the same host waits too. The shortest round-trip time is measured as BBR does (ProbeRTT of
//! draft-ietf-ccwg-bbr): every ten seconds, less than the path holds is in flight for two round
//! trips. If others fill most of the queue, a limit would only give them the share of this
//! connection, so there is none until the next measurement.

use super::Sender;
use crate::segment::SeqNumber;
use crate::time::{Duration, Instant};

/// State of the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortQueue {
    /// Queueing delay that the limit permits.
    delay: Duration,
    /// Highest delivery rate since the last measurement began, and between the two before, in bytes
    /// per second.
    rates: [u64; 2],
    /// Round-trip time without queues, as far as is known.
    base: Duration,
    /// Time between measurements.
    interval: Duration,
    stage: Stage,
    /// Bytes in flight that are permitted now.
    limit: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The queue empties, for a measurement.
    Draining {
        /// Round-trip time before.
        before: Duration,
        step: Step,
    },
    /// The queue is short; `rtt` is the shortest round-trip time since the measurement.
    Short { rtt: Duration, until: Instant },
    /// The queue is that of others; `srtt` is the longest round-trip time since the measurement.
    Unlimited { srtt: Duration, until: Instant },
}

/// Steps of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// More is in flight than the limit.
    Falling,
    /// What was sent before this may have waited behind more than the limit.
    Clearing { end: SeqNumber },
    /// The shortest round-trip time of data up to `end` is measured.
    Measuring { end: SeqNumber, least: Option<Duration> },
}

impl ShortQueue {
    /// Begins with a measurement. `rate` is the delivery rate, `base` the shortest round-trip time,
    /// and `srtt` the present one.
    fn new(delay: Duration, rate: u64, base: Duration, srtt: Duration) -> Self {
        let stage = Stage::Draining { before: srtt, step: Step::Falling };
        Self { delay, rates: [rate, 0], base, interval: INTERVAL, stage, limit: u32::MAX }
    }

    /// Sets the limit for the present stage. It rises by `acked` bytes at most, as in slow start: a
    /// burst would overflow the queue.
    fn set_limit(&mut self, mss: u32, acked: u32) {
        let rate = self.rates[0].max(self.rates[1]);
        let holds = |time: Duration| {
            let octets = u128::from(rate) * u128::from(time.as_nanos()) / 1_000_000_000;
            u32::try_from(octets).unwrap_or(u32::MAX).max(mss.saturating_mul(LEAST))
        };
        let limit = match self.stage {
            Stage::Draining { .. } => holds(self.base / 2),
            Stage::Short { rtt, .. } => holds(rtt + self.delay),
            Stage::Unlimited { .. } => u32::MAX,
        };
        self.limit = limit.min(self.limit.saturating_add(acked));
    }

    /// Handles a measured round-trip time.
    fn sample(&mut self, rtt: Duration) {
        match &mut self.stage {
            Stage::Draining { step: Step::Measuring { least, .. }, .. } => {
                *least = Some(least.map_or(rtt, |known| known.min(rtt)));
            }
            Stage::Short { rtt: least, .. } => *least = rtt.min(*least),
            Stage::Draining { .. } | Stage::Unlimited { .. } => {}
        }
    }

    /// Handles a move of SND.UNA to `una`, with `in_flight` bytes up to `max`; `srtt` is the
    /// round-trip time.
    fn moved(&mut self, now: Instant, (una, max): (SeqNumber, SeqNumber), in_flight: u32, srtt: Duration) {
        match self.stage {
            Stage::Draining { before, step } => {
                let next = match step {
                    Step::Falling if in_flight <= self.limit => Step::Clearing { end: max },
                    Step::Clearing { end } if una.gt(end) => Step::Measuring { end: max, least: None },
                    Step::Measuring { end, least: Some(least) } if una.ge(end) => {
                        return self.judge(now, before, least);
                    }
                    Step::Falling | Step::Clearing { .. } | Step::Measuring { .. } => step,
                };
                self.stage = Stage::Draining { before, step: next };
            }
            Stage::Short { until, .. } if until <= now => self.measure(srtt),
            // A loss may just have halved the queue.
            Stage::Unlimited { srtt: before, until } if until <= now => self.measure(before.max(srtt)),
            Stage::Short { .. } => {}
            Stage::Unlimited { srtt: before, until } => {
                self.stage = Stage::Unlimited { srtt: before.max(srtt), until };
            }
        }
    }

    /// Begins a measurement.
    fn measure(&mut self, before: Duration) {
        self.rates = [0, self.rates[0]];
        self.stage = Stage::Draining { before, step: Step::Falling };
    }

    /// Ends a measurement of `rtt`, where the round-trip time was `before`. What has vanished of
    /// the queue was that of this connection.
    fn judge(&mut self, now: Instant, before: Duration, rtt: Duration) {
        let (own, rest) = (before.saturating_sub(rtt), rtt.saturating_sub(self.base));
        if rest <= self.delay || own >= rest {
            if rest > self.delay {
                // The path is longer than it was.
                self.base = rtt;
            }
            self.base = self.base.min(rtt);
            self.interval = INTERVAL;
            self.stage = Stage::Short { rtt, until: now + INTERVAL };
        } else {
            self.stage = Stage::Unlimited { srtt: rtt, until: now + self.interval };
            self.interval = (self.interval * 2).min(LONGEST);
        }
    }
}

impl Sender {
    /// Limits the queueing delay that this connection causes; `None` ends the limit. No effect
    /// before the rate of the path is known.
    pub(crate) fn limit_queue(&mut self, delay: Option<Duration>) {
        match (delay, &mut self.short) {
            (None, short) => *short = None,
            (Some(delay), Some(short)) => short.delay = delay,
            // In slow start the rate of the path is not known yet, and the measurement would end
            // it.
            (Some(_), None)
                if self.congestion.cwnd() < self.congestion.ssthresh() && self.flight.rate.is_none() => {}
            (Some(delay), None) => {
                let Some((base, srtt)) = self.rtt.min_rtt().zip(self.rtt.srtt()) else { return };
                let Some(rate) = self.delivery.steady_rate() else { return };
                let mut short = ShortQueue::new(delay, rate, base, srtt);
                short.set_limit(self.mss, 0);
                self.short = Some(short.into());
            }
        }
    }

    /// The limit on the data in flight in bytes.
    #[inline]
    pub(super) fn short_limit(&self) -> u32 {
        self.short.as_ref().map_or(u32::MAX, |short| short.limit)
    }

    /// Handles a measured round-trip time.
    pub(super) fn sample_queue(&mut self, rtt: Duration) {
        self.short.iter_mut().for_each(|short| short.sample(rtt));
    }

    /// Called when SND.UNA has moved by `acked` bytes.
    pub(super) fn follow_queue(&mut self, now: Instant, acked: u32) {
        let (ends, in_flight) = ((self.una, self.max), self.occupied());
        let (rate, srtt) = (self.delivery.steady_rate(), self.rtt.srtt());
        if let (Some(short), Some(srtt)) = (&mut self.short, srtt) {
            short.rates[0] = short.rates[0].max(rate.unwrap_or(0));
            short.moved(now, ends, in_flight, srtt);
            short.set_limit(self.mss, acked);
        }
    }
}

/// Time between two measurements, as between those of BBR at first.
const INTERVAL: Duration = Duration::from_secs(10);
/// Longest time between them, where the queue is that of others.
const LONGEST: Duration = Duration::from_secs(80);
/// Segments that are always permitted, as in BBR.
const LEAST: u32 = 4;
