//! Proportional Integral controller Enhanced (RFC 8033): a fraction of the arriving packets signals
//! congestion. A controller updates this fraction periodically from the difference between the
//! queueing delay and its target, and from the change of the delay.
//!
//! Choices that the RFC leaves open: the delay is that of the last packet that left, and 0 when
//! nothing waits (section 4.2 permits time stamps); marking up to a limit (5.1) and limited steps
//! (5.5) are implemented; PIE is always active (5.3) and does not derandomise (5.4).

use anabranch_core::time::{Duration, Instant};
use anabranch_units::{Probability, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Fifo, Verdicts};
use crate::link::QueueLimit;
use crate::packet::{Flow, PacketHandle};
use crate::random::Stream;

/// Options of PIE.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PieConfig {
    /// Target of the queueing delay, QDELAY_REF of RFC 8033.
    pub target: Span,
    /// Time between two updates of the probability, T_UPDATE.
    pub interval: Span,
    /// Duration of a burst that is admitted without signals, MAX_BURST.
    pub burst: Span,
    /// Change of the probability at each update for each second that the queueing delay exceeds
    /// `target`, in 1/s.
    pub alpha: f64,
    /// Change of the probability at each update for each second that the queueing delay has grown
    /// since the last update, in 1/s.
    pub beta: f64,
    /// Probability up to which packets of ECN-capable transports are marked; above it they are
    /// dropped (section 5.1).
    pub mark_up_to: Probability,
}

impl Default for PieConfig {
    fn default() -> Self {
        let millis = |n| Span(Duration::from_millis(n));
        let (target, interval, burst) = (millis(15), millis(15), millis(150));
        Self { target, interval, burst, alpha: 0.125, beta: 1.25, mark_up_to: Probability(0.1) }
    }
}

impl PieConfig {
    pub(super) fn check(&self) -> Result<(), [&'static str; 3]> {
        if self.target.0.is_zero() {
            return Err(["target", "packets that must not wait at all need no queue", "15 ms is usual"]);
        }
        if !(Duration::from_micros(100)..=Duration::from_secs(10)).contains(&self.interval.0) {
            return Err(["interval", "expected 100 µs to 10 s", "15 ms is usual"]);
        }
        let sound = |gain: f64| (0.0..=1000.0).contains(&gain);
        if !sound(self.alpha) || self.alpha == 0.0 {
            return Err(["alpha", "expected more than 0 and at most 1000", "0.125 is usual"]);
        }
        match sound(self.beta) {
            true => Ok(()),
            false => Err(["beta", "expected 0 to 1000", "1.25 is usual"]),
        }
    }
}

/// Two packets of 1500 bytes: up to this queue length no packet signals congestion (section 4.1).
const FEW: u64 = 3000;

/// The queue of one link.
#[derive(Debug)]
pub struct Pie {
    config: PieConfig,
    fifo: Fifo,
    random: Stream,
    /// Probability that an arriving packet signals congestion.
    share: f64,
    next_update: Instant,
    /// Queueing delay of the last packet that left; 0 if nothing waits.
    delay: Duration,
    /// The queueing delay at the last update.
    last_delay: Duration,
    /// Remaining burst allowance.
    burst: Duration,
}

impl Pie {
    /// An empty queue with a limit.
    pub fn new(config: PieConfig, limit: QueueLimit, random: Stream) -> Self {
        Self {
            config,
            fifo: Fifo::new(limit),
            random,
            share: 0.0,
            next_update: Instant::ZERO + config.interval.0,
            delay: Duration::ZERO,
            last_delay: Duration::ZERO,
            burst: config.burst.0,
        }
    }

    /// Makes the updates that were due until `now`. Nothing has happened since the last event, so
    /// their inputs are those of that time.
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            let before = (self.share, self.last_delay, self.burst);
            self.update();
            self.next_update += self.config.interval.0;
            if before == (self.share, self.last_delay, self.burst) && self.next_update <= now {
                // Further updates would change nothing.
                let interval = self.config.interval.0.as_nanos();
                let behind = now.saturating_since(self.next_update).as_nanos() / interval + 1;
                self.next_update += Duration::from_nanos(behind.saturating_mul(interval));
            }
        }
    }

    /// Updates the probability (section 4.2) and the burst allowance (section 4.4).
    fn update(&mut self) {
        let PieConfig { target, alpha, beta, .. } = self.config;
        let [delay, last, target] = [self.delay, self.last_delay, target.0].map(|time| time.as_secs_f64());
        let mut step = (alpha * (delay - target) + beta * (delay - last)) / damping(self.share);
        if self.share >= 0.1 {
            step = step.min(0.02);
        }
        self.share += step;
        if delay == 0.0 && last == 0.0 {
            self.share *= 0.98;
        }
        self.share = self.share.clamp(0.0, 1.0);
        self.last_delay = self.delay;
        let is_quiet = self.share == 0.0 && delay < target / 2.0 && last < target / 2.0;
        self.burst = match is_quiet {
            true => self.config.burst.0,
            false => self.burst.saturating_sub(self.config.interval.0),
        };
    }

    /// Whether an arriving packet signals congestion (section 4.1).
    fn is_told_of(&mut self) -> bool {
        let half = self.config.target.0 / 2;
        let is_light = self.last_delay < half && self.share < 0.2;
        if !self.burst.is_zero() || is_light || self.fifo.queued().1 <= FEW {
            return false;
        }
        self.random.bernoulli(self.share)
    }
}

/// Factor on the steps: a smaller probability changes in smaller steps (section 4.2).
fn damping(share: f64) -> f64 {
    match share {
        ..0.000_001 => 2048.0,
        ..0.000_01 => 512.0,
        ..0.000_1 => 128.0,
        ..0.001 => 32.0,
        ..0.01 => 8.0,
        ..0.1 => 2.0,
        _ => 1.0,
    }
}

impl Discipline for Pie {
    fn pass(&mut self, now: Instant, _: &mut PacketHandle, _: Flow, _: &mut Verdicts) -> bool {
        self.catch_up(now);
        self.delay = Duration::ZERO;
        true
    }

    fn enqueue(&mut self, now: Instant, mut packet: PacketHandle, _: Flow, verdicts: &mut Verdicts) {
        self.catch_up(now);
        // A packet without room is neither marked nor counted as dropped early.
        if self.fifo.has_room(&packet) && self.is_told_of() {
            let may_mark = self.share <= self.config.mark_up_to.0;
            if !(may_mark && verdicts.marks(&mut packet)) {
                verdicts.drop_early(packet);
                return;
            }
        }
        self.fifo.push(now, packet, verdicts);
    }

    fn dequeue(&mut self, now: Instant, _: &mut Verdicts) -> Option<PacketHandle> {
        self.catch_up(now);
        let (packet, since) = self.fifo.pop()?;
        let is_last = self.fifo.queued().0 == 0;
        self.delay = if is_last { Duration::ZERO } else { now.saturating_since(since) };
        Some(packet)
    }

    fn queued(&self) -> (usize, u64) {
        self.fifo.queued()
    }

    fn clear(&mut self, _: Instant) -> Vec<PacketHandle> {
        self.delay = Duration::ZERO;
        self.fifo.clear()
    }
}

#[cfg(test)]
mod tests;
