//! The cached segments with their locks and timers.

use alloc::vec::Vec;

use super::config::{Chance, Config, Displacement};
use super::connection::LARGEST_FLIGHT;
use super::flow::{Key, Way};
use crate::segment::{Flags, Segment, SeqNumber};
use crate::time::{Duration, Instant};

/// An occupied place of the cache.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) way: Way,
    pub(super) lock: Lock,
    /// Whether the node is to send the segment.
    pub(super) pending: bool,
    /// Whether the node has retransmitted the segment since it arrived.
    pub(super) repeated: bool,
    /// Number of retransmissions without a sign of success.
    pub(super) repeats: u8,
    /// When the segment last left the node.
    pub(super) sent_at: Instant,
    /// The local time-out, if it runs.
    pub(super) deadline: Option<Instant>,
    /// Since when acknowledgements are held back because of this segment.
    pub(super) holding_since: Option<Instant>,
    pub(super) segment: Segment,
}

/// Whether a cached segment may be overwritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lock {
    Open,
    Locked,
}

impl Slot {
    #[inline]
    pub(super) fn seq(&self) -> SeqNumber {
        self.segment.seq
    }

    #[inline]
    pub(super) fn end(&self) -> SeqNumber {
        self.segment.seq_end()
    }

    pub(super) fn is_locked(&self) -> bool {
        self.lock == Lock::Locked
    }

    #[inline]
    pub(super) fn is_of(&self, (key, way): (&Key, Way)) -> bool {
        self.way == way && self.key == *key
    }

    /// Whether a segment within the range of this one has the same content. If not, one of them is
    /// forged or belongs to another connection, and segments of an endpoint must pass.
    pub(super) fn agrees(&self, segment: &Segment) -> bool {
        let ours = &self.segment;
        let from = segment.seq.distance(ours.seq) as usize;
        let has = |segment: &Segment, flag| segment.flags.contains(flag);
        has(segment, Flags::SYN) == has(ours, Flags::SYN)
            && has(segment, Flags::FIN) <= has(ours, Flags::FIN)
            && segment.mptcp == ours.mptcp
            && ours.payload.get(from..from + segment.payload.len()) == Some(&segment.payload[..])
    }

    /// Updates the timestamp of the cached copy after the sender has retransmitted the segment.
    /// With the old timestamp the receiver might reject the copy forever (PAWS, RFC 7323 section
    /// 5), while the node holds back the valid retransmission.
    pub(super) fn refresh(&mut self, segment: &Segment) {
        if let (Some(ours), Some(theirs)) = (&mut self.segment.options.timestamps, segment.options.timestamps)
            && theirs.value.wrapping_sub(ours.value) as i32 > 0
        {
            *ours = theirs;
        }
    }

    /// Schedules a retransmission.
    pub(super) fn repeat(&mut self) {
        self.pending = true;
        self.repeats = self.repeats.saturating_add(1);
    }

    /// Locks the segment and sets its timer.
    pub(super) fn lock_until(&mut self, deadline: Instant) {
        self.lock = Lock::Locked;
        self.deadline = Some(deadline);
    }

    /// Unlocks the segment and stops its timer.
    pub(super) fn release(&mut self) {
        self.lock = Lock::Open;
        self.deadline = None;
        self.pending = false;
        self.repeats = 0;
    }
}

/// All places, at most [`Config::cache_segments`].
#[derive(Clone, Debug)]
pub(super) struct Cache {
    slots: Vec<Slot>,
    capacity: usize,
}

/// Where a new segment goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Into an empty place.
    Empty,
    /// In place of that segment.
    Instead(usize),
    /// The segment is not cached.
    None,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        // Allocated on use, so that a large capacity costs nothing at first.
        Self { slots: Vec::with_capacity(capacity.min(64)), capacity }
    }

    #[inline]
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    #[inline]
    pub(super) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// The place of that very segment, or of one that contains it.
    #[inline]
    pub(super) fn find(&self, flow: (&Key, Way), segment: &Segment) -> Option<usize> {
        let (seq, end) = (segment.seq, segment.seq_end());
        self.slots.iter().position(|s| s.seq().le(seq) && end.le(s.end()) && seq.lt(s.end()) && s.is_of(flow))
    }

    /// Chooses the place of a segment (action 1): an empty place if there is one; otherwise, by
    /// chance, the unlocked one that was sent longest ago. If all are locked, a lower sequence
    /// number may displace one, if the configuration allows it.
    #[inline]
    pub(super) fn place(&self, config: &Config, flow: (&Key, Way), seq: SeqNumber, draw: Draw) -> Place {
        if self.slots.len() < self.capacity {
            return Place::Empty;
        }
        let open = self.slots.iter().enumerate().filter(|(_, s)| !s.is_locked());
        if let Some((at, _)) = open.min_by_key(|(_, s)| s.sent_at) {
            return if draw.takes(config.cache_chance) { Place::Instead(at) } else { Place::None };
        }
        let lower = |s: &Slot| s.is_of(flow) && seq.lt(s.seq());
        match config.displacement {
            Displacement::ByLower => self.slots.iter().position(lower).map_or(Place::None, Place::Instead),
            Displacement::Never => Place::None,
        }
    }

    /// Stores a segment at the place returned by [`Cache::place`].
    #[inline]
    pub(super) fn put(&mut self, place: Place, slot: Slot) -> Option<&mut Slot> {
        match place {
            Place::Empty => {
                self.slots.push(slot);
                self.slots.last_mut()
            }
            Place::Instead(at) => {
                let old = self.slots.get_mut(at)?;
                *old = slot;
                Some(old)
            }
            Place::None => None,
        }
    }

    /// Empties a place; the last one takes its index.
    pub(super) fn clear(&mut self, at: usize) {
        self.slots.swap_remove(at);
    }

    /// Drops the segments of a closed connection.
    pub(super) fn forget(&mut self, key: &Key) {
        self.slots.retain(|s| s.key != *key);
    }

    /// Drops the segments of a former connection between the same ends, because a SYN begins a new
    /// one.
    pub(super) fn forget_former(&mut self, key: &Key, isn: SeqNumber) {
        self.slots.retain(|s| s.key != *key || s.segment.flags.contains(Flags::SYN) && s.seq() == isn);
    }

    /// Drops segments that were not sent for `idle`. They belong to closed connections, or to ones
    /// without state. A locked segment has its own timer.
    pub(super) fn expire(&mut self, now: Instant, idle: Duration) {
        self.slots.retain(|s| s.is_locked() || now.saturating_since(s.sent_at) < idle);
    }

    /// Whether a connection has a locked segment.
    pub(super) fn locks(&self, key: &Key) -> bool {
        self.slots.iter().any(|s| s.key == *key && s.is_locked())
    }

    /// Drops the segments of a connection without state below `ack`, which the receiver has
    /// acknowledged.
    pub(super) fn acknowledged(&mut self, flow: (&Key, Way), ack: SeqNumber) {
        self.slots.retain(|s| !(s.is_of(flow) && (0..LARGEST_FLIGHT).contains(&ack.distance(s.end()))));
    }

    /// The place for a segment that the next hop has missed, if all places are locked: the oldest
    /// on which the link layer has not reported, so that its report is still to come. A
    /// retransmitted segment keeps its place, because two segments that displace each other would
    /// be retransmitted without end.
    pub(super) fn unreported(&self) -> Place {
        let waiting = self.slots.iter().enumerate().filter(|(_, s)| !s.pending && s.repeats == 0);
        waiting.min_by_key(|(_, s)| s.sent_at).map_or(Place::None, |(at, _)| Place::Instead(at))
    }
}

/// How a segment gets an unlocked place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Draw {
    /// By chance, with this random word.
    Word(u32),
    /// Always: SYN.
    Always,
}

impl Draw {
    fn takes(self, chance: Chance) -> bool {
        match self {
            Self::Word(word) => chance.hit(word),
            Self::Always => true,
        }
    }
}
