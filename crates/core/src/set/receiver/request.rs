//! Requests: which transfer may begin, continue, or has to wait.

use alloc::vec::Vec;

use anabranch_wire::set::{
    Accept, Decoder, Item, Message, Plan, Refuse, RefuseReason, Request, TransferId, VERSION,
};
use bytes::Bytes;

use super::queue::SenderId;
use super::reorder::Reorder;
use super::{Effect, Grant, Receiver, Role, StreamId, Striping, Transfer, encoded};
use crate::time::Instant;

/// A request that waits for the owner's decision.
#[derive(Debug)]
pub(super) struct Asking {
    request: Request,
    stream: StreamId,
    /// Received bytes of a copy after the request.
    behind: Vec<u8>,
}

/// Treatment of a request.
enum Fate {
    /// It belongs to the current transfer.
    Join,
    /// It repeats the request that waits for the owner.
    Repeat,
    /// It names the current transfer but another file, and that transfer is not idle.
    Contradict,
    /// The node is busy.
    Busy,
    /// It is new, and may begin.
    Begin,
}

impl Receiver {
    /// The request that waits for the owner's decision, with [`Grant::Ask`]. The owner answers with
    /// [`Receiver::grant`] or [`Receiver::decline`]; until then no other transfer begins.
    pub fn asked(&self) -> Option<&Request> {
        self.asking.as_ref().map(|asking| &asking.request)
    }

    /// Takes the manifest out of the waiting request, and with it the ownership of its memory.
    pub fn take_manifest(&mut self) -> Option<Bytes> {
        self.asking.as_mut()?.request.manifest.take()
    }

    /// Permits `transfer`. The owner already has its bytes before `from`, which are not delivered.
    /// No effect if another transfer waits.
    pub fn grant(&mut self, now: Instant, transfer: TransferId, from: u64) {
        let Some(Asking { mut request, stream, behind }) = self.take_asking(transfer) else { return };
        // The manifest has served the owner's decision; free its memory.
        request.manifest = None;
        self.start(now, &request, stream, from);
        if matches!(self.streams.get(&stream), Some(Role::Asking)) {
            self.answer(stream, &request);
            if !behind.is_empty() {
                self.read(now, stream, behind.into());
            }
        }
    }

    /// Stores data after a request that waits for the owner: a copy, if the node accepts copies. A
    /// sender that sends anything else before the answer is reset.
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

    /// Rejects `transfer`. REFUSE reports that the node has `delivered` bytes. The time for which
    /// the node counts as free is not changed: rejected requests do not delay waiting senders.
    pub fn decline(&mut self, _now: Instant, transfer: TransferId, reason: RefuseReason, delivered: u64) {
        let Some(Asking { stream, .. }) = self.take_asking(transfer) else { return };
        if matches!(self.streams.get(&stream), Some(Role::Asking)) {
            self.send(stream, &Message::Refuse(Refuse { reason, delivered }));
            self.set_role(stream, Role::Ending);
        }
    }

    /// Aborts the current transfer and tells its sender `reason`. Data that was not polled yet, or
    /// arrives later, is neither delivered nor acknowledged.
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
        // Each effect consists of whole messages. An acknowledgement may also wait on a stream that
        // expects no more data. The refusal replaces it there, ahead of an effect that closes the
        // stream.
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

    /// Ends a stream of an aborted transfer with the reason.
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
                // An unfinished transfer was idle for too long. A finished one stays until it is
                // replaced: its sender may have missed the acknowledgement.
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

    /// Presents the request to the owner. A repeated request replaces the earlier one, which its
    /// sender has abandoned.
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

    /// Answers a request of the current transfer.
    fn answer(&mut self, stream: StreamId, request: &Request) {
        let Some(transfer) = &self.transfer else { return };
        let at = transfer.reorder.delivered();
        let has_something = at > 0 || transfer.reorder.held() > 0;
        let plain = request.plan == Plan::EndToEnd || self.config.striping == Striping::Refused;
        if plain {
            // A plain file cannot follow the bytes of a copy. The sender repeats the request
            // without one.
            let next = if request.copy { Role::Ending } else { Role::Plain { at } };
            self.refuse(stream, RefuseReason::NoStriping, next);
            if request.copy {
                return;
            }
            self.limit(stream, self.config.buffer);
            return self.finish_plain(stream);
        }
        // Only a sender that identifies its file is told which bytes are present.
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
        // No acknowledgement of the copy follows, so the sender need not wait for one.
        self.effects.push_back(Effect::Shutdown { stream });
        self.set_role(stream, Role::Ending);
    }

    /// Reads data after an accepted request without a copy. CANCEL ends the transfer: its sender
    /// may have no session on which to send it. A complete file stays, so that a repeated request
    /// is acknowledged. All other data is ignored.
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

    /// Starts a new transfer and drops the previous one.
    fn start(&mut self, now: Instant, request: &Request, control: StreamId, from: u64) {
        self.clear(control);
        self.given_up = None;
        let reorder = Reorder::resume(request.length, &self.config, from);
        self.transfer =
            Some(Transfer { request: request.clone(), reorder, sessions: 1, news: now, next_share: now });
    }

    /// Drops the transfer and its streams; `kept` belongs to another. If the owner decides on
    /// requests, many senders may be waiting, and the answers to them must still arrive.
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

    /// Drops the current transfer, at the request of its sender or of the owner.
    pub fn forget(&mut self, now: Instant) {
        self.freed = now;
        // Streams are numbered upwards, and no stream has the last number.
        let kept = self.asking.as_ref().map_or(StreamId(u32::MAX), |asking| asking.stream);
        self.clear(kept);
    }

    pub(super) fn refuse(&mut self, stream: StreamId, reason: RefuseReason, next: Role) {
        let delivered = self.transfer.as_ref().map_or(0, |t| t.reorder.delivered());
        self.send(stream, &Message::Refuse(Refuse { reason, delivered }));
        self.set_role(stream, next);
    }
}

/// Whether `octets` begin with an acknowledgement or an ACCEPT.
fn speaks_of_octets(octets: &Bytes) -> bool {
    let mut decoder = Decoder::new();
    decoder.push(octets.clone());
    matches!(decoder.next_item(), Ok(Some(Item::Message(Message::Ack(_) | Message::Accept(_)))))
}

/// Whether both requests describe the same file, as far as they tell. The plan may differ.
fn is_same(known: &Request, request: &Request) -> bool {
    let digest = |r: &Request| r.file.map(|file| file.digest);
    known.length == request.length && digest(known) == digest(request)
}
