//! The control stream: the request, its answer, and plain TCP after a negative answer (section
//! 4.2.3).

use alloc::vec::Vec;

use anabranch_wire::set::{
    self as wire, Ack, Decoder, Item, Layout, MAX_COPY, Message, PaperAddresses, Plan, Refuse, RefuseReason,
    Request, VERSION,
};

use super::farewell::Held;
use super::{Failure, Outcome, Phase, Reinjection, Sender, Start};
use crate::set::stream::{Effect, Leg, StreamClose, StreamEvent, StreamId, StreamStatus};
use crate::time::{Duration, Instant};

/// One attempt at the control stream.
#[derive(Debug)]
pub(super) struct Control {
    stream: Option<StreamId>,
    decoder: Decoder,
    /// Number of attempts, this one included.
    tries: u32,
    /// When this attempt is abandoned or, without a stream, when the next begins.
    deadline: Instant,
    /// Bytes that TCP has not yet delivered.
    backlog: u32,
    /// The node's report on this stream of the bytes that it already has.
    has: Option<Ack>,
    /// Whether a copy of the file follows the request.
    copying: Copying,
}

/// State of the copy after a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copying {
    /// The request announces no copy.
    Not,
    /// The copy is written after the request was sent.
    Due,
    /// The copy was written.
    Written,
}

/// The copy after the accepted request, while the node may acknowledge it.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) stream: StreamId,
    decoder: Decoder,
    /// Bytes that TCP has not yet delivered.
    backlog: u32,
    /// No session is opened before this time; `None`: the sender no longer waits for the copy.
    until: Option<Instant>,
}

/// State while the node is busy.
#[derive(Debug)]
pub(super) struct Busy {
    /// When the node first answered that it is busy.
    since: Instant,
    /// Pause before the next request.
    pause: Duration,
}

impl Control {
    /// The state before the first attempt.
    pub(super) fn idle(now: Instant) -> Self {
        let (decoder, copying) = (Decoder::new(), Copying::Not);
        Self { stream: None, decoder, tries: 0, deadline: now, backlog: 0, has: None, copying }
    }
}

impl Sender {
    fn control(&self) -> Option<&Control> {
        match &self.phase {
            Phase::Requesting(control) | Phase::Plain(control) => Some(control),
            Phase::Sessions | Phase::Ended(_) => None,
        }
    }

    fn control_mut(&mut self) -> Option<&mut Control> {
        match &mut self.phase {
            Phase::Requesting(control) | Phase::Plain(control) => Some(control),
            Phase::Sessions | Phase::Ended(_) => None,
        }
    }

    pub(super) fn control_stream(&self) -> Option<StreamId> {
        self.control().and_then(|c| c.stream)
    }

    pub(super) fn dial_control(&mut self, now: Instant) {
        let tries = self.control().map_or(0, |c| c.tries) + 1;
        if tries > self.config.request_tries {
            self.fail(Failure::NodeUnreachable);
            return;
        }
        let stream = self.new_stream();
        let deadline = now + self.config.request_timeout;
        self.request_started = now;
        self.phase =
            Phase::Requesting(Control { stream: Some(stream), tries, deadline, ..Control::idle(now) });
        self.effects.push_back(Effect::Dial { stream, to: self.node, leg: Leg::Control });
    }

    pub(super) fn handle_control(&mut self, now: Instant, event: StreamEvent) {
        match event {
            StreamEvent::Opened => self.send_request(),
            StreamEvent::Data(octets) => {
                if let Some(control) = self.control_mut() {
                    control.decoder.push(octets);
                }
                self.read_control(now);
            }
            // The acknowledgement of a plain transfer has arrived before this event, so it is not
            // lost.
            StreamEvent::Ended => {
                if let Some(stream) = self.control_stream() {
                    self.effects.push_back(Effect::Abort { stream });
                }
                self.lose_control(now);
            }
            // A node of a version before copies resets the stream on such a request. The request is
            // repeated at once, without a copy.
            StreamEvent::Closed(StreamClose::Reset) if self.has_copied() => self.dial_control(now),
            StreamEvent::Closed(_) => self.lose_control(now),
        }
    }

    fn send_request(&mut self) {
        let Some(stream) = self.control_stream() else { return };
        if self.farewell.held == Held::No {
            self.farewell.held = Held::Perhaps;
        }
        let copy = self.brings_copy();
        let (file, manifest) = (self.config.file, self.manifest.clone());
        self.say(stream, &Message::Request(Request { copy, file, manifest, ..self.bare_request() }));
        if !copy {
            return;
        }
        if let Some(control) = self.control_mut() {
            control.copying = Copying::Due;
        }
        // In one segment with the request, a longer copy would delay the answer on a slow link. It
        // is written after the request was sent.
        if self.length() <= SHORT_COPY {
            self.write_copy();
        }
    }

    /// The request with the length of the file but without its identity and manifest.
    pub(super) fn bare_request(&self) -> Request {
        Request {
            version: VERSION,
            transfer: self.transfer,
            length: self.length(),
            plan: self.config.plan,
            copy: false,
            file: None,
            manifest: None,
        }
    }

    /// Writes a message on a control stream.
    pub(super) fn say(&mut self, stream: StreamId, message: &Message) {
        let mut octets = Vec::with_capacity(128);
        wire::encode(message, &mut octets);
        self.effects.push_back(Effect::Write { stream, octets: octets.into() });
    }

    /// Whether a copy follows the current request, or will follow.
    fn has_copied(&self) -> bool {
        self.control().is_some_and(|control| control.copying != Copying::Not)
    }

    /// Writes the copy of a small file after its request, if it is due.
    fn write_copy(&mut self) {
        let Some(control) = self.control_mut().filter(|control| control.copying == Copying::Due) else {
            return;
        };
        control.copying = Copying::Written;
        let Some(stream) = control.stream else { return };
        let mut header = Vec::with_capacity(24);
        let nowhere = PaperAddresses { intermediate: self.node, last: self.node };
        wire::data_header(Layout::Compact, &nowhere, 0, 0, self.length(), &mut header);
        self.effects.push_back(Effect::Write { stream, octets: header.into() });
        self.effects.push_back(self.file.part(0, self.length()).write(stream));
    }

    /// Whether a copy of the file follows the next request. A small file then arrives one round
    /// trip before the first session is open. Nodes of versions before copies reset the stream, so
    /// a repeated request has no copy. A request to a busy node has none either: most of these are
    /// refused, and each copy would use the node's link.
    fn brings_copy(&self) -> bool {
        self.sessions.is_empty()
            && self.config.plan == Plan::Stripe
            && self.config.start == Start::Early
            && self.config.reinjection == Reinjection::On
            && (1..=MAX_COPY).contains(&self.length())
            && self.busy.is_none()
            && self.control().is_some_and(|control| control.tries == 1)
    }

    /// Handles an event of the copy's stream: the node may acknowledge the copy, or reject the
    /// transfer.
    pub(super) fn handle_copy(&mut self, now: Instant, event: StreamEvent) {
        let Some(copy) = &mut self.copy else { return };
        match event {
            StreamEvent::Data(octets) => copy.decoder.push(octets),
            StreamEvent::Opened => {}
            StreamEvent::Ended | StreamEvent::Closed(_) => self.copy = None,
        }
        while let Some(copy) = &mut self.copy {
            match copy.decoder.next_item() {
                Ok(None) => return,
                Ok(Some(Item::Message(Message::Ack(ack)))) => {
                    if ack.delivered == self.length() {
                        self.copy = None;
                    }
                    self.acknowledge(now, &ack);
                }
                Ok(Some(Item::Message(Message::Refuse(refuse)))) if refuse.reason.is_final() => {
                    return self.fail(Failure::Refused(refuse.reason));
                }
                Ok(Some(_)) | Err(_) => self.copy = None,
            }
        }
        // No answer to the copy can follow.
        if matches!(self.phase, Phase::Sessions) {
            self.call_next(now);
            self.stale = true;
        }
    }

    /// Handles new figures of the copy's stream: progress of TCP extends the wait for the copy.
    pub(super) fn handle_copy_status(&mut self, now: Instant, status: StreamStatus) {
        let patience = self.copy_patience();
        let Some(copy) = &mut self.copy else { return };
        let backlog = status.in_flight.saturating_add(status.unsent);
        if backlog < copy.backlog && copy.until.is_some() {
            copy.until = Some(now + patience);
        }
        copy.backlog = backlog;
    }

    /// How long the sender waits for the acknowledgement of a copy, counted from ACCEPT or from the
    /// last progress of TCP.
    ///
    /// Without losses the acknowledgement follows ACCEPT after the transmission of the rest of the
    /// copy on the slowest link, and each segment counts as progress. TCP repairs a lost segment
    /// that others follow within another round trip. It repeats a lost last segment after a
    /// time-out of three round trips or more (RFC 6298), or one second. A session delivers the file
    /// in two round trips, so waiting for that time-out does not pay.
    ///
    /// The request took two round trips, including the TCP handshake, so the request time is the
    /// wait. The lower bound covers a node on a busy machine that writes the file to disk before it
    /// acknowledges. The upper bound covers a request that was delayed by losses.
    fn copy_patience(&self) -> Duration {
        let most = (self.config.patience * 5).max(LEAST_COPY_PATIENCE);
        self.request_time.clamp(LEAST_COPY_PATIENCE, most)
    }

    /// Whether to wait for the acknowledgement of the copy before opening sessions.
    pub(super) fn awaits_copy(&mut self, now: Instant) -> bool {
        let Some(copy) = &mut self.copy else { return false };
        copy.until = copy.until.filter(|until| now < *until);
        copy.until.is_some()
    }

    /// When sessions are opened although the copy is not acknowledged.
    pub(super) fn copy_timeout(&self) -> Option<Instant> {
        self.copy.as_ref().and_then(|copy| copy.until)
    }

    /// Resets the stream of the copy: the transfer is over.
    pub(super) fn drop_copy(&mut self) {
        if let Some(copy) = self.copy.take().filter(|copy| copy.backlog > 0) {
            self.effects.push_back(Effect::Abort { stream: copy.stream });
        }
    }

    fn read_control(&mut self, now: Instant) {
        while let Some(control) = self.control_mut() {
            let message = match control.decoder.next_item() {
                Ok(None) => return,
                Ok(Some(Item::Message(message))) => message,
                Ok(Some(_)) | Err(_) => return self.fail(Failure::Protocol),
            };
            let requesting = matches!(self.phase, Phase::Requesting(_));
            match message {
                Message::Accept(accept) if requesting => {
                    self.request_time = now.saturating_since(self.request_started);
                    let has = self.control_mut().and_then(|control| control.has.take());
                    self.write_copy();
                    self.hang_up();
                    self.copy = self.keep_copy(now).or(self.copy.take());
                    self.start_sessions(now, accept, &has.unwrap_or_default());
                    self.handle_copy(now, StreamEvent::Opened);
                }
                Message::Refuse(refuse) if requesting || refuse.reason.is_final() => {
                    self.handle_refusal(now, refuse);
                }
                Message::Ack(ack) if !requesting => self.acknowledge(now, &ack),
                // The bytes that the node already has. They count only with the following ACCEPT:
                // after a failed attempt the node may have fewer.
                Message::Ack(ack) if self.config.file.is_some() && ack_end(&ack) <= self.length() => {
                    if let Some(control) = self.control_mut() {
                        control.has = Some(ack);
                    }
                }
                Message::Request(_)
                | Message::Accept(_)
                | Message::Refuse(_)
                | Message::SetSyn(_)
                | Message::Join(_)
                | Message::SetAck(_)
                | Message::Ack(_)
                | Message::Cancel => return self.fail(Failure::Protocol),
            }
        }
    }

    /// Keeps the control stream of an accepted request, if a copy was written on it.
    fn keep_copy(&mut self, now: Instant) -> Option<Copy> {
        let until = Some(now + self.copy_patience());
        let control = self.control_mut().filter(|control| control.copying == Copying::Written)?;
        let decoder = core::mem::take(&mut control.decoder);
        Some(Copy { stream: control.stream?, decoder, backlog: control.backlog, until })
    }

    fn handle_refusal(&mut self, now: Instant, refuse: Refuse) {
        self.farewell.held = Held::No;
        match refuse.reason {
            // After a copy, the plain file has no place on this stream.
            RefuseReason::NoStriping if self.has_copied() => {
                self.hang_up();
                return self.dial_control(now);
            }
            RefuseReason::NoStriping => {}
            RefuseReason::Busy => return self.wait_for_turn(now),
            RefuseReason::Unfinished => return self.fail(Failure::Unfinished(refuse.delivered)),
            RefuseReason::Version
            | RefuseReason::Unwanted
            | RefuseReason::TooLarge
            | RefuseReason::NoRoom
            | RefuseReason::Digest
            | RefuseReason::Signature
            | RefuseReason::Failed
            | RefuseReason::Rollback
            | RefuseReason::WrongDevice
            | RefuseReason::Expired
            | RefuseReason::Image
            | RefuseReason::LongManifest => return self.fail(Failure::Refused(refuse.reason)),
        }
        if refuse.delivered > self.length() {
            return self.fail(Failure::Protocol);
        }
        let Some(control) = self.control_mut() else { return };
        let (Some(stream), tries) = (control.stream, control.tries) else { return };
        let decoder = core::mem::take(&mut control.decoder);
        self.progress = now;
        self.delivered = refuse.delivered;
        self.resumed_from = refuse.delivered;
        let rest = self.file.part(refuse.delivered, self.length());
        let deadline = Instant::FAR_FUTURE;
        let backlog = u32::MAX;
        let control =
            Control { decoder, deadline, backlog, tries, stream: Some(stream), ..Control::idle(now) };
        self.phase = Phase::Plain(control);
        if rest.length() > 0 {
            self.effects.push_back(rest.write(stream));
        }
        self.effects.push_back(Effect::Shutdown { stream });
    }

    /// Schedules another request to a busy node, within the configured patience.
    fn wait_for_turn(&mut self, now: Instant) {
        let busy = self.busy.get_or_insert(Busy { since: now, pause: FIRST_PAUSE });
        let end = busy.since + self.config.busy_patience;
        if now >= end {
            return self.fail(Failure::Refused(RefuseReason::Busy));
        }
        let deadline = (now + busy.pause).min(end);
        busy.pause = (busy.pause * 2).min(LONGEST_PAUSE);
        // A node that answers is reachable, so this is no stall.
        self.progress = now;
        self.hang_up();
        self.phase = Phase::Requesting(Control { deadline, ..Control::idle(now) });
    }

    /// Closes the control stream after the answer.
    fn hang_up(&mut self) {
        if let Some(stream) = self.control_stream() {
            self.effects.push_back(Effect::Shutdown { stream });
        }
    }

    pub(super) fn end_control(&mut self, outcome: Outcome) {
        let Some(stream) = self.control_stream() else { return };
        match outcome {
            Outcome::Delivered => self.effects.push_back(Effect::Shutdown { stream }),
            Outcome::Failed(_) => self.effects.push_back(Effect::Abort { stream }),
        }
    }

    /// Schedules another attempt after the loss of the stream.
    fn lose_control(&mut self, now: Instant) {
        let pause = self.config.patience;
        let Some(control) = self.control_mut() else { return };
        let tries = control.tries;
        self.phase = Phase::Requesting(Control { tries, deadline: now + pause, ..Control::idle(now) });
    }

    pub(super) fn handle_control_status(&mut self, now: Instant, status: StreamStatus) {
        let backlog = status.in_flight.saturating_add(status.unsent);
        let Some(control) = self.control_mut() else { return };
        let moved = backlog < control.backlog;
        control.backlog = backlog;
        if moved && matches!(self.phase, Phase::Plain(_)) {
            self.progress = now;
        }
    }

    pub(super) fn handle_control_timeout(&mut self, now: Instant) {
        self.write_copy();
        let Some(control) = self.control() else { return };
        if control.deadline > now {
            return;
        }
        if let Some(stream) = control.stream {
            self.effects.push_back(Effect::Abort { stream });
        }
        self.dial_control(now);
    }

    pub(super) fn control_timeout(&self) -> Option<Instant> {
        self.control().map(|c| if c.copying == Copying::Due { Instant::ZERO } else { c.deadline })
    }
}

/// One past the last byte that an acknowledgement covers.
pub(super) fn ack_end(ack: &Ack) -> u64 {
    ack.held.last().map_or(ack.delivered, |range| range.end)
}

/// Largest copy in bytes that is sent in one segment with the request.
const SHORT_COPY: u64 = 128;
/// Least time to wait for a copy: a node may first have to write the file to a slow disk.
const LEAST_COPY_PATIENCE: Duration = Duration::from_millis(200);
/// Initial and longest pause between requests to a busy node. A node that becomes free reserves its
/// turn for the first request in its queue for longer than that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
