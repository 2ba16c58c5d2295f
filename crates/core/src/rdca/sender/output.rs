//! Transmission: messages to send and their times.

use anabranch_wire::rdca::{Data, Gone, Header, Message, Probe, Ranges, Request, StreamId, VERSION};

use super::{Closing, Hearing, LEAST_PROBE, Outcome, Path, Sender, State};
use crate::rdca::rate::Phase;
use crate::rdca::trip::{as_micros, time_stamp};
use crate::time::{Duration, Instant};

impl Sender {
    /// Returns the next datagram to send, if any.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Message> {
        if let Some(stream) = self.word.reset.take() {
            self.counters.control += 1;
            return Some(Message::Reset(stream));
        }
        match self.state {
            State::Opening { due, tries } if due <= now && may_repeat(tries, self.config.request_tries) => {
                Some(self.request(now, tries))
            }
            State::Open(stream) => self.control(now, stream).or_else(|| self.data(now, stream)),
            State::Idle | State::Opening { .. } | State::Closed => None,
        }
    }

    /// Returns when to call [`Sender::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle | State::Closed => None,
            State::Opening { due, .. } => Some(due),
            State::Open(_) => {
                let waits = self.refused > 0;
                let room = waits.then(|| self.room_at(Instant::FAR_FUTURE, self.refused.into())).flatten();
                let room = room.filter(|at| *at != Instant::FAR_FUTURE);
                [self.probe_at, self.data_at(), room].into_iter().flatten().min()
            }
        }
    }

    /// Handles the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Opening { due, tries } if due <= now && !may_repeat(tries, self.config.request_tries) => {
                self.finish(Outcome::NoAnswer);
            }
            State::Open(_) if self.probe_at.is_some_and(|at| at <= now) => match self.path {
                // A probe cannot arrive over a broken path either.
                Path::Broken { until, .. } if until > now => self.probe_at = Some(until + self.answer_wait()),
                _ => self.probe(now),
            },
            State::Idle | State::Opening { .. } | State::Open(_) | State::Closed => {}
        }
        self.tell_room(now);
    }

    fn request(&mut self, now: Instant, tries: u8) -> Message {
        let wait = self.config.request_wait.max(LEAST_PROBE) * (1 << tries.min(16));
        let due = now + wait.min(self.config.longest_wait.max(LEAST_PROBE));
        self.state = State::Opening { due, tries: tries.saturating_add(1) };
        self.counters.control += 1;
        Message::Request(Request {
            version: VERSION,
            incarnation: self.incarnation,
            first: self.queue.next_unsent(),
            time: time_stamp(now),
            datagram: self.config.datagram,
        })
    }

    fn control(&mut self, now: Instant, stream: StreamId) -> Option<Message> {
        if !self.gone.as_slice().is_empty() {
            self.counters.control += 1;
            let ranges = core::mem::replace(&mut self.gone, Ranges::EMPTY);
            return Some(Message::Gone(Gone { stream, ranges }));
        }
        if !core::mem::take(&mut self.word.probe) {
            return None;
        }
        self.counters.control += 1;
        let last = self.closing == Closing::Yes && self.queue.unsent() == 0;
        Some(Message::Probe(Probe { stream, end: self.queue.next_unsent(), time: time_stamp(now), last }))
    }

    /// Sends a probe after too long a silence of the sink (erratum H12).
    fn probe(&mut self, now: Instant) {
        if !may_repeat(self.probes, self.config.probe_tries) {
            return self.finish(Outcome::NoAnswer);
        }
        let wait = self.answer_wait() * (1 << self.probes.min(16));
        self.probe_at = Some(now + wait.min(self.config.longest_wait.max(LEAST_PROBE)));
        self.probes = self.probes.saturating_add(1);
        self.word.probe = true;
        if self.hearing != Hearing::Standby {
            let silent = self.probes > self.config.standby_after;
            self.hearing = if silent { Hearing::Standby } else { Hearing::Awaiting };
        }
    }

    /// How long to wait for an answer.
    pub(super) fn answer_wait(&self) -> Duration {
        (self.rate.rtt * 2 + self.config.least_wait).max(LEAST_PROBE)
    }

    /// Returns a data packet if rate and window permit one: `SN_curr - SN_last < W_pkt` (section
    /// 3.1).
    fn data(&mut self, now: Instant, stream: StreamId) -> Option<Message> {
        self.polled = now;
        if self.hearing == Hearing::Standby || self.path.held_until() > now {
            return None;
        }
        if let Path::Tried { .. } = self.path {
            self.path_found(now);
        }
        let waiting = self.queue.unsent() + self.queue.wanted() > 0;
        let (flying, _) = self.queue.in_flight(now, self.rate.rtt);
        let window_limits = flying >= self.window() && waiting;
        let limits = window_limits || (self.next_send > now && waiting);
        self.rate.grow(now, &self.config, limits);
        if self.next_send > now || flying >= self.window() {
            return None;
        }
        let (seq, packet) = self.queue.send(now)?;
        if let Path::Broken { times, .. } = self.path {
            self.path = Path::Tried { until: now + (self.rate.rtt * 2 + self.config.least_wait), times };
        }
        let (payload, piece, repeated) = (packet.payload.clone(), packet.piece, packet.repeated);
        let nothing_left = self.queue.unsent() + self.queue.wanted() == 0;
        let last = self.closing == Closing::Yes && self.queue.unsent() == 0 && seq + 1 == self.queue.end();
        let confirm = self.asks_to_confirm(now, last, repeated && nothing_left);
        let rtt = self.rtt_to_tell(confirm);
        self.space(now);
        self.await_answer(now, confirm);
        if repeated {
            self.counters.repeated += 1;
        } else {
            self.counters.packets += 1;
            self.since_idle = self.since_idle.saturating_add(1);
            self.since_loss = self.since_loss.saturating_add(1);
        }
        self.tell_room(now);
        Some(Message::Data(Data {
            stream,
            seq,
            time: time_stamp(now),
            last,
            confirm,
            repeated,
            rtt,
            piece,
            payload,
        }))
    }

    /// Whether the packet requests a confirmation. These packets do: the last packet, the last
    /// retransmission, one in [`crate::rdca::SenderConfig::confirm_every`], one after a long
    /// silence of the sink, an isolated packet (which saves a probe), and one in half a queue that
    /// only confirmations empty.
    fn asks_to_confirm(&mut self, now: Instant, last: bool, last_repetition: bool) -> bool {
        self.since_confirm = self.since_confirm.saturating_add(1);
        let regular = self.config.confirm_every.is_some_and(|every| self.since_confirm >= every);
        let lone = self.rate.last_sent().is_some_and(|at| now.saturating_since(at) >= self.tail_after());
        // Senders that began together must not ask together: in a mesh, each answer of the sink may
        // begin a search for a route.
        let spread = |after: Duration| after + after.mul_ratio(u64::from(self.incarnation.0 % 256), 256);
        let after = self.config.confirm_after.filter(|_| self.hearing == Hearing::Silent).map(spread);
        let silent = after.is_some_and(|after| now.saturating_since(self.heard) >= after);
        let confirm = last
            || last_repetition && self.closing == Closing::Yes
            || regular
            || silent
            || lone
            || self.needs_word();
        if confirm {
            self.since_confirm = 0;
            // The header as printed in the paper has no flag for the request, so a probe follows.
            self.word.probe |= self.config.header == Header::Printed;
        }
        confirm
    }

    fn rtt_to_tell(&mut self, confirm: bool) -> Option<u32> {
        let tells = self.tell_rtt > 0 || confirm;
        self.tell_rtt = self.tell_rtt.saturating_sub(1);
        self.base_rtt().filter(|_| tells).map(as_micros)
    }

    /// Sets when the next packet may be sent: one interval after this packet was allowed, if it is
    /// late by less than an interval or [`crate::rdca::SenderConfig::late`].
    fn space(&mut self, now: Instant) {
        let spacing = self.rate.spacing(&self.config);
        let since = now.saturating_since(self.next_send);
        // A late timer is compensated, which keeps the average rate.
        let late = spacing.max(self.config.late.min(spacing * MOST_LATE));
        self.next_send = if since < late && self.rate.phase() == Phase::Controlled {
            self.next_send + spacing
        } else {
            now + spacing
        };
        self.rate.sends(now);
    }

    fn await_answer(&mut self, now: Instant, confirm: bool) {
        match self.hearing {
            Hearing::Silent if confirm => {
                self.hearing = Hearing::Awaiting;
                self.probe_at = Some(now + self.answer_wait());
            }
            Hearing::Silent => self.probe_at = Some(now + self.tail_after().max(LEAST_PROBE)),
            Hearing::Awaiting | Hearing::Standby => {}
        }
    }

    /// Returns when the next packet may be sent, if one is waiting.
    fn data_at(&self) -> Option<Instant> {
        if self.queue.unsent() + self.queue.wanted() == 0 || self.hearing == Hearing::Standby {
            return None;
        }
        let at = self.next_send.max(self.polled).max(self.path.held_until());
        let (flying, landed) = self.queue.in_flight(at, self.rate.rtt);
        if flying < self.window() {
            return Some(at);
        }
        [landed, self.rate.grows().map(|grows| grows.max(at))].into_iter().flatten().min()
    }
}

/// Number of late packets that are sent at once at most.
const MOST_LATE: u64 = 16;

/// Whether another try may follow `tries` tries; see [`crate::rdca::SenderConfig::probe_tries`].
fn may_repeat(tries: u8, most: u8) -> bool {
    tries < most.max(1) || most == u8::MAX
}
