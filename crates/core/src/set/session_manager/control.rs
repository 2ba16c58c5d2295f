//! The control stream: the request, its answer, and plain TCP where the answer is no (section 4.2.3).

use alloc::vec::Vec;

use anabranch_wire::set::{
    self as wire, Ack, Decoder, Item, Message, Refuse, RefuseReason, Request, VERSION,
};

use bytes::Bytes;

use super::{Failure, Outcome, Phase, Sender};
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
        Self { stream: None, decoder: Decoder::new(), tries: 0, deadline: now, backlog: 0, has: None }
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

    fn send_request(&mut self) {
        let Some(stream) = self.control_stream() else { return };
        let mut octets = Vec::with_capacity(128 + self.manifest.as_ref().map_or(0, Bytes::len));
        let request = Request {
            version: VERSION,
            transfer: self.transfer,
            length: self.length(),
            plan: self.config.plan,
            file: self.config.file,
            manifest: self.manifest.clone(),
        };
        wire::encode(&Message::Request(request), &mut octets);
        self.effects.push_back(Effect::Write { stream, octets: octets.into() });
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
                    self.start_sessions(now, accept, &has.unwrap_or_default());
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
        self.phase =
            Phase::Plain(Control { stream: Some(stream), decoder, tries, deadline, backlog, has: None });
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
        self.control().map(|c| c.deadline)
    }
}

/// One past the last octet that an acknowledgement speaks of.
pub(super) fn ack_end(ack: &Ack) -> u64 {
    ack.held.last().map_or(ack.delivered, |range| range.end)
}

/// How long a node that is busy is left alone, at first and at most. A free node keeps its first place longer than that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
