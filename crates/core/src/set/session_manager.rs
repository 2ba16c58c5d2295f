//! The sender's session manager (the paper's SM at CN, sections 4.2 to 4.7): asks the node, opens
//! sessions one after another while data already flows on the first, stripes, recovers, and tears
//! down.

mod config;
mod congestion;
mod control;
mod farewell;
mod recovery;
mod stripe;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use anabranch_wire::set::{
    Accept, Ack, Gateway, Join, MAX_COPY, Plan, RefuseReason, SetAckStatus, TransferId,
};
use bytes::Bytes;

pub use self::config::{OpenWhen, Recovery, Reinjection, SenderConfig, Start};
use self::congestion::Congestion;
use self::control::{Busy, Control, Copy, ack_end};
use self::farewell::{Farewell, Held};
use super::file::File;
use super::gateways;
use super::ranges::RangeSet;
use super::stream::{Effect, StreamEvent, StreamId, StreamStatus};
use super::striping::{AnyStriping, PathView};
use super::tcp_manager::{Common, Ending, Notice, State, TcpManager};
use crate::time::{Duration, Instant};

/// Sessions under the keys of one request, at most: a number has one octet, and [`u8::MAX`] is the
/// control stream's.
pub const MAX_SESSIONS: usize = u8::MAX as usize;

/// Why a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The node never answered the request.
    #[error("the node did not answer the request")]
    NodeUnreachable,
    /// The node refused, and plain TCP would not help.
    #[error("the node refused the transfer: {}", why(*.0))]
    Refused(RefuseReason),
    /// The node has so many octets of another file, which is to come first or to be thrown away.
    #[error("the node holds {0} bytes of an unfinished transfer of another file")]
    Unfinished(u64),
    /// The node knows no gateway.
    #[error("the node knows no gateway")]
    NoGateway,
    /// Every session ended before the file was delivered.
    #[error("every gateway was lost")]
    GatewaysLost,
    /// Every gateway that is left is congested.
    #[error("every gateway is congested")]
    Congested,
    /// Nothing more was delivered for too long.
    #[error("nothing was delivered for too long")]
    Stalled,
    /// The node sent what no node may send.
    #[error("the node violated the protocol")]
    Protocol,
    /// The owner has given it up.
    #[error("the transfer was cancelled")]
    Cancelled,
}

/// What a refusal means, in words.
const fn why(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::NoStriping => "it does not support striping",
        RefuseReason::Busy => "it is busy with another transfer",
        RefuseReason::Version => "it does not support this protocol version",
        RefuseReason::Unfinished => "it holds an unfinished transfer of another file",
        RefuseReason::Unwanted => "its program does not accept the file",
        RefuseReason::TooLarge => "the file is larger than its limit",
        RefuseReason::NoRoom => "it has no space for the file",
        RefuseReason::Digest => "the received bytes do not have the announced SHA-256",
        RefuseReason::Signature => "the file has no signature that it trusts",
        RefuseReason::Failed => "it could not store the file",
        RefuseReason::Rollback => "it has accepted a later version of the file",
        RefuseReason::WrongDevice => "the file is for another vendor, class or component",
        RefuseReason::Expired => "the manifest of the file has expired",
        RefuseReason::Image => "the file is not a complete image for its boot loader",
        RefuseReason::LongManifest => "it accepts no manifest, or only shorter ones",
    }
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The node has everything in order.
    Delivered,
    /// It has not; see [`Sender::delivered`] for how far it got.
    Failed(Failure),
}

/// What a session did, for reports.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// The gateway's id in the node's table.
    pub gateway: u16,
    /// Where it took the session.
    pub address: SocketAddr,
    /// Where the session stands.
    pub state: State,
    /// Octets of the file that it was given, copies included.
    pub written: u64,
    /// Octets of the file that it brought to the node, copies included.
    pub delivered: u64,
    /// Octets of the file on its way.
    pub outstanding: u64,
    /// Octets per second that it delivers.
    pub rate: Option<u64>,
    /// Smoothed time from writing a chunk to the node's acknowledgement.
    pub latency: Option<Duration>,
    /// From opening the wired connection to SETACK.
    pub establishment: Option<Duration>,
    /// The wired stream.
    pub stream: StreamId,
}

/// A gateway without a session that may be called.
#[derive(Debug)]
struct Again {
    gateway: Gateway,
    /// When.
    at: Instant,
    /// Since when it is gone; `None`: it was not selected.
    lost: Option<Instant>,
}

/// What the sender is doing.
#[derive(Debug)]
enum Phase {
    /// Asking the node.
    Requesting(Control),
    /// The octets travel as plain TCP on the control stream.
    Plain(Control),
    /// Sessions carry the file.
    Sessions,
    /// Over.
    Ended(Outcome),
}

/// The session manager of one transfer.
///
/// Drive it as [`crate::set`] says; [`Sender::outcome`] tells when it is over.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    node: SocketAddr,
    transfer: TransferId,
    /// Gateways that the owner has named, instead of the node's table.
    via: Vec<Gateway>,
    /// What a signer says of the file.
    manifest: Option<Bytes>,
    /// The one sender buffer.
    file: File,
    phase: Phase,
    sessions: Vec<TcpManager>,
    /// Selected gateways that have no session yet.
    waiting: VecDeque<Gateway>,
    /// Selected, for the count that SETSYN carries.
    selected: usize,
    /// Gateways without a session that may be called.
    again: VecDeque<Again>,
    /// Gateways that have said that they are congested.
    congestion: Congestion,
    /// Calls since something was last delivered, by which further ones are bounded when no session
    /// is left.
    calls: usize,
    /// The session that was called last.
    newest: usize,
    /// Numbers of sessions that were given since the last request: those before it were of other
    /// keys.
    numbers: usize,
    /// Of these, those with which no SETSYN was sent.
    unused: Vec<u8>,
    /// Some session has been open.
    opened: bool,
    /// Octets that no session has been given, or that were taken back.
    unassigned: RangeSet,
    /// Octets that the node holds.
    acknowledged: RangeSet,
    /// Octets that the node has delivered in order.
    delivered: u64,
    /// Octets that the node had in order before this sender sent any.
    resumed_from: u64,
    /// Octets of the node's receive buffer (`B_2`).
    buffer: u64,
    next_stream: u32,
    effects: VecDeque<Effect>,
    /// The copy of the file behind the accepted request, while the node may acknowledge it.
    copy: Option<Copy>,
    /// The node has said that it is busy.
    busy: Option<Busy>,
    farewell: Farewell,
    /// When something was last delivered, as far as we know.
    progress: Instant,
    /// The next session may be called then even if the last has not answered.
    patience: Instant,
    request_time: Duration,
    request_started: Instant,
    /// When a chunk that holds up the rest will be overdue.
    rescue_at: Option<Instant>,
    /// Something has changed since the last striping.
    stale: bool,
    striping: AnyStriping,
    views: Vec<PathView>,
}

impl Sender {
    /// A transfer of `file` to `node`, whose control port is in the address. Dials at once.
    pub fn new(
        now: Instant,
        config: SenderConfig,
        node: SocketAddr,
        transfer: TransferId,
        file: impl Into<File>,
    ) -> Self {
        let file = file.into();
        let mut unassigned = RangeSet::new();
        unassigned.insert(0, file.length());
        let mut sender = Self {
            config,
            node,
            transfer,
            via: Vec::new(),
            manifest: None,
            file,
            phase: Phase::Requesting(Control::idle(now)),
            sessions: Vec::new(),
            waiting: VecDeque::new(),
            selected: 0,
            again: VecDeque::new(),
            congestion: Congestion::default(),
            calls: 0,
            newest: 0,
            numbers: 0,
            unused: Vec::new(),
            opened: false,
            unassigned,
            acknowledged: RangeSet::new(),
            delivered: 0,
            resumed_from: 0,
            busy: None,
            farewell: Farewell::default(),
            buffer: 0,
            next_stream: 0,
            effects: VecDeque::new(),
            copy: None,
            progress: now,
            patience: Instant::FAR_FUTURE,
            request_time: Duration::ZERO,
            request_started: now,
            rescue_at: None,
            stale: false,
            striping: AnyStriping::new(config.striping),
            views: Vec::new(),
        };
        sender.dial_control(now);
        sender
    }

    /// The node gets this with the request: what a signer says of the file, at most
    /// [`MAX_MANIFEST`](crate::set::MAX_MANIFEST) octets, for nodes that ask for it. To be called
    /// before anything else; a node that knows no manifests resets the stream.
    pub fn bring(&mut self, manifest: Option<Bytes>) {
        self.manifest = manifest;
    }

    /// Goes through these gateways, whatever table the node has; the table decides if there are
    /// none. To be called before the node's answer is there.
    pub fn go_through(&mut self, gateways: Vec<Gateway>) {
        self.via = gateways;
    }

    /// Gives the transfer up: its outcome is [`Failure::Cancelled`], and where a session can tell
    /// the node, the node forgets the transfer at once. Nothing happens to one that is over. See
    /// [`Sender::give_up`].
    pub fn cancel(&mut self, _now: Instant) {
        if !self.is_over() {
            self.fail(Failure::Cancelled);
        }
    }

    /// A stream did something.
    pub fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        if self.control_stream() == Some(stream) {
            self.handle_control(now, event);
            return;
        }
        if self.copy.as_ref().is_some_and(|copy| copy.stream == stream) {
            return self.handle_copy(now, event);
        }
        if self.handle_farewell(stream, &event) {
            return;
        }
        let Some(index) = self.sessions.iter().position(|s| s.stream == stream) else { return };
        for notice in self.sessions[index].handle_stream(now, event, &mut self.effects) {
            self.handle_notice(now, index, notice);
        }
        if matches!(self.phase, Phase::Sessions) {
            self.call_next(now);
        }
        // It may have been the only session with CANCEL.
        self.bid_farewell();
        self.stale = true;
    }

    /// A stream's figures have changed.
    pub fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus) {
        if self.control_stream() == Some(stream) {
            self.handle_control_status(now, status);
        } else if self.copy.as_ref().is_some_and(|copy| copy.stream == stream) {
            self.handle_copy_status(now, status);
        } else if let Some(session) = self.sessions.iter_mut().find(|s| s.stream == stream) {
            let before = session.status.in_flight.saturating_add(session.status.unsent);
            // A plain split connection has no acknowledgements of its own; TCP's are all there is.
            if session.join.plan == Plan::Split && status.in_flight.saturating_add(status.unsent) < before {
                self.progress = now;
            }
            session.status = status;
            self.stale = true;
        }
    }

    /// Answers [`Sender::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.sessions.len() {
            for notice in self.sessions[index].handle_timeout(now, &mut self.effects) {
                self.handle_notice(now, index, notice);
            }
        }
        self.handle_control_timeout(now);
        if matches!(self.phase, Phase::Sessions) {
            self.find_silent(now);
            self.call_next(now);
        }
        if !self.is_over() && now >= self.stall_deadline() {
            self.stall(now);
        }
        self.stale = true;
    }

    /// When [`Sender::handle_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        let sessions = self.sessions.iter().filter_map(TcpManager::next_timeout).min();
        let mut next = self.stall_deadline();
        for candidate in
            [sessions, self.control_timeout(), self.silence_timeout(), self.call_timeout(), self.rescue_at]
        {
            next = next.min(candidate.unwrap_or(Instant::FAR_FUTURE));
        }
        Some(next)
    }

    /// The next thing that the driver shall do.
    pub fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        if self.effects.is_empty() && self.stale {
            self.stale = false;
            if matches!(self.phase, Phase::Sessions) {
                self.stripe(now);
            }
        }
        self.effects.pop_front()
    }

    /// How the transfer ended, once it has.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Ended(outcome) => Some(outcome),
            Phase::Requesting(_) | Phase::Plain(_) | Phase::Sessions => None,
        }
    }

    /// A connection is open over which the file can travel, or the file was delivered without one.
    pub fn is_established(&self) -> bool {
        match self.phase {
            Phase::Requesting(_) => false,
            Phase::Plain(_) => true,
            Phase::Sessions => self.sessions.iter().any(|s| s.state == State::Opened),
            Phase::Ended(outcome) => outcome == Outcome::Delivered,
        }
    }

    /// Octets that the node is known to have delivered in order.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Octets of the node's receive buffer, as ACCEPT says; 0 before.
    pub fn node_buffer(&self) -> u64 {
        self.buffer
    }

    /// The gateway that a session's stream leads to.
    pub fn gateway_of(&self, stream: StreamId) -> Option<&Gateway> {
        self.sessions.iter().find(|session| session.stream == stream).map(|session| &session.gateway)
    }

    /// Octets that the node had in order before this sender sent any.
    pub fn resumed_from(&self) -> u64 {
        self.resumed_from
    }

    /// What each session did, in the order of calls.
    pub fn sessions(&self) -> impl Iterator<Item = SessionReport> + '_ {
        self.sessions.iter().map(|s| SessionReport {
            gateway: s.gateway.id,
            address: s.gateway.address,
            state: s.state,
            written: s.earlier.0 + s.written,
            delivered: s.earlier.1 + s.received,
            outstanding: s.outstanding(),
            rate: s.estimate.rate(),
            latency: s.estimate.latency(),
            establishment: s.establishment,
            stream: s.stream,
        })
    }

    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Nothing was delivered for too long. If only a copy behind the request was left, that is not
    /// what the transfer failed of.
    fn stall(&mut self, now: Instant) {
        let none_alive = !self.sessions.iter().any(TcpManager::is_alive);
        let lacks = none_alive && self.waiting.is_empty() && self.again.is_empty();
        if matches!(self.phase, Phase::Sessions) && lacks && self.copy.is_some() {
            self.drop_copy();
            self.lack_room(now);
        } else if self.delivered == 0 && self.sessions.is_empty() {
            self.fail(Failure::NodeUnreachable);
        } else {
            self.fail(Failure::Stalled);
        }
    }

    fn stall_deadline(&self) -> Instant {
        if self.waits_for_room() {
            return Instant::FAR_FUTURE;
        }
        // A gateway may take long to pass on what it holds, and the node's answer long to come
        // back: TCP on the wireless half may be waiting for its longest time-outs, and resets the
        // session if it gives up.
        let carries = self.sessions.iter().any(|s| s.state == State::Opened);
        let patience = if self.config.plan == Plan::Stripe && !carries { 1 } else { 10 };
        self.progress + self.config.stall * patience
    }

    fn length(&self) -> u64 {
        self.file.length()
    }

    fn new_stream(&mut self) -> StreamId {
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        stream
    }

    fn handle_notice(&mut self, now: Instant, index: usize, notice: Notice) {
        if self.is_over() {
            return;
        }
        match notice {
            Notice::Opened => {
                // One that opens and is lost again, whatever how often, brings nothing further.
                if !core::mem::replace(&mut self.opened, true) {
                    self.progress = now;
                }
                self.congestion.forget(&self.sessions[index].gateway);
                self.congestion.none_since = None;
            }
            Notice::Closed => self.lose(now, index),
            Notice::Refused(reason) => self.fail(Failure::Refused(reason)),
            Notice::Read(ack) => {
                self.sessions[index].handle_received(now, ack.received);
                self.acknowledge(now, &ack);
            }
        }
    }

    /// The node's answer: sessions it is, for what it has not got yet.
    fn start_sessions(&mut self, now: Instant, accept: Accept, has: &Ack) {
        self.progress = now;
        self.farewell.held = Held::Yes;
        self.buffer = accept.buffer.max(1);
        self.phase = Phase::Sessions;
        self.unassigned.insert(0, self.length());
        self.acknowledged = RangeSet::new();
        self.delivered = 0;
        self.acknowledge(now, has);
        let renewed = !self.sessions.is_empty();
        if !renewed {
            self.resumed_from = self.delivered;
        }
        self.numbers = 0;
        self.unused.clear();
        if self.is_over() {
            return;
        }
        if renewed {
            // Only the numbers are new: the gateways are those that were left.
            self.call_next(now);
            self.stale = true;
            return;
        }
        let count = match self.config.plan {
            Plan::Split => 1,
            Plan::Stripe | Plan::EndToEnd => self.config.gateways,
        };
        let table = if self.via.is_empty() { accept.gateways } else { core::mem::take(&mut self.via) };
        let chosen = gateways::select(&table, count.min(MAX_SESSIONS));
        self.selected = chosen.len();
        // A gateway that was not selected is better than none, once all selected ones are lost.
        let spare = table.iter().filter(|g| !chosen.contains(g)).cloned();
        self.again = spare.map(|gateway| Again { gateway, at: now, lost: None }).collect();
        self.waiting = chosen.into();
        self.call_next(now);
        self.stale = true;
    }

    /// Calls the next gateway if the last call has been answered or patience has run out; one that
    /// was not selected only when no session is left.
    fn call_next(&mut self, now: Instant) {
        if self.awaits_copy(now) || self.is_calling() && now < self.patience {
            return;
        }
        let at_once = match self.config.open {
            OpenWhen::OneByOne => false,
            OpenWhen::Staggered => self.is_nearly_given(),
            OpenWhen::AtOnce => true,
        };
        while let Some(gateway) = self.waiting.pop_front() {
            self.call(now, gateway, None);
            if !at_once {
                return;
            }
        }
        let none_alive = !self.sessions.iter().any(TcpManager::is_alive);
        let due = self.again.iter().position(|again| again.at <= now && (none_alive || self.probes(again)));
        if let Some(Again { gateway, lost, .. }) = due.and_then(|index| self.again.remove(index)) {
            self.call(now, gateway, lost);
        } else if let Some(gateway) = self.congestion.next(now) {
            if none_alive {
                // Waiting for room was no stalling.
                self.progress = now;
            }
            self.call(now, gateway, None);
        } else if none_alive && self.again.is_empty() {
            self.lack_room(now);
        }
    }

    /// One session can take all that is left at once: others can only carry copies, so no call
    /// waits for another.
    fn is_nearly_given(&self) -> bool {
        self.unassigned.is_empty() || self.length() <= MAX_COPY
    }

    /// The last call keeps the next one waiting.
    fn is_calling(&self) -> bool {
        self.sessions.get(self.newest).is_some_and(|s| match (s.state, self.config.open) {
            (State::Calling | State::OpenWait { .. }, OpenWhen::OneByOne) => true,
            (State::Calling, OpenWhen::Staggered) => !self.is_nearly_given(),
            (State::Calling | State::OpenWait { .. }, _) => false,
            (State::Opened | State::Released | State::Closed(_), _) => false,
        })
    }

    fn call(&mut self, now: Instant, gateway: Gateway, lost: Option<Instant>) {
        let number = match self.unused.pop() {
            Some(number) => usize::from(number),
            None if self.numbers >= MAX_SESSIONS => return self.renew(now, gateway, lost),
            None => {
                self.numbers += 1;
                self.numbers - 1
            }
        };
        // A request that lost its gateway took long for reasons that say nothing of the next one.
        self.patience = now + self.config.patience.max((self.request_time * 3).min(self.config.patience * 5));
        self.calls += 1;
        let join = Join {
            transfer: self.transfer,
            session: number as u8,
            sessions: self.selected.max(number + 1).min(MAX_SESSIONS) as u8,
            plan: self.config.plan,
        };
        let common = Common {
            node: self.node,
            layout: self.config.layout,
            set_timeout: self.config.set_timeout,
            set_tries: self.config.set_tries,
        };
        let stream = self.new_stream();
        let mut session = TcpManager::call(now, common, gateway, join, stream, &mut self.effects);
        // The node's answer took two round trips; a chunk should not take longer.
        session.estimate.suppose(self.request_time);
        session.lost = lost;
        // However often a gateway is called, it has one place in the list.
        let is_same = |s: &TcpManager| {
            (s.gateway.id, s.gateway.address) == (session.gateway.id, session.gateway.address)
        };
        match self.sessions.iter().position(|s| !s.is_alive() && is_same(s)) {
            Some(index) => {
                let before = &self.sessions[index];
                let (written, received) = before.earlier;
                session.earlier = (written + before.written, received + before.received);
                (self.sessions[index], self.newest) = (session, index);
            }
            None => {
                self.newest = self.sessions.len();
                self.sessions.push(session);
            }
        }
    }

    /// All numbers of sessions are used, and none may come twice under the same keys. Once no
    /// session is left, the node is asked anew: each request has keys, and numbers, of its own.
    fn renew(&mut self, now: Instant, gateway: Gateway, lost: Option<Instant>) {
        if self.sessions.iter().any(TcpManager::is_alive) {
            self.again.push_back(Again { gateway, at: now + self.config.patience, lost });
        } else {
            self.again.push_front(Again { gateway, at: now, lost });
            self.dial_control(now);
        }
    }

    fn call_timeout(&self) -> Option<Instant> {
        if !matches!(self.phase, Phase::Sessions) {
            return None;
        }
        if let Some(until) = self.copy_timeout() {
            return Some(until);
        }
        let alive = self.sessions.iter().any(TcpManager::is_alive);
        let again =
            self.again.iter().filter(|again| !alive || self.probes(again)).map(|again| again.at).min();
        let usual = match self.waiting.is_empty() {
            false => Some(self.patience),
            true if self.is_calling() => again.map(|at| at.max(self.patience)),
            true => again,
        };
        [usual, self.congestion_timeout()].into_iter().flatten().min()
    }

    fn acknowledge(&mut self, now: Instant, ack: &Ack) {
        if ack_end(ack) > self.length() {
            self.fail(Failure::Protocol);
            return;
        }
        let mut new = self.acknowledged.insert(0, ack.delivered);
        for range in &ack.held {
            new += self.acknowledged.insert(range.start, range.end);
        }
        self.delivered = self.delivered.max(ack.delivered);
        if new > 0 {
            self.progress = now;
            if self.config.recovery == Recovery::Always {
                self.calls = 0;
            }
        }
        for range in self.acknowledged.as_slice() {
            self.unassigned.remove(range.start, range.end);
        }
        if self.acknowledged.octets() == self.length() {
            match ack.delivered == self.length() {
                true => self.finish(Outcome::Delivered),
                false => self.doubt(ack.delivered),
            }
        }
    }

    /// All octets were acknowledged, and the node still lacks some. Whoever acknowledges the last
    /// one has delivered all of them, so a bit of an earlier acknowledgement has changed on its
    /// way: what is not delivered travels again.
    fn doubt(&mut self, delivered: u64) {
        self.acknowledged = RangeSet::new();
        self.acknowledged.insert(0, delivered);
        self.delivered = delivered;
        self.unassigned.insert(delivered, self.length());
        self.stale = true;
    }

    /// A session is over: what it had not delivered travels again on the others (section 4.3.3).
    fn lose(&mut self, now: Instant, index: usize) {
        if self.is_over() {
            return;
        }
        self.take_back(index);
        self.sessions[index].chunks.clear();
        let gateway = self.sessions[index].gateway.clone();
        if !self.sessions[index].greeted {
            self.unused.push(self.sessions[index].join.session);
        }
        if self.sessions[index].state == State::Closed(Ending::Refused(SetAckStatus::Congested)) {
            // It was not tried.
            self.calls = self.calls.saturating_sub(1);
            self.congestion.said(now, self.config.congestion_backoff, gateway);
            self.call_next(now);
            self.stale = true;
            return;
        }
        self.congestion.forget(&gateway);
        self.leave(now, index, gateway);
        self.call_next(now);
        self.stale = true;
    }

    fn fail(&mut self, failure: Failure) {
        self.finish(Outcome::Failed(failure));
    }

    fn finish(&mut self, outcome: Outcome) {
        for session in &mut self.sessions {
            match outcome {
                Outcome::Delivered => session.release(&mut self.effects),
                Outcome::Failed(Failure::Cancelled) => session.cancel(Ending::Cancelled, &mut self.effects),
                Outcome::Failed(_) => session.cancel(Ending::Silent, &mut self.effects),
            }
        }
        self.end_control(outcome);
        self.drop_copy();
        self.waiting.clear();
        self.again.clear();
        self.congestion = Congestion::default();
        self.phase = Phase::Ended(outcome);
    }
}
