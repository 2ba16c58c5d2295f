//! One sender: records over RDCA over a session.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use anabranch_core::rdca::{
    Incarnation, Outcome, Sender, SenderConfig, SenderEvent, SenderInfo, Seq, WriteError,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_secure::datagram::{Initiator, InitiatorCounters, Name, Proof};
use anabranch_secure::small::Entropy;
use anabranch_wire::rdca::encode;
use bytes::Bytes;

use crate::record::{self, RECORD_HEADER};
use crate::since_start;

/// An event for the owner of a sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SenseEvent {
    /// A session with the sink has begun: the first one, or after a silence or a restart.
    Connected,
    /// The sink's output has all records before this one.
    Confirmed {
        /// Number of the next record.
        next: u64,
    },
    /// There is room for records again.
    Writable,
    /// The stream is closed.
    Closed {
        /// The reason.
        outcome: Outcome,
        /// The records that the sink has not confirmed; empty if complete.
        unconfirmed: Range<u64>,
    },
}

/// Length of the longest valid message of a sink in bytes: a SNACK.
pub const LONGEST_ANSWER: usize = 92;
/// Length of the longest message in a datagram that is long enough for any answer: without
/// encryption the place of the tag may have more of it.
pub const MAX_ANSWER: usize = LONGEST_ANSWER + 16;
/// Number of events of one call.
pub const EVENTS: usize = 4;

/// A sender. What it allocates at the start suffices for a steady stream, and for any answers of at
/// most [`MAX_ANSWER`] bytes, if its owner polls all events after each call.
///
/// Order of calls: any `handle_*` and commands, then [`Sense::poll_transmit`] and
/// [`Sense::poll_event`] until there is nothing, then [`Sense::next_timeout`].
#[derive(Debug)]
pub struct Sense<P: Proof> {
    initiator: Initiator<P>,
    sender: Sender,
    /// Least time between the first packets of two records, in nanoseconds per byte.
    cap: Option<u64>,
    next_write: Instant,
    /// Number of the next record.
    next: u64,
    confirmed: u64,
    /// Unconfirmed records: the number after the last packet of each.
    ends: VecDeque<Seq>,
    is_connected: bool,
    handshakes: u32,
    events: VecDeque<SenseEvent>,
    plain: Vec<u8>,
    message: Vec<u8>,
}

impl<P: Proof> Sense<P> {
    /// Creates the sender `name` in the run `run`, a random number that no other run of this sender
    /// has. `cap` limits the rate of records in bits per second.
    #[inline(always)]
    pub fn new(
        config: SenderConfig,
        proof: P,
        (name, run): (&Name, u64),
        cap: Option<u64>,
        entropy: Entropy,
    ) -> Self {
        // The session identifies the run, so the incarnation needs no other source.
        let incarnation = Incarnation(run as u32);
        Self {
            initiator: Initiator::new(proof, name, run, entropy),
            sender: Sender::new(config, incarnation, Seq(0)),
            cap: cap.map(|bits| 8_000_000_000 / bits.max(1)),
            next_write: Instant::ZERO,
            next: 0,
            confirmed: 0,
            // A record has at least one packet.
            ends: VecDeque::with_capacity(config.queue_packets.into()),
            is_connected: false,
            handshakes: 0,
            events: VecDeque::with_capacity(EVENTS),
            plain: Vec::with_capacity(MAX_ANSWER),
            message: Vec::with_capacity(config.datagram.into()),
        }
    }

    /// Length limit of a record in bytes.
    pub fn longest(&self) -> usize {
        self.sender.longest().saturating_sub(RECORD_HEADER)
    }

    /// Connects to the sink.
    pub fn open(&mut self, now: Instant) {
        self.initiator.call(since_start(now));
        self.sender.open(now);
    }

    /// Queues a record that was created at `created` (milliseconds since 1970) and returns its
    /// number.
    ///
    /// # Errors
    /// Returns [`WriteError`] and accepts nothing. [`SenseEvent::Writable`] follows
    /// [`WriteError::Full`].
    pub fn write(&mut self, now: Instant, created: u64, payload: &[u8]) -> Result<u64, WriteError> {
        let octets = record::encode(self.next as u32, created, payload);
        let pieces = self.sender.pieces(octets.len());
        let length = octets.len() as u64;
        let first = self.sender.write(now, octets)?;
        if let Some(cap) = self.cap {
            self.next_write = self.next_write.max(now) + Duration::from_nanos(length * cap);
        }
        self.ends.push_back(first + pieces as u32);
        self.next += 1;
        Ok(self.next - 1)
    }

    /// When the limit on the rate permits another record.
    pub const fn next_write(&self) -> Instant {
        self.next_write
    }

    /// Announces the last record. [`SenseEvent::Closed`] follows when the sink has confirmed all.
    pub fn close(&mut self, now: Instant) {
        self.sender.close(now);
    }

    /// Handles a report that the network has no path to the sink.
    pub fn path_lost(&mut self, now: Instant) {
        self.sender.path_lost(now);
    }

    /// Ends the stream at once.
    pub fn abort(&mut self) {
        self.sender.abort();
    }

    /// Handles a datagram from the sink.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        let at = since_start(now);
        if self.initiator.handle(at, datagram, &mut self.plain) {
            self.sender.handle_datagram(now, &Bytes::copy_from_slice(&self.plain));
        }
        let is_open = self.initiator.is_open(at);
        let handshakes = self.initiator.counters().completed;
        if is_open && handshakes != self.handshakes {
            self.handshakes = handshakes;
            self.sender.sink_reached(now);
            self.events.push_back(SenseEvent::Connected);
        }
        self.is_connected = is_open;
        self.handle_events();
    }

    /// Replaces `out` with the next datagram to send. Returns `false` if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let at = since_start(now);
        if self.initiator.poll_transmit(at, out) {
            return true;
        }
        self.is_connected = self.initiator.is_open(at);
        if !self.is_connected {
            self.initiator.call(at);
            return self.initiator.poll_transmit(at, out);
        }
        let Some(message) = self.sender.poll_transmit(now) else { return false };
        self.message.clear();
        encode(&message, &mut self.message);
        if message.asks() {
            self.initiator.await_answer(at);
        }
        self.initiator.seal(at, &self.message, out).is_ok()
    }

    /// Returns the next event, until `None`.
    pub fn poll_event(&mut self) -> Option<SenseEvent> {
        self.events.pop_front()
    }

    /// When to call [`Sense::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let call = self.initiator.next_timeout().map(|at| Instant::from_nanos(at.as_nanos() as u64));
        // Without a session the machine's timers could not send anything.
        let own = self.sender.next_timeout().filter(|_| self.is_connected);
        call.into_iter().chain(own).min()
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_connected {
            self.sender.handle_timeout(now);
        }
        self.handle_events();
    }

    /// Since when the sink has not answered, if there is a session; `None` if it owes no answer.
    pub fn silent_since(&self) -> Option<Instant> {
        self.initiator.silent_since().map(|at| Instant::from_nanos(at.as_nanos() as u64))
    }

    /// Whether there is a session with the sink.
    pub const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// State of RDCA's sender.
    pub fn info(&self) -> SenderInfo {
        self.sender.info()
    }

    /// Counters of the session.
    pub fn session(&self) -> InitiatorCounters {
        self.initiator.counters()
    }

    /// Numbers of the records that were accepted and not confirmed.
    pub fn unconfirmed(&self) -> Range<u64> {
        self.confirmed..self.next
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::Confirmed { next } => {
                    while self.ends.front().is_some_and(|end| end.le(next)) {
                        self.ends.pop_front();
                        self.confirmed += 1;
                    }
                    self.events.push_back(SenseEvent::Confirmed { next: self.confirmed });
                }
                SenderEvent::Writable => self.events.push_back(SenseEvent::Writable),
                SenderEvent::Closed { outcome, .. } => {
                    if outcome == Outcome::Complete {
                        self.confirmed = self.next;
                        self.ends.clear();
                    }
                    self.events.push_back(SenseEvent::Closed { outcome, unconfirmed: self.unconfirmed() });
                }
                // Nothing is released without a confirmation, so nothing is gone, and a new stream
                // repeats all that the sink does not have.
                SenderEvent::Opened | SenderEvent::Gone(_) | SenderEvent::SinkLost { .. } => {}
            }
        }
    }
}
