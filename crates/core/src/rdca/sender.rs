//! The sender: one stream to one sink.

mod input;
mod output;

use alloc::collections::VecDeque;

use anabranch_wire::rdca::{Incarnation, Piece, Range, Ranges, RefuseReason, Seq, StreamId};
use bytes::Bytes;

use super::config::{Release, Retention, SenderConfig, Standby};
use super::queue::Queue;
use super::rate::{Phase, RateControl};
use super::told::Told;
use super::trip::{Least, micros};
use crate::time::{Duration, Instant};

/// An event for the owner of a sender, in the order of reporting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// The sink has answered: the stream is open, for the first time or again.
    Opened,
    /// The sink has confirmed that all packets before `next` were delivered or reported as gone.
    /// The confirmation is part of other messages of the sink, so this event is rare.
    Confirmed {
        /// One past the last confirmed packet.
        next: Seq,
    },
    /// There is room again after [`Sender::write`] has refused data for lack of it.
    Writable,
    /// The sink has requested these packets, but they are no longer retained. They are lost unless
    /// a late copy arrives.
    Gone(Range),
    /// The sink does not know the stream: it has restarted or has forgotten it. The packets in
    /// `unknown` were sent and not confirmed; whether they were delivered is unknown, and they are
    /// not sent again. With [`Restart::Resend`](super::Restart) `unknown` has only packets that
    /// were already released. Unsent packets continue in a new stream.
    SinkLost {
        /// The sent and unconfirmed packets.
        unknown: Range,
    },
    /// The stream is closed.
    Closed {
        /// Reason of the end.
        outcome: Outcome,
        /// Packets that were sent and not confirmed: they may have arrived or not. Empty if
        /// complete.
        unknown: Range,
        /// Packets that were never sent. Empty if complete.
        unsent: Range,
    },
}

/// Reason for the end of a stream at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The sink has confirmed the delivery of every packet, except those reported as gone or
    /// unknown.
    Complete,
    /// The sink did not answer.
    NoAnswer,
    /// The sink refused the stream.
    Refused(RefuseReason),
    /// The sink has lost the stream after all packets were sent.
    SinkLost,
    /// The sink has aborted the stream.
    Reset,
    /// The owner has called [`Sender::abort`].
    Aborted,
}

/// Why [`Sender::write`] refuses data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The queue is full; [`SenderEvent::Writable`] follows when it has room.
    #[error("the queue is full")]
    Full,
    /// The data exceeds half of the queue: see [`Sender::longest`].
    #[error("the packet has {octets} bytes, and half of the queue has room for {most}")]
    TooLong {
        /// Length of the data in bytes.
        octets: usize,
        /// The limit, [`Sender::longest`].
        most: usize,
    },
    /// The stream is closed or closing.
    #[error("the stream is closed")]
    Closed,
}

/// Counters of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// Datagrams that could not be decoded.
    pub malformed: u32,
    /// Messages of another stream or of the wrong direction.
    pub strange: u32,
    /// Packets sent for the first time.
    pub packets: u32,
    /// Retransmitted packets.
    pub repeated: u32,
    /// Requests, probes, notices and resets sent: the control load of the sender.
    pub control: u32,
    /// SNACKs received.
    pub snacks: u32,
    /// Congestion notifications received.
    pub congestions: u32,
    /// Packets discarded without confirmation, presumed to have arrived (section 3.4).
    pub presumed: u32,
}

/// State of a sender, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderInfo {
    /// Phase of the rate control.
    pub phase: Phase,
    /// Rate in bytes per second.
    pub rate: u32,
    /// Window in packets.
    pub window: u32,
    /// Average round-trip time.
    pub rtt: Duration,
    /// Packets in the queue, sent or unsent.
    pub queued: usize,
    /// Unsent packets in the queue.
    pub unsent: usize,
    /// Counters.
    pub counters: SenderCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    /// Requesting a stream: the next request is sent at `due`; `tries` were sent.
    Opening {
        due: Instant,
        tries: u8,
    },
    Open(StreamId),
    Closed,
}

/// Whether the owner has closed the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Closing {
    No,
    Yes,
}

/// Control messages to send once, besides data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    probe: bool,
    reset: Option<StreamId>,
}

/// Whether the sender waits for an answer of the sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hearing {
    /// No answer was requested.
    Silent,
    /// An answer was requested.
    Awaiting,
    /// An answer was requested and is so late that no new packets are sent.
    Standby,
}

/// State of the path as reported by the network ([`Standby::Trial`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    Good,
    /// The path has broken: nothing is sent before `until`, then one packet. It has broken `times`
    /// times since the last message of the sink.
    Broken {
        until: Instant,
        times: u8,
    },
    /// One packet was sent. The others follow at `until`, unless the network reports that there is
    /// no path.
    Tried {
        until: Instant,
        times: u8,
    },
}

impl Path {
    fn held_until(self) -> Instant {
        match self {
            Self::Good => Instant::ZERO,
            Self::Broken { until, .. } | Self::Tried { until, .. } => until,
        }
    }
}

/// One stream to one sink.
///
/// Order of calls: any `handle_*` and commands, then `poll_transmit` and `poll_event` until `None`,
/// then `next_timeout`. The first `write` opens the stream, or [`Sender::open`] does.
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    incarnation: Incarnation,
    state: State,
    closing: Closing,
    queue: Queue,
    /// All packets before this one were confirmed by the sink.
    confirmed: Seq,
    rate: RateControl,
    /// Least recent round-trip time on this clock.
    round_trips: Least,
    next_send: Instant,
    /// When `poll_transmit` last found nothing to send: until then, window and rate have allowed no
    /// packet.
    polled: Instant,
    /// Packets sent since the application last limited the sender.
    since_idle: u32,
    since_confirm: u32,
    /// When the last message of the sink came.
    heard: Instant,
    /// Packets sent since the last reported loss.
    since_loss: u16,
    /// Number of further packets that carry the measured round-trip time.
    tell_rtt: u8,
    hearing: Hearing,
    path: Path,
    /// When the next probe is sent; `probes` counts the unanswered ones.
    probe_at: Option<Instant>,
    probes: u8,
    word: Word,
    gone: Ranges,
    told: Told,
    /// Number of packets for which the last `write` had no room; 0 if it succeeded.
    refused: u16,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

impl Sender {
    /// Creates a sender that is not yet open. `incarnation` must differ from those of earlier runs
    /// of this sender; when the sink loses the stream, the sender uses the following numbers.
    /// `first` is the number of the first packet.
    pub fn new(config: SenderConfig, incarnation: Incarnation, first: Seq) -> Self {
        Self {
            config,
            incarnation,
            state: State::Idle,
            closing: Closing::No,
            queue: Queue::new(first, config.most_packets()),
            confirmed: first,
            rate: RateControl::new(Instant::ZERO, &config, config.initial_rtt),
            round_trips: NO_ROUND_TRIP,
            next_send: Instant::ZERO,
            polled: Instant::ZERO,
            since_idle: 0,
            since_confirm: 0,
            heard: Instant::ZERO,
            since_loss: u16::MAX,
            tell_rtt: 0,
            hearing: Hearing::Silent,
            path: Path::Good,
            probe_at: None,
            probes: 0,
            word: Word { probe: false, reset: None },
            gone: Ranges::EMPTY,
            told: Told::default(),
            refused: 0,
            events: VecDeque::with_capacity(MOST_EVENTS),
            counters: SenderCounters::default(),
        }
    }

    /// Number of events for which memory is allocated at the start. With
    /// [`Release::Confirmed`](super::Release) no call causes more.
    pub const EVENTS: usize = MOST_EVENTS;

    /// Memory for each packet in the queue in bytes, without its payload.
    pub const PER_PACKET: usize = Queue::PER_PACKET;

    /// Largest payload of a datagram in bytes; [`Sender::write`] splits longer data.
    pub fn max_payload(&self) -> usize {
        self.config.max_payload()
    }

    /// Largest number of bytes that one [`Sender::write`] accepts: the capacity of half of the
    /// queue, at least one packet. All pieces can then be retained until the sink has confirmed
    /// them.
    pub fn longest(&self) -> usize {
        self.config.longest()
    }

    /// Requests a stream from the sink (section 3.1). No effect on a sender that is or was open.
    pub fn open(&mut self, now: Instant) {
        if self.state == State::Idle {
            self.state = State::Opening { due: now, tries: 0 };
        }
    }

    /// Number of packets that carry `octets` bytes of one [`Sender::write`].
    pub fn pieces(&self, octets: usize) -> usize {
        self.config.pieces(octets)
    }

    /// Queues data and returns the number of its packet. Data of more than [`Sender::max_payload`]
    /// bytes is split (section 3.2.1): its pieces are packets with consecutive numbers, starting
    /// with the returned one. The sink joins them again.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] and accepts none of the data.
    pub fn write(&mut self, now: Instant, payload: Bytes) -> Result<Seq, WriteError> {
        if self.state == State::Closed || self.closing == Closing::Yes {
            return Err(WriteError::Closed);
        }
        let (octets, most) = (payload.len(), self.longest());
        if octets > most {
            return Err(WriteError::TooLong { octets, most });
        }
        let pieces = self.config.pieces(octets);
        if !self.make_room(now, pieces) {
            self.refused = pieces as u16;
            return Err(WriteError::Full);
        }
        self.open(now);
        if self.queue.unsent() == 0 && self.next_send <= now {
            // The rate would have allowed a packet earlier, so the application limits the sender.
            self.since_idle = 0;
            self.rate.idle_until(now, &self.config);
        }
        let (first, room) = (self.queue.end(), self.max_payload());
        for at in 0..pieces {
            let piece = payload.slice(at * room..octets.min((at + 1) * room));
            self.queue.push(Piece::of(at, pieces), piece);
        }
        Ok(first)
    }

    /// Whether [`Sender::write`] would accept a packet now.
    pub fn is_writable(&self, now: Instant) -> bool {
        self.has_room(now, 1)
    }

    fn has_room(&self, now: Instant, packets: usize) -> bool {
        let open = self.state != State::Closed && self.closing == Closing::No;
        open && self.room_at(now, packets).is_some_and(|at| at <= now)
    }

    /// Closes the stream: no more packets follow, and the stream ends when the sink has confirmed
    /// all.
    pub fn close(&mut self, now: Instant) {
        if self.closing == Closing::Yes {
            return;
        }
        self.closing = Closing::Yes;
        self.refused = 0;
        match self.state {
            State::Idle => self.finish(Outcome::Complete),
            // The last packet was sent without being marked as the last, so ask for a confirmation.
            State::Open(_) if self.queue.unsent() == 0 => self.probe_at = Some(now),
            State::Opening { .. } | State::Open(_) | State::Closed => {}
        }
    }

    /// Closes the stream at once, without waiting for confirmation.
    pub fn abort(&mut self) {
        if let State::Open(stream) = self.state {
            self.word.reset = Some(stream);
        }
        if self.state != State::Closed {
            self.finish(Outcome::Aborted);
        }
    }

    /// Handles a report that the network has no path to the sink (a route error, or a link that is
    /// down). No new packets are sent until the sink answers a probe, or until a trial packet gets
    /// through ([`Standby`]). The paper's sender continues, and presumes that its packets arrive.
    pub fn path_lost(&mut self, now: Instant) {
        if self.config.standby == Standby::Trial && matches!(self.state, State::Open(_)) {
            let times = match self.path {
                Path::Good => 0,
                Path::Broken { .. } => return,
                Path::Tried { times, .. } => times.saturating_add(1),
            };
            // The rate of an application-limited sender says nothing about the capacity of the
            // path.
            if !self.is_application_limited() {
                self.rate.broken(now, &self.config);
            }
            // A failed trial breaks routes again, so each one doubles the wait.
            let wait = self.rate.rtt.max(LEAST_PROBE) * (1 << times.min(16));
            self.path = Path::Broken { until: now + wait.min(self.config.longest_wait), times };
        } else if matches!(self.state, State::Open(_)) && self.hearing != Hearing::Standby {
            self.hearing = Hearing::Standby;
            if !self.is_application_limited() {
                self.rate.broken(now, &self.config);
            }
            self.probe_at = Some(now + self.rate.rtt.max(LEAST_PROBE));
        }
    }

    /// Handles a report that the network has found a path for the trial packet.
    pub fn path_found(&mut self, now: Instant) {
        if let Path::Tried { .. } = self.path {
            self.path = Path::Good;
            self.rate.resume(now, &self.config);
        }
    }

    /// Handles a report of the layer below that the sink answers again, perhaps after a restart:
    /// the sender asks for the state of the stream at once.
    pub fn sink_reached(&mut self, now: Instant) {
        if matches!(self.state, State::Open(_)) && self.confirmed != self.queue.next_unsent() {
            self.probe_at = Some(now);
        }
    }

    /// Returns the next event for the application, until `None`.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// State of the sender, for reports.
    pub fn info(&self) -> SenderInfo {
        SenderInfo {
            phase: self.rate.phase(),
            rate: self.rate.rate(&self.config),
            window: self.window(),
            rtt: self.rate.rtt,
            queued: self.queue.len(),
            unsent: self.queue.unsent(),
            counters: self.counters,
        }
    }

    fn window(&self) -> u32 {
        self.rate.window(&self.config)
    }

    fn base_rtt(&self) -> Option<Duration> {
        u32::try_from(self.round_trips.get()).ok().map(micros)
    }

    /// How long a sent packet is kept at least (erratum H11).
    fn retention(&self) -> Duration {
        let Retention { half_rtts, intervals } = self.config.retention;
        self.rate.rtt.mul_ratio(u64::from(half_rtts), 2)
            + self.rate.interval(&self.config) * u64::from(intervals)
    }

    /// When there is room for `packets` packets; `None` if that depends on a transmission or a
    /// confirmation. Data of more packets than the limit of unsent ones must be alone in the queue.
    fn room_at(&self, now: Instant, packets: usize) -> Option<Instant> {
        let unsent = self.queue.unsent();
        if unsent > 0 && unsent + packets > self.most_unsent() {
            return None;
        }
        match self.wanting(packets) {
            0 => Some(now),
            wanting => self.queue.releasable(wanting, self.retention()).filter(|_| self.presumes()),
        }
    }

    /// Number of places that are missing in the queue for `packets` packets.
    fn wanting(&self, packets: usize) -> usize {
        (self.queue.len() + packets).saturating_sub(self.config.most_packets())
    }

    /// Whether packets that were not requested are presumed to have arrived.
    fn presumes(&self) -> bool {
        match self.config.release {
            Release::Presumed => true,
            Release::WhenCalm => self.since_loss >= CALM,
            Release::Confirmed => false,
        }
    }

    /// Whether to ask the sink for a confirmation, because the queue will otherwise be full.
    fn needs_word(&self) -> bool {
        let most = self.config.most_packets();
        // Room for the packets that are sent until the answer arrives.
        let interval = self.rate.interval(&self.config).as_nanos().max(1);
        let meanwhile = usize::try_from(2 * self.rate.rtt.as_nanos() / interval).unwrap_or(usize::MAX);
        let room = meanwhile.saturating_add(1).clamp(most.div_ceil(4), most / 2);
        let is_due = self.queue.len() + room >= most && self.since_confirm as usize >= room;
        // Data that needs several places may be waiting for the packets since the last
        // confirmation.
        !self.presumes() && (is_due || self.refused > 1 && self.queue.unsent() == 0)
    }

    /// Idle time after which to ask for a confirmation: longer than a pause of a steady stream.
    fn tail_after(&self) -> Duration {
        self.config.tail_after.max(self.rate.pause() * 2)
    }

    fn most_unsent(&self) -> usize {
        let most = u64::from(self.config.unsent_packets.max(1));
        let soon =
            self.config.unsent_time.filter(|_| matches!(self.state, State::Open(_))).map_or(most, |time| {
                let interval = self.rate.interval(&self.config).as_nanos().max(1);
                (time.as_nanos() / interval).max(LEAST_UNSENT)
            });
        most.min(soon) as usize
    }

    fn make_room(&mut self, now: Instant, packets: usize) -> bool {
        if self.room_at(now, packets).is_none_or(|at| at > now) {
            return false;
        }
        for _ in 0..self.wanting(packets) {
            self.queue.release();
            self.counters.presumed += 1;
        }
        true
    }

    /// Reports once that there is room again.
    fn tell_room(&mut self, now: Instant) {
        if self.refused > 0 && self.has_room(now, self.refused.into()) {
            self.refused = 0;
            self.events.push_back(SenderEvent::Writable);
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        let sent = self.queue.next_unsent();
        let complete = outcome == Outcome::Complete;
        let unknown = Range { start: if complete { sent } else { self.confirmed }, end: sent };
        let unsent = Range { start: sent, end: self.queue.end() };
        self.state = State::Closed;
        self.probe_at = None;
        self.word.probe = false;
        self.gone = Ranges::EMPTY;
        self.queue = Queue::new(self.queue.end(), 0);
        self.events.push_back(SenderEvent::Closed { outcome, unknown, unsent });
    }
}

/// Initial capacity of the event queue; avoids allocations in normal operation.
const MOST_EVENTS: usize = 8;
/// Least number of unsent packets. A pause that drains a queue, or a retransmission, leaves this
/// many packets waiting even if the application's own rate is the limit.
const LEAST_UNSENT: u64 = 4;
/// Value before the first measurement.
const NO_ROUND_TRIP: Least = Least::new(Instant::ZERO, i64::MAX);
/// Number of packets without a loss after which unrequested packets are again presumed to have
/// arrived.
const CALM: u16 = 512;
/// Least time before a probe: a zero wait would let a driver loop without time advancing.
const LEAST_PROBE: Duration = Duration::from_millis(10);
