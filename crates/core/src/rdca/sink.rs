//! The sink: one machine for all senders.

mod event;
mod peer;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use anabranch_wire::rdca::{
    Data, Expected, Header, Message, Piece, Refuse, RefuseReason, Reply, Request, StreamId, TimeStamp,
    VERSION,
};
use bytes::Bytes;

use super::config::{ShareReport, SinkConfig};
use super::crowd::Crowd;
use super::deadlines::Deadlines;
use super::reorder::{Placed, Pool, Ready};
use super::shares::{HELD_BACK, SILENT, Shares};
use super::stream::{Common, Stream};
use super::trip::as_micros;
use crate::time::{Duration, Instant};
pub use event::{Mark, PeerId, SinkCounters, SinkEvent, StreamEnd};
use peer::{Asked, Peer};

/// The sink for up to [`SinkConfig::senders`] senders.
///
/// Order of calls: any `handle_*` and commands, then `poll_transmit` and `poll_event` until `None`,
/// then `next_timeout`.
#[derive(Debug)]
pub struct Sink {
    config: SinkConfig,
    /// Number of the next stream.
    next_id: StreamId,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    slots: BTreeMap<PeerId, usize>,
    deadlines: Deadlines,
    pool: Pool,
    talkers: VecDeque<usize>,
    /// Answers that do not belong to a stream.
    answers: VecDeque<(PeerId, Message)>,
    events: VecDeque<SinkEvent>,
    shares: Shares,
    crowd: Crowd,
    counters: SinkCounters,
}

impl Sink {
    /// Creates a sink without senders. Stream numbers start at `epoch`; senders detect a restart of
    /// the sink by them. `epoch` must therefore be random, or exceed that of the sink's previous
    /// run by more than the number of its streams.
    pub fn new(config: SinkConfig, epoch: u32) -> Self {
        Self {
            config,
            next_id: StreamId(epoch),
            peers: Vec::new(),
            free: Vec::new(),
            slots: BTreeMap::new(),
            deadlines: Deadlines::default(),
            pool: Pool::new(config.held_packets, config.held_bytes),
            talkers: VecDeque::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            shares: Shares::default(),
            crowd: Crowd::default(),
            counters: SinkCounters::default(),
        }
    }

    /// Memory for each sender in bytes, without its out-of-order packets and their places.
    pub const PER_SENDER: usize =
        size_of::<Option<Peer>>() + size_of::<(Instant, u32)>() + 4 * size_of::<usize>();
    /// Memory for each out-of-order packet in bytes, without its payload.
    pub const PER_HELD: usize = Pool::PLACE;

    /// Handles a datagram from `peer`.
    pub fn handle_datagram(&mut self, now: Instant, peer: PeerId, datagram: &Bytes) {
        let header = self.config.header;
        let expected = match header {
            Header::Ours => Expected::default(),
            // The printed header has short numbers, which are completed from the expected ones.
            Header::Printed => self.expected(now, peer),
        };
        match header.decode(datagram, expected) {
            Ok(message) => self.handle_message(now, peer, &message),
            Err(_) => self.counters.malformed += 1,
        }
    }

    /// The next expected numbers of `peer`, as far as they are known.
    fn expected(&self, now: Instant, peer: PeerId) -> Expected {
        let entry = self.slots.get(&peer).and_then(|slot| self.peers[*slot].as_ref());
        let expected = |stream, seq, (stamp, at): (TimeStamp, Instant)| {
            let since = as_micros(now.saturating_since(at));
            Expected { stream, seq, time: TimeStamp(stamp.0.wrapping_add(since)) }
        };
        match entry {
            Some(Peer { asked: Some(asked), .. }) => expected(asked.id, asked.first, asked.clock),
            Some(Peer { stream: Some(s), .. }) => expected(s.id, s.packets.end(), s.last_stamp),
            _ => Expected::default(),
        }
    }

    /// Handles a decoded message from `peer`.
    pub fn handle_message(&mut self, now: Instant, peer: PeerId, message: &Message) {
        let (stream, want_answer) = match message {
            Message::Request(request) => return self.handle_request(now, peer, request),
            Message::Data(data) => (data.stream, true),
            Message::Probe(probe) => (probe.stream, true),
            Message::Gone(gone) => (gone.stream, false),
            Message::Reset(stream) => (*stream, false),
            Message::Reply(_)
            | Message::Snack(_)
            | Message::Congestion(_)
            | Message::Confirm(_)
            | Message::Refuse(_) => {
                self.counters.strange += 1;
                return;
            }
        };
        let Some(slot) = self.slot_of(now, peer, stream) else {
            self.counters.strange += 1;
            if want_answer {
                self.refuse(peer, RefuseReason::UnknownStream, stream.0);
            }
            return;
        };
        if let Message::Data(data) = message
            && !self.make_room(now, slot, data)
        {
            self.counters.no_room += 1;
            return self.attend(now, slot);
        }
        let Some(Peer { stream: Some(stream), heard, .. }) = &mut self.peers[slot] else { return };
        *heard = now;
        match message {
            Message::Data(data) => {
                let placed = stream.handle_data(now, &self.config, &mut self.pool, &mut self.crowd, data);
                self.count(placed);
                self.deliver(now, slot, matches!(placed, Placed::Next).then_some(data));
                if let Some(Peer { stream: Some(stream), .. }) = &mut self.peers[slot]
                    && (data.confirm || data.last)
                {
                    stream.confirm(now);
                }
            }
            Message::Probe(probe) => {
                stream.handle_probe(now, &mut self.pool, probe);
                self.deliver(now, slot, None);
            }
            Message::Gone(gone) => {
                if let Some(range) = stream.handle_gone(&mut self.pool, gone.ranges.as_slice()) {
                    let range = stream.pieces.gone(&mut self.pool, range);
                    self.events.push_back(SinkEvent::Gone { peer, range });
                }
                self.deliver(now, slot, None);
            }
            // Only a reset remains.
            _ => self.end(slot, StreamEnd::Reset),
        }
        if self.config.share == ShareReport::Told && self.shares.is_due(now) {
            self.count_shares(now);
        }
        if self.config.share == ShareReport::Told && self.crowd.is_due(now, self.config.lossy) {
            self.share(now);
        }
        self.attend(now, slot);
    }

    /// Aborts the stream of `peer`.
    pub fn abort(&mut self, peer: PeerId) {
        let Some(slot) = self.slots.get(&peer).copied() else { return };
        if let Some(Peer { stream: Some(stream), .. }) = &self.peers[slot] {
            self.answers.push_back((peer, Message::Reset(stream.id)));
        }
        self.end(slot, StreamEnd::Aborted);
        self.forget(slot);
    }

    /// The position of `peer` in its stream after the events that [`Sink::poll_event`] has
    /// returned, if no event is left. `None` without a stream.
    pub fn mark(&self, peer: PeerId) -> Option<Mark> {
        let stream = self.peers[*self.slots.get(&peer)?].as_ref()?.stream.as_ref()?;
        Some(Mark { stream: stream.id, next: stream.delivered() })
    }

    /// The owner has stored all packets of `peer` before `mark`
    /// ([`Confirmation::Stored`](super::Confirmation)). No effect if that stream has ended.
    pub fn stored(&mut self, now: Instant, peer: PeerId, mark: Mark) {
        let Some(slot) = self.slots.get(&peer).copied() else { return };
        if let Some(Peer { stream: Some(stream), .. }) = &mut self.peers[slot]
            && stream.id == mark.stream
        {
            stream.store(mark.next);
            self.attend(now, slot);
        }
    }

    /// Returns the next datagram to send and its destination, until `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PeerId, Message)> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let (share, waits) = (self.crowd.interval(now), self.crowd.waits(self.config.lossy));
        let crowd = share > 0;
        let share = if crowd { share } else { self.shares.interval() };
        let common = Common { share, crowd, waits: waits && self.config.share == ShareReport::Told };
        while let Some(slot) = self.talkers.front().copied() {
            if let Some(peer) = &mut self.peers[slot]
                && let Some(message) =
                    peer.speak(now, &self.config, common, &mut self.pool, &mut self.counters)
            {
                return Some((peer.id, message));
            }
            self.talkers.pop_front();
            if let Some(peer) = &mut self.peers[slot] {
                peer.queued = false;
                self.set_deadline(slot);
            }
        }
        None
    }

    /// Returns the next event for the application, until `None`.
    pub fn poll_event(&mut self) -> Option<SinkEvent> {
        self.events.pop_front()
    }

    /// When to call [`Sink::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| at)
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, slot)) = self.deadlines.first()
            && at <= now
        {
            let Some(peer) = &self.peers[slot] else {
                self.deadlines.set(slot, None);
                continue;
            };
            if now >= peer.expires(&self.config) {
                self.end(slot, StreamEnd::Idle);
                self.forget(slot);
            } else {
                self.talk(slot);
                // A due message is sent by `poll_transmit`, which sets the deadline again
                // afterwards.
                let expires = self.peers[slot].as_ref().map(|peer| peer.expires(&self.config));
                self.deadlines.set(slot, expires);
            }
        }
    }

    /// Number of senders that are served or remembered.
    pub fn senders(&self) -> usize {
        self.slots.len()
    }

    /// Number of packets held out of order for all senders.
    pub fn held(&self) -> usize {
        self.pool.used()
    }

    /// Counters since the start.
    pub fn counters(&self) -> SinkCounters {
        self.counters
    }

    fn handle_request(&mut self, now: Instant, peer: PeerId, request: &Request) {
        if request.version != VERSION {
            return self.refuse(peer, RefuseReason::Version, request.incarnation.0);
        }
        let Some(slot) = self.slots.get(&peer).copied().or_else(|| self.admit(now, peer)) else {
            return self.refuse(peer, RefuseReason::NoRoom, request.incarnation.0);
        };
        let Some(entry) = &mut self.peers[slot] else { return };
        let incarnation = request.incarnation;
        let known = match (&entry.stream, &entry.asked) {
            (Some(stream), _) if stream.incarnation == incarnation => Some(stream.id),
            (_, Some(asked)) if asked.incarnation == incarnation => Some(asked.id),
            _ => None,
        };
        let stream = known.unwrap_or_else(|| {
            let id = self.next_id;
            self.next_id = StreamId(id.0.wrapping_add(1));
            entry.asked = Some(Asked { incarnation, id, first: request.first, clock: (request.time, now) });
            id
        });
        let rtt = Stream::estimate(now, request.time);
        entry.reply = Some(Reply { incarnation, stream, echo: request.time, rtt });
        // A request may be an old one that arrives late, so it does not keep an existing stream
        // alive.
        if entry.stream.is_none() {
            entry.heard = now;
        }
        self.attend(now, slot);
    }

    /// Finds `stream` of `peer`. Data of a requested stream makes it the current one.
    fn slot_of(&mut self, now: Instant, peer: PeerId, stream: StreamId) -> Option<usize> {
        let slot = *self.slots.get(&peer)?;
        let entry = self.peers[slot].as_mut()?;
        if entry.stream.as_ref().is_some_and(|present| present.id == stream) {
            return Some(slot);
        }
        let asked = entry.asked.filter(|asked| asked.id == stream)?;
        self.end(slot, StreamEnd::Replaced);
        let entry = self.peers[slot].as_mut()?;
        entry.asked = None;
        entry.heard = now;
        entry.stream = Some(Stream::new(asked.id, asked.incarnation, asked.first, &self.config));
        self.events.push_back(SinkEvent::Opened { peer, first: asked.first });
        Some(slot)
    }

    /// Finds a place for a new sender: a free one, or that of the stream that ended first.
    fn admit(&mut self, now: Instant, id: PeerId) -> Option<usize> {
        if self.slots.len() >= self.config.senders {
            let over = |(slot, peer): (usize, &Option<Peer>)| {
                let peer = peer.as_ref()?;
                peer.stream.as_ref().is_some_and(|s| s.ended).then_some((peer.heard, slot))
            };
            let (_, slot) = self.peers.iter().enumerate().filter_map(over).min()?;
            self.forget(slot);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() - 1
        });
        self.peers[slot] =
            Some(Peer { id, asked: None, stream: None, reply: None, heard: now, queued: false });
        self.slots.insert(id, slot);
        Some(slot)
    }

    /// Counts the congested senders and their packets of the last period.
    fn count_shares(&mut self, now: Instant) {
        let (mut members, mut packets) = (0, 0_u32);
        for Peer { stream, heard, .. } in self.peers.iter_mut().flatten() {
            let Some(stream) = stream else { continue };
            let carried = core::mem::take(&mut stream.carried);
            stream.before = carried;
            let held_back = stream.held_back.is_some_and(|at| now.saturating_since(at) < HELD_BACK);
            if held_back && !stream.ended && now.saturating_since(*heard) < SILENT {
                members += 1;
                packets = packets.saturating_add(carried);
            }
        }
        self.shares.close(now, members, packets);
    }

    /// Notifies the senders that exceed their share, when the packets of all senders wait.
    fn share(&mut self, now: Instant) {
        fn stream(peer: &Option<Peer>) -> Option<&Stream> {
            peer.as_ref().and_then(|peer| peer.stream.as_ref()).filter(|stream| !stream.ended)
        }
        // The median keeps a single sender with a wrong round-trip time from deciding for all.
        let mut trips: Vec<_> = self.peers.iter().filter_map(stream).map(|s| s.rtt(&self.config)).collect();
        if trips.is_empty() {
            return;
        }
        let middle = trips.len() / 2;
        let guard = *trips.select_nth_unstable(middle).1 + LEAST_GUARD;
        let carried = self.peers.iter().filter_map(stream).map(Stream::brought);
        let Some(level) = self.crowd.share(now, guard, carried) else { return };
        for slot in 0..self.peers.len() {
            let Some(Peer { stream: Some(stream), .. }) = &mut self.peers[slot] else { continue };
            let above = u64::from(stream.brought()) * 1024 > level;
            if !stream.ended && above && stream.is_spaced(&self.config) {
                stream.notify(now, &self.config);
                self.talk(slot);
            }
        }
    }

    fn count(&mut self, placed: Placed) {
        match placed {
            Placed::Next | Placed::Held => self.counters.packets += 1,
            Placed::Known => self.counters.duplicates += 1,
            Placed::NoRoom => self.counters.no_room += 1,
        }
    }

    /// Finds room for the next piece of incomplete data. Without room a stream whose own data has
    /// stalled is forgotten; its sender is told so and begins another one with what is not
    /// confirmed. Returns `false` if there is none: then the packet is requested again.
    fn make_room(&mut self, now: Instant, slot: usize, data: &Data) -> bool {
        while self.lacks_room(slot, data) {
            let Some(stalled) = self.stalled(now, slot) else {
                if let Some(Peer { stream: Some(stream), heard, .. }) = &mut self.peers[slot] {
                    *heard = now;
                    stream.packets.extend(data.seq + 1, now + NO_ROOM, &self.pool);
                }
                return false;
            };
            self.end(stalled, StreamEnd::Idle);
            self.forget(stalled);
        }
        true
    }

    /// Whether `data` is the next piece of incomplete data, and there is no room for it. The last
    /// piece needs none.
    fn lacks_room(&self, slot: usize, data: &Data) -> bool {
        let Some(Peer { stream: Some(stream), .. }) = &self.peers[slot] else { return false };
        let is_kept = matches!(data.piece, Piece::First | Piece::Middle);
        is_kept && data.seq == stream.packets.next() && !self.pool.has_room(data.payload.len())
    }

    /// The sender other than that of `slot` whose incomplete data has stalled for longest.
    fn stalled(&self, now: Instant, slot: usize) -> Option<usize> {
        let since = |(other, peer): (usize, &Option<Peer>)| {
            let since = peer.as_ref()?.stream.as_ref()?.pieces.stalled_since()?;
            (other != slot && now.saturating_since(since) >= STALLED).then_some((since, other))
        };
        self.peers.iter().enumerate().filter_map(since).min().map(|(_, other)| other)
    }

    /// Delivers packets that are in order, and detects the end of the stream. `data` is the packet
    /// just received if it is the next in order.
    fn deliver(&mut self, now: Instant, slot: usize, data: Option<&Data>) {
        let Some(Peer { id, stream: Some(stream), .. }) = &mut self.peers[slot] else { return };
        let (peer, events) = (*id, &mut self.events);
        let mut next = data.map(|data| Ready::Packet(data.seq, data.piece, data.payload.clone()));
        let pool = &mut self.pool;
        while let Some(ready) = next.take().or_else(|| stream.packets.pop(pool)) {
            let (gone, whole) = match ready {
                Ready::Packet(seq, piece, payload) => stream.pieces.take(now, pool, (seq, piece, payload)),
                Ready::Gone(range) => (Some(stream.pieces.gone(pool, range)), None),
            };
            events.extend(gone.map(|range| SinkEvent::Gone { peer, range }));
            events.extend(whole.map(|(seq, payload)| SinkEvent::Packet { peer, seq, payload }));
        }
        if stream.is_complete() && !stream.ended {
            let gone = stream.pieces.give_up(pool, stream.packets.next());
            events.extend(gone.map(|range| SinkEvent::Gone { peer, range }));
            stream.confirm(now);
            self.end(slot, StreamEnd::Complete);
        }
    }

    /// Ends the stream of `slot`, unless it has already ended.
    fn end(&mut self, slot: usize, end: StreamEnd) {
        let Some(Peer { id, stream: Some(stream), .. }) = &mut self.peers[slot] else { return };
        let next = stream.delivered();
        if !stream.ended {
            stream.ended = true;
            self.events.push_back(SinkEvent::Ended { peer: *id, end, next });
        }
        stream.packets.clear(&mut self.pool);
        stream.pieces.give_up(&mut self.pool, next);
        if end != StreamEnd::Complete
            && let Some(peer) = &mut self.peers[slot]
        {
            peer.stream = None;
        }
    }

    /// Frees the place of a sender.
    fn forget(&mut self, slot: usize) {
        self.deadlines.set(slot, None);
        if let Some(peer) = self.peers[slot].take() {
            self.slots.remove(&peer.id);
            self.talkers.retain(|talker| *talker != slot);
            self.free.push(slot);
        }
    }

    /// Called after every change of a sender: it may have a message to send or a new deadline.
    fn attend(&mut self, now: Instant, slot: usize) {
        if self.peers[slot].as_ref().is_some_and(|peer| peer.wants_to_speak(now, &self.config, &self.pool)) {
            self.talk(slot);
        }
        self.set_deadline(slot);
    }

    fn talk(&mut self, slot: usize) {
        if let Some(peer) = &mut self.peers[slot]
            && !peer.queued
        {
            peer.queued = true;
            self.talkers.push_back(slot);
        }
    }

    fn set_deadline(&mut self, slot: usize) {
        let Some(peer) = &self.peers[slot] else { return };
        let expires = peer.expires(&self.config);
        let due = peer.due(&self.config, &self.pool).map_or(expires, |at| at.min(expires));
        self.deadlines.set(slot, Some(due));
    }

    fn refuse(&mut self, peer: PeerId, reason: RefuseReason, answers: u32) {
        // Bounds the answers to a flood of messages.
        if self.answers.len() < MOST_ANSWERS {
            self.counters.refusals += 1;
            self.answers.push_back((peer, Message::Refuse(Refuse { reason, answers })));
        }
    }
}

/// Least time between two computations of the shares; bounds the work, which covers all senders.
const LEAST_GUARD: Duration = Duration::from_millis(100);
/// Incomplete data may lose its room if no piece of it has come for this time.
const STALLED: Duration = Duration::from_secs(5);
/// When a packet is requested again that has found no room.
const NO_ROOM: Duration = Duration::from_millis(500);
/// Largest number of waiting answers to unknown senders.
const MOST_ANSWERS: usize = 64;
