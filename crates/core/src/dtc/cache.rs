//! The cached segments with their locks and timers.
//!
//! The segments of a flow are a list in order of sequence numbers, so that new data and cumulative
//! acknowledgements touch its ends only. Timers are a heap. All links are numbers of slots.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;

use super::config::{Chance, Config, Displacement};
use super::flow::{Key, Way};
use super::index::{Index, NONE};
use crate::segment::{Flags, Mptcp, Segment, SeqNumber};
use crate::time::{Duration, Instant};

/// A place of the cache.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Number of the flow; [`NONE`] if the place is empty.
    flow: u32,
    /// The next lower and the next higher segment of the flow. For an empty place, `above` is the
    /// next empty one.
    below: u32,
    above: u32,
    /// Place in the heap of timers; [`NONE`] if no timer runs.
    timer: u32,
    /// The next slot to be sent, if this one is in that list.
    next: u32,
    is_listed: bool,
    lock: Lock,
    /// Whether the node is to send the segment.
    pub(super) pending: bool,
    /// Whether the node has retransmitted the segment since it arrived.
    pub(super) repeated: bool,
    /// Whether the sender has retransmitted the segment since it arrived.
    pub(super) sent_again: bool,
    /// Number of retransmissions without a sign of success.
    pub(super) repeats: u8,
    /// When the segment last left the node.
    pub(super) sent_at: Instant,
    /// The local time-out, if it runs.
    deadline: Instant,
    /// Since when acknowledgements are held back because of this segment;
    /// [`Instant::FAR_FUTURE`] if none was.
    pub(super) holding_since: Instant,
    pub(super) segment: Segment,
}

/// Whether a cached segment may be overwritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lock {
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

    #[inline]
    pub(super) fn is_locked(&self) -> bool {
        self.lock == Lock::Locked
    }

    /// The local time-out, if it runs.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.timer != NONE).then_some(self.deadline)
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
}

/// The cached segments of one direction of a connection.
#[derive(Clone, Debug)]
struct Flow {
    key: Key,
    way: Way,
    /// For a flow without segments, the next such flow.
    lowest: u32,
    highest: u32,
    len: u32,
}

/// All places, at most [`Config::cache_segments`].
#[derive(Clone, Debug)]
pub(super) struct Cache {
    slots: Vec<Slot>,
    flows: Vec<Flow>,
    /// The flows by the tags of their connections; in a small cache they are searched.
    index: Option<Box<Index>>,
    /// Slots with a timer: a binary heap, earliest first. The time of a slot that was postponed is
    /// earlier than its deadline.
    timers: Vec<(Instant, u32)>,
    /// The first empty slot, and the first flow without segments.
    empty: u32,
    unused: u32,
    /// The first and the last of the slots to be sent. A slot of this list may have been sent or
    /// emptied meanwhile.
    first: u32,
    last: u32,
    /// Number of occupied slots, and of locked ones.
    len: u32,
    locked: u32,
    /// Payload of all segments in bytes.
    octets: usize,
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
    /// Number of segments up to which all memory but that of payloads is allocated at the start,
    /// and flows are found without an index.
    pub(super) const SMALL: usize = 64;

    /// Memory for each cached segment in bytes, without its payload, in each allocation.
    pub(super) const SEGMENT_MEMORY: [usize; 3] =
        [size_of::<Slot>(), size_of::<Flow>(), size_of::<(Instant, u32)>()];

    pub(super) fn new(capacity: usize) -> Self {
        // A small cache never grows, so that the memory of a small node is known in advance. A
        // large capacity costs nothing at first.
        let (first, index) =
            if capacity > Self::SMALL { (0, Some(Box::default())) } else { (capacity, None) };
        Self {
            slots: Vec::with_capacity(first),
            flows: Vec::with_capacity(first),
            index,
            timers: Vec::with_capacity(first),
            empty: NONE,
            unused: NONE,
            first: NONE,
            last: NONE,
            len: 0,
            locked: 0,
            octets: 0,
        }
    }

    /// Number of cached segments.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Payload of the cached segments in bytes.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    pub(super) fn slot(&self, at: usize) -> &Slot {
        &self.slots[at]
    }

    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot {
        &mut self.slots[at]
    }

    /// All cached segments.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.flow != NONE)
    }

    /// The flow of a cached segment.
    pub(super) fn flow_of(&self, at: usize) -> (Key, Way) {
        let flow = &self.flows[self.slots[at].flow as usize];
        (flow.key, flow.way)
    }

    /// The number that a flow had, or [`NONE`] if the flow has had no segments since then.
    #[inline]
    pub(super) fn flow(&self, number: u32, (key, way): (&Key, Way)) -> u32 {
        let is_it = |flow: &&Flow| flow.way == way && flow.key == *key;
        self.occupied(number).filter(is_it).map_or(NONE, |_| number)
    }

    /// The flows of a connection, found by its key.
    pub(super) fn flows(&self, key: &Key) -> [u32; 2] {
        [Way::FromFirst, Way::FromSecond].map(|way| {
            let is_it = |number: usize| self.flow(number as u32, (key, way)) != NONE;
            let found = match &self.index {
                Some(index) => index.find(key.tag(), is_it),
                None => (0..self.flows.len()).find(|number| is_it(*number)),
            };
            found.map_or(NONE, |number| number as u32)
        })
    }

    /// The flow with this number, if it has segments.
    #[inline]
    fn occupied(&self, flow: u32) -> Option<&Flow> {
        self.flows.get(flow as usize).filter(|flow| flow.len > 0)
    }

    /// The lowest segment of a flow.
    #[inline]
    pub(super) fn lowest(&self, flow: u32) -> Option<usize> {
        self.occupied(flow).map(|flow| flow.lowest as usize)
    }

    /// The next higher segment of the same flow.
    #[inline]
    pub(super) fn above(&self, at: usize) -> Option<usize> {
        let above = self.slots[at].above;
        (above != NONE).then_some(above as usize)
    }

    /// Whether no lower segment of the flow is locked.
    pub(super) fn is_lowest_locked(&self, at: usize) -> bool {
        let mut below = self.slots[at].below;
        while below != NONE && !self.slots[below as usize].is_locked() {
            below = self.slots[below as usize].below;
        }
        below == NONE
    }

    /// The place of that very segment, or of one that contains it.
    #[inline]
    pub(super) fn find(&self, flow: u32, segment: &Segment) -> Option<usize> {
        let (seq, end) = (segment.seq, segment.seq_end());
        let flow = self.occupied(flow)?;
        let contains = |slot: &Slot| slot.seq().le(seq) && end.le(slot.end());
        // Most segments are new, and those that are not are among the lowest or the highest.
        if self.is_low(flow, seq) {
            let mut found = None;
            let mut at = flow.lowest;
            while at != NONE && self.slots[at as usize].seq().le(seq) {
                let slot = &self.slots[at as usize];
                if contains(slot) {
                    found = Some(at as usize);
                } else if slot.end().le(seq) {
                    found = None;
                }
                at = slot.above;
            }
            return found;
        }
        let mut at = flow.highest;
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.end().le(seq) {
                return None;
            }
            if contains(slot) {
                return Some(at as usize);
            }
            at = slot.below;
        }
        None
    }

    /// Whether a sequence number is nearer to the lowest segment of a flow than to the highest.
    fn is_low(&self, flow: &Flow, seq: SeqNumber) -> bool {
        let seq_of = |at: u32| self.slots[at as usize].seq();
        flow.len > 0 && seq.distance(seq_of(flow.lowest)) < seq_of(flow.highest).distance(seq)
    }

    /// Chooses the place of a segment (action 1): an empty place if there is one; otherwise, by
    /// chance, the unlocked one that was sent longest ago. If all are locked, a lower sequence
    /// number may displace one, if the configuration allows it.
    #[inline]
    pub(super) fn place(&self, config: &Config, flow: u32, segment: &Segment, draw: Draw) -> Place {
        let flow = self.occupied(flow);
        let len = flow.map_or(0, |flow| flow.len);
        if len as usize >= config.flow_segments {
            return Place::None;
        }
        let excess = self.octets.saturating_add(segment.payload.len()).saturating_sub(config.cache_octets);
        let has_room = self.len() < config.cache_segments;
        if excess == 0 && has_room {
            return Place::Empty;
        }
        if config.displacement == Displacement::OfLongest {
            let victim = self.victim(len, segment.seq);
            return victim
                .filter(|at| self.slots[*at].segment.payload.len() >= excess)
                .map_or(Place::None, Place::Instead);
        }
        if excess > 0 {
            return Place::None;
        }
        if self.locked < self.len {
            let open = self.slots.iter().enumerate().filter(|(_, s)| s.flow != NONE && !s.is_locked());
            if let Some((at, _)) = open.min_by_key(|(_, s)| s.sent_at) {
                return if draw.takes(config.cache_chance) { Place::Instead(at) } else { Place::None };
            }
        }
        let highest = flow.map(|flow| flow.highest as usize);
        match (config.displacement, highest) {
            (Displacement::ByLower, Some(at)) if segment.seq.lt(self.slots[at].seq()) => Place::Instead(at),
            _ => Place::None,
        }
    }

    /// What to overwrite for the sake of a flow with `len` segments: an unlocked segment, or the
    /// highest one of a longer flow. Looks at a few places only, since a flow with many segments
    /// has most of them.
    fn victim(&self, len: u32, seq: SeqNumber) -> Option<usize> {
        // Places all over the cache, and others for the next segment.
        let step = self.slots.len().div_ceil(SAMPLE).max(1);
        let mixed = u64::from(seq.0.wrapping_mul(0x9e37_79b9));
        let from = ((mixed * step as u64) >> 32) as usize;
        let sample = (from..self.slots.len()).step_by(step).filter(|at| self.slots[*at].flow != NONE);
        let open = sample.clone().filter(|at| !self.slots[*at].is_locked());
        if let Some(oldest) = open.min_by_key(|at| self.slots[*at].sent_at) {
            return Some(oldest);
        }
        let longest =
            sample.map(|at| &self.flows[self.slots[at].flow as usize]).max_by_key(|flow| flow.len)?;
        // With a difference of one, two flows would go on overwriting each other.
        (longest.len > len + 1).then_some(longest.highest as usize)
    }

    /// Stores a segment at a place returned by [`Cache::place`], unlocked and without a timer.
    /// Returns its number, and notes that of its flow.
    #[inline]
    pub(super) fn put(
        &mut self,
        place: Place,
        (key, way, number): (&Key, Way, &mut u32),
        now: Instant,
        segment: Segment,
    ) -> Option<usize> {
        match place {
            Place::Empty => {}
            Place::Instead(old) => self.clear(old),
            Place::None => return None,
        }
        self.octets += segment.payload.len();
        self.len += 1;
        *number = self.flow(*number, (key, way));
        if *number == NONE {
            *number = self.new_flow(*key, way);
        }
        let flow = *number;
        let at = self.empty;
        let old = self.slots.get(at as usize);
        let (empty, next, is_listed) =
            old.map_or((NONE, NONE, false), |old| (old.above, old.next, old.is_listed));
        let slot = Slot {
            flow,
            below: NONE,
            above: NONE,
            timer: NONE,
            next,
            is_listed,
            lock: Lock::Open,
            pending: false,
            repeated: false,
            sent_again: false,
            repeats: 0,
            sent_at: now,
            deadline: now,
            holding_since: Instant::FAR_FUTURE,
            segment,
        };
        self.empty = empty;
        let at = store(&mut self.slots, at, slot);
        self.link(at, flow as usize);
        Some(at)
    }

    fn new_flow(&mut self, key: Key, way: Way) -> u32 {
        let flow = Flow { key, way, lowest: NONE, highest: NONE, len: 0 };
        let unused = self.unused;
        self.unused = self.flows.get(unused as usize).map_or(NONE, |unused| unused.lowest);
        let number = store(&mut self.flows, unused, flow);
        if let Some(index) = &mut self.index {
            index.insert(key.tag(), number);
        }
        number as u32
    }

    /// Puts a slot into the list of its flow.
    fn link(&mut self, at: usize, flow: usize) {
        let seq = self.slots[at].seq();
        let mut below = self.flows[flow].highest;
        if self.is_low(&self.flows[flow], seq) {
            below = NONE;
            let mut above = self.flows[flow].lowest;
            while above != NONE && self.slots[above as usize].seq().le(seq) {
                (below, above) = (above, self.slots[above as usize].above);
            }
        } else {
            while below != NONE && self.slots[below as usize].seq().gt(seq) {
                below = self.slots[below as usize].below;
            }
        }
        let above = match below {
            NONE => core::mem::replace(&mut self.flows[flow].lowest, at as u32),
            below => core::mem::replace(&mut self.slots[below as usize].above, at as u32),
        };
        match above {
            NONE => self.flows[flow].highest = at as u32,
            above => self.slots[above as usize].below = at as u32,
        }
        (self.slots[at].below, self.slots[at].above) = (below, above);
        self.flows[flow].len += 1;
    }

    /// Empties a place.
    pub(super) fn clear(&mut self, at: usize) {
        self.release(at);
        let slot = &mut self.slots[at];
        self.octets -= slot.segment.payload.len();
        // Releases what is allocated.
        (slot.segment.payload, slot.segment.mptcp) = (Bytes::new(), Mptcp::NONE);
        let flow = core::mem::replace(&mut slot.flow, NONE) as usize;
        let (below, above) = (slot.below, slot.above);
        match below {
            NONE => self.flows[flow].lowest = above,
            below => self.slots[below as usize].above = above,
        }
        match above {
            NONE => self.flows[flow].highest = below,
            above => self.slots[above as usize].below = below,
        }
        self.slots[at].above = core::mem::replace(&mut self.empty, at as u32);
        self.len -= 1;
        let left = &mut self.flows[flow];
        left.len -= 1;
        if left.len == 0 {
            left.lowest = core::mem::replace(&mut self.unused, flow as u32);
            if let Some(index) = &mut self.index {
                index.remove(left.key.tag(), flow);
            }
        }
    }

    /// Schedules a retransmission.
    pub(super) fn repeat(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.repeats = slot.repeats.saturating_add(1);
        slot.pending = true;
        if !core::mem::replace(&mut slot.is_listed, true) {
            slot.next = NONE;
            let last = core::mem::replace(&mut self.last, at as u32);
            match self.first {
                NONE => self.first = at as u32,
                _ => self.slots[last as usize].next = at as u32,
            }
        }
    }

    /// Takes the next segment to be sent.
    pub(super) fn take_pending(&mut self) -> Option<usize> {
        while let Some(slot) = self.slots.get_mut(self.first as usize) {
            let at = core::mem::replace(&mut self.first, slot.next) as usize;
            slot.is_listed = false;
            if core::mem::replace(&mut slot.pending, false) {
                return Some(at);
            }
        }
        None
    }

    /// Locks the segment without setting a timer.
    pub(super) fn lock(&mut self, at: usize) {
        self.locked += u32::from(!self.slots[at].is_locked());
        self.slots[at].lock = Lock::Locked;
    }

    /// Locks the segment and sets its timer.
    pub(super) fn lock_until(&mut self, at: usize, deadline: Instant) {
        self.lock(at);
        self.set_timer(at, deadline);
    }

    /// Unlocks the segment and stops its timer. If the timer was that of the flow, the next locked
    /// segment gets it.
    pub(super) fn release(&mut self, at: usize) {
        self.locked -= u32::from(self.slots[at].is_locked());
        let slot = &mut self.slots[at];
        slot.lock = Lock::Open;
        slot.pending = false;
        slot.repeats = 0;
        if slot.timer == NONE {
            return;
        }
        let mut above = core::iter::successors(self.above(at), |at| self.above(*at));
        match above.find(|at| self.slots[*at].is_locked()) {
            Some(next) if self.slots[next].timer == NONE => {
                self.slots[next].deadline = self.slots[at].deadline;
                let timer = core::mem::replace(&mut self.slots[at].timer, NONE);
                self.slots[next].timer = timer;
                self.timers[timer as usize].1 = next as u32;
            }
            _ => self.stop_timer(at),
        }
    }

    /// The earliest timer. If it was postponed, the segment's deadline is later.
    pub(super) fn next_timer(&self) -> Option<(Instant, usize)> {
        self.timers.first().map(|(due, at)| (*due, *at as usize))
    }

    /// Sets the timer of a segment.
    pub(super) fn set_timer(&mut self, at: usize, deadline: Instant) {
        self.slots[at].deadline = deadline;
        let timer = (deadline, at as u32);
        let mut place = self.slots[at].timer as usize;
        if place == NONE as usize {
            place = self.timers.len();
            self.timers.push(timer);
        }
        self.settle(place, timer);
    }

    /// Sets the timer of a segment, probably to a later time. The heap learns a later time only
    /// when the earlier one has come, since each acknowledgement postpones a timer.
    pub(super) fn postpone(&mut self, at: usize, deadline: Instant) {
        let slot = &mut self.slots[at];
        match self.timers.get(slot.timer as usize) {
            Some((due, _)) if *due <= deadline => slot.deadline = deadline,
            _ => self.set_timer(at, deadline),
        }
    }

    /// Stops the timer of a segment, if it runs.
    pub(super) fn stop_timer(&mut self, at: usize) {
        let place = core::mem::replace(&mut self.slots[at].timer, NONE);
        if place == NONE {
            return;
        }
        let place = place as usize;
        self.timers.swap_remove(place);
        if let Some(timer) = self.timers.get(place) {
            self.settle(place, *timer);
        }
    }

    /// Puts a timer into the heap, in which this place is free.
    fn settle(&mut self, mut place: usize, timer: (Instant, u32)) {
        while place > 0 && timer.0 < self.timers[(place - 1) / 2].0 {
            self.set_place((place - 1) / 2, place);
            place = (place - 1) / 2;
        }
        loop {
            let children = [2 * place + 1, 2 * place + 2].into_iter();
            let children = children.filter(|child| *child < self.timers.len());
            let least = children.min_by_key(|child| self.timers[*child].0);
            let Some(least) = least.filter(|least| self.timers[*least].0 < timer.0) else { break };
            self.set_place(least, place);
            place = least;
        }
        self.timers[place] = timer;
        self.slots[timer.1 as usize].timer = place as u32;
    }

    /// Moves a timer to another place of the heap.
    fn set_place(&mut self, from: usize, to: usize) {
        self.timers[to] = self.timers[from];
        self.slots[self.timers[to].1 as usize].timer = to as u32;
    }

    /// Drops the segments of a flow for which `is_over` holds, from the lowest to the first that
    /// stays.
    fn drop_lowest(&mut self, flow: u32, is_over: impl Fn(&Slot) -> bool) {
        let mut next = self.lowest(flow);
        while let Some(at) = next.filter(|at| is_over(&self.slots[*at])) {
            next = self.above(at);
            self.clear(at);
        }
    }

    /// Drops the segments of a flow.
    pub(super) fn forget(&mut self, flow: u32) {
        self.drop_lowest(flow, |_| true);
    }

    /// Drops the segments of a former connection between the same ends, because a SYN begins a new
    /// one.
    pub(super) fn forget_former(&mut self, key: &Key, isn: SeqNumber) {
        for flow in self.flows(key) {
            let mut next = self.lowest(flow);
            while let Some(at) = next {
                next = self.above(at);
                let slot = &self.slots[at];
                if !(slot.segment.flags.contains(Flags::SYN) && slot.seq() == isn) {
                    self.clear(at);
                }
            }
        }
    }

    /// Drops segments that were not sent for `idle`. They belong to closed connections, or to ones
    /// without state. A locked segment or a lower one of its flow has a timer.
    pub(super) fn expire(&mut self, now: Instant, idle: Duration) {
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            if slot.flow != NONE && !slot.is_locked() && now.saturating_since(slot.sent_at) >= idle {
                self.clear(at);
            }
        }
    }

    /// Whether a connection has a locked segment.
    pub(super) fn locks(&self, key: &Key) -> bool {
        self.flows(key).into_iter().any(|flow| {
            let mut all = core::iter::successors(self.lowest(flow), |at| self.above(*at));
            all.any(|at| self.slots[at].is_locked())
        })
    }

    /// Drops the segments of a flow below `ack`, which the receiver has acknowledged.
    pub(super) fn acknowledged(&mut self, flow: u32, ack: SeqNumber, flight: u32) {
        self.drop_lowest(flow, |slot| (0..flight as i32).contains(&ack.distance(slot.end())));
    }

    /// The place for a segment that the next hop has missed, if all places are locked: the oldest
    /// on which the link layer has not reported, so that its report is still to come. A
    /// retransmitted segment keeps its place, because two segments that displace each other would
    /// be retransmitted without end.
    pub(super) fn unreported(&self) -> Place {
        let occupied = self.slots.iter().enumerate().filter(|(_, s)| s.flow != NONE);
        let waiting = occupied.filter(|(_, s)| !s.pending && s.repeats == 0);
        waiting.min_by_key(|(_, s)| s.sent_at).map_or(Place::None, |(at, _)| Place::Instead(at))
    }
}

/// Number of places of which the best one is overwritten.
const SAMPLE: usize = 16;

/// Stores an item at this place, or behind all others if there is none. Returns its place.
fn store<T>(items: &mut Vec<T>, at: u32, item: T) -> usize {
    if let Some(place) = items.get_mut(at as usize) {
        *place = item;
        return at as usize;
    }
    items.push(item);
    items.len() - 1
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

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use anabranch_testkit::prng::Prng;
    use bytes::Bytes;

    use super::super::FlowKey;
    use super::*;

    /// Segments that overlap, in any order, are found from both ends as from the highest down.
    #[test]
    fn a_segment_is_found_from_the_nearer_end() {
        let mut prng = Prng::new(5);
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let ends = FlowKey { source: address, destination: address };
        for _ in 0..300 {
            let mut segment = |first: u32| Segment {
                src_port: 1,
                dst_port: 2,
                seq: SeqNumber(first.wrapping_add(prng.below(60) as u32)),
                payload: Bytes::from(alloc::vec![0; prng.pick(&[1, 5, 10, 20])]),
                ..Segment::default()
            };
            // Numbers wrap.
            let first = u32::MAX - 30;
            let (key, way) = Key::of(ends, &segment(first));
            let (mut cache, mut flow) = (Cache::new(16), NONE);
            for _ in 0..12 {
                cache.put(Place::Empty, (&key, way, &mut flow), Instant::ZERO, segment(first));
            }
            let all: Vec<usize> = core::iter::successors(cache.lowest(flow), |at| cache.above(*at)).collect();
            assert!(
                all.len() == 12 && all.is_sorted_by_key(|at| cache.slot(*at).seq().0.wrapping_sub(first))
            );
            for _ in 0..40 {
                let wanted = segment(first);
                let (seq, end) = (wanted.seq, wanted.seq_end());
                let down = all.iter().rev().map(|at| (*at, cache.slot(*at)));
                let down = down.take_while(|(_, slot)| slot.end().gt(seq));
                let down = { down }.find(|(_, slot)| slot.seq().le(seq) && end.le(slot.end()));
                assert_eq!(cache.find(flow, &wanted), down.map(|(at, _)| at));
            }
        }
    }
}
