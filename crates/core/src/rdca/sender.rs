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

/// What a sender tells its owner, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// The sink has answered: the stream is open, for the first time or anew.
    Opened,
    /// The sink has said that everything before this packet was delivered, or reported as gone.
    /// Comes with whatever the sink says, so seldom.
    Confirmed {
        /// One past the last of them.
        next: Seq,
    },
    /// There is room again, after [`Sender::write`] had refused for want of it.
    Writable,
    /// The sink has asked for these packets, and they are not retained any more. They are lost,
    /// unless a late copy arrives.
    Gone(Range),
    /// The sink knows nothing of the stream: it has restarted, or has forgotten it. Whether these
    /// packets, sent and not confirmed, were delivered is unknown; they are not sent again. What
    /// was not sent goes on in a new stream.
    SinkLost {
        /// Which.
        unknown: Range,
    },
    /// The stream is over.
    Closed {
        /// How.
        outcome: Outcome,
        /// Packets that were sent and not confirmed: they may have arrived or not. Empty if
        /// complete.
        unknown: Range,
        /// Packets that were never sent. Empty if complete.
        unsent: Range,
    },
}

/// How a stream ended at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The sink has confirmed that every packet was delivered, but those that were reported as gone
    /// or unknown.
    Complete,
    /// The sink does not answer.
    NoAnswer,
    /// The sink takes no stream.
    Refused(RefuseReason),
    /// The sink has lost the stream when all had been sent.
    SinkLost,
    /// The sink has given it up.
    Reset,
    /// The owner has ([`Sender::abort`]).
    Aborted,
}

/// Why a packet is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The queue has no room for now; [`SenderEvent::Writable`] will say when it has.
    #[error("the queue is full")]
    Full,
    /// The data would take more than half of the queue: see [`Sender::longest`].
    #[error("the packet has {octets} bytes, and half of the queue has room for {most}")]
    TooLong {
        /// Bytes of the data.
        octets: usize,
        /// [`Sender::longest`].
        most: usize,
    },
    /// The stream is closed, or closing.
    #[error("the stream is closed")]
    Closed,
}

/// What a sender has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// Datagrams that cannot be read.
    pub malformed: u32,
    /// Messages of another stream, or from the wrong side.
    pub strange: u32,
    /// Packets sent for the first time.
    pub packets: u32,
    /// Packets sent again.
    pub repeated: u32,
    /// Requests, probes, notices and resets sent: this side's control load.
    pub control: u32,
    /// SNACKs received.
    pub snacks: u32,
    /// Congestion notifications received.
    pub congestions: u32,
    /// Packets let go unconfirmed, presumed to have arrived (section 3.4).
    pub presumed: u32,
}

/// How a sender stands, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderInfo {
    /// The phase.
    pub phase: Phase,
    /// Bytes per second.
    pub rate: u32,
    /// Packets.
    pub window: u32,
    /// The average round trip.
    pub rtt: Duration,
    /// Packets in the queue, sent or not.
    pub queued: usize,
    /// Those of them that were not sent.
    pub unsent: usize,
    /// What was counted.
    pub counters: SenderCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    /// Asking the sink: `due` is when the next request goes out, `tries` how many have.
    Opening {
        due: Instant,
        tries: u8,
    },
    Open(StreamId),
    Closed,
}

/// What the owner wants of the stream's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Closing {
    No,
    Yes,
}

/// What is said once, besides data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    probe: bool,
    reset: Option<StreamId>,
}

/// Whether an answer of the sink is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hearing {
    /// None was asked for.
    Silent,
    /// One was.
    Awaiting,
    /// One was, and has not come for so long that no new packet is sent.
    Standby,
}

/// What the network has said of the path ([`Standby::Trial`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    Good,
    /// It has broken: nothing is sent before `until`, then one packet. It broke `times` times
    /// without a word of the sink between.
    Broken {
        until: Instant,
        times: u8,
    },
    /// One packet was sent; the others may follow from `until` on, if the network does not say that
    /// there is no path.
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
    /// Everything before was delivered, says the sink.
    confirmed: Seq,
    rate: RateControl,
    /// The least round trip of late, measured on this clock.
    round_trips: Least,
    next_send: Instant,
    /// When it was last asked for a packet: window and rate have allowed none until then.
    polled: Instant,
    /// Packets sent since the application was the limit.
    since_idle: u32,
    since_confirm: u32,
    /// Packets sent since a loss was reported.
    since_loss: u16,
    /// Packets that bear the measured round trip.
    tell_rtt: u8,
    hearing: Hearing,
    path: Path,
    /// When the next probe goes out, and how many have without an answer.
    probe_at: Option<Instant>,
    probes: u8,
    word: Word,
    gone: Ranges,
    told: Told,
    /// Packets for which the last `write` had no room; 0: it had.
    refused: u16,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender that is not open yet. `incarnation` must differ from those of its earlier lives; a
    /// sender whose sink is lost takes the next ones. `first` is the number of the first packet.
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

    /// Bytes that each packet in the queue takes without its payload.
    pub const PER_PACKET: usize = Queue::PER_PACKET;

    /// Bytes of payload that fit into a datagram; [`Sender::write`] cuts what is longer.
    pub fn max_payload(&self) -> usize {
        self.config.max_payload()
    }

    /// Bytes that one [`Sender::write`] takes at most: what fits into half of the queue, so that
    /// its pieces can be retained until the sink has confirmed them; at least one packet.
    pub fn longest(&self) -> usize {
        self.config.longest()
    }

    /// Asks the sink for a stream (section 3.1). Does nothing on a sender that is open or was.
    pub fn open(&mut self, now: Instant) {
        if self.state == State::Idle {
            self.state = State::Opening { due: now, tries: 0 };
        }
    }

    /// Takes data to send, and answers with the number of its packet. Data of more than
    /// [`Sender::max_payload`] bytes is cut (section 3.2.1): its pieces are packets with
    /// consecutive numbers from the answer on, and the sink's application has it whole.
    ///
    /// # Errors
    ///
    /// [`WriteError`]; nothing of it is taken then.
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
            // The rate would have allowed a packet before: the application is what limits the
            // sender.
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

    /// Whether [`Sender::write`] would take a packet now.
    pub fn is_writable(&self, now: Instant) -> bool {
        self.has_room(now, 1)
    }

    fn has_room(&self, now: Instant, packets: usize) -> bool {
        let open = self.state != State::Closed && self.closing == Closing::No;
        open && self.room_at(now, packets).is_some_and(|at| at <= now)
    }

    /// No more packets: the stream ends when the sink has confirmed all.
    pub fn close(&mut self, now: Instant) {
        if self.closing == Closing::Yes {
            return;
        }
        self.closing = Closing::Yes;
        self.refused = 0;
        match self.state {
            State::Idle => self.finish(Outcome::Complete),
            // The last packet was sent without knowing that it was the last.
            State::Open(_) if self.queue.unsent() == 0 => self.probe_at = Some(now),
            State::Opening { .. } | State::Open(_) | State::Closed => {}
        }
    }

    /// Gives the stream up at once.
    pub fn abort(&mut self) {
        if let State::Open(stream) = self.state {
            self.word.reset = Some(stream);
        }
        if self.state != State::Closed {
            self.finish(Outcome::Aborted);
        }
    }

    /// The network has no path to the sink (a route error, a link that is down): no new packet is
    /// sent until the sink answers a probe. The paper's sender goes on, and what it sends is
    /// presumed to arrive.
    pub fn path_lost(&mut self, now: Instant) {
        if self.config.standby == Standby::Trial && matches!(self.state, State::Open(_)) {
            let times = match self.path {
                Path::Good => 0,
                Path::Broken { .. } => return,
                Path::Tried { times, .. } => times.saturating_add(1),
            };
            if !self.is_application_limited() {
                self.rate.broken(now, &self.config);
            }
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

    /// The network has found a path for what was sent.
    pub fn path_found(&mut self, now: Instant) {
        if let Path::Tried { .. } = self.path {
            self.path = Path::Good;
            self.rate.resume(now, &self.config);
        }
    }

    /// The next thing to tell the application.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// How it stands.
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

    /// How long a packet is kept after it was sent (erratum H11).
    fn retention(&self) -> Duration {
        let Retention { half_rtts, intervals } = self.config.retention;
        self.rate.rtt.mul_ratio(u64::from(half_rtts), 2)
            + self.rate.interval(&self.config) * u64::from(intervals)
    }

    /// When there is or will be room for that many packets; `None`: not before something is sent or
    /// confirmed. What is longer than may wait unsent waits alone.
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

    /// Places that are wanting in the queue for that many packets.
    fn wanting(&self, packets: usize) -> usize {
        (self.queue.len() + packets).saturating_sub(self.config.most_packets())
    }

    /// What is not asked for has arrived.
    fn presumes(&self) -> bool {
        match self.config.release {
            Release::Presumed => true,
            Release::WhenCalm => self.since_loss >= CALM,
            Release::Confirmed => false,
        }
    }

    /// The queue will have no more room without a word of the sink.
    fn needs_word(&self) -> bool {
        let most = self.config.most_packets();
        // Room for what is sent until the answer is there.
        let interval = self.rate.interval(&self.config).as_nanos().max(1);
        let meanwhile = usize::try_from(2 * self.rate.rtt.as_nanos() / interval).unwrap_or(usize::MAX);
        let room = meanwhile.saturating_add(1).clamp(most.div_ceil(4), most / 2);
        let is_due = self.queue.len() + room >= most && self.since_confirm as usize >= room;
        // What waits for several places may wait for the packets since the last word, too.
        !self.presumes() && (is_due || self.refused > 1 && self.queue.unsent() == 0)
    }

    /// A longer pause than those of a steady stream.
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

    /// Says once that a writer need wait no longer.
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

/// Room for events without an allocation.
const MOST_EVENTS: usize = 8;
/// A pause that drains a queue, or a packet that is sent again, fills so many places at an
/// application's own rate.
const LEAST_UNSENT: u64 = 4;
/// Nothing was measured.
const NO_ROUND_TRIP: Least = Least::new(Instant::ZERO, i64::MAX);
/// Packets without a loss after which what is not asked for is presumed to have arrived again.
const CALM: u16 = 512;
/// A probe waits at least so long: time must move on.
const LEAST_PROBE: Duration = Duration::from_millis(10);
