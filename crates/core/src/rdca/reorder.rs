//! What a sink holds of a stream, and what is missing: the Sink Loss List (section 3.4).
//!
//! The list is not kept apart: what is missing stands before each packet that is held. All streams share one pool of
//! places, so that memory is bounded for all of them together.

use alloc::vec::Vec;

use anabranch_wire::rdca::{Range, Ranges, Seq};
use bytes::Bytes;

use crate::time::Instant;

/// No place.
const NONE: u32 = u32::MAX;
/// A stream's packets are no further apart: a range in a datagram has two octets for its length.
const SPAN: u32 = 60_000;

/// A gap, and when it is to be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    /// The next SNACK that lists it.
    pub due: Instant,
    /// SNACKs that have.
    pub asked: u8,
}

#[derive(Debug)]
struct Held {
    seq: Seq,
    /// 1 for a packet; any number of packets that are gone.
    len: u32,
    /// `None`: gone.
    payload: Option<Bytes>,
    /// The gap before it, if there is one.
    gap: Gap,
    next: u32,
}

/// The places of all streams.
#[derive(Debug)]
pub(super) struct Pool {
    held: Vec<Held>,
    /// The first of those that are free.
    free: u32,
    used: usize,
    most: usize,
}

impl Pool {
    pub(super) const fn new(most: usize) -> Self {
        Self { held: Vec::new(), free: NONE, used: 0, most }
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Octets of a place, without the packet.
    pub(super) const PLACE: usize = size_of::<Held>();

    fn take(&mut self, held: Held) -> Option<u32> {
        if self.used >= self.most {
            return None;
        }
        self.used += 1;
        if self.free == NONE {
            self.held.push(held);
            return Some(self.held.len() as u32 - 1);
        }
        let place = self.free;
        self.free = self.held[place as usize].next;
        self.held[place as usize] = held;
        Some(place)
    }

    fn release(&mut self, place: u32) -> Option<Bytes> {
        self.used -= 1;
        let held = &mut self.held[place as usize];
        held.next = self.free;
        self.free = place;
        held.payload.take()
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Placed {
    /// It is the next one for the application. It needs no place, so a full pool keeps nothing waiting for ever.
    Next,
    /// It is held for later.
    Held,
    /// It was there, or is gone.
    Known,
    /// There is no room; it counts as missing.
    NoRoom,
}

/// What is ready for the application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    Packet(Seq, Bytes),
    Gone(Range),
}

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct Reorder {
    /// The next packet for the application.
    next: Seq,
    /// One past the last packet that is known to have been sent.
    end: Seq,
    first: u32,
    count: u16,
    most: u16,
    /// The gap after the last that is held, if there is one.
    tail: Gap,
}

impl Reorder {
    pub(super) const fn new(next: Seq, most: u16) -> Self {
        let tail = Gap { due: Instant::ZERO, asked: 0 };
        Self { next, end: next, first: NONE, count: 0, most, tail }
    }

    pub(super) const fn next(&self) -> Seq {
        self.next
    }

    pub(super) const fn end(&self) -> Seq {
        self.end
    }

    /// Nothing is missing of what is known to have been sent.
    pub(super) fn is_whole(&self) -> bool {
        self.next == self.end
    }

    /// Takes a packet. What is missing before it is asked for at `due`, unless it was known to be missing.
    pub(super) fn insert(&mut self, pool: &mut Pool, seq: Seq, payload: &Bytes, due: Instant) -> Placed {
        if seq.lt(self.next) {
            return Placed::Known;
        }
        if seq.distance(self.next) as u32 >= SPAN {
            self.extend(seq, due, pool);
            return Placed::NoRoom;
        }
        let (before, after) = self.around(pool, seq);
        if before.is_some_and(|place| seq.lt(end_of(&pool.held[place as usize]))) {
            return Placed::Known;
        }
        if seq == self.next {
            self.next = seq + 1;
            self.end = self.end.max(self.next);
            return Placed::Next;
        }
        if self.count < self.most && self.put(pool, (before, after), (seq, 1, Some(payload.clone())), due) {
            Placed::Held
        } else {
            self.extend(seq + 1, due, pool);
            Placed::NoRoom
        }
    }

    /// The sender says that it has sent everything before `end`.
    pub(super) fn extend(&mut self, end: Seq, due: Instant, pool: &Pool) {
        let most = self.next + SPAN;
        let end = end.min(most);
        if self.end.lt(end) {
            if self.last_end(pool) == self.end {
                self.tail = Gap { due, asked: 0 };
            }
            self.end = end;
        }
    }

    /// The sender has no more of `range`: what is missing of it is gone. The answer is what comes next for the
    /// application; the rest is popped when its turn comes.
    pub(super) fn give_up(&mut self, pool: &mut Pool, range: Range) -> Option<Range> {
        let mut range = range.within(Range { start: self.next, end: self.end });
        let mut first = None;
        while !range.is_empty() {
            let (before, after) = self.around(pool, range.start);
            if let Some(held) = before.map(|place| &pool.held[place as usize])
                && range.start.lt(end_of(held))
            {
                range.start = end_of(held);
                continue;
            }
            let end = after.map_or(self.end, |place| pool.held[place as usize].seq).min(range.end);
            let len = end.distance(range.start) as u32;
            if range.start == self.next {
                first = Some(Range { start: self.next, end });
                self.next = end;
            } else if !self.put(pool, (before, after), (range.start, len, None), Instant::ZERO) {
                // Without a place it stays missing; the sink will ask again and be told again.
                break;
            }
            range.start = end;
        }
        first
    }

    /// What the application is given next, in order.
    pub(super) fn pop(&mut self, pool: &mut Pool) -> Option<Ready> {
        let held = pool.held.get(self.first as usize)?;
        if held.seq != self.next {
            return None;
        }
        let (seq, end, next) = (held.seq, end_of(held), held.next);
        let payload = pool.release(self.first);
        (self.first, self.next) = (next, end);
        self.count -= 1;
        Some(match payload {
            Some(payload) => Ready::Packet(seq, payload),
            None => Ready::Gone(Range { start: seq, end }),
        })
    }

    /// Gives all places back.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        while self.first != NONE {
            let next = pool.held[self.first as usize].next;
            pool.release(self.first);
            self.first = next;
        }
        self.count = 0;
    }

    /// When the first gap is to be asked for.
    pub(super) fn due(&self, pool: &Pool) -> Option<Instant> {
        self.gaps(pool).map(|(_, gap)| gap.due).min()
    }

    /// Packets that are missing.
    pub(super) fn missing(&self, pool: &Pool) -> u32 {
        self.gaps(pool).map(|(range, _)| range.len()).sum()
    }

    /// Every gap is due at `now`.
    pub(super) fn hurry(&mut self, pool: &mut Pool, now: Instant) {
        self.each_gap(pool, |_, gap| gap.due = now);
    }

    /// What is due at `now`, as much as one SNACK takes; it is due again when `again` says, by how often it was asked for.
    pub(super) fn ask(&mut self, pool: &mut Pool, now: Instant, again: impl Fn(u8) -> Instant) -> Ranges {
        let mut asked = Ranges::EMPTY;
        self.each_gap(pool, |range, gap| {
            if gap.due <= now && asked.push(range) {
                *gap = Gap { due: again(gap.asked), asked: gap.asked.saturating_add(1) };
            }
        });
        asked
    }

    fn gaps<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = (Range, Gap)> + 'a {
        let mut place = self.first;
        let mut start = self.next;
        let mut over = false;
        core::iter::from_fn(move || {
            if over {
                return None;
            }
            let Some(held) = pool.held.get(place as usize) else {
                over = true;
                return Some((Range { start, end: self.end }, self.tail));
            };
            let range = Range { start, end: held.seq };
            (start, place) = (end_of(held), held.next);
            Some((range, held.gap))
        })
        .filter(|(range, _)| !range.is_empty())
    }

    fn each_gap(&mut self, pool: &mut Pool, mut act: impl FnMut(Range, &mut Gap)) {
        let mut start = self.next;
        let mut place = self.first;
        while let Some(held) = pool.held.get_mut(place as usize) {
            let range = Range { start, end: held.seq };
            if !range.is_empty() {
                act(range, &mut held.gap);
            }
            (start, place) = (end_of(held), held.next);
        }
        let range = Range { start, end: self.end };
        if !range.is_empty() {
            act(range, &mut self.tail);
        }
    }

    /// The places before and after `seq`: the last that begins at or before it, and the first that begins after.
    fn around(&self, pool: &Pool, seq: Seq) -> (Option<u32>, Option<u32>) {
        let (mut before, mut after) = (None, self.first);
        while let Some(held) = pool.held.get(after as usize)
            && held.seq.le(seq)
        {
            before = Some(after);
            after = held.next;
        }
        (before, (after != NONE).then_some(after))
    }

    fn last_end(&self, pool: &Pool) -> Seq {
        let mut end = self.next;
        let mut place = self.first;
        while let Some(held) = pool.held.get(place as usize) {
            (end, place) = (end_of(held), held.next);
        }
        end
    }

    /// Puts something into a gap, or behind the end; what is missing before it keeps the time at which it is due.
    fn put(
        &mut self,
        pool: &mut Pool,
        (before, after): (Option<u32>, Option<u32>),
        (seq, len, payload): (Seq, u32, Option<Bytes>),
        due: Instant,
    ) -> bool {
        let behind = before.map_or(self.next, |place| end_of(&pool.held[place as usize]));
        let gap = match after {
            Some(after) => pool.held[after as usize].gap,
            // Two gaps at the end that have no packet between them are one, with the time of the first.
            None if behind.lt(self.end) => self.tail,
            None => Gap { due, asked: 0 },
        };
        let next = after.unwrap_or(NONE);
        let Some(place) = pool.take(Held { seq, len, payload, gap, next }) else { return false };
        match before {
            Some(before) => pool.held[before as usize].next = place,
            None => self.first = place,
        }
        self.count += 1;
        self.end = self.end.max(seq + len);
        true
    }
}

fn end_of(held: &Held) -> Seq {
    held.seq + held.len
}
