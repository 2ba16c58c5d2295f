//! Timing of acknowledgements (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

use crate::tcp::config::DelayedAck;
use crate::time::Instant;

/// Pending acknowledgements.
#[derive(Debug)]
pub(super) struct AckDelay {
    policy: DelayedAck,
    /// See [`Config::ack_remainder`](crate::tcp::Config::ack_remainder).
    remainder: bool,
    /// Number of acknowledgements to send at once. More than one if several segments arrived out of
    /// order between two polls: the sender counts duplicates.
    due: u32,
    /// Deadline of a delayed acknowledgement.
    waiting: Option<Instant>,
    /// Full segments since the last acknowledgement.
    segments: u8,
    /// Bytes since the last acknowledgement.
    bytes: u32,
    /// Largest payload seen so far, which defines a full segment.
    largest: u32,
}

impl AckDelay {
    pub(super) fn new(policy: DelayedAck, remainder: bool) -> Self {
        Self { policy, remainder, due: 0, waiting: None, segments: 0, bytes: 0, largest: 0 }
    }

    /// Handles a segment of `len` bytes that is in order and fills no hole; `rmss` is the largest
    /// possible payload. Segments that are not full count by their bytes (RFC 9293 section 3.8.6.3,
    /// SHLD-19). SACK blocks count as payload, because they reduce the room of the segment.
    #[inline]
    pub(super) fn segment(&mut self, now: Instant, len: u32, rmss: u32) {
        let DelayedAck::Every { segments, timeout } = self.policy else { return self.in_order() };
        self.largest = self.largest.max(len);
        if len >= self.largest {
            self.segments = self.segments.saturating_add(1);
        }
        self.bytes = self.bytes.saturating_add(len);
        let enough = rmss.saturating_mul(u32::from(segments.max(1)));
        let remains = self.remainder && self.bytes > self.largest.max(LEAST_SEGMENT);
        if self.segments >= segments.max(1) || self.bytes >= enough || remains {
            self.in_order();
        } else if self.waiting.is_none() {
            self.waiting = Some(now + timeout);
        }
    }

    /// Schedules one acknowledgement without delay for data in order. RCV.NXT has moved, so
    /// acknowledgements that were pending before would only look like duplicates.
    #[inline]
    pub(super) fn in_order(&mut self) {
        self.due = 1;
    }

    /// Schedules one more acknowledgement without delay.
    pub(super) fn now(&mut self) {
        self.due = (self.due + 1).min(MAX_DUE);
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due > 0
    }

    /// Notes a sent acknowledgement.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.waiting = None;
        self.segments = 0;
        self.bytes = 0;
    }

    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.waiting.is_some_and(|at| at <= now) {
            self.waiting = None;
            self.due = self.due.max(1);
        }
    }
}

/// Payload of the smallest full segment, as long as no larger one was seen (RFC 9293, 3.7.1).
const LEAST_SEGMENT: u32 = 536;
/// Upper bound of pending acknowledgements: more give the sender no information.
const MAX_DUE: u32 = 64;
