//! Handling of messages from the sink.

use anabranch_wire::rdca::{
    Expected, Incarnation, Message, Range, Ranges, Refuse, RefuseReason, Reply, Report, Snack, StreamId,
    TimeStamp,
};
use bytes::Bytes;

use super::{Closing, Hearing, NO_ROUND_TRIP, Outcome, Path, Sender, SenderEvent, State};
use crate::rdca::config::{Drain, HandshakeRtt, Restart};
use crate::rdca::rate::RateControl;
use crate::rdca::trend::WINDOW;
use crate::rdca::trip::{LONGEST_RTT, as_micros, micros, time_stamp};
use crate::time::{Duration, Instant};

impl Sender {
    /// Handles a datagram from the sink.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Bytes) {
        let stream = if let State::Open(stream) = self.state { stream } else { StreamId(0) };
        match self.config.header.decode(datagram, Expected { stream, ..Expected::default() }) {
            Ok(message) => self.handle_message(now, &message),
            Err(_) => self.counters.malformed += 1,
        }
    }

    /// Handles a decoded message from the sink.
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
        (self.next_send, self.heard) = (now, now);
        (self.since_idle, self.since_confirm, self.tell_rtt) = (0, 0, TELL_RTT);
        if self.config.handshake == HandshakeRtt::Own {
            // The request may have been queued during a route search. The first packet requests an
            // answer, which measures the round-trip time again.
            self.since_confirm = u32::MAX;
        }
        (self.hearing, self.probes) = (Hearing::Silent, 0);
        self.events.push_back(SenderEvent::Opened);
        // The application has closed without unsent data: a probe tells the sink.
        self.probe_at = (self.closing == Closing::Yes && self.queue.unsent() == 0).then_some(now);
        true
    }

    fn handle_refuse(&mut self, now: Instant, refuse: &Refuse) -> bool {
        match (refuse.reason, self.state) {
            (RefuseReason::UnknownStream, State::Open(stream)) if StreamId(refuse.answers) == stream => {
                self.begin_anew(now);
                true
            }
            // There may be space later; the request is repeated as if there had been no answer.
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

    /// Starts a new stream after the sink has lost the old one. What the sink delivered of the sent
    /// packets is unknown. The new stream begins with them ([`Restart::Resend`]) or after them.
    fn begin_anew(&mut self, now: Instant) {
        if self.config.restart == Restart::Resend {
            self.queue.rewind();
        }
        if self.closing == Closing::Yes && self.queue.unsent() == 0 {
            // With `Resend` nothing is unconfirmed, and the sink has only forgotten the end.
            let is_complete = self.confirmed == self.queue.next_unsent();
            let outcome = if is_complete { Outcome::Complete } else { Outcome::SinkLost };
            return self.finish(outcome);
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

    /// Handles the report that every message of the sink contains.
    fn handle_report(&mut self, now: Instant, report: &Report) {
        // A confirmation of a packet that was never sent does not come from the sink.
        if self.queue.next_unsent().lt(report.next) {
            self.counters.strange += 1;
            return;
        }
        self.heard = now;
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

    /// Pauses for as long as packets are queued on the path.
    fn drain(&mut self, now: Instant, echo: TimeStamp) {
        if let (Drain::OwnPart, Some(base)) = (self.config.drain, self.base_rtt()) {
            let last = micros(time_stamp(now).since(echo).max(0).unsigned_abs());
            let waiting = (self.rate.rtt.max(last) - base).min(LONGEST_PAUSE);
            // Senders notified together must not resume at the same time.
            let phase = self.next_send.saturating_since(now).min(self.rate.spacing(&self.config));
            self.next_send = self.next_send.max(now + waiting + phase);
        }
    }

    /// Sets the average round-trip time: the sink's value, limited by the sample of the own clock
    /// if that is trusted. The sink's base can be out of date, since it is the last value that this
    /// sender reported.
    fn set_rtt(&mut self, now: Instant, report: &Report) {
        let sample = time_stamp(now).since(report.echo);
        let own = self.config.handshake == HandshakeRtt::Own && sample > 0;
        self.rate.set_rtt(if own { report.rtt.min(sample.unsigned_abs()) } else { report.rtt });
    }

    /// Measures a round-trip time with the own clock only. Queueing delay is no part of the base:
    /// `delayed` is the sink's round-trip time including it, from which the known base is
    /// subtracted.
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

    /// Whether the application had nothing to send within the packets of the sink's receive rate.
    pub(super) fn is_application_limited(&self) -> bool {
        self.since_idle < WINDOW as u32
    }
}

/// Number of first packets that contain the round-trip time, several in case of losses.
const TELL_RTT: u8 = 4;
/// Upper limit of a pause for draining a queue.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// The base is the minimum over this time and an equal time before it, since routes change.
const ROUTE: Duration = Duration::from_secs(4);
