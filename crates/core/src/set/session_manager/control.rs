//! The control stream: the request, its answer, and plain TCP where the answer is no (section 4.2.3).

use alloc::vec::Vec;

use anabranch_wire::set::{
    self as wire, Ack, Decoder, Item, Layout, MAX_COPY, Message, PaperAddresses, Plan, Refuse, RefuseReason,
    Request, VERSION,
};

use bytes::Bytes;

use super::{Failure, Outcome, Phase, Reinjection, Sender, Start};
use crate::set::stream::{Effect, Leg, StreamEvent, StreamId, StreamStatus};
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
    /// Octets that TCP has not got rid of.
    backlog: u32,
    /// What the node has said on this stream that it has already.
    has: Option<Ack>,
    /// A copy of the file is to follow the request.
    copy_due: bool,
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
        let (decoder, copy_due) = (Decoder::new(), false);
        Self { stream: None, decoder, tries: 0, deadline: now, backlog: 0, has: None, copy_due }
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
            StreamEvent::Closed(_) => self.lose_control(now),
        }
    }

    /// What has come on the control stream and was not read.
    fn take_decoder(&mut self) -> Option<Decoder> {
        self.control_mut().map(|control| core::mem::take(&mut control.decoder))
    }

    fn send_request(&mut self) {
        let Some(stream) = self.control_stream() else { return };
        let mut octets = Vec::with_capacity(128 + self.manifest.as_ref().map_or(0, Bytes::len));
        let copy = self.brings_copy();
        let request = Request {
            version: VERSION,
            transfer: self.transfer,
            length: self.length(),
            plan: self.config.plan,
            copy,
            file: self.config.file,
            manifest: self.manifest.clone(),
        };
        wire::encode(&Message::Request(request), &mut octets);
        self.effects.push_back(Effect::Write { stream, octets: octets.into() });
        // In one segment with the request, a longer copy would hold up the answer on a slow link: it is written when the request is
        // on its way.
        if copy && self.length() <= SHORT_COPY {
            self.send_copy();
        } else if let Some(control) = self.control_mut() {
            control.copy_due = copy;
        }
    }

    /// Writes the copy of a small file behind its request.
    fn send_copy(&mut self) {
        let Some(stream) = self.control_stream() else { return };
        let mut header = Vec::with_capacity(24);
        let nowhere = PaperAddresses { intermediate: self.node, last: self.node };
        wire::data_header(Layout::Compact, &nowhere, 0, 0, self.length(), &mut header);
        self.effects.push_back(Effect::Write { stream, octets: header.into() });
        self.effects.push_back(self.file.part(0, self.length()).write(stream));
    }

    /// Whether a copy of the file follows the request: a small file is there a round trip before the first session is open.
    /// Nodes of versions before copies reset the stream, so the next try brings none.
    fn brings_copy(&self) -> bool {
        self.config.plan == Plan::Stripe
            && self.config.start == Start::Early
            && self.config.reinjection == Reinjection::On
            && (1..=MAX_COPY).contains(&self.length())
            && self.busy.is_none()
            && self.control().is_some_and(|control| control.tries == 1)
    }

    /// The node may acknowledge the copy on the stream of the request that it has accepted.
    pub(super) fn handle_copy(&mut self, now: Instant, event: StreamEvent) {
        let Some((_, decoder)) = &mut self.copy else { return };
        match event {
            StreamEvent::Data(octets) => decoder.push(octets),
            StreamEvent::Opened => {}
            StreamEvent::Ended | StreamEvent::Closed(_) => self.copy = None,
        }
        while let Some((_, decoder)) = &mut self.copy {
            match decoder.next_item() {
                Ok(None) => return,
                Ok(Some(Item::Message(Message::Ack(ack)))) if !self.is_over() => self.acknowledge(now, &ack),
                // What it says otherwise, it says on the sessions too.
                Ok(Some(_)) | Err(_) => self.copy = None,
            }
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
                    self.hang_up();
                    self.copy = self.control_stream().filter(|_| self.brings_copy()).zip(self.take_decoder());
                    self.start_sessions(now, accept, &has.unwrap_or_default());
                    self.handle_copy(now, StreamEvent::Opened);
                }
                Message::Refuse(refuse) if requesting || refuse.reason.is_final() => {
                    self.handle_refusal(now, refuse);
                }
                Message::Ack(ack) if !requesting => self.acknowledge(now, &ack),
                // What is there already. Only the ACCEPT after it makes it count: the next try may find less.
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

    fn handle_refusal(&mut self, now: Instant, refuse: Refuse) {
        match refuse.reason {
            // Behind a copy there is no place for the plain file.
            RefuseReason::NoStriping if self.brings_copy() => {
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
        if self.control_mut().is_some_and(|control| core::mem::take(&mut control.copy_due)) {
            self.send_copy();
        }
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
        self.control().map(|c| if c.copy_due { Instant::ZERO } else { c.deadline })
    }
}

/// One past the last octet that an acknowledgement speaks of.
pub(super) fn ack_end(ack: &Ack) -> u64 {
    ack.held.last().map_or(ack.delivered, |range| range.end)
}

/// Copies up to this many octets share a segment with the request.
const SHORT_COPY: u64 = 128;
/// How long a node that is busy is left alone, at first and at most. A free node keeps its first place longer than that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
