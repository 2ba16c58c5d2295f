//! Random Early Detection (Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", 1993): of the packets that come a part is told of congestion that grows with the
//! mean length of the queue, so that flows slow down before it is full, and not all at once.

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
    /// Up to this mean length no packet is told of, min_th. In packets or in octets, as `max` is.
    pub min: QueueSize,
    /// From this mean length on every packet is dropped, max_th.
    pub max: QueueSize,
    /// The share just before `max`, max_p. Packets told of are spread evenly, which makes 2p/(1+p)
    /// of a share p.
    pub probability: Probability,
    /// Weight of the length that each packet finds in the mean, w_q.
    pub weight: Probability,
    /// From `max` to twice that the share grows to 1, rather than at once (Floyd, "Recommendation
    /// on using the gentle variant of RED", 2000).
    pub gentle: bool,
    /// A packet as it comes on average: while nothing waits, the mean goes down as if one of these
    /// left after another. With thresholds in octets, a packet is told of in proportion to its
    /// length by this.
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
    /// The transmitter takes this time for each packet at least.
    spacing: Duration,
    /// Mean of the lengths that packets have found.
    mean: f64,
    /// Since when the link has had nothing to send, or will have then if nothing comes; `None`
    /// while packets wait.
    idle_from: Option<Instant>,
    /// Packets since one was last told of, while the mean is above `min`.
    passed: u32,
}

/// What becomes of a packet.
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

    /// How long the transmitter takes for a packet.
    fn time(&self, octets: u32) -> Duration {
        transmission_time(octets, self.rate).max(self.spacing)
    }

    /// A packet has come: the new mean (section 4, and section 11 for a queue that was empty).
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

    /// The share of packets that the mean asks for, p_b; `None` if it is so short that none is told
    /// of.
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
        // Packets told of are spread evenly rather than in clusters (section 7).
        let left = 1.0 - f64::from(self.passed) * share;
        let is_due = left <= 0.0 || self.random.bernoulli(share / left);
        self.passed = if is_due { 0 } else { self.passed + 1 };
        if is_due { Fate::IsToldOf } else { Fate::Passes }
    }

    /// Whether a packet that has come stays, if there is room for it.
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

    /// A packet goes, and the link has nothing to send after it if nothing waits.
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
        // What is refused is neither marked nor counted as dropped early.
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
