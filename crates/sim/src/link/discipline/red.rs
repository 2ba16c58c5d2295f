//! Random Early Detection (Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", 1993): a fraction of the arriving packets signals congestion. The fraction grows
//! with the mean queue length, so that flows slow down before the queue is full, and not all at the
//! same time.

use std::cmp::Ordering;

use anabranch_core::time::{Duration, Instant};
use anabranch_units::{Probability, QueueSize, Size};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Fifo, Verdicts};
use crate::link::{LinkConfig, QueueLimit, transmission_time};
use crate::math::{exp, ln};
use crate::packet::{Flow, PacketHandle};
use crate::random::Stream;

/// Options of RED.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RedConfig {
    /// Mean queue length up to which no packet signals congestion, min_th. In packets or in bytes,
    /// like `max`.
    pub min: QueueSize,
    /// Mean queue length from which every packet is dropped, max_th.
    pub max: QueueSize,
    /// Probability of a signal just below `max`, max_p. Signals are spread evenly, so a probability
    /// p makes a fraction 2p/(1+p) of the packets.
    pub probability: Probability,
    /// Weight of the current length in the mean, updated with each arriving packet, w_q.
    pub weight: Probability,
    /// Whether the probability grows gradually to 1 between `max` and twice `max`, rather than at
    /// once (Floyd, "Recommendation on using the gentle variant of RED", 2000).
    pub gentle: bool,
    /// Average size of an arriving packet. On an idle link, the mean decreases as if packets of
    /// this size left one after another. With thresholds in bytes, a packet signals congestion in
    /// proportion to its size relative to this one.
    pub mean_packet: Size,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            min: QueueSize(QueueLimit::Packets(5)),
            max: QueueSize(QueueLimit::Packets(15)),
            probability: Probability(0.1),
            weight: Probability(0.002),
            gentle: true,
            mean_packet: Size(500),
        }
    }
}

impl RedConfig {
    pub(super) fn check(&self, queue: QueueLimit) -> Result<(), [&'static str; 3]> {
        match self.min.0.compare(self.max.0) {
            Some(Ordering::Less) => {}
            Some(_) => return Err(["max", "expected more than `min`", "three times `min` is usual"]),
            None => {
                return Err(["max", "expected the unit of `min`", "both are in packets, or both in bytes"]);
            }
        }
        if self.min.0.compare(queue).is_some_and(Ordering::is_ge) {
            return Err([
                "min",
                "expected less than the link's `queue`, which is never longer",
                "raise `queue`",
            ]);
        }
        if self.probability.0 == 0.0 {
            return Err([
                "probability",
                "expected more than 0",
                "without early drops the discipline is \"drop-tail\"",
            ]);
        }
        if !(self.weight.0 > 0.0 && self.weight.0 < 1.0) {
            return Err(["weight", "expected more than 0 and less than 1", "0.002 is usual"]);
        }
        match self.mean_packet.0 {
            1..=65_535 => Ok(()),
            _ => Err(["mean_packet", "expected 1 B to 65,535 B", "500 B is usual"]),
        }
    }
}

/// The queue of one link.
#[derive(Debug)]
pub struct Red {
    min: f64,
    max: f64,
    config: RedConfig,
    fifo: Fifo,
    random: Stream,
    rate: u64,
    /// Least time that the transmitter takes for each packet.
    spacing: Duration,
    /// Mean of the queue lengths that packets have found.
    mean: f64,
    /// Time since which the link has been idle, or from which it will be idle if no packet arrives;
    /// `None` while packets wait.
    idle_from: Option<Instant>,
    /// Packets since the last signal, while the mean is above `min`.
    passed: u32,
}

/// Decision about a packet.
enum Fate {
    Passes,
    IsToldOf,
    IsDropped,
}

impl Red {
    /// The empty queue of a link.
    pub fn new(config: RedConfig, link: &LinkConfig, random: Stream) -> Self {
        let threshold = |size: QueueSize| match size.0 {
            QueueLimit::Packets(packets) => f64::from(packets),
            QueueLimit::Bytes(octets) => octets as f64,
        };
        Self {
            min: threshold(config.min),
            max: threshold(config.max),
            config,
            fifo: Fifo::new(link.queue),
            random,
            rate: link.rate,
            spacing: link.spacing,
            mean: 0.0,
            idle_from: Some(Instant::ZERO),
            passed: 0,
        }
    }

    fn is_in_octets(&self) -> bool {
        matches!(self.config.max.0, QueueLimit::Bytes(_))
    }

    /// Time that the transmitter takes for a packet.
    fn time(&self, octets: u32) -> Duration {
        transmission_time(octets, self.rate).max(self.spacing)
    }

    /// Updates the mean for an arriving packet (section 4; section 11 for an empty queue).
    fn average(&mut self, now: Instant) {
        let weight = self.config.weight.0;
        if let Some(from) = self.idle_from.take() {
            let packet = self.time(self.config.mean_packet.0 as u32).as_secs_f64();
            self.mean *= exp(now.saturating_since(from).as_secs_f64() / packet * ln(1.0 - weight));
        }
        let (packets, octets) = self.fifo.queued();
        let length = if self.is_in_octets() { octets as f64 } else { packets as f64 };
        self.mean += weight * (length - self.mean);
    }

    /// The probability p_b for the mean; `None` if the mean is below `min`.
    fn share(&self) -> Option<f64> {
        let most = self.config.probability.0;
        if self.mean < self.min {
            None
        } else if self.mean < self.max {
            Some(most * (self.mean - self.min) / (self.max - self.min))
        } else if self.config.gentle && self.mean < 2.0 * self.max {
            Some(most + (1.0 - most) * (self.mean / self.max - 1.0))
        } else {
            Some(1.0)
        }
    }

    fn decide(&mut self, packet: &PacketHandle) -> Fate {
        let Some(mut share) = self.share() else {
            self.passed = 0;
            return Fate::Passes;
        };
        if share >= 1.0 {
            self.passed = 0;
            return Fate::IsDropped;
        }
        if self.is_in_octets() {
            share *= f64::from(packet.wire_len) / self.config.mean_packet.0 as f64;
        }
        // Signals are spread evenly rather than in clusters (section 7).
        let left = 1.0 - f64::from(self.passed) * share;
        let is_due = left <= 0.0 || self.random.bernoulli(share / left);
        self.passed = if is_due { 0 } else { self.passed + 1 };
        if is_due { Fate::IsToldOf } else { Fate::Passes }
    }

    /// Whether an arriving packet is admitted, given that there is room. Marks it if required.
    fn admits(&mut self, packet: &mut PacketHandle, verdicts: &mut Verdicts) -> bool {
        let stays = match self.decide(packet) {
            Fate::Passes => true,
            Fate::IsToldOf => verdicts.marks(packet),
            Fate::IsDropped => false,
        };
        if !stays {
            verdicts.drop_early(*packet);
        }
        stays
    }

    /// Notes that a packet leaves, after which the link is idle if nothing waits.
    fn note_departure(&mut self, now: Instant, packet: &PacketHandle) {
        if self.fifo.queued().0 == 0 {
            self.idle_from = Some(now + self.time(packet.wire_len));
        }
    }
}

impl Discipline for Red {
    fn pass(&mut self, now: Instant, packet: &mut PacketHandle, _: Flow, verdicts: &mut Verdicts) -> bool {
        self.average(now);
        let passes = self.admits(packet, verdicts);
        match passes {
            true => self.note_departure(now, packet),
            false => self.idle_from = Some(now),
        }
        passes
    }

    fn enqueue(&mut self, now: Instant, mut packet: PacketHandle, _: Flow, verdicts: &mut Verdicts) {
        let idle_from = self.idle_from.map(|from| from.max(now));
        self.average(now);
        // A packet without room is neither marked nor counted as dropped early.
        if !self.fifo.has_room(&packet) || self.admits(&mut packet, verdicts) {
            self.fifo.push(now, packet, verdicts);
        }
        if self.fifo.queued().0 == 0 {
            self.idle_from = idle_from;
        }
    }

    fn dequeue(&mut self, now: Instant, _: &mut Verdicts) -> Option<PacketHandle> {
        let (packet, _) = self.fifo.pop()?;
        self.note_departure(now, &packet);
        Some(packet)
    }

    fn queued(&self) -> (usize, u64) {
        self.fifo.queued()
    }

    fn clear(&mut self, now: Instant) -> Vec<PacketHandle> {
        self.idle_from = Some(self.idle_from.map_or(now, |from| from.min(now)));
        self.fifo.clear()
    }

    fn set_rate(&mut self, bit_per_s: u64) {
        self.rate = bit_per_s;
    }
}

#[cfg(test)]
mod tests;
