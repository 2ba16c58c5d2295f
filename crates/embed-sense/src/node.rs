//! A sender for small nodes: the only handshake is that of a pre-shared key, or none, and a record
//! is one packet.

use alloc::vec::Vec;

use crate::api::{Counters, Event, kind};
use crate::guard::Guard;
use crate::sense::{LONGEST_ANSWER, Sense, SenseEvent};
use crate::sizes::Sizes;
use anabranch_core::rdca::{Outcome, WriteError};
use anabranch_core::time::Instant;
use anabranch_secure::SharedKey;
use anabranch_secure::datagram::{Name, Shared};
use anabranch_secure::small::Entropy;

/// Longest datagram of a sink in bytes, with header and tag.
const MAX_DATAGRAM: usize = LONGEST_ANSWER + anabranch_secure::datagram::OVERHEAD;

/// A sender whose memory is bounded by its [`Sizes`].
#[derive(Debug)]
pub struct Node {
    sense: Sense<Guard>,
    payload: u16,
    /// The datagram that was polled last.
    datagram: Vec<u8>,
    /// Datagrams that were longer than a sink's.
    long: u32,
    is_connected: bool,
    is_writable: bool,
    /// Number after the last record whose confirmation was reported.
    reported: u64,
    confirmed: u64,
    written: u64,
    ended: Option<Outcome>,
    /// The end was reported. A session may still be renewed, of which nothing is told.
    is_over: bool,
}

impl Node {
    /// Creates a sender in the run `run`, a random number that no other run of this sender has.
    /// `shared` is a pre-shared key; without one nothing is encrypted.
    #[inline(always)]
    pub fn new(sizes: &Sizes, name: &Name, run: u64, shared: Option<SharedKey>, entropy: Entropy) -> Self {
        let guard = shared.map_or(Guard::Clear, |key| Guard::Shared(Shared(key)));
        Self {
            sense: Sense::new(sizes.config(), guard, (name, run), None, entropy),
            payload: sizes.payload,
            datagram: Vec::with_capacity(sizes.longest()),
            long: 0,
            is_connected: false,
            is_writable: false,
            reported: 0,
            confirmed: 0,
            written: 0,
            ended: None,
            is_over: false,
        }
    }

    /// Begins the handshake with the sink.
    pub fn open(&mut self, now: Instant) {
        self.sense.open(now);
    }

    /// Queues a record that was created at `created` (milliseconds since 1970, 0 if unknown) and
    /// returns its number. Allocates at most one record.
    ///
    /// # Errors
    ///
    /// The record is too long, the queue is full, or the stream is closed. An event follows when
    /// the queue has room.
    pub fn write(&mut self, now: Instant, created: u64, payload: &[u8]) -> Result<u64, WriteError> {
        let (octets, most) = (payload.len(), usize::from(self.payload));
        if octets > most {
            return Err(WriteError::TooLong { octets, most });
        }
        let number = self.sense.write(now, created, payload)?;
        self.written = number + 1;
        Ok(number)
    }

    /// Announces that no records follow. The last event comes when the sink has stored all.
    pub fn close(&mut self, now: Instant) {
        self.sense.close(now);
        self.note();
    }

    /// Handles a datagram from the sink's address. Allocates at most one answer.
    pub fn datagram(&mut self, now: Instant, datagram: &[u8]) {
        if datagram.len() > MAX_DATAGRAM {
            self.long = self.long.wrapping_add(1);
            return;
        }
        self.sense.handle_datagram(now, datagram);
        self.note();
    }

    /// Handles a report that the network has no path to the sink.
    pub fn path_lost(&mut self, now: Instant) {
        self.sense.path_lost(now);
    }

    /// Handles expired timers.
    pub fn timeout(&mut self, now: Instant) {
        self.sense.handle_timeout(now);
        self.note();
    }

    /// When to call [`Node::timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.sense.next_timeout()
    }

    /// The next datagram to send to the sink.
    pub fn poll(&mut self, now: Instant) -> Option<&[u8]> {
        let is_sent = self.sense.poll_transmit(now, &mut self.datagram);
        self.note();
        is_sent.then_some(&self.datagram[..])
    }

    /// The next event. Events of one kind are joined until they are polled.
    pub fn event(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let event = |kind| Event { kind, complete: 0, confirmed: self.confirmed, written: self.written };
        if core::mem::take(&mut self.is_connected) {
            return Some(event(kind::CONNECTED));
        }
        if self.reported != self.confirmed {
            self.reported = self.confirmed;
            return Some(event(kind::CONFIRMED));
        }
        if core::mem::take(&mut self.is_writable) {
            return Some(event(kind::WRITABLE));
        }
        let outcome = self.ended?;
        self.is_over = true;
        Some(Event { complete: (outcome == Outcome::Complete).into(), ..event(kind::ENDED) })
    }

    /// Counters since the start, which wrap at 2^32, and the present state.
    pub fn counters(&self) -> Counters {
        let (info, session) = (self.sense.info(), self.sense.session());
        let own = info.counters;
        Counters {
            records: own.packets,
            repeated: own.repeated,
            control: own.control,
            strange: self
                .long
                .wrapping_add(own.strange)
                .wrapping_add(own.malformed)
                .wrapping_add(session.strange),
            rejected: session.rejected,
            handshakes: session.handshakes,
            queued: info.queued as u32,
            rate: info.rate,
            rtt_us: (info.rtt.as_nanos() / 1000) as u32,
        }
    }

    /// Takes the machine's events, so that their number is bounded.
    fn note(&mut self) {
        while let Some(event) = self.sense.poll_event() {
            match event {
                SenseEvent::Connected => self.is_connected = true,
                SenseEvent::Confirmed { next } => self.confirmed = next,
                SenseEvent::Writable => self.is_writable = true,
                SenseEvent::Closed { outcome, unconfirmed } => {
                    self.confirmed = unconfirmed.start;
                    self.ended = Some(outcome);
                }
            }
        }
    }
}
