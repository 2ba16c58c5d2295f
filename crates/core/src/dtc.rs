//! Distributed TCP caching (Dunkels, Alonso, Voigt, Ritter: "Distributed TCP Caching for Wireless
//! Sensor Networks"). A forwarding node caches TCP segments and retransmits a lost one itself, so
//! that a loss does not cost a transmission over the whole path. The endpoints need no change.
//!
//! The driver passes every TCP segment that the node forwards, in both directions, to a [`Node`]
//! and obeys its [`Verdict`]. The link layer's reports go to [`Node::handle_link`]; over a link
//! without reports the node relies on time-outs alone. [`Node::poll_transmit`] returns the segments
//! that the node itself originates.
//!
//! Two behaviours differ by [`Config`] only: [`Config::paper`] is section IV, with the readings of
//! errata D10 to D16; [`Config::improved`] hands each segment from hop to hop under custody.
//!
//! Code map: `flow` and `table` find the connection, `connection` is its state, `cache` holds the
//! segments, `data` implements actions 1, 2 and 4, `ack` action 3, and `sack` the signal between
//! nodes.
//!
//! # Guarantees to the endpoints
//!
//! * A node never invents data or acknowledgements. Every segment that it originates is one that it
//!   forwarded before.
//! * A node holds back a data segment in two cases only. Either it caches that very segment and
//!   sent it less than one local round trip ago, or the receiver has acknowledged the segment; the
//!   latter a bounded number of times in a row. A data segment with a new acknowledgement always
//!   passes.
//! * A node holds back an acknowledgement only if it tells the sender nothing new and the only gap
//!   that it shows is cached here, locked, and has a running timer. It does so for at most one
//!   local time-out.
//! * A node retransmits one segment at most [`Config::max_repeats`] times without a sign from the
//!   path.
//!
//! Whatever state a node has or has lost, a sender's own retransmission therefore gets through.

mod ack;
mod cache;
mod config;
mod connection;
mod counters;
mod data;
mod flow;
mod index;
mod sack;
mod table;

pub use config::{
    AckCustody, Backoff, Chance, Config, Custody, Displacement, DuplicateAcks, FlyingStart, Ratio,
    SackForEnds, Samples, Signal, Suppression, Timeouts, Validation,
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

/// What the driver must do with a segment that it has passed to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Forward the segment unchanged.
    Forward,
    /// Forward the segment with these options in place of its own.
    Rewrite(Options),
    /// Do not forward the segment. The link layer still treats it as delivered.
    Hold,
}

/// A segment that the node itself originates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Source and destination addresses.
    pub flow: FlowKey,
    /// The segment: a cached one, or an acknowledgement that the node forwarded before.
    pub segment: Segment,
}

/// A report of a link layer with acknowledgements about a segment that it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The next hop has received the segment.
    Acknowledged,
    /// The next hop may not have received the segment: the link layer's time-out has passed, its
    /// own retransmissions included.
    TimedOut,
}

/// A forwarding node that caches segments.
///
/// The node keeps at most [`Config::connections`] connections. A new connection displaces the one
/// that has been silent the longest, if that silence is at least one second. Otherwise the new
/// connection has no state: its segments are cached like all others, but the node measures no round
/// trip for it and neither holds back nor originates segments.
///
/// State begins with a SYN or with data, so a node that joins late or has lost its state resumes.
/// It ends when both FINs are acknowledged, with RST, or after [`Config::idle`]. Cached segments of
/// a connection without state are dropped with the next SYN between the same endpoints, or after
/// [`Config::idle`].
///
/// The node only forwards a segment whose sequence numbers do not fit its connection
/// ([`Counters::unacceptable`]): it may be stale or forged. If the connection has been silent for
/// one second and has no locked segments, such a segment starts the connection anew. An
/// acknowledgement beyond the data seen so far frees the cached segments below it.
#[derive(Clone, Debug)]
pub struct Node {
    config: Config,
    table: Table,
    cache: Cache,
    counters: Counters,
    /// The earliest time at which a connection can expire.
    sweep: Instant,
    /// The earliest time at which a held acknowledgement can be due.
    ack_alarm: Instant,
    /// At most this many acknowledgements wait to be polled, none of them of a connection before
    /// `acks_from`.
    acks_pending: u32,
    acks_from: u32,
}

impl Node {
    /// Memory for each connection in bytes, without its cached segments. A node for more than
    /// [`Node::ALLOCATED_CONNECTIONS`] has an index besides, of at most 22 bytes for each.
    pub const CONNECTION_MEMORY: usize = size_of::<Connection>();

    /// Memory for each cached segment in bytes, without its payload, in three allocations.
    pub const SEGMENT_MEMORY: [usize; 3] = Cache::SEGMENT_MEMORY;

    /// Largest [`Config::connections`] for which all memory of connections is allocated at the
    /// start; more are allocated on use.
    pub const ALLOCATED_CONNECTIONS: usize = Table::SMALL;

    /// Largest [`Config::cache_segments`] for which all memory of segments but their payload is
    /// allocated at the start; more is allocated on use.
    pub const ALLOCATED_SEGMENTS: usize = Cache::SMALL;

    /// Creates a node without connections.
    pub fn new(config: Config) -> Self {
        Self {
            table: Table::new(config.connections.max(1)),
            cache: Cache::new(config.cache_segments),
            counters: Counters::default(),
            sweep: Instant::FAR_FUTURE,
            ack_alarm: Instant::FAR_FUTURE,
            acks_pending: 0,
            acks_from: 0,
            config,
        }
    }

    /// Handles an arriving segment that is to be forwarded. `random` is a fresh random word; the
    /// cache uses it for [`Config::cache_chance`].
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
        // A reset always passes, because only its endpoint can judge it.
        if segment.flags.contains(Flags::RST) {
            if !stateless {
                self.forget(at);
                self.counters.closed += 1;
            }
            return Verdict::Forward;
        }
        self.table.touch(at, now);
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
        // The node has added SACK-permitted for this sender, which would not understand the blocks.
        if !options.sack.is_empty() && self.table.get(at).half(way.back()).has(Half::WITHOUT_SACK) {
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

    /// Finds the state of a segment's connection: an existing one, a new one if the segment can
    /// begin a connection and the table has room, or a blank state. `None` if the segment does not
    /// fit its connection.
    #[inline]
    fn admit(&mut self, now: Instant, key: Key, way: Way, segment: &Segment) -> Option<usize> {
        let reset = segment.flags.contains(Flags::RST);
        if let Some(at) = self.table.find(&key) {
            let connection = self.table.get(at);
            if connection.accepts(way, segment, &self.config) {
                return Some(at);
            }
            if reset || connection.is_live(now) || self.cache.locks(&key) {
                return None;
            }
            // The addresses and ports are the same, but this is another connection.
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
            return Some(self.stateless(key, now));
        }
        if self.table.len() >= self.config.connections.max(1) {
            // A connection that was silent for a second has few segments in flight that a cache
            // could repeat. Evicting a live connection would let any sender of one segment displace
            // the cached segments of another connection.
            let oldest = self.table.stalest().filter(|at| !self.table.get(*at).is_live(now));
            let Some(oldest) = oldest else { return Some(self.stateless(key, now)) };
            self.remove(oldest);
            self.counters.evicted += 1;
        }
        self.sweep = self.sweep.min(now + self.config.idle);
        Some(self.table.insert(Connection::new(key, now, self.cache.flows(&key))))
    }

    /// The index of a blank state for a connection that has none.
    fn stateless(&mut self, key: Key, now: Instant) -> usize {
        self.table.set_stateless(Connection::new(key, now, self.cache.flows(&key)))
    }

    /// The index of a connection, or of a blank state.
    fn find_or_blank(&mut self, key: Key, now: Instant) -> usize {
        self.table.find(&key).unwrap_or_else(|| self.stateless(key, now))
    }

    /// The cached segments of one direction of a connection.
    #[inline]
    fn flow(&self, (at, way): (usize, Way)) -> u32 {
        let Connection { key, flows, .. } = self.table.get(at);
        let flow = self.cache.flow(flows[way as usize], (key, way));
        debug_assert_eq!(flow, self.cache.flows(key)[way as usize], "{key:?}");
        flow
    }

    /// Frees cached segments below an acknowledgement that does not fit the state, as after a
    /// change of routes: the data took another route, and the receiver has it. A forged
    /// acknowledgement costs cached copies and nothing else.
    fn acknowledged_beyond(&mut self, key: &Key, way: Way, segment: &Segment) {
        let [acknowledges, opens, resets] =
            [Flags::ACK, Flags::SYN, Flags::RST].map(|f| segment.flags.contains(f));
        if acknowledges
            && !(opens || resets)
            && let Some(at) = self.table.find(key)
            && self.table.get(at).half(way).fits_data(segment, &self.config)
        {
            let flow = self.flow((at, way.back()));
            self.cache.acknowledged(flow, segment.ack, self.config.flight);
        }
    }

    fn forget(&mut self, at: usize) {
        for way in [Way::FromFirst, Way::FromSecond] {
            self.cache.forget(self.flow((at, way)));
        }
        self.remove(at);
        if self.table.len() == 0 {
            self.ack_alarm = Instant::FAR_FUTURE;
            if self.cache.len() == 0 {
                self.sweep = Instant::FAR_FUTURE;
            }
        }
    }

    fn remove(&mut self, at: usize) {
        self.table.remove(at);
        // The last connection takes the index.
        self.acks_from = self.acks_from.min(at as u32);
    }

    /// Negotiates SACK on SYN and SYN-ACK (end of section IV-B). The first node that sees a SYN
    /// without SACK-permitted adds the option, and removes it from the SYN-ACK on the way back.
    fn negotiate(&mut self, (at, way): (usize, Way), segment: &Segment, options: &mut Options) {
        let connection = self.table.get_mut(at);
        // A SYN after the handshake is a late duplicate or forged.
        let late = connection.half(way).is_answered();
        if !late {
            connection.half_mut(way.back()).set_scale(options.window_scale);
        }
        if segment.flags.contains(Flags::ACK) {
            if !late {
                connection.set_speaks_sack(options.sack_permitted);
            }
            if connection.half(way.back()).has(Half::WITHOUT_SACK) {
                options.sack_permitted = false;
            }
            return;
        }
        let offered = Options { sack_permitted: true, ..*options };
        let fits = offered.wire_len() <= ack::MAX_OPTIONS;
        let offered_before = connection.half(way).has(Half::WITHOUT_SACK);
        let add = if late { offered_before } else { self.config.sack == SackForEnds::Add };
        let offer = add && !options.sack_permitted && fits;
        connection.half_mut(way).set(Half::WITHOUT_SACK, if late { offered_before } else { offer });
        if offer {
            *options = offered;
        }
    }

    /// Returns the next segment that the node originates. Data comes before acknowledgements.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(place) = self.cache.take_pending() {
            let (flow, segment) = self.repeat_from_cache(now, place);
            return Some(Transmit { flow, segment });
        }
        self.repeat_ack(now).map(|(flow, segment)| Transmit { flow, segment })
    }

    /// When to call [`Node::handle_timeout`]. The call may find nothing to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        let local = self.cache.next_timer().map_or(Instant::FAR_FUTURE, |(at, _)| at);
        let next = local.min(self.sweep).min(self.ack_alarm);
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Handles expired timers: local time-outs, acknowledgements that were not followed by data,
    /// and idle connections.
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
        let cached = self.cache.iter().map(|slot| if slot.is_locked() { now } else { slot.sent_at });
        let stalest = self.table.stalest().map(|at| self.table.get(at).last_seen);
        let oldest = cached.chain(stalest).min();
        self.sweep = oldest.map_or(Instant::FAR_FUTURE, |seen| seen + self.config.idle);
    }

    /// What the node has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of connections with state.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Number of cached segments, and their payload in bytes.
    pub fn cached(&self) -> (usize, usize) {
        (self.cache.len(), self.cache.octets())
    }

    /// Smoothed local round-trip time: from this node to the destination of the flow and back.
    pub fn local_rtt(&self, flow: FlowKey, segment: &Segment) -> Option<Duration> {
        let (key, way) = Key::of(flow, segment);
        self.table.get(self.table.find(&key)?).half(way).srtt()
    }

    /// The local time-out of a segment that was retransmitted `repeats` times.
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

/// Lower bound of every time-out, whatever the configuration says: a zero time-out would let a
/// driver loop without time advancing.
const FLOOR: Duration = Duration::from_micros(1);
/// Upper bound of doublings; keeps the shift in range.
const MAX_SHIFT: u8 = 16;
