//! The event queue.
//!
//! The key of an event is (time, sequence), where the sequence counts insertions. The order is
//! total; two events at the same time happen in the order in which they were scheduled.
//! [`EventQueue::pop`] asserts it.
//!
//! # Method
//!
//! A monotone radix queue with a sorted front. Times are read as eleven digits of six bits.
//! Relative to a reference time `base`, an event is stored at the level of the highest digit in
//! which it differs, in the slot of that digit. Every slot thus covers one aligned interval, the
//! slots of a level are in order, and all of a level is before all of the next. When the front is
//! empty, the first slot in this order is taken: a small one is sorted into the front, a large one
//! is spread over the levels below. An event moves at most once per level, usually two or three
//! times, and always in sequence; no comparison tree is traversed.
//!
//! Insertions before the end of the front go directly into it. If the front becomes long, its tail
//! is moved back to the slots.

use std::mem;

use anabranch_core::time::Instant;

/// Bits of one digit.
const BITS: u32 = 6;
/// Slots per level.
const SLOTS: usize = 1 << BITS;
/// Digits of a 64-bit time.
const LEVELS: usize = 64usize.div_ceil(BITS as usize);
/// Largest number of events of a slot that is sorted directly into the front.
const SMALL: usize = 24;
/// Largest number of events that an insertion moves in the front; otherwise the front is cut.
const LONG_SHIFT: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: u64,
    sequence: u64,
    event: E,
}

#[derive(Debug)]
struct Level<E> {
    /// Bit `i` is set when slot `i` is not empty.
    occupied: u64,
    slots: [Vec<Entry<E>>; SLOTS],
}

/// Pending events in the total order (time, sequence). `E` should be a small `Copy` value.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// Sorted; the events before `head` have been taken.
    front: Vec<Entry<E>>,
    head: usize,
    /// Every event at this time or before is in `front`, every later one in a slot.
    front_last: u64,
    /// Reference of the slot positions; not after any event in a slot.
    base: u64,
    /// Bit `i` is set when level `i` is not empty.
    occupied: u64,
    levels: Vec<Level<E>>,
    /// Empty slot buffers for reuse.
    spare: Vec<Vec<Entry<E>>>,
    len: usize,
    next_sequence: u64,
    /// Key of the event popped last; every later key must be larger.
    last: Option<(u64, u64)>,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        let level = || Level { occupied: 0, slots: std::array::from_fn(|_| Vec::new()) };
        Self {
            front: Vec::with_capacity(4 * LONG_SHIFT),
            head: 0,
            front_last: 0,
            base: 0,
            occupied: 0,
            levels: (0..LEVELS).map(|_| level()).collect(),
            spare: Vec::new(),
            len: 0,
            next_sequence: 0,
            last: None,
        }
    }

    /// Number of pending events.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of events scheduled since the start.
    #[inline]
    pub fn scheduled(&self) -> u64 {
        self.next_sequence
    }

    /// Schedules `event` at `at`, after all events already scheduled for that time.
    ///
    /// # Panics
    ///
    /// If `at` is before the event popped last: time does not run backward.
    #[inline]
    pub fn push(&mut self, at: Instant, event: E) {
        let time = at.as_nanos();
        assert!(self.last.is_none_or(|(now, _)| time >= now), "an event is scheduled in the past");
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.len += 1;
        if time <= self.front_last {
            self.insert_front(time, sequence, event);
        } else {
            self.insert_slot(time, sequence, event);
        }
    }

    /// The time of the next event.
    #[inline]
    pub fn peek_time(&mut self) -> Option<Instant> {
        if self.head == self.front.len() && !self.refill() {
            return None;
        }
        Some(Instant::from_nanos(self.front[self.head].time))
    }

    /// Takes the next event.
    ///
    /// # Panics
    ///
    /// If the order (time, sequence) is violated, which would be an error of this module.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        self.pop_until(Instant::FAR_FUTURE)
    }

    /// Takes the next event if it is not after `stop`.
    #[inline]
    pub fn pop_until(&mut self, stop: Instant) -> Option<(Instant, E)> {
        if self.head == self.front.len() && !self.refill() {
            return None;
        }
        let entry = self.front[self.head];
        if entry.time > stop.as_nanos() {
            return None;
        }
        self.head += 1;
        self.len -= 1;
        let key = (entry.time, entry.sequence);
        assert!(self.last.is_none_or(|last| last < key), "events out of order");
        self.last = Some(key);
        Some((Instant::from_nanos(entry.time), entry.event))
    }

    /// Inserts an event into the front, after events at the same time: its sequence is the highest.
    /// Takes the parts of an entry separately, so that they stay in registers: an entry assembled
    /// in memory and moved immediately would wait for its own stores.
    fn insert_front(&mut self, time: u64, sequence: u64, event: E) {
        // All events of the front have been taken: reuse its memory from the start.
        if self.head == self.front.len() {
            self.front.clear();
            self.head = 0;
        }
        let pending = &self.front[self.head..];
        // More than LONG_SHIFT events would have to move: cut the front behind the new event
        // instead, which costs each of the moved events one more pass through the slots.
        if pending.len() > LONG_SHIFT && pending[pending.len() - 1 - LONG_SHIFT].time > time {
            let at = self.head + pending.partition_point(|e| e.time <= time);
            self.cut_front(at);
            self.front.push(Entry { time, sequence, event });
            return;
        }
        // Reclaim the taken part of the front, but rarely: the cost of a drain is amortised over
        // the events taken since the last one.
        if self.head > SLOTS * LONG_SHIFT && self.head * 2 > self.front.len() {
            self.front.drain(..mem::take(&mut self.head));
        }
        let mut at = self.front.len();
        match self.front.last() {
            // Duplicate the last event first, so that the loop below only moves within the vector.
            Some(&last) if at > self.head && last.time > time => self.front.push(last),
            _ => return self.front.push(Entry { time, sequence, event }),
        }
        at -= 1;
        while at > self.head && self.front[at - 1].time > time {
            self.front[at] = self.front[at - 1];
            at -= 1;
        }
        self.front[at] = Entry { time, sequence, event };
    }

    /// Moves the events of the front from `at` on, which are later than all others in it, back to
    /// the slots.
    #[cold]
    fn cut_front(&mut self, at: usize) {
        // Events of the front can be before `base`, which `refill` sets to the start of the slot
        // taken last.
        let first = self.front[at].time;
        if first < self.base {
            self.lower_base(first);
        }
        self.front_last = first - 1;
        for i in at..self.front.len() {
            let Entry { time, sequence, event } = self.front[i];
            self.insert_slot(time, sequence, event);
        }
        self.front.truncate(at);
    }

    /// Moves `base` back to `time`. All events that share the highest changed digit with the old
    /// base, which are those of the lower levels, then belong to the one slot of that digit; the
    /// rest stays.
    fn lower_base(&mut self, time: u64) {
        let level = level_of(time ^ self.base);
        self.base = time;
        let below = self.occupied & ((1 << level) - 1);
        for lower in (0..level).filter(|l| below >> l & 1 == 1) {
            while self.levels[lower].occupied != 0 {
                let (_, _, mut taken) = self.take_slot(lower);
                taken.iter().for_each(|e| self.insert_slot(e.time, e.sequence, e.event));
                taken.clear();
                self.spare.push(taken);
            }
        }
    }

    #[inline]
    fn insert_slot(&mut self, time: u64, sequence: u64, event: E) {
        let level = level_of(time ^ self.base);
        let slot = (time >> (level as u32 * BITS)) as usize & (SLOTS - 1);
        self.occupied |= 1 << level;
        let level = &mut self.levels[level];
        let bit = 1 << slot;
        let slot = &mut level.slots[slot];
        if level.occupied & bit == 0 {
            level.occupied |= bit;
            if let Some(buffer) = self.spare.pop() {
                *slot = buffer;
            }
        }
        slot.push(Entry { time, sequence, event });
    }

    /// Fills the empty front from the first slot. Returns false if nothing is pending.
    fn refill(&mut self) -> bool {
        self.front.clear();
        self.head = 0;
        loop {
            if self.occupied == 0 {
                return false;
            }
            // The lowest level that is not empty has the earliest events: its slots differ from
            // `base` only in lower digits.
            let level = self.occupied.trailing_zeros() as usize;
            let (start, last, mut taken) = self.take_slot(level);
            self.base = start;
            // All events of a slot at level 0 have the same time and are already in sequence.
            let small = taken.len() <= SMALL || level == 0;
            if small {
                self.front.extend_from_slice(&taken);
                self.front_last = last;
            } else {
                taken.iter().for_each(|e| self.insert_slot(e.time, e.sequence, e.event));
            }
            taken.clear();
            self.spare.push(taken);
            if small {
                // Insertion sort: the slot has at most SMALL events, which are often nearly in
                // order.
                if level > 0 {
                    sort(&mut self.front);
                }
                return true;
            }
        }
    }

    /// Empties the first slot of a level. Returns its first and last time, and its events in
    /// sequence.
    fn take_slot(&mut self, level: usize) -> (u64, u64, Vec<Entry<E>>) {
        let shift = level as u32 * BITS;
        let this = &mut self.levels[level];
        let slot = this.occupied.trailing_zeros() as usize;
        this.occupied &= this.occupied - 1;
        if this.occupied == 0 {
            self.occupied &= !(1 << level);
        }
        let taken = mem::take(&mut this.slots[slot]);
        let within = (1u64 << shift) - 1;
        // All digits above this one are those of `base`; the last level has no digits above it.
        let above = (SLOTS as u64 - 1).checked_shl(shift).map_or(0, |digit| !(digit | within));
        let start = self.base & above | (slot as u64) << shift;
        (start, start | within, taken)
    }
}

/// The highest digit in which two times differ, from their exclusive or.
#[inline]
fn level_of(differ: u64) -> usize {
    // `| 1`: equal times belong to level 0.
    ((63 - (differ | 1).leading_zeros()) / BITS) as usize
}

/// Sorts by time; stable, so that events at the same time keep their sequence.
fn sort<E: Copy>(entries: &mut [Entry<E>]) {
    for i in 1..entries.len() {
        let Entry { time, sequence, event } = entries[i];
        let mut at = i;
        while at > 0 && entries[at - 1].time > time {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        if at < i {
            entries[at] = Entry { time, sequence, event };
        }
    }
}

#[cfg(test)]
mod tests;
