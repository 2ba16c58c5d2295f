//! The control stream: the request, its answer, and plain TCP where the answer is no (section
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

/// One try at the control stream.
#[derive(Debug)]
pub(super) struct Control {
    stream: Option<StreamId>,
    decoder: Decoder,
    /// Tries so far, this one included.
    tries: u32,
    /// When this try is given up or, without a stream, the next begins.
    deadline: Instant,
    /// Bytes that TCP has not got rid of.
    backlog: u32,
    /// What the node has said on this stream that it has already.
    has: Option<Ack>,
    /// Whether a copy of the file follows the request.
    copying: Copying,
}

/// How far the copy behind a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copying {
    /// The request says of none.
    Not,
    /// To be written when the request is on its way.
    Due,
    /// Written.
    Written,
}

/// The copy behind the request that the node has accepted, while the node may acknowledge it.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) stream: StreamId,
    decoder: Decoder,
    /// Bytes that TCP has not got rid of.
    backlog: u32,
    /// No session is opened before that; `None`: the copy was waited for long enough.
    until: Option<Instant>,
}

/// A node that is busy.
#[derive(Debug)]
pub(super) struct Busy {
    /// When it first said so.
    since: Instant,
    /// How long to wait before the next request.
    pause: Duration,
}

impl Control {
    /// No try yet.
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
            // The node ends a plain transfer with its acknowledgement, which came before this.
            StreamEvent::Ended => {
                if let Some(stream) = self.control_stream() {
                    self.effects.push_back(Effect::Abort { stream });
                }
                self.lose_control(now);
            }
            // A node of a version before copies does so when it reads such a request: it is asked
            // again at once, without one.
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
        // In one segment with the request, a longer copy would hold up the answer on a slow link:
        // it is written when the request is on its way.
        if self.length() <= SHORT_COPY {
            self.write_copy();
        }
    }

    /// The request without what it says of the file beside its length.
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

    /// Whether a copy follows the present request, or will.
    fn has_copied(&self) -> bool {
        self.control().is_some_and(|control| control.copying != Copying::Not)
    }

    /// Writes the copy of a small file behind its request, if it is not there yet.
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

    /// Whether a copy of the file follows the next request: a small file is there a round trip
    /// before the first session is open. Nodes of versions before copies reset the stream, so the
    /// next try brings none. A node that was busy is asked without one: most of those requests are
    /// refused, and each copy would take the time of the node's link.
    fn brings_copy(&self) -> bool {
        self.sessions.is_empty()
            && self.config.plan == Plan::Stripe
            && self.config.start == Start::Early
            && self.config.reinjection == Reinjection::On
            && (1..=MAX_COPY).contains(&self.length())
            && self.busy.is_none()
            && self.control().is_some_and(|control| control.tries == 1)
    }

    /// The node may acknowledge the copy on the stream of the request that it has accepted, or give
    /// up the transfer there.
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
        // Nothing more is to be hoped of the copy.
        if matches!(self.phase, Phase::Sessions) {
            self.call_next(now);
            self.stale = true;
        }
    }

    /// How the stream of the copy stands: as long as TCP brings it nearer to the node, it is worth
    /// waiting for.
    pub(super) fn handle_copy_status(&mut self, now: Instant, status: StreamStatus) {
        let patience = self.copy_patience();
        let Some(copy) = &mut self.copy else { return };
        let backlog = status.in_flight.saturating_add(status.unsent);
        if backlog < copy.backlog && copy.until.is_some() {
            copy.until = Some(now + patience);
        }
        copy.backlog = backlog;
    }

    /// How long the sender waits for the acknowledgement of a copy, from ACCEPT or from the last
    /// time that TCP has brought some of the copy to the node.
    ///
    /// Where nothing is lost, the acknowledgement is behind ACCEPT by what the rest of the copy
    /// takes on the slowest link, and each segment of that shows as progress. If a segment is lost
    /// and others follow it, TCP has repaired that after another round trip. The last segment is
    /// repeated after a time-out of three round trips or more (RFC 6298), or a second. A session
    /// takes two round trips to bring the file, so it is not worth waiting for that. The request
    /// took two round trips, one of them for TCP's handshake: that is how long the sender waits. A
    /// node on a busy machine that writes the file to a disk before it acknowledges it is given
    /// some more, and a request that was delayed by losses does not make the wait long.
    fn copy_patience(&self) -> Duration {
        let most = (self.config.patience * 5).max(LEAST_COPY_PATIENCE);
        self.request_time.clamp(LEAST_COPY_PATIENCE, most)
    }

    /// The copy of the file may still be acknowledged before sessions are worth their cost.
    pub(super) fn awaits_copy(&mut self, now: Instant) -> bool {
        let Some(copy) = &mut self.copy else { return false };
        copy.until = copy.until.filter(|until| now < *until);
        copy.until.is_some()
    }

    /// When sessions are opened though the copy is not acknowledged.
    pub(super) fn copy_timeout(&self) -> Option<Instant> {
        self.copy.as_ref().and_then(|copy| copy.until)
    }

    /// The transfer is over: what is left of the copy is of no use.
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
                // What is there already. Only the ACCEPT after it makes it count: the next try may
                // find less.
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

    /// What remains of the control stream of an accepted request, if a copy follows that.
    fn keep_copy(&mut self, now: Instant) -> Option<Copy> {
        let until = Some(now + self.copy_patience());
        let control = self.control_mut().filter(|control| control.copying == Copying::Written)?;
        let decoder = core::mem::take(&mut control.decoder);
        Some(Copy { stream: control.stream?, decoder, backlog: control.backlog, until })
    }

    fn handle_refusal(&mut self, now: Instant, refuse: Refuse) {
        self.farewell.held = Held::No;
        match refuse.reason {
            // Behind a copy there is no place for the plain file.
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

    /// The node serves somebody else: ask again later, if the owner has the patience.
    fn wait_for_turn(&mut self, now: Instant) {
        let busy = self.busy.get_or_insert(Busy { since: now, pause: FIRST_PAUSE });
        let end = busy.since + self.config.busy_patience;
        if now >= end {
            return self.fail(Failure::Refused(RefuseReason::Busy));
        }
        let deadline = (now + busy.pause).min(end);
        busy.pause = (busy.pause * 2).min(LONGEST_PAUSE);
        // A node that says so is there.
        self.progress = now;
        self.hang_up();
        self.phase = Phase::Requesting(Control { deadline, ..Control::idle(now) });
    }

    /// The answer is here: the control stream has done its work.
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

    /// The stream is gone, or as good as gone: try again shortly.
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

/// One past the last byte that an acknowledgement speaks of.
pub(super) fn ack_end(ack: &Ack) -> u64 {
    ack.held.last().map_or(ack.delivered, |range| range.end)
}

/// Copies up to this many bytes share a segment with the request.
const SHORT_COPY: u64 = 128;
/// The shortest time that a sender waits for a copy: a node may have to write the file to a slow
/// disk first.
const LEAST_COPY_PATIENCE: Duration = Duration::from_millis(200);
/// How long a node that is busy is left alone, at first and at most. A free node keeps its first
/// place longer than that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
