//! The sink: records of all senders, in order and without duplicates.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use anabranch_core::rdca::{
    Mark as StreamMark, PeerId, Sink, SinkConfig, SinkCounters, SinkEvent, StreamEnd,
};
use anabranch_core::time::Instant;
use anabranch_secure::NoEntropy;
use anabranch_secure::datagram::{
    Accepts, Credential, Name, PeerNumber, Refusal, Responder, ResponderCounters,
};
use anabranch_secure::small::Entropy;
use anabranch_wire::rdca::{Message, encode};
use bytes::Bytes;

use super::Record;
use super::ledger::{Ledger, Source};
use super::since_start;

/// An item for the output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The sender.
    pub source: Source,
    /// Its run.
    pub run: u64,
    /// Number of the next record after this item.
    pub next: u64,
    /// When the sink received it, in milliseconds since 1970.
    pub received: u64,
    /// The content.
    pub what: What,
}

/// Content of an [`Item`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The record with the number `next - 1`.
    Record {
        /// Time of creation in milliseconds since 1970 by the sender's clock; 0 if unknown.
        created: u64,
        /// The payload.
        payload: Bytes,
    },
    /// The records from this number on to `next - 1` are lost.
    Lost {
        /// Number of the first lost record.
        from: u64,
    },
    /// The run has ended, or is silent.
    Ended(Why),
}

/// Why a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The sender has closed it, and every record was delivered or reported.
    Complete,
    /// As complete, but the sender has given up records after the last one.
    Incomplete,
    /// The sender has restarted. Whether it had further records is unknown.
    Restarted,
    /// The sender has aborted it. It had further records, or did not wait for the confirmation.
    Aborted,
    /// The sender is silent. It may continue.
    Silent,
}

/// A position in a sender's stream, to be returned when all items up to it are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    peer: PeerNumber,
    mark: StreamMark,
}

/// Items, and the marks of the streams that they belong to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// The items, in order for each sender.
    pub items: Vec<Item>,
    /// One mark for each of their senders.
    pub marks: Vec<Mark>,
}

/// Counters of a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectorCounters {
    /// Records handed out.
    pub records: u64,
    /// Records received again, after a restart.
    pub duplicates: u64,
    /// Records reported as lost.
    pub lost: u64,
    /// Packets dropped because the output is too slow.
    pub held_back: u64,
    /// Records without a valid header.
    pub malformed: u64,
    /// Senders refused because their name belongs to another credential.
    pub usurped: u64,
}

#[derive(Debug)]
struct Peer {
    source: Source,
    run: u64,
    /// Whether packets were given up after the last record.
    has_gone: bool,
    is_touched: bool,
    is_forgotten: bool,
}

/// The sink of all senders. Order of calls: any `handle_*` and commands, then
/// [`Collector::poll_transmit`] until there is nothing, [`Collector::take`], then
/// [`Collector::next_timeout`].
#[derive(Debug)]
pub struct Collector {
    responder: Responder,
    sink: Sink,
    ledger: Ledger,
    peers: BTreeMap<PeerId, Peer>,
    items: Vec<Item>,
    touched: Vec<PeerId>,
    usurpers: VecDeque<(SocketAddr, Name)>,
    is_full: bool,
    counters: CollectorCounters,
    plain: Vec<u8>,
    message: Vec<u8>,
}

impl Collector {
    /// Creates a sink that accepts these senders. `ledger` has what earlier runs of this sink have
    /// stored.
    ///
    /// # Errors
    /// There is no entropy.
    pub fn new(
        now: Instant,
        config: SinkConfig,
        accepts: Accepts,
        ledger: Ledger,
        entropy: Entropy,
    ) -> Result<Self, NoEntropy> {
        let mut epoch = [0; 4];
        entropy(&mut epoch)?;
        Ok(Self {
            responder: Responder::new(since_start(now), accepts, config.senders, entropy)?,
            sink: Sink::new(config, u32::from_be_bytes(epoch)),
            ledger,
            peers: BTreeMap::new(),
            items: Vec::new(),
            touched: Vec::new(),
            usurpers: VecDeque::new(),
            is_full: false,
            counters: CollectorCounters::default(),
            plain: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Replaces the accepted senders.
    pub fn accept(&mut self, accepts: Accepts) {
        self.responder.accept(accepts);
        self.part();
    }

    /// While the output is behind, packets are dropped, and their senders keep them; other messages
    /// are answered, so that senders do not take the sink for lost.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Whether packets are dropped because the output is behind.
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Handles a datagram.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let at = since_start(now);
        let received = self.responder.handle(at, from, datagram, &mut self.plain);
        self.part();
        let Some(received) = received else { return };
        let id = PeerId(received.peer.0);
        if !self.peers.contains_key(&id) && !self.meet(id, received.peer, from) {
            return;
        }
        if !self.is_full {
            self.note_run(id, received.run);
        } else if !self.is_question() {
            self.counters.held_back += 1;
            return;
        }
        self.sink.handle_datagram(now, id, &Bytes::copy_from_slice(&self.plain));
        self.handle_events();
    }

    /// Whether the message asks for an answer and makes no item: a REQUEST or a PROBE.
    fn is_question(&self) -> bool {
        matches!(self.plain.first().map(|first| first >> 4), Some(0x1 | 0x7))
    }

    /// Ends the streams of senders that have lost their places.
    fn part(&mut self) {
        while let Some(number) = self.responder.poll_forgotten() {
            let id = PeerId(number.0);
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.is_forgotten = true;
            }
            self.sink.abort(id);
            self.handle_events();
            self.peers.remove(&id);
        }
    }

    /// Adds a sender. Returns `false` if its name belongs to another credential: no sender may
    /// write under the name of another one.
    fn meet(&mut self, id: PeerId, number: PeerNumber, from: SocketAddr) -> bool {
        let Some((credential, name)) = self.responder.sender(number) else { return false };
        let key = credential.fingerprint();
        if credential != Credential::None && self.ledger.key_of(&name).is_some_and(|known| known != key) {
            self.counters.usurped += 1;
            if self.usurpers.len() < MOST_USURPERS {
                self.usurpers.push_back((from, name));
            }
            return false;
        }
        let source = Source { name, key: key.into() };
        let run = self.ledger.runs(&source).and_then(|runs| runs.newest()).map_or(0, |(run, _, _)| run);
        self.peers.insert(id, Peer { source, run, has_gone: false, is_touched: false, is_forgotten: false });
        true
    }

    /// Reports the end of the previous run when a new one begins.
    fn note_run(&mut self, id: PeerId, run: u64) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let newest = self.ledger.runs(&peer.source).and_then(|runs| runs.newest());
        if newest.is_some_and(|(newest, _, _)| newest == run) {
            peer.run = run;
            return;
        }
        let source = peer.source.clone();
        (peer.run, peer.has_gone) = (run, false);
        if let Some((old, next, false)) = newest {
            self.push(
                id,
                Item {
                    source: source.clone(),
                    run: old,
                    next,
                    received: 0,
                    what: What::Ended(Why::Restarted),
                },
            );
        }
        let next = self.ledger.next(&source, run);
        self.ledger.advance(&source, run, next, false);
    }

    fn push(&mut self, id: PeerId, item: Item) {
        self.items.push(item);
        self.touch(id);
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.sink.poll_event() {
            match event {
                SinkEvent::Packet { peer, payload, .. } => self.handle_packet(peer, &payload),
                SinkEvent::Gone { peer, .. } => {
                    if let Some(peer) = self.peers.get_mut(&peer) {
                        peer.has_gone = true;
                    }
                }
                SinkEvent::Ended { peer, end, .. } => self.handle_end(peer, end),
                SinkEvent::Opened { .. } => {}
            }
        }
    }

    fn handle_packet(&mut self, id: PeerId, payload: &Bytes) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(record) = Record::decode(payload) else {
            self.counters.malformed += 1;
            return;
        };
        let (source, run) = (peer.source.clone(), peer.run);
        let expected = self.ledger.next(&source, run);
        // The packet counts as stored once all before it are, whether it is new or not.
        let Some(number) = record.number_near(expected) else {
            self.counters.duplicates += 1;
            return self.touch(id);
        };
        peer.has_gone = false;
        if number > expected {
            self.counters.lost += number - expected;
            let what = What::Lost { from: expected };
            self.push(id, Item { source: source.clone(), run, next: number, received: 0, what });
        }
        let next = number + 1;
        self.ledger.advance(&source, run, next, false);
        self.counters.records += 1;
        let what = What::Record { created: record.created, payload: record.payload };
        self.push(id, Item { source, run, next, received: 0, what });
    }

    fn touch(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(&id)
            && !std::mem::replace(&mut peer.is_touched, true)
        {
            self.touched.push(id);
        }
    }

    fn handle_end(&mut self, id: PeerId, end: StreamEnd) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let why = match end {
            _ if peer.is_forgotten => Why::Silent,
            StreamEnd::Complete if peer.has_gone => Why::Incomplete,
            StreamEnd::Complete => Why::Complete,
            StreamEnd::Reset | StreamEnd::Aborted => Why::Aborted,
            StreamEnd::Idle => Why::Silent,
            // A new stream of the same run repeats what was not confirmed; a new run is reported.
            StreamEnd::Replaced => return,
        };
        let (source, run) = (peer.source.clone(), peer.run);
        let next = self.ledger.next(&source, run);
        self.ledger.advance(&source, run, next, why != Why::Silent);
        self.push(id, Item { source, run, next, received: 0, what: What::Ended(why) });
    }

    /// Takes the items since the last call, with the marks to return when they are stored.
    /// `received` is the time of day in milliseconds since 1970.
    pub fn take(&mut self, received: u64) -> Option<Taken> {
        if self.touched.is_empty() {
            return None;
        }
        let mut marks = Vec::with_capacity(self.touched.len());
        for id in self.touched.drain(..) {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.is_touched = false;
            }
            marks.extend(self.sink.mark(id).map(|mark| Mark { peer: PeerNumber(id.0), mark }));
        }
        self.items.iter_mut().for_each(|item| item.received = received);
        Some(Taken { items: std::mem::take(&mut self.items), marks })
    }

    /// The output has all items that were taken before this mark, and the state has their numbers.
    pub fn stored(&mut self, now: Instant, mark: Mark) {
        self.sink.stored(now, PeerId(mark.peer.0), mark.mark);
    }

    /// Replaces `out` with the next datagram to send and returns its destination.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, datagram)) = self.responder.poll_transmit() {
            *out = datagram;
            return Some(to);
        }
        while let Some((peer, message)) = self.sink.poll_transmit(now) {
            self.message.clear();
            encode(&message, &mut self.message);
            debug_assert!(!matches!(message, Message::Data(_)));
            if let Ok(to) = self.responder.seal(since_start(now), PeerNumber(peer.0), &self.message, out) {
                return Some(to);
            }
        }
        None
    }

    /// When to call [`Collector::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        self.sink.next_timeout()
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sink.handle_timeout(now);
        self.handle_events();
    }

    /// Returns the next refused handshake.
    pub fn poll_refusal(&mut self) -> Option<Refusal> {
        self.responder.poll_refusal()
    }

    /// Returns the next sender whose name belongs to another credential.
    pub fn poll_usurper(&mut self) -> Option<(SocketAddr, Name)> {
        self.usurpers.pop_front()
    }

    /// What was taken of each sender.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Number of senders with a session.
    pub fn senders(&self) -> usize {
        self.responder.senders()
    }

    /// Number of packets held out of order.
    pub fn held(&self) -> usize {
        self.sink.held()
    }

    /// Counters of records, of RDCA, and of sessions.
    pub fn counters(&self) -> (CollectorCounters, SinkCounters, ResponderCounters) {
        (self.counters, self.sink.counters(), self.responder.counters())
    }
}

/// Refused names that wait for the owner.
const MOST_USURPERS: usize = 16;

#[cfg(test)]
mod tests {
    use anabranch_core::time::Duration;
    use anabranch_secure::datagram::Clear;
    use anabranch_secure::entropy;

    use super::super::{Sense, sender_config};
    use super::*;

    #[test]
    fn names_without_end_take_no_memory_without_end() {
        let (mut now, accepts) = (Instant::ZERO, Accepts { insecure: true, ..Accepts::default() });
        let config = SinkConfig::deployed(4, 1 << 16);
        let mut collector = Collector::new(now, config, accepts, Ledger::new(16), entropy).unwrap();
        let mut out = Vec::new();
        for number in 0..200 {
            now += Duration::from_secs(61);
            let (name, from) = (format!("s{number}").parse().unwrap(), ([127, 0, 0, 1], 1).into());
            let mut sense = Sense::new(sender_config(1232, 4), Clear, (&name, number), None, entropy);
            sense.open(now);
            sense.write(now, 0, b"x").unwrap();
            collector.handle_timeout(now);
            for _ in 0..8 {
                while sense.poll_transmit(now, &mut out) {
                    collector.handle_datagram(now, from, &out);
                }
                while collector.poll_transmit(now, &mut out).is_some() {
                    sense.handle_datagram(now, &out);
                }
            }
            assert!(collector.take(0).is_some_and(|taken| !taken.items.is_empty()), "{number}");
        }
        assert!(collector.peers.len() <= 4, "{}", collector.peers.len());
    }

    /// A sender in memory and what it needs to talk to a collector.
    struct Pair {
        sense: Sense<Clear>,
        from: SocketAddr,
        now: Instant,
    }

    impl Pair {
        fn new(number: u16, now: Instant) -> Self {
            let name = format!("s{number}").parse().unwrap();
            let config = sender_config(1232, 1024);
            let mut sense = Sense::new(config, Clear, (&name, number.into()), None, entropy);
            sense.open(now);
            Self { sense, from: ([127, 0, 0, 1], 1 + number).into(), now }
        }

        /// Lets this time pass. Datagrams that `lose` says are lost.
        fn run(&mut self, collector: &mut Collector, ms: u64, lose: impl Fn(&[u8]) -> bool) -> Vec<Item> {
            let (mut out, mut items) = (Vec::new(), Vec::new());
            for _ in 0..ms / 5 {
                self.now += Duration::from_millis(5);
                if self.sense.next_timeout().is_some_and(|at| at <= self.now) {
                    self.sense.handle_timeout(self.now);
                }
                collector.handle_timeout(self.now);
                while self.sense.poll_transmit(self.now, &mut out) {
                    if !lose(&out) {
                        collector.handle_datagram(self.now, self.from, &out);
                    }
                }
                while let Some(to) = collector.poll_transmit(self.now, &mut out) {
                    if to == self.from {
                        self.sense.handle_datagram(self.now, &out);
                    }
                }
                if let Some(taken) = collector.take(0) {
                    taken.marks.iter().for_each(|mark| collector.stored(self.now, *mark));
                    items.extend(taken.items);
                }
            }
            items
        }
    }

    fn collector(memory: usize) -> Collector {
        let accepts = Accepts { insecure: true, ..Accepts::default() };
        Collector::new(Instant::ZERO, SinkConfig::deployed(4, memory), accepts, Ledger::new(16), entropy)
            .unwrap()
    }

    /// Incomplete records fill the memory. What the sink drops it must not confirm.
    #[test]
    fn stalled_records_make_room_and_no_record_is_confirmed_and_lost() {
        let mut collector = collector(50_000);
        let mut hog = Pair::new(1, Instant::ZERO);
        hog.sense.write(Instant::ZERO, 0, &[1; 50_500]).unwrap();
        // Its last piece, which is shorter, does not arrive.
        let is_last = |datagram: &[u8]| (200..1100).contains(&datagram.len());
        assert_eq!(hog.run(&mut collector, 3000, is_last), []);
        let mut honest = Pair::new(2, hog.now);
        honest.sense.write(honest.now, 0, &[2; 3000]).unwrap();
        honest.sense.close(honest.now);
        let items = honest.run(&mut collector, 10_000, |_| false);
        let is_record =
            |item: &&Item| matches!(&item.what, What::Record { payload, .. } if payload.len() == 3000);
        assert_eq!(items.iter().filter(is_record).count(), 1, "{items:?}");
        assert!(!items.iter().any(|item| matches!(item.what, What::Lost { .. })), "{items:?}");
        assert_eq!(honest.sense.unconfirmed(), 1..1);
        // The stalled record arrives once its sender can.
        hog.now = honest.now;
        let items = hog.run(&mut collector, 20_000, |_| false);
        assert!(items.iter().any(|item| matches!(item.what, What::Record { .. })), "{items:?}");
    }

    #[test]
    fn a_sink_whose_output_is_away_takes_nothing_that_makes_items() {
        let mut collector = collector(1 << 20);
        Pair::new(1, Instant::ZERO).run(&mut collector, 100, |_| false);
        collector.set_full(true);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        for number in 0..50 {
            let mut pair = Pair::new(1, now);
            pair.sense = Sense::new(
                sender_config(1232, 4),
                Clear,
                (&"s1".parse().unwrap(), 100 + number),
                None,
                entropy,
            );
            pair.sense.open(now);
            pair.sense.write(now, 0, b"x").unwrap();
            assert_eq!(pair.run(&mut collector, 50, |_| false), []);
            pair.sense.abort();
            assert_eq!(pair.run(&mut collector, 50, |_| false), []);
            now = pair.now;
        }
        assert!(collector.counters().0.held_back > 0);
    }
}
