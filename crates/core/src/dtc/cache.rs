//! The cached segments, each with its lock and its timer.

use alloc::vec::Vec;

use super::config::{Chance, Config, Displacement};
use super::flow::Way;
use crate::segment::{Segment, SeqNumber};
use crate::time::Instant;

/// One place in the cache, taken.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Index of the connection.
    pub(super) connection: usize,
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
    pub(super) fn is_of(&self, connection: usize, way: Way) -> bool {
        self.connection == connection && self.way == way
    }

    /// The sender has sent it anew: the cached copy takes the newer timestamp. With the old one the receiver might
    /// refuse it for good (PAWS, RFC 7323 section 5), while the node holds back what would be taken.
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
    pub(super) fn find(&self, connection: usize, way: Way, segment: &Segment) -> Option<usize> {
        let (seq, end) = (segment.seq, segment.seq_end());
        self.slots
            .iter()
            .position(|s| s.seq().le(seq) && end.le(s.end()) && seq.lt(s.end()) && s.is_of(connection, way))
    }

    /// Where a segment goes (action 1): an empty place always; an open one by the draw, the one that was
    /// sent longest ago; a locked one only if the configuration lets a lower number displace it.
    #[inline]
    pub(super) fn place(
        &self,
        config: &Config,
        (connection, way): (usize, Way),
        seq: SeqNumber,
        draw: Draw,
    ) -> Place {
        if self.slots.len() < self.capacity {
            return Place::Empty;
        }
        let open = self.slots.iter().enumerate().filter(|(_, s)| !s.is_locked());
        if let Some((at, _)) = open.min_by_key(|(_, s)| s.sent_at) {
            return if draw.takes(config.cache_chance) { Place::Instead(at) } else { Place::None };
        }
        let lower = |s: &Slot| s.is_of(connection, way) && seq.lt(s.seq());
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

    /// A connection is gone, and another has taken its index.
    pub(super) fn forget(&mut self, connection: usize, moved: usize) {
        self.slots.retain(|s| s.connection != connection);
        for slot in self.slots.iter_mut().filter(|s| s.connection == moved) {
            slot.connection = connection;
        }
    }

    /// A connection has something locked.
    pub(super) fn locks(&self, connection: usize) -> bool {
        self.slots.iter().any(|s| s.connection == connection && s.is_locked())
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
