//! The node's session manager (the paper's SM at SN, sections 4.2 to 4.6). It accepts or refuses
//! the request, puts chunks in order, acknowledges them, and divides its receive buffer among the
//! sessions.
//!
//! It holds at most the size of the buffer out of order, whatever the sender does: a chunk that
//! ends beyond the buffer violates the protocol and resets its stream.

mod queue;
mod reorder;
mod request;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use anabranch_wire::set::{
    self as wire, Ack, Decoder, Gateway, Item, Join, MAX_COPY, MAX_RANGES, Message, Plan, RefuseReason,
    Request, TransferId,
};
use bytes::Bytes;

use self::queue::Queue;
pub use self::queue::SenderId;
pub use self::reorder::Holding;
use self::reorder::{Reorder, Waiting};
use self::request::Asking;
use super::buffers::{self, Quality, Rivals, ShareConfig, Sharing};
use super::stream::{Effect, StreamEvent, StreamId};
use crate::time::{Duration, Instant};

/// Upper bound of chunk header lengths in bytes, with a reserve: a copy may come in several chunks.
const MOST_HEADER: usize = 32;
/// A session is young until it has received this many times [`ReceiverConfig::ack_every`].
const YOUNG: u64 = 4;

/// The node's answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Answer"))]
pub enum Striping {
    /// ACK with the gateway table: the node accepts SET sessions.
    #[cfg_attr(feature = "serde", serde(rename = "ack"))]
    Supported,
    /// NACK: the file is sent as plain TCP through the default gateway.
    #[cfg_attr(feature = "serde", serde(rename = "nack"))]
    Refused,
}

/// The authority that permits a new transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// Every transfer is permitted and starts at byte 0.
    AtOnce,
    /// The owner of the node decides, and sets the first byte: see [`Receiver::asked`].
    Ask,
}

/// Options of a [`Receiver`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// Size of the receive buffer (`B_2`) for all sessions together, in bytes.
    pub buffer: u32,
    /// Receive window of a stream before its first message, in bytes.
    pub first_window: u32,
    /// Storage of bytes that wait for preceding ones.
    pub holding: Holding,
    /// Approximate limit of separate out-of-order pieces. A stream that exceeds it is reset, unless
    /// its piece is the next in order.
    pub pieces: usize,
    /// The gateway table (Table 1).
    pub gateways: Vec<Gateway>,
    /// Whether the node accepts SET sessions.
    pub striping: Striping,
    /// The authority that permits a new transfer.
    pub grant: Grant,
    /// Largest number of requests that wait while a transfer is in progress; they are served in
    /// order. When the queue is full, a new request displaces one of the sender with the most
    /// waiting requests.
    pub queue: usize,
    /// Division of the buffer among the sessions.
    pub share: ShareConfig,
    /// Bytes received on a session after which it is acknowledged at once.
    pub ack_every: u32,
    /// Longest delay of the acknowledgement of a complete chunk.
    pub ack_delay: Duration,
    /// Time without a new byte of the file after which a transfer gives way to another.
    pub idle: Duration,
    /// Largest manifest of a request in bytes; each connection may need this much additional
    /// memory. A request with a longer manifest is refused with [`RefuseReason::LongManifest`].
    pub manifest: usize,
    /// Bytes of a file after its request that the node holds while it waits for the owner's
    /// decision; a longer copy is ignored. With 0 the node accepts no copy on a control stream.
    pub copy: usize,
    /// Largest number of connections that hold part of a manifest at the same time. A further one
    /// resets the oldest.
    pub manifests: usize,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            buffer: 64_000,
            first_window: 1_000,
            holding: Holding::Pieces,
            // The number of 128-byte chunks in a buffer of 4 MB.
            pieces: 32_768,
            gateways: Vec::new(),
            striping: Striping::Supported,
            grant: Grant::AtOnce,
            queue: 16,
            share: ShareConfig {
                sharing: Sharing::Overcommitted,
                period: Duration::from_millis(250),
                gain: 64,
                segment: 81,
            },
            ack_every: 2 * 1440,
            ack_delay: Duration::from_millis(40),
            idle: Duration::from_secs(60),
            manifest: 0,
            manifests: usize::MAX,
            copy: MAX_COPY as usize + 2 * MOST_HEADER,
        }
    }
}

impl ReceiverConfig {
    /// The node as printed: the shares of the sessions sum to the buffer.
    pub fn paper() -> Self {
        let modern = Self::default();
        Self { share: ShareConfig { sharing: Sharing::Divided, ..modern.share }, ..modern }
    }
}

/// Counters of a [`Receiver`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverCounters {
    /// Bytes received more than once.
    pub duplicate_octets: u64,
    /// Largest number of bytes held out of order.
    pub held_peak: u64,
    /// Streams that were reset because of their content.
    pub rejected: u64,
}

/// Purpose of a stream.
#[derive(Debug)]
enum Role {
    /// The first message has not arrived.
    Fresh(Decoder),
    /// A request waits for the owner's decision.
    Asking,
    /// The control stream of an accepted request. The sender may cancel this transfer on it.
    Accepted(TransferId),
    /// A copy of the whole file after an accepted request.
    Copy(Decoder),
    /// A SET session.
    Session(Session),
    /// The rest of the file as plain bytes, from this offset on.
    Plain { at: u64 },
    /// No more data is expected before the end of the stream.
    Ending,
}

#[derive(Debug)]
struct Session {
    decoder: Decoder,
    quality: Quality,
    limit: u32,
    /// Bytes of chunks received so far.
    received: u64,
    /// Bytes received since the last acknowledgement on this session.
    pending: u64,
    ack_due: Option<Instant>,
}

#[derive(Debug)]
struct Transfer {
    /// The request that started the transfer.
    request: Request,
    reorder: Reorder,
    /// Number of sessions that the sender intends to open.
    sessions: usize,
    /// When the transfer started, or the last new byte arrived.
    news: Instant,
    next_share: Instant,
}

/// The session manager of a node. It handles one transfer at a time.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    streams: BTreeMap<StreamId, Role>,
    transfer: Option<Transfer>,
    waiting: Waiting,
    /// A transfer that waits for the owner's decision.
    asking: Option<Asking>,
    queue: Queue,
    /// The sender identity of a stream, as last set by the driver.
    introduced: Option<(StreamId, SenderId)>,
    /// Since when there has been no transfer.
    freed: Instant,
    /// Why the owner has rejected the last transfer. Sessions of that transfer may still be
    /// opening.
    given_up: Option<RefuseReason>,
    next_stream: u32,
    effects: VecDeque<Effect>,
    counters: ReceiverCounters,
}

impl Receiver {
    /// Memory for one stream in bytes, without a partly received header.
    pub const STREAM_OCTETS: usize = size_of::<(StreamId, Role)>();

    /// Memory for each request in the queue in bytes.
    pub const WAITING_OCTETS: usize = Queue::ENTRY;

    /// Creates a node without a transfer.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            waiting: Waiting::new(config.holding, config.buffer),
            queue: Queue::new(config.queue),
            config,
            streams: BTreeMap::new(),
            transfer: None,
            asking: None,
            introduced: None,
            freed: Instant::ZERO,
            given_up: None,
            next_stream: 0,
            effects: VecDeque::new(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Sets the gateway table announced from now on.
    pub fn set_gateways(&mut self, gateways: Vec<Gateway>) {
        self.config.gateways = gateways;
    }

    /// Handles an accepted connection of a sender, or of a gateway on its behalf; returns the
    /// stream.
    pub fn handle_accepted(&mut self, _now: Instant) -> StreamId {
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        self.streams.insert(stream, Role::Fresh(Decoder::of_node_with(self.config.manifest)));
        let octets = self.config.first_window.min(self.config.buffer);
        self.effects.push_back(Effect::LimitReceive { stream, octets });
        stream
    }

    /// Sets the sender of the next request on `stream`, whose identity the driver has verified.
    /// Call this right before passing the bytes of the request.
    pub fn introduce(&mut self, stream: StreamId, sender: SenderId) {
        self.introduced = Some((stream, sender));
    }

    /// Handles an event of a stream.
    pub fn handle_stream(&mut self, now: Instant, stream: StreamId, event: StreamEvent) {
        match event {
            StreamEvent::Opened => {}
            StreamEvent::Data(octets) => self.read(now, stream, octets),
            StreamEvent::Ended => {
                // A stream that was reset in the meantime must not be added again.
                if let Some(role) = self.streams.get_mut(&stream) {
                    *role = Role::Ending;
                    self.effects.push_back(Effect::Shutdown { stream });
                }
            }
            StreamEvent::Closed(_) => {
                self.streams.remove(&stream);
                self.share();
            }
        }
    }

    /// Handles expired timers. See [`Receiver::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.share_due().is_some_and(|due| due <= now) {
            self.end_share_period(now);
        }
        let due: Vec<StreamId> =
            self.ack_times().filter(|(_, at)| *at <= now).map(|(stream, _)| stream).collect();
        due.into_iter().for_each(|stream| self.acknowledge(stream));
    }

    /// When to call [`Receiver::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        let ack = self.ack_times().map(|(_, at)| at).min();
        match (ack, self.share_due()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the next effect for the driver, until `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        // Bytes in the ring are delivered before the effects that were queued after them. `Deliver`
        // effects at the front were taken from the ring earlier and come first of all.
        match self.effects.front() {
            Some(Effect::Deliver { .. }) => self.effects.pop_front(),
            _ => self.pop_waiting().or_else(|| self.effects.pop_front()),
        }
    }

    /// The request that started the current transfer.
    pub fn present(&self) -> Option<&Request> {
        self.transfer.as_ref().map(|t| &t.request)
    }

    /// The current transfer and its bytes delivered in order.
    pub fn delivered(&self) -> Option<(TransferId, u64)> {
        self.transfer.as_ref().map(|t| (t.request.transfer, t.reorder.delivered()))
    }

    /// Whether the current transfer is complete.
    pub fn is_complete(&self) -> bool {
        self.transfer.as_ref().is_some_and(|t| t.reorder.is_complete())
    }

    /// When the current transfer counts as lost: it is incomplete, none of its streams is open, and
    /// it has received no new byte for [`ReceiverConfig::idle`].
    pub fn lost_at(&self) -> Option<Instant> {
        let transfer = self.transfer.as_ref().filter(|t| !t.reorder.is_complete())?;
        let is_open = |role: &Role| matches!(role, Role::Session(_) | Role::Copy(_) | Role::Plain { .. });
        (!self.streams.values().any(is_open)).then(|| transfer.news + self.config.idle)
    }

    /// Drops the current transfer and a request that waits for the owner, drops all effects, and
    /// resets all streams. Unlike [`Receiver::abort`], it allocates no memory except for the
    /// effects and does not tell the sender why.
    pub fn reset(&mut self, now: Instant) {
        self.effects.clear();
        self.asking = None;
        self.forget(now);
        // One by one: dropping the map would free its memory, which a small node would have to
        // allocate again.
        while let Some((stream, _)) = self.streams.pop_first() {
            self.effects.push_back(Effect::Abort { stream });
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    fn ack_times(&self) -> impl Iterator<Item = (StreamId, Instant)> + '_ {
        self.sessions().filter_map(|(stream, session)| Some((stream, session.ack_due?)))
    }

    fn read(&mut self, now: Instant, stream: StreamId, octets: Bytes) {
        match self.streams.get_mut(&stream) {
            None | Some(Role::Ending) => {}
            Some(Role::Asking) => self.hold_copy(stream, &octets),
            Some(Role::Accepted(transfer)) => {
                let transfer = *transfer;
                self.read_farewell(now, stream, transfer, octets);
            }
            Some(Role::Copy(decoder)) => {
                decoder.push(octets);
                self.read_copy(now, stream);
            }
            Some(Role::Plain { at }) => {
                let start = *at;
                *at += octets.len() as u64;
                self.read_plain(now, stream, start, octets);
            }
            Some(Role::Fresh(decoder)) => {
                decoder.push(octets);
                match decoder.next_item() {
                    Ok(None) if decoder.holds_manifest() => self.bound_manifests(stream),
                    Ok(None) => {}
                    Ok(Some(Item::LongManifest(_))) => {
                        self.refuse(stream, RefuseReason::LongManifest, Role::Ending);
                    }
                    Ok(Some(Item::Message(Message::Request(request)))) => {
                        let behind = core::mem::take(decoder).into_rest();
                        self.handle_request(now, stream, request);
                        if !behind.is_empty() {
                            self.read(now, stream, behind);
                        }
                    }
                    Ok(Some(Item::Message(Message::Join(join)))) => self.handle_join(now, stream, join),
                    Ok(Some(_)) | Err(_) => self.reject(stream),
                }
            }
            Some(Role::Session(session)) => {
                session.decoder.push(octets);
                self.read_session(now, stream);
            }
        }
    }

    /// Changes the role of a stream in place: an insertion into the map needs 1 kB more stack.
    fn set_role(&mut self, stream: StreamId, role: Role) {
        match self.streams.get_mut(&stream) {
            Some(place) => *place = role,
            None => drop(self.streams.insert(stream, role)),
        }
    }

    /// Resets the oldest connections with part of a manifest when there are too many, but never
    /// `latest`. A silent peer thus cannot keep others from sending requests.
    #[inline(never)]
    fn bound_manifests(&mut self, latest: StreamId) {
        let holds = |role: &Role| matches!(role, Role::Fresh(decoder) if decoder.holds_manifest());
        let holding = || self.streams.iter().filter(|(_, role)| holds(role));
        let excess = holding().count().saturating_sub(self.config.manifests.max(1));
        let oldest: Vec<StreamId> =
            holding().map(|(stream, _)| *stream).filter(|stream| *stream != latest).take(excess).collect();
        oldest.into_iter().for_each(|stream| self.reject(stream));
    }

    fn handle_join(&mut self, now: Instant, stream: StreamId, join: Join) {
        let Some(transfer) = self.transfer.as_mut().filter(|t| t.request.transfer == join.transfer) else {
            return match self.given_up {
                Some(reason) => self.dismiss(stream, reason),
                None => self.reject(stream),
            };
        };
        transfer.sessions = transfer.sessions.max(usize::from(join.sessions));
        transfer.next_share = buffers::next_period(&self.config.share, transfer.next_share, now);
        let Some(role) = self.streams.get_mut(&stream) else { return };
        let Role::Fresh(mut decoder) = core::mem::replace(role, Role::Ending) else { return };
        // A session carries no request, so its decoder gives back the memory for a manifest.
        decoder.take_no_manifest();
        if join.plan == Plan::Split {
            self.set_role(stream, Role::Plain { at: 0 });
            self.limit(stream, self.config.buffer);
            return self.read(now, stream, decoder.into_rest());
        }
        let session = Session {
            decoder,
            quality: Quality::default(),
            limit: 0,
            received: 0,
            pending: 0,
            ack_due: None,
        };
        self.set_role(stream, Role::Session(session));
        self.share();
        self.read_session(now, stream);
    }

    fn read_session(&mut self, now: Instant, stream: StreamId) {
        loop {
            let Some(Role::Session(session)) = self.streams.get_mut(&stream) else { return };
            match session.decoder.next_item() {
                Ok(None) => break,
                Ok(Some(Item::Data { offset, octets })) => {
                    let n = octets.len() as u64;
                    session.quality.received(n);
                    session.received += n;
                    session.pending += n;
                    if !self.store(now, offset, octets) {
                        return self.reject(stream);
                    }
                }
                Ok(Some(Item::Message(Message::Cancel))) => return self.forget(now),
                Ok(Some(_)) | Err(_) => return self.reject(stream),
            }
        }
        self.consider_ack(now, stream);
    }

    /// Reads a copy on a control stream. A copy is not a session: it has no share of the buffer,
    /// and it is acknowledged only when the file is complete.
    fn read_copy(&mut self, now: Instant, stream: StreamId) {
        loop {
            let Some(Role::Copy(decoder)) = self.streams.get_mut(&stream) else { return };
            match decoder.next_item() {
                Ok(None) => break,
                Ok(Some(Item::Data { offset, octets })) => {
                    if !self.store(now, offset, octets) {
                        return self.reject(stream);
                    }
                }
                Ok(Some(_)) | Err(_) => return self.reject(stream),
            }
        }
        if self.is_complete() {
            self.acknowledge(stream);
            self.set_role(stream, Role::Ending);
            self.acknowledge_sessions();
        }
    }

    /// Stores received bytes; returns false if they do not fit. One read may contain more than the
    /// buffer holds, so bytes that are in order are delivered before the rest is stored.
    fn store(&mut self, now: Instant, offset: u64, mut octets: Bytes) -> bool {
        let mut at = offset;
        while !octets.is_empty() {
            let room = |this: &Self| this.transfer.as_ref().map_or(0, |t| t.reorder.room_from(at));
            if room(self) < octets.len() {
                let is_deliver = |effect: &Effect| matches!(effect, Effect::Deliver { .. });
                let place = self.effects.iter().take_while(|effect| is_deliver(effect)).count();
                self.deliver_at(place);
            }
            let length = octets.len().min(room(self));
            let Some(transfer) = self.transfer.as_mut().filter(|_| length > 0) else { return false };
            let piece = octets.split_to(length);
            let Some(new) = transfer.reorder.insert(&mut self.waiting, at, piece) else { return false };
            // Duplicates do not count as progress: otherwise a sender could hold the node forever.
            if new > 0 {
                transfer.news = now;
            }
            at += length as u64;
            self.counters.duplicate_octets += length as u64 - new;
            self.counters.held_peak = self.counters.held_peak.max(transfer.reorder.held());
            if self.config.holding == Holding::Pieces {
                self.deliver_at(self.effects.len());
            }
        }
        true
    }

    /// Queues the bytes that are in order as effects, from position `place` on.
    fn deliver_at(&mut self, mut place: usize) {
        while let Some(effect) = self.pop_waiting() {
            self.effects.insert(place, effect);
            place += 1;
        }
    }

    fn pop_waiting(&mut self) -> Option<Effect> {
        let octets = self.transfer.as_mut()?.reorder.pop(&mut self.waiting)?;
        Some(Effect::Deliver { octets })
    }

    fn consider_ack(&mut self, now: Instant, stream: StreamId) {
        if self.is_complete() {
            return self.acknowledge_sessions();
        }
        // Half of a small buffer: beyond that the sender would wait for the acknowledgement.
        let every = u64::from(self.config.ack_every.min(self.config.buffer / 2));
        let delay = self.config.ack_delay;
        let Some(Role::Session(session)) = self.streams.get_mut(&stream) else { return };
        let whole = session.pending > 0 && session.decoder.is_between_messages();
        // The first chunks measure the session for the sender, so their acknowledgement is not
        // delayed.
        let young = session.received < every * YOUNG;
        if session.pending >= every || whole && (young || session.decoder.is_asked_at_once()) {
            self.acknowledge(stream);
        } else if whole {
            session.ack_due = session.ack_due.or(Some(now + delay));
        }
    }

    /// Acknowledges on all sessions: the file is complete, and the fastest path should tell the
    /// sender.
    fn acknowledge_sessions(&mut self) {
        let sessions: Vec<StreamId> = self.sessions().map(|(stream, _)| stream).collect();
        sessions.into_iter().for_each(|stream| self.acknowledge(stream));
    }

    fn acknowledge(&mut self, stream: StreamId) {
        let Some(transfer) = &self.transfer else { return };
        let (delivered, held) =
            (transfer.reorder.delivered(), transfer.reorder.ranges().take(MAX_RANGES).collect());
        let mut received = delivered;
        if let Some(Role::Session(session)) = self.streams.get_mut(&stream) {
            session.pending = 0;
            session.ack_due = None;
            received = session.received;
        }
        self.send(stream, &Message::Ack(Ack { delivered, received, held }));
    }

    fn read_plain(&mut self, now: Instant, stream: StreamId, start: u64, octets: Bytes) {
        if octets.is_empty() {
            return;
        }
        if self.store(now, start, octets) { self.finish_plain(stream) } else { self.reject(stream) }
    }

    /// Acknowledges a complete plain transfer once and closes its stream.
    fn finish_plain(&mut self, stream: StreamId) {
        if self.is_complete() {
            self.acknowledge(stream);
            self.effects.push_back(Effect::Shutdown { stream });
            self.set_role(stream, Role::Ending);
        }
    }

    fn reject(&mut self, stream: StreamId) {
        self.counters.rejected += 1;
        self.streams.remove(&stream);
        self.effects.push_back(Effect::Abort { stream });
    }

    fn send(&mut self, stream: StreamId, message: &Message) {
        self.effects.push_back(Effect::Write { stream, octets: encoded(message) });
    }

    fn limit(&mut self, stream: StreamId, octets: u32) {
        self.effects.push_back(Effect::LimitReceive { stream, octets });
    }

    fn sessions(&self) -> impl Iterator<Item = (StreamId, &Session)> + '_ {
        self.streams.iter().filter_map(|(stream, role)| match role {
            Role::Session(session) => Some((*stream, session)),
            Role::Fresh(_)
            | Role::Asking
            | Role::Accepted(_)
            | Role::Copy(_)
            | Role::Plain { .. }
            | Role::Ending => None,
        })
    }

    fn share_due(&self) -> Option<Instant> {
        let transfer = self.transfer.as_ref().filter(|t| !t.reorder.is_complete())?;
        // A single session has the whole buffer, whatever its quality.
        (self.sessions().count() > 1).then_some(transfer.next_share)
    }

    fn end_share_period(&mut self, now: Instant) {
        let share = self.config.share;
        if let Some(transfer) = &mut self.transfer {
            transfer.next_share = buffers::next_period(&share, transfer.next_share, now);
        }
        for role in self.streams.values_mut() {
            if let Role::Session(session) = role {
                session.quality.end_period(&share);
            }
        }
        self.share();
    }

    /// Updates the receive limit of every session.
    fn share(&mut self) {
        let Some(transfer) = &self.transfer else { return };
        let averages = || self.sessions().filter_map(|(_, s)| s.quality.average());
        let rivals = Rivals {
            // Until there are measurements, equal parts for the expected number of sessions.
            count: transfer.sessions.max(self.sessions().count()),
            total: averages().sum(),
            best: averages().max().unwrap_or(0),
        };
        let Self { config, streams, effects, .. } = self;
        for (stream, role) in streams.iter_mut() {
            let Role::Session(session) = role else { continue };
            let limit = buffers::share(&config.share, config.buffer, session.quality.average(), &rivals);
            // A change of less than a segment is not worth a new limit.
            if session.limit == 0 || limit.abs_diff(session.limit) >= config.share.segment {
                session.limit = limit;
                effects.push_back(Effect::LimitReceive { stream: *stream, octets: limit });
            }
        }
    }
}

fn encoded(message: &Message) -> Bytes {
    let ranges = if let Message::Ack(ack) = message { ack.held.len() } else { 0 };
    let mut octets = Vec::with_capacity(16 + 16 * ranges);
    wire::encode(message, &mut octets);
    octets.into()
}
