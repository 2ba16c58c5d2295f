//! Controlled Delay (RFC 8289): a queue may be long for a while, but not for as long as a round
//! trip. CoDel measures the waiting time of packets when they leave. It drops or marks one packet,
//! and then further ones at growing frequency, until a packet has waited for less than the target.

use anabranch_core::time::{Duration, Instant};
use anabranch_units::Span;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Fifo, Verdicts};
use crate::link::QueueLimit;
use crate::packet::{Flow, PacketHandle};

/// Options of CoDel.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CodelConfig {
    /// Acceptable standing queueing delay, TARGET of RFC 8289. Less than `interval`.
    pub target: Span,
    /// Time for which a longer delay is tolerated: about the longest round trip (INTERVAL of
    /// RFC 8289).
    pub interval: Span,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self { target: Span(Duration::from_millis(5)), interval: Span(Duration::from_millis(100)) }
    }
}

impl CodelConfig {
    pub(super) fn check(&self) -> Result<(), [&'static str; 3]> {
        let hint = "by default `target` is 5 ms and `interval` 100 ms";
        match (self.target.0.is_zero(), self.target.0 < self.interval.0) {
            (true, _) => Err(["target", "packets that must not wait at all need no queue", hint]),
            (_, false) => Err(["interval", "expected more than `target`", hint]),
            _ => Ok(()),
        }
    }
}

/// The queue of one link.
#[derive(Debug)]
pub struct Codel {
    config: CodelConfig,
    fifo: Fifo,
    /// Bytes of the largest packet so far. A queue with no more than this is short.
    largest: u32,
    /// Time until which packets may wait too long before the queue counts as standing.
    patient_until: Option<Instant>,
    dropping: bool,
    next_drop: Instant,
    /// Number of drops since dropping began, and their number when it last began.
    count: u32,
    last_count: u32,
}

impl Codel {
    /// An empty queue with a limit.
    pub fn new(config: CodelConfig, limit: QueueLimit) -> Self {
        Self {
            config,
            fifo: Fifo::new(limit),
            largest: 0,
            patient_until: None,
            dropping: false,
            next_drop: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Takes the head of the queue. The flag says whether packets have waited too long for an
    /// interval.
    fn take(&mut self, now: Instant) -> Option<(PacketHandle, bool)> {
        let Some((packet, since)) = self.fifo.pop() else {
            self.patient_until = None;
            return None;
        };
        let short = now.saturating_since(since) < self.config.target.0;
        if short || self.fifo.queued().1 <= self.largest.into() {
            self.patient_until = None;
            return Some((packet, false));
        }
        let until = *self.patient_until.get_or_insert(now + self.config.interval.0);
        Some((packet, now >= until))
    }

    /// Takes the head of the queue without a CoDel decision.
    pub(super) fn shed(&mut self) -> Option<PacketHandle> {
        self.fifo.pop().map(|(packet, _)| packet)
    }

    /// Time of the next drop after one at `at`: the frequency grows with the square root of the
    /// number of drops (section 3.3).
    fn after(&self, at: Instant) -> Instant {
        at + Duration::from_secs_f64(self.config.interval.0.as_secs_f64() / f64::from(self.count).sqrt())
    }

    /// Begins to drop, almost as often as before if that was recently (section 5).
    fn begin(&mut self, now: Instant) {
        self.dropping = true;
        let since_then = self.count - self.last_count;
        let recent = now.saturating_since(self.next_drop) < self.config.interval.0 * 16;
        self.count = if since_then > 1 && recent { since_then } else { 1 };
        self.next_drop = self.after(now);
        self.last_count = self.count;
    }
}

impl Discipline for Codel {
    fn pass(&mut self, _: Instant, packet: &mut PacketHandle, _: Flow, _: &mut Verdicts) -> bool {
        // Nothing waits, so taking the last packet has already ended the dropping.
        self.largest = self.largest.max(packet.wire_len);
        true
    }

    fn enqueue(&mut self, now: Instant, packet: PacketHandle, _: Flow, verdicts: &mut Verdicts) {
        self.largest = self.largest.max(packet.wire_len);
        self.fifo.push(now, packet, verdicts);
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<PacketHandle> {
        let mut head = self.take(now);
        if !self.dropping {
            if let Some((packet, true)) = &mut head {
                if !verdicts.marks(packet) {
                    verdicts.drop_early(*packet);
                    head = self.take(now);
                }
                self.begin(now);
            }
            return head.map(|(packet, _)| packet);
        }
        loop {
            match &mut head {
                Some((packet, true)) if now >= self.next_drop => {
                    self.count += 1;
                    if verdicts.marks(packet) {
                        self.next_drop = self.after(self.next_drop);
                        break;
                    }
                    verdicts.drop_early(*packet);
                    head = self.take(now);
                    if matches!(head, Some((_, true))) {
                        self.next_drop = self.after(self.next_drop);
                    }
                }
                Some((_, true)) => break,
                Some((_, false)) | None => {
                    self.dropping = false;
                    break;
                }
            }
        }
        head.map(|(packet, _)| packet)
    }

    fn queued(&self) -> (usize, u64) {
        self.fifo.queued()
    }

    fn clear(&mut self, _: Instant) -> Vec<PacketHandle> {
        (self.patient_until, self.dropping) = (None, false);
        self.fifo.clear()
    }
}
