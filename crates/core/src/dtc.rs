//! Distributed TCP caching (Dunkels, Alonso, Voigt, Ritter: "Distributed TCP Caching for Wireless
//! Sensor Networks"): a forwarding node that caches a TCP segment and repeats it itself, so that a
//! loss does not cost a transmission over the whole path. The ends know nothing of it.
//!
//! A [`Node`] is asked about every TCP segment that the node forwards, in both directions, and
//! answers with a [`Verdict`]. The link layer's reports go to [`Node::handle_link`]; a link without
//! reports leaves it at the time-outs. What the node sends of its own comes out of
//! [`Node::poll_transmit`].
//!
//! Two behaviours differ by [`Config`] only: [`Config::paper`] is section IV, with the readings of
//! errata D10 to D16; [`Config::improved`] hands each segment from hop to hop under custody.
//!
//! Code map: `flow` and `table` find the connection, `connection` is its state, `cache` the
//! segments, `data` holds actions 1, 2 and 4, `ack` action 3, `sack` the signal between nodes.
//!
//! # What a node never does
//!
//! * It makes up no bytes and no acknowledgement: what it sends of its own, it has forwarded
//!   before.
//! * It holds back data only while it caches that very segment and sent it a moment ago (one local
//!   round trip), or when the receiver has acknowledged it; the latter a bounded number of times in
//!   a row. Data that carry an acknowledgement of something new always pass.
//! * It holds back an acknowledgement only if that tells the sender nothing new, the only gap it
//!   shows is cached here, locked, and its timer runs; and no longer than one local time-out.
//! * It repeats one segment [`Config::max_repeats`] times at most without a sign from the path.
//!
//! So whatever state a node has or has lost, a sender's own retransmission always gets through.

mod ack;
mod cache;
mod config;
mod connection;
mod counters;
mod data;
mod flow;
mod sack;
mod table;

pub use config::{
    AckCustody, Backoff, Chance, Config, Custody, Displacement, DuplicateAcks, FlyingStart, Ratio,
    SackForEnds, Signal, Suppression,
};
pub use counters::Counters;
pub use flow::FlowKey;

use crate::segment::{Flags, Options, SackBlocks, Segment};
use crate::time::{Duration, Instant};

use cache::Cache;
use connection::{Connection, Half};
use data::Fate;
use flow::{Key, Way};
use table::Table;

/// What is to happen to a segment that was handed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Forward it as it is.
    Forward,
    /// Forward it with these options instead of its own.
    Rewrite(Options),
    /// Do not forward it. To the link layer it has arrived all the same.
    Hold,
}

/// A segment that the node sends of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The addresses.
    pub flow: FlowKey,
    /// The segment: one from the cache, or an acknowledgement that was forwarded before.
    pub segment: Segment,
}

/// What a link layer with acknowledgements reports of a segment that it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The next hop has it.
    Acknowledged,
    /// The next hop may not have it: the link layer's time-out passed, its own repetitions
    /// included.
    TimedOut,
}

/// A forwarding node.
///
/// At most [`Config::connections`] connections are kept. A new one displaces the one that has been
/// silent for longest, if that is at least a second. If none has been, the segments of the new one
/// are cached like all others, but nothing is measured for it, held back or answered. State begins
/// with a SYN or with data, so that a node that comes late or has lost its state joins in; it ends
/// after both FINs are acknowledged, with RST, or after [`Config::idle`]. Cached segments of a
/// connection without state end with the next SYN between the same ends, or after [`Config::idle`].
///
/// A segment whose numbers do not fit its connection is only forwarded
/// ([`Counters::unacceptable`]): it may be stale or forged. Once the connection has been silent for
/// a second with nothing locked, such a segment begins it anew. An acknowledgement of more than was
/// seen frees the cached segments below it.
#[derive(Clone, Debug)]
pub struct Node {
    config: Config,
    table: Table,
    cache: Cache,
    counters: Counters,
    /// No connection is looked at for idleness before.
    sweep: Instant,
    /// No acknowledgement is due before.
    ack_alarm: Instant,
    /// At least so many acknowledgements wait to be polled, if not zero.
    acks_pending: usize,
}

impl Node {
    /// Bytes that the node keeps for each connection, beside its cached segments.
    pub const CONNECTION_MEMORY: usize = size_of::<Connection>() + size_of::<u32>();

    /// A node that has seen nothing.
    pub fn new(config: Config) -> Self {
        Self {
            table: Table::new(config.connections),
            cache: Cache::new(config.cache_segments),
            counters: Counters::default(),
            sweep: Instant::FAR_FUTURE,
            ack_alarm: Instant::FAR_FUTURE,
            acks_pending: 0,
            config,
        }
    }

    /// A segment has arrived that is to be forwarded. `random` is a fresh random word, for the
    /// cache's chance.
    pub fn handle_segment(&mut self, now: Instant, flow: FlowKey, segment: &Segment, random: u32) -> Verdict {
        self.counters.segments += 1;
        let (key, way) = Key::of(flow, segment);
        let Some(at) = self.admit(now, key, way, segment) else {
            self.counters.unacceptable += 1;
            self.acknowledged_beyond(&key, way, segment);
            return Verdict::Forward;
        };
        let stateless = at == Table::STATELESS;
        self.counters.stateless += u64::from(stateless);
        if segment.flags.contains(Flags::RST) {
            if !stateless {
                self.forget(at);
                self.counters.closed += 1;
            }
            return Verdict::Forward;
        }
        self.table.get_mut(at).last_seen = now;
        let mut options = segment.options;
        let syn = segment.flags.contains(Flags::SYN);
        if syn && !stateless {
            self.negotiate((at, way), segment, &mut options);
        }
        let mut fate = Fate::Pass;
        if segment.flags.contains(Flags::ACK) {
            fate = self.acknowledgement(now, (at, way), segment, &mut options);
        }
        if segment.seq_len() > 0 {
            fate = self.data(now, (at, way), segment, (&options, fate), random);
        }
        if self.table.get(at).without_sack[way.back() as usize] && !options.sack.is_empty() {
            options.sack = SackBlocks::EMPTY;
        }
        if self.table.get(at).is_over() {
            self.forget(at);
            self.counters.closed += 1;
        }
        if fate == Fate::Hold {
            return Verdict::Hold;
        }
        if options == segment.options {
            return Verdict::Forward;
        }
        if syn || options.sack.is_empty() {
            self.counters.sack_rewritten += 1;
        }
        Verdict::Rewrite(options)
    }

    /// The connection of a segment, a new one if the segment can begin one and there is room, or a
    /// blank state. `None` if it claims to be of a connection that it does not fit.
    #[inline]
    fn admit(&mut self, now: Instant, key: Key, way: Way, segment: &Segment) -> Option<usize> {
        let reset = segment.flags.contains(Flags::RST);
        if let Some(at) = self.table.find(&key) {
            let connection = self.table.get(at);
            if connection.accepts(way, segment) {
                return Some(at);
            }
            if reset || connection.is_live(now) || self.cache.locks(&key) {
                return None;
            }
            // The same ends, but another connection.
            self.forget(at);
            self.counters.closed += 1;
        }
        let acks = segment.flags.contains(Flags::ACK);
        let opens = segment.flags.contains(Flags::SYN) && !acks;
        let joins = !segment.payload.is_empty() && acks;
        if opens {
            self.cache.forget_former(&key, segment.seq);
        }
        if reset || !(opens || joins) {
            return Some(self.table.find_or_blank(key, now));
        }
        if self.table.is_full() {
            // A connection that was silent for a second has little under way that a cache could
            // repeat. Evicting a live one would let any sender of one segment take the cached
            // segments of another connection.
            let oldest = self.table.stalest().filter(|at| !self.table.get(*at).is_live(now));
            let Some(oldest) = oldest else { return Some(self.table.find_or_blank(key, now)) };
            self.table.remove(oldest);
            self.counters.evicted += 1;
        }
        self.sweep = self.sweep.min(now + self.config.idle);
        Some(self.table.insert(Connection::new(key, now)))
    }

    /// An acknowledgement of data that took another route, as after a change of routes, does not
    /// fit the state. The receiver has the cached segments below it all the same. A forged one
    /// costs cached copies, nothing else.
    fn acknowledged_beyond(&mut self, key: &Key, way: Way, segment: &Segment) {
        let [acknowledges, opens, resets] =
            [Flags::ACK, Flags::SYN, Flags::RST].map(|f| segment.flags.contains(f));
        if acknowledges
            && !(opens || resets)
            && self.table.find(key).is_some_and(|at| self.table.get(at).half(way).fits(segment.seq))
        {
            self.cache.acknowledged((key, way.back()), segment.ack);
        }
    }

    fn forget(&mut self, at: usize) {
        self.cache.forget(&self.table.get(at).key);
        self.table.remove(at);
        if self.table.len() == 0 {
            self.ack_alarm = Instant::FAR_FUTURE;
            if self.cache.slots().is_empty() {
                self.sweep = Instant::FAR_FUTURE;
            }
        }
    }

    /// SYN and SYN-ACK: who speaks SACK (the end of section IV-B). The first node that sees a SYN
    /// without SACK-permitted offers it, and takes the option from what goes back.
    fn negotiate(&mut self, (at, way): (usize, Way), segment: &Segment, options: &mut Options) {
        let connection = self.table.get_mut(at);
        // A SYN behind the handshake is a straggler, or forged.
        let late = connection.half(way).is_answered();
        if segment.flags.contains(Flags::ACK) {
            if !late {
                connection.sack_spoken = options.sack_permitted;
            }
            if connection.without_sack[way.back() as usize] {
                options.sack_permitted = false;
            }
            return;
        }
        let offered = Options { sack_permitted: true, ..*options };
        let fits = offered.wire_len() <= ack::MAX_OPTIONS;
        let offered_before = connection.without_sack[way as usize];
        let add = if late { offered_before } else { self.config.sack == SackForEnds::Add };
        let offer = add && !options.sack_permitted && fits;
        connection.without_sack[way as usize] = if late { offered_before } else { offer };
        if offer {
            *options = offered;
        }
    }

    /// What the node sends of its own next. Data come before acknowledgements.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(place) = self.cache.slots().iter().position(|slot| slot.pending) {
            let (flow, segment) = self.repeat_from_cache(now, place);
            return Some(Transmit { flow, segment });
        }
        if self.acks_pending == 0 {
            return None;
        }
        self.repeat_ack(now).map(|(flow, segment)| Transmit { flow, segment })
    }

    /// When to call [`Node::handle_timeout`]; it may turn out that there is nothing to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        let local = self.cache.slots().iter().filter_map(|slot| slot.deadline);
        let next = local.fold(self.sweep.min(self.ack_alarm), Instant::min);
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Time has passed: local time-outs, acknowledgements that were not followed, connections that
    /// are idle.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.local_timeouts(now);
        self.ack_timeouts(now);
        if self.sweep > now {
            return;
        }
        while let Some(at) = self.table.idle(now, self.config.idle) {
            self.forget(at);
            self.counters.expired += 1;
        }
        self.cache.expire(now, self.config.idle);
        let cached = self.cache.slots().iter().map(|slot| if slot.is_locked() { now } else { slot.sent_at });
        let oldest = self.table.iter().map(|c| c.last_seen).chain(cached).min();
        self.sweep = oldest.map_or(Instant::FAR_FUTURE, |seen| seen + self.config.idle);
    }

    /// What the node has done.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections that have state.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// The smoothed local round trip: from here to the destination of that flow and back.
    pub fn local_rtt(&self, flow: FlowKey, segment: &Segment) -> Option<Duration> {
        let (key, way) = Key::of(flow, segment);
        self.table.get(self.table.find(&key)?).half(way).srtt()
    }

    /// The local time-out of a segment that was repeated so often.
    fn local_rto(&self, half: &Half, repeats: u8) -> Duration {
        let base = half.srtt().map_or(self.config.initial_rto, |srtt| self.config.local_rto.of(srtt));
        let base = base.max(self.config.min_rto).max(FLOOR);
        match self.config.backoff {
            Backoff::Constant => base,
            Backoff::Double => {
                let late = repeats.saturating_sub(self.config.immediate_repeats);
                base * (1 << late.min(MAX_SHIFT))
            }
        }
    }
}

/// No time-out is shorter, whatever the configuration says: time must move on.
const FLOOR: Duration = Duration::from_micros(1);
/// Enough doublings for any patience.
const MAX_SHIFT: u8 = 16;
