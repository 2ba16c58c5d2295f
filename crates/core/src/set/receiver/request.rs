//! Requests: who may begin, who goes on, and who comes again later.

use alloc::vec::Vec;

use anabranch_wire::set::{
    Accept, Decoder, Item, Message, Plan, Refuse, RefuseReason, Request, TransferId, VERSION,
};
use bytes::Bytes;

use super::queue::SenderId;
use super::reorder::Reorder;
use super::{Effect, Grant, Receiver, Role, StreamId, Striping, Transfer, encoded};
use crate::time::Instant;

/// A request that waits for the owner's answer.
#[derive(Debug)]
pub(super) struct Asking {
    request: Request,
    stream: StreamId,
    /// What has come of a copy behind the request.
    behind: Vec<u8>,
}

/// What becomes of a request.
enum Fate {
    /// It is the present transfer's.
    Join,
    /// It is the one that the owner is asked about.
    Repeat,
    /// A transfer of the same number is of another file, and has had news lately.
    Contradict,
    /// Another time.
    Busy,
    /// It is new, and may begin.
    Begin,
}

impl Receiver {
    /// With [`Grant::Ask`]: a transfer that waits to be let in. The owner answers with
    /// [`Receiver::grant`] or [`Receiver::decline`]; until then nobody else may begin.
    pub fn asked(&self) -> Option<&Request> {
        self.asking.as_ref().map(|asking| &asking.request)
    }

    /// Takes the manifest out of the request that waits to be let in: its memory is the owner's
    /// then.
    pub fn take_manifest(&mut self) -> Option<Bytes> {
        self.asking.as_mut()?.request.manifest.take()
    }

    /// The owner lets `transfer` in and has its bytes before `from` already: none of them is
    /// delivered. Nothing happens if it is not the one that waits.
    pub fn grant(&mut self, now: Instant, transfer: TransferId, from: u64) {
        let Some(Asking { mut request, stream, behind }) = self.take_asking(transfer) else { return };
        // The owner has decided by it.
        request.manifest = None;
        self.start(now, &request, stream, from);
        if matches!(self.streams.get(&stream), Some(Role::Asking)) {
            self.answer(stream, &request);
            if !behind.is_empty() {
                self.read(now, stream, behind.into());
            }
        }
    }

    /// Keeps what follows a request that waits for the owner: a copy, if the node takes it. Nobody
    /// says more before there is an answer.
    pub(super) fn hold_copy(&mut self, stream: StreamId, octets: &[u8]) {
        let most = self.config.copy;
        match self.asking.as_mut().filter(|asking| asking.stream == stream && asking.request.copy) {
            Some(_) if most == 0 => {}
            Some(Asking { behind, .. }) if behind.len() + octets.len() <= most => {
                behind.extend_from_slice(octets);
            }
            _ => self.reject(stream),
        }
    }

    /// The owner does not let `transfer` in. `delivered` is what REFUSE says the node has. The node
    /// counts as free since before the request: requests that are declined delay no sender that
    /// waits.
    pub fn decline(&mut self, _now: Instant, transfer: TransferId, reason: RefuseReason, delivered: u64) {
        let Some(Asking { stream, .. }) = self.take_asking(transfer) else { return };
        if matches!(self.streams.get(&stream), Some(Role::Asking)) {
            self.send(stream, &Message::Refuse(Refuse { reason, delivered }));
            self.set_role(stream, Role::Ending);
        }
    }

    /// The owner gives up the present transfer, and its sender is told `reason`. Of what was not
    /// polled yet, nothing is delivered or acknowledged; of what still arrives, neither.
    pub fn abort(&mut self, now: Instant, reason: RefuseReason) {
        if self.transfer.take().is_none() {
            return;
        }
        self.waiting.clear();
        self.freed = now;
        self.given_up = Some(reason);
        let carries = |role: &Role| matches!(role, Role::Session(_) | Role::Copy(_) | Role::Plain { .. });
        let streams = self.streams.iter().filter(|(_, role)| carries(role));
        let streams: Vec<StreamId> = streams.map(|(stream, _)| *stream).collect();
        // Each effect has whole messages. An acknowledgement may also wait on a stream on which
        // nothing more is expected: the refusal takes its place, before what may end the stream.
        let refusal = encoded(&Message::Refuse(Refuse { reason, delivered: 0 }));
        let mut told: Vec<StreamId> = Vec::new();
        self.effects.retain_mut(|effect| match effect {
            Effect::Deliver { .. } => false,
            Effect::Write { stream, .. } if streams.contains(stream) || told.contains(stream) => false,
            Effect::Write { stream, octets } if speaks_of_octets(octets) => {
                told.push(*stream);
                *octets = refusal.clone();
                true
            }
            _ => true,
        });
        streams.into_iter().for_each(|stream| self.dismiss(stream, reason));
    }

    /// A stream of a transfer that was given up ends with the reason.
    pub(super) fn dismiss(&mut self, stream: StreamId, reason: RefuseReason) {
        self.send(stream, &Message::Refuse(Refuse { reason, delivered: 0 }));
        self.effects.push_back(Effect::Shutdown { stream });
        self.set_role(stream, Role::Ending);
    }

    pub(super) fn handle_request(&mut self, now: Instant, stream: StreamId, request: Request) {
        if request.version != VERSION {
            return self.refuse(stream, RefuseReason::Version, Role::Ending);
        }
        let sender = self.introduced.take_if(|(of, _)| *of == stream).map(|(_, sender)| sender);
        match self.fate(now, &request, sender) {
            Fate::Join => self.answer(stream, &request),
            Fate::Repeat => self.ask(stream, request),
            Fate::Contradict => self.refuse(stream, RefuseReason::Unwanted, Role::Ending),
            Fate::Busy => self.refuse(stream, RefuseReason::Busy, Role::Ending),
            Fate::Begin if self.config.grant == Grant::Ask => {
                // What is unfinished has had no news for too long. What is finished stays until it
                // is replaced: its sender may not have heard.
                if !self.is_complete() {
                    self.clear(stream);
                }
                self.ask(stream, request);
            }
            Fate::Begin => {
                self.start(now, &request, stream, 0);
                self.answer(stream, &request);
            }
        }
    }

    fn fate(&mut self, now: Instant, request: &Request, sender: Option<SenderId>) -> Fate {
        let id = request.transfer;
        let present = self.transfer.as_ref().map(|t| &t.request).filter(|known| known.transfer == id);
        if present.is_some_and(|known| is_same(known, request)) {
            return Fate::Join;
        }
        if let Some(asking) = self.asking.as_ref().filter(|a| a.request.transfer == id) {
            return if is_same(&asking.request, request) { Fate::Repeat } else { Fate::Contradict };
        }
        let contradicts = present.is_some();
        let free = match &self.transfer {
            None => self.freed,
            Some(t) if t.reorder.is_complete() => t.news.max(self.freed),
            Some(t) => t.news + self.config.idle,
        };
        if contradicts && now < free {
            return Fate::Contradict;
        }
        if self.asking.is_some() || now < free {
            self.queue.wait(now, id, sender);
            return Fate::Busy;
        }
        if !self.queue.admit(now, free, id, sender) {
            return Fate::Busy;
        }
        self.freed = free;
        Fate::Begin
    }

    /// The owner is asked; an earlier request of the same transfer was given up by its sender.
    fn ask(&mut self, stream: StreamId, request: Request) {
        self.set_role(stream, Role::Asking);
        let earlier = self.asking.replace(Asking { request, stream, behind: Vec::new() });
        if let Some(Asking { stream, .. }) = earlier
            && self.streams.remove(&stream).is_some()
        {
            self.effects.push_back(Effect::Abort { stream });
        }
    }

    fn take_asking(&mut self, transfer: TransferId) -> Option<Asking> {
        self.asking.take_if(|asking| asking.request.transfer == transfer)
    }

    /// The answer to a request of the present transfer.
    fn answer(&mut self, stream: StreamId, request: &Request) {
        let Some(transfer) = &self.transfer else { return };
        let at = transfer.reorder.delivered();
        let has_something = at > 0 || transfer.reorder.held() > 0;
        let plain = request.plan == Plan::EndToEnd || self.config.striping == Striping::Refused;
        if plain {
            // The plain file would follow what has come of a copy: the sender asks anew, without
            // one.
            let next = if request.copy { Role::Ending } else { Role::Plain { at } };
            self.refuse(stream, RefuseReason::NoStriping, next);
            if request.copy {
                return;
            }
            self.limit(stream, self.config.buffer);
            return self.finish_plain(stream);
        }
        // A sender that says which file it has can be told what of it is here.
        if has_something && request.file.is_some() {
            self.acknowledge(stream);
        }
        let accept = Accept { buffer: u64::from(self.config.buffer), gateways: self.config.gateways.clone() };
        self.send(stream, &Message::Accept(accept));
        if !request.copy {
            return self.set_role(stream, Role::Accepted(request.transfer));
        }
        if self.config.copy > 0 {
            return self.set_role(stream, Role::Copy(Decoder::of_node()));
        }
        // The sender need not wait for an acknowledgement that will not come.
        self.effects.push_back(Effect::Shutdown { stream });
        self.set_role(stream, Role::Ending);
    }

    /// What follows an accepted request that brings no copy. CANCEL gives the transfer up: its
    /// sender may have no session to say so on. A file that is complete stays, so that a sender
    /// that asks again hears of it. All else is ignored.
    pub(super) fn read_farewell(&mut self, now: Instant, stream: StreamId, of: TransferId, octets: Bytes) {
        self.set_role(stream, Role::Ending);
        let mut decoder = Decoder::of_node();
        decoder.push(octets);
        let is_present = self.present().is_some_and(|request| request.transfer == of);
        if is_present
            && !self.is_complete()
            && let Ok(Some(Item::Message(Message::Cancel))) = decoder.next_item()
        {
            self.forget(now);
        }
    }

    /// A new transfer: whatever was before has made way.
    fn start(&mut self, now: Instant, request: &Request, control: StreamId, from: u64) {
        self.clear(control);
        self.given_up = None;
        let reorder = Reorder::resume(request.length, &self.config, from);
        self.transfer =
            Some(Transfer { request: request.clone(), reorder, sessions: 1, news: now, next_share: now });
    }

    /// No transfer, and none of its streams; `kept` is another's. Where the owner is asked, there
    /// may be many who wait: what they were told shall arrive.
    fn clear(&mut self, kept: StreamId) {
        self.transfer = None;
        self.waiting.clear();
        let all = self.config.grant == Grant::AtOnce;
        let is_old =
            |role: &Role| all || matches!(role, Role::Session(_) | Role::Copy(_) | Role::Plain { .. });
        let old = self.streams.iter().filter(|(stream, role)| **stream != kept && is_old(role));
        let old: Vec<StreamId> = old.map(|(stream, _)| *stream).collect();
        for stream in old {
            self.streams.remove(&stream);
            self.effects.push_back(Effect::Abort { stream });
        }
    }

    /// Gives up the present transfer: its sender has, or the owner.
    pub fn forget(&mut self, now: Instant) {
        self.freed = now;
        // Streams are numbered upwards; nobody has the last number.
        let kept = self.asking.as_ref().map_or(StreamId(u32::MAX), |asking| asking.stream);
        self.clear(kept);
    }

    pub(super) fn refuse(&mut self, stream: StreamId, reason: RefuseReason, next: Role) {
        let delivered = self.transfer.as_ref().map_or(0, |t| t.reorder.delivered());
        self.send(stream, &Message::Refuse(Refuse { reason, delivered }));
        self.set_role(stream, next);
    }
}

/// An acknowledgement, or an ACCEPT behind one.
fn speaks_of_octets(octets: &Bytes) -> bool {
    let mut decoder = Decoder::new();
    decoder.push(octets.clone());
    matches!(decoder.next_item(), Ok(Some(Item::Message(Message::Ack(_) | Message::Accept(_)))))
}

/// The same file, as far as both requests say. Who repeats a request may change its plan.
fn is_same(known: &Request, request: &Request) -> bool {
    let digest = |r: &Request| r.file.map(|file| file.digest);
    known.length == request.length && digest(known) == digest(request)
}
