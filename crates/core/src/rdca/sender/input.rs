//! What the sink says.

use anabranch_wire::rdca::{
    Expected, Incarnation, Message, Range, Ranges, Refuse, RefuseReason, Reply, Report, Snack, StreamId,
    TimeStamp,
};
use bytes::Bytes;

use super::{Closing, Hearing, NO_ROUND_TRIP, Outcome, Path, Sender, SenderEvent, State};
use crate::rdca::config::{Drain, HandshakeRtt};
use crate::rdca::rate::RateControl;
use crate::rdca::trend::WINDOW;
use crate::rdca::trip::{LONGEST_RTT, as_micros, micros, time_stamp};
use crate::time::{Duration, Instant};

impl Sender {
    /// A datagram from the sink.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Bytes) {
        let stream = if let State::Open(stream) = self.state { stream } else { StreamId(0) };
        match self.config.header.decode(datagram, Expected { stream, ..Expected::default() }) {
            Ok(message) => self.handle_message(now, &message),
            Err(_) => self.counters.malformed += 1,
        }
    }

    /// The same, read already.
    pub fn handle_message(&mut self, now: Instant, message: &Message) {
        let known = match (message, self.state) {
            (Message::Reply(reply), State::Opening { .. }) => self.handle_reply(now, reply),
            (Message::Refuse(refuse), _) => self.handle_refuse(now, refuse),
            (Message::Snack(snack), State::Open(stream)) if snack.report.stream == stream => {
                self.handle_snack(now, snack);
                true
            }
            (Message::Congestion(report), State::Open(stream)) if report.stream == stream => {
                self.counters.congestions += 1;
                self.set_rtt(now, report);
                self.rate.notified(now, &self.config, report, self.is_application_limited());
                self.handle_report(now, report);
                self.drain(now, report.echo);
                true
            }
            (Message::Confirm(report), State::Open(stream)) if report.stream == stream => {
                self.set_rtt(now, report);
                self.handle_report(now, report);
                true
            }
            (Message::Reset(reset), State::Open(stream)) if *reset == stream => {
                self.finish(Outcome::Reset);
                true
            }
            _ => false,
        };
        self.counters.strange += u32::from(!known);
        self.tell_room(now);
    }

    fn handle_reply(&mut self, now: Instant, reply: &Reply) -> bool {
        if reply.incarnation != self.incarnation {
            return false;
        }
        self.measure(now, reply.echo, None);
        let rtt = match self.config.handshake {
            HandshakeRtt::Own => self.base_rtt(),
            HandshakeRtt::Sink => Some(micros(reply.rtt)).filter(|rtt| !rtt.is_zero()),
        };
        self.rate = RateControl::new(now, &self.config, rtt.unwrap_or(self.config.initial_rtt));
        self.state = State::Open(reply.stream);
        self.next_send = now;
        (self.since_idle, self.since_confirm, self.tell_rtt) = (0, 0, TELL_RTT);
        if self.config.handshake == HandshakeRtt::Own {
            // The request may have waited until a route was found. The first packet asks for an
            // answer, which measures the round trip again.
            self.since_confirm = u32::MAX;
        }
        (self.hearing, self.probes) = (Hearing::Silent, 0);
        self.events.push_back(SenderEvent::Opened);
        // Nothing to send, and the application has closed: the sink is told so by a probe.
        self.probe_at = (self.closing == Closing::Yes && self.queue.unsent() == 0).then_some(now);
        true
    }

    fn handle_refuse(&mut self, now: Instant, refuse: &Refuse) -> bool {
        match (refuse.reason, self.state) {
            (RefuseReason::UnknownStream, State::Open(stream)) if StreamId(refuse.answers) == stream => {
                self.begin_anew(now);
                true
            }
            // There may be room later; the request is repeated as if there had been no answer.
            (RefuseReason::NoRoom, State::Opening { .. }) => Incarnation(refuse.answers) == self.incarnation,
            (RefuseReason::Version, State::Opening { .. })
                if Incarnation(refuse.answers) == self.incarnation =>
            {
                self.finish(Outcome::Refused(refuse.reason));
                true
            }
            _ => false,
        }
    }

    /// The sink has forgotten the stream. Nobody knows what of it was delivered; what was not sent
    /// goes into a new one.
    fn begin_anew(&mut self, now: Instant) {
        if self.closing == Closing::Yes && self.queue.unsent() == 0 {
            return self.finish(Outcome::SinkLost);
        }
        let sent = self.queue.next_unsent();
        self.events.push_back(SenderEvent::SinkLost { unknown: Range { start: self.confirmed, end: sent } });
        self.queue.release_sent();
        self.confirmed = sent;
        self.told.clear();
        self.gone = Ranges::EMPTY;
        (self.probe_at, self.word.probe, self.round_trips) = (None, false, NO_ROUND_TRIP);
        self.incarnation = Incarnation(self.incarnation.0.wrapping_add(1));
        self.state = State::Opening { due: now, tries: 0 };
    }

    fn handle_snack(&mut self, now: Instant, snack: &Snack) {
        let report = &snack.report;
        self.counters.snacks += 1;
        self.since_loss = 0;
        self.set_rtt(now, report);
        self.rate.lost(now, &self.config, snack, self.is_application_limited());
        self.handle_report(now, report);
        let on_its_way = self.base_rtt().unwrap_or(Duration::ZERO);
        self.gone = Ranges::EMPTY;
        for range in snack.missing.as_slice() {
            self.queue.want(*range, now, on_its_way);
            let gone = range.within(Range { start: self.confirmed, end: self.queue.first() });
            let events = &mut self.events;
            if !gone.is_empty() && self.told.insert(gone, |fresh| events.push_back(SenderEvent::Gone(fresh)))
            {
                self.gone.push(gone);
            }
        }
    }

    /// What every word of the sink says.
    fn handle_report(&mut self, now: Instant, report: &Report) {
        // Somebody who confirms what was never sent is not the sink.
        if self.queue.next_unsent().lt(report.next) {
            self.counters.strange += 1;
            return;
        }
        self.rate.told(now, &self.config, report);
        self.measure(now, report.echo, report.delayed.then_some(report.rtt));
        if !report.delayed {
            self.next_send = self.next_send.min(now + self.rate.spacing(&self.config));
        }
        if self.confirmed.lt(report.next) {
            self.confirmed = report.next;
            self.queue.confirm(report.next);
            self.told.forget_before(report.next);
            match self.events.back_mut() {
                Some(SenderEvent::Confirmed { next }) => *next = report.next,
                _ => self.events.push_back(SenderEvent::Confirmed { next: report.next }),
            }
        }
        if self.hearing == Hearing::Standby || self.path != Path::Good {
            self.rate.resume(now, &self.config);
            self.path = Path::Good;
        }
        (self.hearing, self.probes) = (Hearing::Silent, 0);
        let all_sent = self.queue.unsent() == 0;
        let all_there = self.confirmed == self.queue.next_unsent();
        let closing = self.closing == Closing::Yes && all_sent;
        if closing && report.complete && all_there {
            return self.finish(Outcome::Complete);
        }
        let wait = if closing { self.answer_wait() } else { self.tail_after() };
        self.probe_at = (closing || !all_there).then_some(now + wait);
    }

    /// Pauses for as long as packets wait on the way.
    fn drain(&mut self, now: Instant, echo: TimeStamp) {
        if let (Drain::OwnPart, Some(base)) = (self.config.drain, self.base_rtt()) {
            let last = micros(time_stamp(now).since(echo).max(0).unsigned_abs());
            let waiting = (self.rate.rtt.max(last) - base).min(LONGEST_PAUSE);
            // Senders that are told together must not go on together.
            let phase = self.next_send.saturating_since(now).min(self.rate.spacing(&self.config));
            self.next_send = self.next_send.max(now + waiting + phase);
        }
    }

    /// The average round trip, by the sink, and by this clock alone if that is to be trusted: what
    /// the sink knows of the base is what it was told last.
    fn set_rtt(&mut self, now: Instant, report: &Report) {
        let sample = time_stamp(now).since(report.echo);
        let own = self.config.handshake == HandshakeRtt::Own && sample > 0;
        self.rate.set_rtt(if own { report.rtt.min(sample.unsigned_abs()) } else { report.rtt });
    }

    /// A round trip on this clock alone. What packets wait is no part of the base: `delayed` is the
    /// round trip with it by the sink, which knows the base that it was told.
    fn measure(&mut self, now: Instant, echo: TimeStamp, delayed: Option<u32>) {
        let sample = time_stamp(now).since(echo);
        if sample <= 0 {
            return;
        }
        let sample = micros(sample.unsigned_abs()).min(LONGEST_RTT);
        let waiting = delayed.zip(self.base_rtt()).map_or(Duration::ZERO, |(rtt, base)| micros(rtt) - base);
        let sample = i64::from(as_micros(sample - waiting)).max(1);
        self.round_trips.observe(now, sample, ROUTE);
        self.tell_rtt = self.tell_rtt.max(1);
    }

    /// Within the packets that the sink's receive rate is made of, the application had nothing to
    /// send.
    pub(super) fn is_application_limited(&self) -> bool {
        self.since_idle < WINDOW as u32
    }
}

/// Packets at the beginning that bear the round trip: so many are not all lost.
const TELL_RTT: u8 = 4;
/// No queue is drained for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// A route is what was measured within this time and as much before.
const ROUTE: Duration = Duration::from_secs(4);
