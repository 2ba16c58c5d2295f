//! The cached segments, each with its lock and its timer.

use alloc::vec::Vec;

use super::config::{Chance, Config, Displacement};
use super::connection::LARGEST_FLIGHT;
use super::flow::{Key, Way};
use crate::segment::{Flags, Segment, SeqNumber};
use crate::time::{Duration, Instant};

/// One place in the cache, taken.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) way: Way,
    pub(super) lock: Lock,
    /// The node is to send it.
    pub(super) pending: bool,
    /// The node has sent it again since it came.
    pub(super) repeated: bool,
    /// Repetitions without a sign of success.
    pub(super) repeats: u8,
    /// When it last left the node.
    pub(super) sent_at: Instant,
    /// The local time-out, if one runs.
    pub(super) deadline: Option<Instant>,
    /// Since when acknowledgements are held back on the strength of this segment.
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

    /// Whether a segment within the range of this one says the same. If not, one of them is forged
    /// or of another connection, and what an end sends must pass.
    pub(super) fn agrees(&self, segment: &Segment) -> bool {
        let ours = &self.segment;
        let from = segment.seq.distance(ours.seq) as usize;
        let has = |segment: &Segment, flag| segment.flags.contains(flag);
        has(segment, Flags::SYN) == has(ours, Flags::SYN)
            && has(segment, Flags::FIN) <= has(ours, Flags::FIN)
            && segment.mptcp == ours.mptcp
            && ours.payload.get(from..from + segment.payload.len()) == Some(&segment.payload[..])
    }

    /// The sender has sent it anew: the cached copy takes the newer timestamp. With the old one the
    /// receiver might refuse it for good (PAWS, RFC 7323 section 5), while the node holds back what
    /// would be taken.
    pub(super) fn refresh(&mut self, segment: &Segment) {
        if let (Some(ours), Some(theirs)) = (&mut self.segment.options.timestamps, segment.options.timestamps)
            && theirs.value.wrapping_sub(ours.value) as i32 > 0
        {
            *ours = theirs;
        }
    }

    /// It is to be sent again.
    pub(super) fn repeat(&mut self) {
        self.pending = true;
        self.repeats = self.repeats.saturating_add(1);
    }

    /// It may not be overwritten, and is repeated at `deadline`.
    pub(super) fn lock_until(&mut self, deadline: Instant) {
        self.lock = Lock::Locked;
        self.deadline = Some(deadline);
    }

    /// Nothing is to happen to it any more, unless it is asked for.
    pub(super) fn release(&mut self) {
        self.lock = Lock::Open;
        self.deadline = None;
        self.pending = false;
        self.repeats = 0;
    }
}

/// All places. Never more than [`Config::cache_segments`].
#[derive(Clone, Debug)]
pub(super) struct Cache {
    slots: Vec<Slot>,
    capacity: usize,
}

/// Where a new segment may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// There is room.
    Empty,
    /// Instead of that one.
    Instead(usize),
    /// Nowhere.
    None,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        // Filled as it is used, so that a large option costs nothing at once.
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

    /// Where a segment goes (action 1): an empty place always; an open one by the draw, the one
    /// that was sent longest ago; a locked one only if the configuration lets a lower number
    /// displace it.
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

    /// Puts a segment where [`Cache::place`] said.
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

    /// A connection is over.
    pub(super) fn forget(&mut self, key: &Key) {
        self.slots.retain(|s| s.key != *key);
    }

    /// A SYN begins a connection. Segments of a former one between the same ends are not part of
    /// it, whatever their numbers.
    pub(super) fn forget_former(&mut self, key: &Key, isn: SeqNumber) {
        self.slots.retain(|s| s.key != *key || s.segment.flags.contains(Flags::SYN) && s.seq() == isn);
    }

    /// Segments that were not sent for `idle` are of connections that are over, or that have no
    /// state to expire. A locked one has a timer of its own.
    pub(super) fn expire(&mut self, now: Instant, idle: Duration) {
        self.slots.retain(|s| s.is_locked() || now.saturating_since(s.sent_at) < idle);
    }

    /// A connection has something locked.
    pub(super) fn locks(&self, key: &Key) -> bool {
        self.slots.iter().any(|s| s.key == *key && s.is_locked())
    }

    /// The receiver has everything below `ack`: what a node does for a connection without state.
    pub(super) fn acknowledged(&mut self, flow: (&Key, Way), ack: SeqNumber) {
        self.slots.retain(|s| !(s.is_of(flow) && (0..LARGEST_FLIGHT).contains(&ack.distance(s.end()))));
    }

    /// The place for a segment that the next hop has missed, if none is open. The link layer has
    /// not reported on the one there, so that its turn comes as well. One that was repeated stays:
    /// two that take each other's place would be repeated without end.
    pub(super) fn unreported(&self) -> Place {
        let waiting = self.slots.iter().enumerate().filter(|(_, s)| !s.pending && s.repeats == 0);
        waiting.min_by_key(|(_, s)| s.sent_at).map_or(Place::None, |(at, _)| Place::Instead(at))
    }
}

/// How a segment comes to an open place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Draw {
    /// By chance, with this random word.
    Word(u32),
    /// Without: SYN.
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
