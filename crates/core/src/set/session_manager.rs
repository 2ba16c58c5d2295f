//! The sender's session manager (the paper's SM at CN, sections 4.2 to 4.7). It sends the request
//! to the node, opens sessions one after another while data already flows on the first, stripes the
//! file over them, recovers from losses, and closes the sessions.

mod adaptive;
mod config;
mod congestion;
mod control;
mod decision;
mod farewell;
mod moments;
mod recovery;
mod stripe;
mod turns;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use anabranch_wire::set::{
    Accept, Ack, Gateway, Join, MAX_COPY, Plan, RefuseReason, SetAckStatus, TransferId,
};
use bytes::Bytes;

use self::adaptive::Adaptive;
pub use self::config::{OpenWhen, Recovery, Reinjection, SenderConfig, Start};
use self::congestion::Congestion;
use self::control::{Busy, Control, Copy, ack_end};
pub use self::decision::{StripingChoice, StripingDecision, StripingReason};
use self::farewell::{Farewell, Held};
pub use self::moments::{Moments, PhaseSpan, TransferPhase};
use self::turns::Turns;
use super::file::File;
use super::gateways;
use super::ranges::RangeSet;
use super::stream::{Effect, StreamEvent, StreamId, StreamStatus};
use super::striping::{AnyStriping, PathView};
use super::tcp_manager::{Common, Ending, Notice, State, TcpManager};
use crate::time::{Duration, Instant};

/// Largest number of sessions under the keys of one request: the number takes one byte, and
/// [`u8::MAX`] denotes the control stream.
pub const MAX_SESSIONS: usize = u8::MAX as usize;

/// Reason for the failure of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The node did not answer the request.
    #[error("the node did not answer the request")]
    NodeUnreachable,
    /// The node refused, for a reason that also excludes plain TCP.
    #[error("the node refused the transfer: {}", why(*.0))]
    Refused(RefuseReason),
    /// The node holds this many bytes of another, unfinished file. That transfer must be completed
    /// or discarded first.
    #[error("the node holds {0} bytes of an unfinished transfer of another file")]
    Unfinished(u64),
    /// The node's gateway table is empty.
    #[error("the node knows no gateway")]
    NoGateway,
    /// All sessions ended before the file was delivered.
    #[error("every gateway was lost")]
    GatewaysLost,
    /// All remaining gateways are congested.
    #[error("every gateway is congested")]
    Congested,
    /// There was no progress within [`SenderConfig::stall`].
    #[error("nothing was delivered for too long")]
    Stalled,
    /// The node has violated the protocol.
    #[error("the node violated the protocol")]
    Protocol,
    /// The owner has cancelled the transfer.
    #[error("the transfer was cancelled")]
    Cancelled,
}

/// The text for a refusal in error messages.
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

/// Result of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The node has the whole file in order.
    Delivered,
    /// The transfer failed; see [`Sender::delivered`] for its progress.
    Failed(Failure),
}

/// Figures of one session, for reports.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// The gateway's id in the node's table.
    pub gateway: u16,
    /// Address at which the gateway accepts sessions.
    pub address: SocketAddr,
    /// State of the session.
    pub state: State,
    /// Bytes of the file assigned to the session, copies included.
    pub written: u64,
    /// Bytes of the file that the session has delivered to the node, copies included.
    pub delivered: u64,
    /// Bytes of the file in flight on the session.
    pub outstanding: u64,
    /// Delivery rate in bytes per second.
    pub rate: Option<u64>,
    /// Smoothed time from writing a chunk to the node's acknowledgement.
    pub latency: Option<Duration>,
    /// Time from opening the wired connection to SETACK.
    pub establishment: Option<Duration>,
    /// The wired stream.
    pub stream: StreamId,
}

/// A gateway without a session that may be called.
#[derive(Debug)]
struct Again {
    gateway: Gateway,
    /// Time of the call.
    at: Instant,
    /// When its session was lost; `None` if the gateway was not selected.
    lost: Option<Instant>,
}

/// Phase of a transfer.
#[derive(Debug)]
enum Phase {
    /// The request is under way.
    Requesting(Control),
    /// The file is sent as plain TCP on the control stream.
    Plain(Control),
    /// Sessions carry the file.
    Sessions,
    /// The transfer is over.
    Ended(Outcome),
}

/// The session manager of one transfer.
///
/// [`crate::set`] describes how to drive it; [`Sender::outcome`] tells when the transfer is over.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    node: SocketAddr,
    transfer: TransferId,
    /// Gateways named by the owner, which replace the node's table.
    via: Vec<Gateway>,
    /// Signed manifest of the file.
    manifest: Option<Bytes>,
    /// The sender buffer, shared by all sessions.
    file: File,
    phase: Phase,
    sessions: Vec<TcpManager>,
    /// Selected gateways without a session so far.
    waiting: VecDeque<Gateway>,
    /// Number of selected gateways, which SETSYN carries.
    selected: usize,
    /// Gateways without a session that may be called.
    again: VecDeque<Again>,
    /// Gateways that have reported congestion.
    congestion: Congestion,
    /// Calls since the last progress. The number of calls without a live session is limited.
    calls: usize,
    /// Index of the session called last.
    newest: usize,
    /// Session numbers used since the last request; earlier ones belong to other keys.
    numbers: usize,
    /// Used numbers with which no SETSYN was sent; they can be used again.
    unused: Vec<u8>,
    /// Whether any session has been open.
    opened: bool,
    /// Bytes that are not assigned to a session, or were taken back from one.
    unassigned: RangeSet,
    /// Bytes that the node holds.
    acknowledged: RangeSet,
    /// Bytes that the node has delivered in order.
    delivered: u64,
    /// Bytes that the node had in order before this sender sent any.
    resumed_from: u64,
    /// Size of the node's receive buffer (`B_2`) in bytes.
    buffer: u64,
    next_stream: u32,
    effects: VecDeque<Effect>,
    /// The copy of the file after the accepted request, while the node may acknowledge it.
    copy: Option<Copy>,
    /// Set after the node has answered that it is busy.
    busy: Option<Busy>,
    farewell: Farewell,
    /// When progress was last observed.
    progress: Instant,
    /// From then on the next session may be called even if the last has not answered.
    patience: Instant,
    request_time: Duration,
    request_started: Instant,
    /// When a chunk that holds up others becomes overdue.
    rescue_at: Option<Instant>,
    /// Whether anything has changed since the last striping.
    stale: bool,
    striping: AnyStriping,
    turns: Turns,
    adaptive: Adaptive,
    views: Vec<PathView>,
    moments: Moments,
}

impl Sender {
    /// Starts a transfer of `file` to `node`; the address contains the control port. Dials at once.
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
            turns: Turns::new(now),
            adaptive: Adaptive::default(),
            views: Vec::new(),
            moments: Moments::new(now),
        };
        sender.dial_control(now);
        sender
    }

    /// Sets the signed manifest of the file, at most [`MAX_MANIFEST`](crate::set::MAX_MANIFEST)
    /// bytes, for nodes that require one. The request carries it. Call this before any other
    /// method. A node that does not know manifests resets the stream.
    pub fn bring(&mut self, manifest: Option<Bytes>) {
        self.manifest = manifest;
    }

    /// Sets the gateways to use instead of the node's table; with an empty list the table applies.
    /// Call this before the node's answer arrives.
    pub fn go_through(&mut self, gateways: Vec<Gateway>) {
        self.via = gateways;
    }

    /// Cancels the transfer: its outcome is [`Failure::Cancelled`]. If a session can still tell the
    /// node, the node drops the transfer at once. No effect on a transfer that is over. See
    /// [`Sender::give_up`].
    pub fn cancel(&mut self, _now: Instant) {
        if !self.is_over() {
            self.fail(Failure::Cancelled);
        }
    }

    /// Handles an event of a stream.
    pub fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        self.route_stream(now, stream, event);
        self.note_moments(now);
    }

    fn route_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
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
        // The lost session may have been the only one that carried CANCEL.
        self.bid_farewell();
        self.stale = true;
    }

    /// Handles new figures of a stream.
    pub fn handle_status(&mut self, now: Instant, stream: StreamId, status: StreamStatus) {
        if self.control_stream() == Some(stream) {
            self.handle_control_status(now, status);
        } else if self.copy.as_ref().is_some_and(|copy| copy.stream == stream) {
            self.handle_copy_status(now, status);
        } else if let Some(session) = self.sessions.iter_mut().find(|s| s.stream == stream) {
            let before = session.status.in_flight.saturating_add(session.status.unsent);
            // A plain split connection has no session-layer acknowledgements; TCP's are the only
            // progress.
            if session.join.plan == Plan::Split && status.in_flight.saturating_add(status.unsent) < before {
                self.progress = now;
            }
            session.status = status;
            self.stale = true;
        }
    }

    /// Handles expired timers. See [`Sender::next_timeout`].
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
        self.note_moments(now);
    }

    /// When to call [`Sender::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        let sessions = self.sessions.iter().filter_map(TcpManager::next_timeout).min();
        let mut next = self.stall_deadline();
        for candidate in [
            sessions,
            self.control_timeout(),
            self.silence_timeout(),
            self.call_timeout(),
            self.rescue_at,
            self.turns.at,
        ] {
            next = next.min(candidate.unwrap_or(Instant::FAR_FUTURE));
        }
        Some(next)
    }

    /// Returns the next effect for the driver, until `None`.
    pub fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        // Striping runs once after a batch of events, not after each of them.
        if self.effects.is_empty() && self.stale {
            self.stale = false;
            if matches!(self.phase, Phase::Sessions) {
                self.stripe(now);
                self.note_moments(now);
            }
        }
        self.effects.pop_front()
    }

    /// The result of the transfer, once it is over.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Ended(outcome) => Some(outcome),
            Phase::Requesting(_) | Phase::Plain(_) | Phase::Sessions => None,
        }
    }

    /// Whether a connection is open that can carry the file, or the file was delivered without one.
    pub fn is_established(&self) -> bool {
        match self.phase {
            Phase::Requesting(_) => false,
            Phase::Plain(_) => true,
            Phase::Sessions => self.sessions.iter().any(|s| s.state == State::Opened),
            Phase::Ended(outcome) => outcome == Outcome::Delivered,
        }
    }

    /// Bytes that the node is known to have delivered in order.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Size of the node's receive buffer in bytes, as reported in ACCEPT; 0 before.
    pub fn node_buffer(&self) -> u64 {
        self.buffer
    }

    /// The gateway of a session's stream.
    pub fn gateway_of(&self, stream: StreamId) -> Option<&Gateway> {
        self.sessions.iter().find(|session| session.stream == stream).map(|session| &session.gateway)
    }

    /// Bytes that the node had in order before this sender sent any.
    pub fn resumed_from(&self) -> u64 {
        self.resumed_from
    }

    /// Figures of each session, in the order of calls.
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

    /// Fails the transfer for lack of progress. If only the copy after the request was left, the
    /// lack of gateways is the reason instead.
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
        // A gateway may take long to forward its data, and the node's answer may take long to
        // return. TCP on the wireless half may be at its longest time-outs, and resets the session
        // when it gives up.
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
                // Only the first opening counts as progress: a session that opens and is lost
                // repeatedly must not postpone the stall time-out.
                if !core::mem::replace(&mut self.opened, true) {
                    self.progress = now;
                }
                self.congestion.forget(&self.sessions[index].gateway);
                self.congestion.none_since = None;
            }
            Notice::Closed => self.lose(now, index),
            Notice::Refused(reason) => self.fail(Failure::Refused(reason)),
            Notice::Read(ack) => {
                let turns = &mut self.turns;
                self.sessions[index].handle_received(now, ack.received, |stamp, octets| {
                    turns.acknowledged(now, index, stamp, octets);
                });
                self.acknowledge(now, &ack);
            }
        }
    }

    /// The node has accepted the request: starts sessions for the missing bytes.
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
            // After a renewal only the session numbers are new; the remaining gateways stay.
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
        // Unselected gateways serve as a reserve for the time when all selected ones are lost.
        let spare = table.iter().filter(|g| !chosen.contains(g)).cloned();
        self.again = spare.map(|gateway| Again { gateway, at: now, lost: None }).collect();
        self.waiting = chosen.into();
        self.call_next(now);
        self.stale = true;
    }

    /// Calls the next gateway if the last call was answered or `patience` has elapsed. Calls
    /// unselected gateways only when no session is left.
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
                // Waiting for a congested gateway does not count as a stall.
                self.progress = now;
            }
            self.call(now, gateway, None);
        } else if none_alive && self.again.is_empty() {
            self.lack_room(now);
        }
    }

    /// Whether one session can take all remaining data at once. Further sessions then only carry
    /// copies, so no call has to wait for another.
    fn is_nearly_given(&self) -> bool {
        self.unassigned.is_empty() || self.length() <= MAX_COPY
    }

    /// Whether the last call delays the next one.
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
        // A request that lost its gateway may have taken long. That says nothing of the next
        // gateway, so the request time is capped.
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
        // The node's answer took two round trips; a chunk should take no longer.
        session.estimate.suppose(self.request_time);
        session.lost = lost;
        // A gateway has one entry in the list, however often it is called.
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

    /// Requests new session numbers from the node. Each number may be used once under the same
    /// keys, and all are used. Every request has its own keys and numbers, so this sends a new
    /// request once no session is left.
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
        let is_whole = self.acknowledged.octets() == self.length();
        if new > 0 {
            self.note_acknowledged(now, is_whole);
        }
        if is_whole {
            match ack.delivered == self.length() {
                true => self.finish(Outcome::Delivered),
                false => self.doubt(ack.delivered),
            }
        }
    }

    /// Handles acknowledgements that cover all bytes although `delivered` is smaller. The node
    /// delivers everything before it acknowledges the last byte, so a bit of an earlier
    /// acknowledgement must have been corrupted. All undelivered bytes are sent again.
    fn doubt(&mut self, delivered: u64) {
        self.acknowledged = RangeSet::new();
        self.acknowledged.insert(0, delivered);
        self.delivered = delivered;
        self.unassigned.insert(delivered, self.length());
        self.stale = true;
    }

    /// Handles the end of a session: its undelivered bytes are reassigned to the others (section
    /// 4.3.3).
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
            // A congested gateway was not tried, so the call does not count.
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
