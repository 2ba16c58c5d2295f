//! A short queue at the bottleneck, at the owner's request: a limit on the data in flight to what
//! the path delivers in its shortest round-trip time and the permitted delay.
//!
//! Controllers that wait for losses fill the queue of the bottleneck, in which everything else of
//! the same host waits too. The shortest round-trip time is measured as BBR does (ProbeRTT of
//! draft-ietf-ccwg-bbr): every ten seconds, less than the path holds is in flight for two round
//! trips. If others fill most of the queue, a limit would only give them the share of this
//! connection, so there is none until the next measurement. The same holds if the connection
//! becomes much slower with the limit: round-trip times that vary look like a queue.
//!
//! All connections of a host measure at the same times, so that none takes the queue of another for
//! that of another host.

use super::Sender;
use crate::rates::{octets_in, rate_of};
use crate::segment::SeqNumber;
use crate::time::{Duration, Instant};

/// State of the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortQueue {
    /// Queueing delay that the limit permits; `None` is a pause, in which what was measured is
    /// kept.
    delay: Option<Duration>,
    /// Highest delivery rate since the last measurement began, and between the two before, in bytes
    /// per second.
    rates: [u64; 2],
    /// Whether the first rate is still that of the data in flight in a smoothed round trip, which
    /// is late while the queue grows.
    guessed: bool,
    /// The rate before the last measurement.
    known: u64,
    /// When the delivery rate began to be measured, and the bytes delivered by then.
    since: (Instant, u64),
    /// Whether the limit, and not the congestion window, has held data back since then.
    holds: bool,
    /// Rates in a row that were much lower than the known one because of the limit.
    slow: u32,
    /// Round-trip time without queues, as far as is known.
    base: Duration,
    /// Time between measurements.
    interval: Duration,
    stage: Stage,
    /// Bytes in flight that the present stage aims at.
    aim: u32,
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
    /// The queue is short; `rtt` is the shortest round-trip time since the measurement, and `rates`
    /// the number of rates measured since then.
    Short { rtt: Duration, rates: u32, until: Instant },
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
    /// The round-trip times of data up to `end` are measured.
    Measuring { end: SeqNumber, samples: Samples },
}

/// Round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Samples {
    number: u32,
    sum: Duration,
    least: Duration,
}

impl Samples {
    fn add(&mut self, rtt: Duration) {
        self.least = if self.number == 0 { rtt } else { self.least.min(rtt) };
        self.sum += rtt;
        self.number += 1;
    }
}

impl ShortQueue {
    /// Begins with a measurement. `base` is the shortest round-trip time, `srtt` the present one,
    /// and `in_flight` what is delivered in it.
    fn new(delay: Duration, base: Duration, srtt: Duration, in_flight: u32) -> Self {
        let rate = rate_of(in_flight.into(), srtt);
        Self {
            delay: Some(delay),
            rates: [rate, 0],
            // It is too high while the queue grows.
            known: rate / 5 * 4,
            guessed: true,
            since: (Instant::ZERO, u64::MAX),
            holds: false,
            slow: 0,
            base,
            interval: INTERVAL,
            stage: Stage::Draining { before: srtt, step: Step::Falling },
            aim: 0,
            limit: in_flight,
        }
    }

    /// Changes the delay, or pauses.
    fn set_delay(&mut self, delay: Option<Duration>, in_flight: u32) {
        match (self.delay, delay) {
            (Some(_), None) => {
                if let Stage::Draining { before, .. } = self.stage {
                    self.stage = Stage::Unlimited { srtt: before, until: Instant::ZERO };
                }
            }
            (None, Some(_)) => self.limit = self.limit.min(in_flight),
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.delay = delay;
    }

    /// Measures the delivery rate over several round trips: acknowledgements come in bursts.
    fn delivered(&mut self, now: Instant, octets: u64, srtt: Duration, cwnd: u32) {
        let (at, before) = self.since;
        let time = now.saturating_since(at);
        self.holds &= self.limit < cwnd;
        if before > octets {
            self.since = (now, octets);
        } else if time >= LEAST_SPAN.max(srtt * 2) {
            let rate = rate_of(octets - before, time);
            if self.guessed && matches!(self.stage, Stage::Short { .. }) {
                (self.guessed, self.rates) = (false, [rate, 0]);
            }
            self.rates[0] = self.rates[0].max(rate);
            let held = core::mem::replace(&mut self.holds, true);
            self.since = (now, octets);
            if let Stage::Short { rates, .. } = &mut self.stage {
                *rates += 1;
                // The first ones are those of the measurement's end. After losses, the congestion
                // window is what makes the connection slow.
                let is_slow = *rates > 3 && self.delay.is_some() && rate < self.known / 4 * 3 && held;
                self.slow = if is_slow { self.slow + 1 } else { 0 };
                if self.slow >= SLOW {
                    self.give_up(now, srtt);
                }
            }
        }
    }

    /// Moves the limit towards that of the present stage, by half of the acknowledged bytes at
    /// most: a burst would fill the queue, and a silence would make the next one.
    fn move_limit(&mut self, mss: u32, acked: u32, in_flight: u32) {
        let rate = self.rates[0].max(self.rates[1]);
        let holds = |time: Duration| {
            u32::try_from(octets_in(rate, time)).unwrap_or(u32::MAX).max(mss.saturating_mul(LEAST))
        };
        self.aim = match (self.delay, self.stage) {
            (None, _) | (_, Stage::Unlimited { .. }) => u32::MAX,
            (Some(delay), _) if self.base > delay * LONGEST_PATH => u32::MAX,
            (Some(_), Stage::Draining { .. }) => holds(self.base / 2),
            (Some(delay), Stage::Short { rtt, .. }) => holds(rtt + delay).saturating_add(mss * SPARE),
        };
        self.limit = if self.aim > self.limit {
            self.aim.min(self.limit.saturating_add(acked / 2))
        } else {
            // What is acknowledged is no longer in flight: half of it may be sent.
            self.aim.max(self.limit.min(in_flight.saturating_add(acked / 2)))
        };
    }

    /// Handles a measured round-trip time.
    fn sample(&mut self, rtt: Duration) {
        match &mut self.stage {
            Stage::Draining { step: Step::Measuring { samples, .. }, .. } => samples.add(rtt),
            Stage::Short { rtt: least, .. } => *least = rtt.min(*least),
            Stage::Draining { .. } | Stage::Unlimited { .. } => {}
        }
    }

    /// Handles a move of SND.UNA to `una`, with `in_flight` bytes up to `max`; `srtt` is the
    /// round-trip time.
    fn moved(&mut self, now: Instant, (una, max): (SeqNumber, SeqNumber), in_flight: u32, srtt: Duration) {
        let due = |until: Instant| self.delay.is_some() && until <= now;
        match self.stage {
            Stage::Draining { before, step } => {
                let next = match step {
                    Step::Falling if in_flight <= self.aim => Step::Clearing { end: max },
                    Step::Clearing { end } if una.gt(end) => {
                        Step::Measuring { end: max, samples: Samples::default() }
                    }
                    Step::Measuring { end, samples } if una.ge(end) && samples.number > 0 => {
                        return self.judge(now, before, samples);
                    }
                    Step::Falling | Step::Clearing { .. } | Step::Measuring { .. } => step,
                };
                self.stage = Stage::Draining { before, step: next };
            }
            Stage::Short { until, .. } if due(until) => {
                // It was of use for the whole time.
                self.interval = INTERVAL;
                self.measure(srtt);
            }
            // A loss may just have halved the queue.
            Stage::Unlimited { srtt: before, until } if due(until) => self.measure(before.max(srtt)),
            Stage::Short { .. } => {}
            Stage::Unlimited { srtt: before, until } => {
                self.stage = Stage::Unlimited { srtt: before.max(srtt), until };
            }
        }
    }

    /// Begins a measurement.
    fn measure(&mut self, before: Duration) {
        self.known = self.rates[0].max(self.rates[1]);
        if self.rates[0] > 0 {
            self.rates = [0, self.rates[0]];
        }
        self.stage = Stage::Draining { before, step: Step::Falling };
    }

    /// Ends a measurement, where the round-trip time was `before`. What has vanished of the queue
    /// was that of this connection. Round-trip times that vary by more than the permitted delay say
    /// nothing about a queue.
    fn judge(&mut self, now: Instant, before: Duration, samples: Samples) {
        let (rtt, mean) = (samples.least, samples.sum / u64::from(samples.number));
        let (own, rest) = (before.saturating_sub(rtt), rtt.saturating_sub(self.base));
        let delay = self.delay.unwrap_or_default();
        if (rest <= delay || own >= rest) && mean - rtt <= delay {
            // Otherwise the path has become longer.
            self.base = if rest > delay { rtt } else { self.base.min(rtt) };
            self.stage = Stage::Short { rtt, rates: 0, until: next(now, INTERVAL) };
        } else {
            self.give_up(now, rtt);
        }
    }

    /// Ends the limit until the next measurement.
    fn give_up(&mut self, now: Instant, srtt: Duration) {
        self.slow = 0;
        self.stage = Stage::Unlimited { srtt, until: next(now, self.interval) };
        self.interval = (self.interval * 2).min(LONGEST);
    }
}

impl Sender {
    /// Limits the queueing delay that this connection causes; `None` ends the limit. No effect
    /// before the rate of the path is known.
    pub(crate) fn limit_queue(&mut self, delay: Option<Duration>) {
        let in_flight = self.occupied();
        let filled = self.has_filled(in_flight);
        match (delay, &mut self.short) {
            (delay, Some(short)) => short.set_delay(delay, in_flight),
            (Some(delay), None) if filled => {
                let Some((base, srtt)) = self.rtt.min_rtt().zip(self.rtt.srtt()) else { return };
                if !srtt.is_zero() {
                    self.short = Some(ShortQueue::new(delay, base, srtt, in_flight).into());
                }
            }
            (Some(_) | None, None) => {}
        }
    }

    /// Whether what is in flight says something about the rate of the path: in slow start, or with
    /// a window that is not used, it does not. Controllers that measure the rate keep their queue
    /// short themselves.
    fn has_filled(&self, in_flight: u32) -> bool {
        let cwnd = self.congestion.cwnd();
        self.flight.rate.is_none() && cwnd >= self.congestion.ssthresh() && in_flight >= cwnd / 2
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
        let (ends, in_flight, cwnd) = ((self.una, self.max), self.occupied(), self.congestion.cwnd());
        // Data that arrives beyond a hole counts at once, not when the hole is filled.
        let delivered = self.counts.bytes_acked + u64::from(self.sacked_bytes());
        if let (Some(short), Some(srtt)) = (&mut self.short, self.rtt.srtt()) {
            short.delivered(now, delivered, srtt, cwnd);
            short.moved(now, ends, in_flight, srtt);
            short.move_limit(self.mss, acked, in_flight);
        }
    }
}

/// A common time of measurements: a multiple of the interval, half of it away or more.
fn next(now: Instant, interval: Duration) -> Instant {
    let grain = interval.as_nanos().max(1);
    let number = (now + interval / 2).as_nanos() / grain + 1;
    Instant::ZERO + Duration::from_nanos(number * grain)
}

/// Least time over which the delivery rate is measured.
const LEAST_SPAN: Duration = Duration::from_millis(200);
/// Low rates in a row after which the limit ends: one may be a pause of this host.
const SLOW: u32 = 2;
/// Time between two measurements, as between those of BBR at first.
const INTERVAL: Duration = Duration::from_secs(10);
/// Longest time between them, where the queue is that of others.
const LONGEST: Duration = Duration::from_secs(80);
/// Longest round-trip time with a limit, in permitted delays. The limit rises with the delivery
/// rate, by the permitted delay in a round trip: on a longer path too slowly.
const LONGEST_PATH: u64 = 12;
/// Segments beyond: an acknowledgement covers two, and without them rounding keeps a small window
/// from growing.
const SPARE: u32 = 2;
/// Segments that are always permitted, as in BBR.
const LEAST: u32 = 4;
