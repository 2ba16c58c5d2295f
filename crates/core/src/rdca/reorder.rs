//! Received packets of a stream, and the Sink Loss List of missing ones (section 3.4).
//!
//! The list has no storage of its own: each held packet records the gap before it. All streams
//! share one pool of places, which bounds the memory of all of them together.

use alloc::vec::Vec;

use anabranch_wire::rdca::{Piece, Range, Ranges, Seq};
use bytes::Bytes;

use crate::time::Instant;

/// Index that means no place.
const NONE: u32 = u32::MAX;
/// Largest distance between two packets of a stream: the length of a range has two bytes in a
/// datagram.
const SPAN: u32 = 60_000;

/// A gap of missing packets, and when to request it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    /// Time of the next SNACK that lists the gap.
    pub due: Instant,
    /// Number of SNACKs that have listed it.
    pub asked: u8,
}

#[derive(Debug)]
struct Held {
    seq: Seq,
    /// Number of packets: 1 for a received packet, any number for lost ones.
    len: u32,
    piece: Piece,
    /// `None` for lost packets.
    payload: Option<Bytes>,
    /// The gap before this entry, if there is one.
    gap: Gap,
    next: u32,
}

/// The places of all streams, and the bytes that they and incomplete data take.
#[derive(Debug)]
pub(super) struct Pool {
    held: Vec<Held>,
    /// The first free place.
    free: u32,
    used: usize,
    most: usize,
    bytes: usize,
    most_bytes: usize,
}

impl Pool {
    pub(super) const fn new(most: usize, most_bytes: usize) -> Self {
        Self { held: Vec::new(), free: NONE, used: 0, most, bytes: 0, most_bytes }
    }

    /// Whether incomplete data of `bytes` bytes has room.
    pub(super) const fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.most_bytes.saturating_sub(self.bytes)
    }

    /// Counts bytes of incomplete data. Returns `false` if there is no room for them.
    pub(super) fn reserve(&mut self, bytes: usize) -> bool {
        let is_room = self.has_room(bytes);
        if is_room {
            self.bytes += bytes;
        }
        is_room
    }

    /// The opposite of [`Pool::reserve`].
    pub(super) const fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Size of a place in bytes, without the packet.
    pub(super) const PLACE: usize = size_of::<Held>();

    fn take(&mut self, held: Held) -> Option<u32> {
        let bytes = held.payload.as_ref().map_or(0, Bytes::len);
        // A dropped packet is only requested again, but incomplete data without room is lost. So
        // packets leave half of the room to it.
        let is_full = bytes > (self.most_bytes / 2).saturating_sub(self.bytes);
        if self.used >= self.most || bytes > 0 && is_full {
            return None;
        }
        self.bytes += bytes;
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
        let payload = held.payload.take();
        self.give_back(payload.as_ref().map_or(0, Bytes::len));
        payload
    }
}

/// Result of the insertion of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Placed {
    /// The packet is the next one for the application. It needs no place, so a full pool cannot
    /// block a stream forever.
    Next,
    /// The packet is held for later.
    Held,
    /// The packet was received before, or counts as lost.
    Known,
    /// There is no space; the packet counts as missing.
    NoRoom,
}

/// Output for the application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    Packet(Seq, Piece, Bytes),
    Gone(Range),
}

/// The reorder state of one stream.
#[derive(Clone, Debug)]
pub(super) struct Reorder {
    /// The next packet for the application.
    next: Seq,
    /// Number after the last packet that is known to have been sent.
    end: Seq,
    // First and number of places of the stream in the pool, and their limit.
    first: u32,
    count: u16,
    most: u16,
    /// The gap after the last held packet, if there is one.
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

    /// Whether no packet that was sent is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.next == self.end
    }

    /// Inserts a packet. A new gap before it is requested at `due`.
    pub(super) fn insert(
        &mut self,
        pool: &mut Pool,
        seq: Seq,
        (piece, payload): (Piece, &Bytes),
        due: Instant,
    ) -> Placed {
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
        if self.count < self.most
            && self.put(pool, (before, after), (seq, 1, Some((piece, payload.clone()))), due)
        {
            Placed::Held
        } else {
            self.extend(seq + 1, due, pool);
            Placed::NoRoom
        }
    }

    /// Notes that the sender has sent all packets before `end`.
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

    /// Marks the missing packets of `range` as lost, because the sender no longer has them. Returns
    /// the part that is next for the application; the rest follows through [`Reorder::pop`].
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
                // Without a place the range stays missing; the sink requests it again, and the
                // sender repeats its answer.
                break;
            }
            range.start = end;
        }
        first
    }

    /// Returns the next item for the application in order, if there is one.
    pub(super) fn pop(&mut self, pool: &mut Pool) -> Option<Ready> {
        let held = pool.held.get(self.first as usize)?;
        if held.seq != self.next {
            return None;
        }
        let (seq, piece, end, next) = (held.seq, held.piece, end_of(held), held.next);
        let payload = pool.release(self.first);
        (self.first, self.next) = (next, end);
        self.count -= 1;
        Some(match payload {
            Some(payload) => Ready::Packet(seq, piece, payload),
            None => Ready::Gone(Range { start: seq, end }),
        })
    }

    /// Returns all places to the pool.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        while self.first != NONE {
            let next = pool.held[self.first as usize].next;
            pool.release(self.first);
            self.first = next;
        }
        self.count = 0;
    }

    /// When the first gap must be requested.
    pub(super) fn due(&self, pool: &Pool) -> Option<Instant> {
        self.gaps(pool).map(|(_, gap)| gap.due).min()
    }

    /// Number of missing packets.
    pub(super) fn missing(&self, pool: &Pool) -> u32 {
        self.gaps(pool).map(|(range, _)| range.len()).sum()
    }

    /// Makes every gap due at `now`.
    pub(super) fn hurry(&mut self, pool: &mut Pool, now: Instant) {
        self.each_gap(pool, |_, gap| gap.due = now);
    }

    /// Returns the gaps due at `now`, as many as fit into one SNACK. Includes gaps that are due for
    /// the first time until `collected`, to save a further SNACK. `again` gives the next due time
    /// from the number of earlier requests.
    pub(super) fn ask(
        &mut self,
        pool: &mut Pool,
        now: Instant,
        collected: Instant,
        again: impl Fn(u8) -> Instant,
    ) -> Ranges {
        let mut asked = Ranges::EMPTY;
        self.each_gap(pool, |range, gap| {
            let is_due = gap.due <= now || gap.asked == 0 && gap.due <= collected;
            if is_due && asked.push(range) {
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

    /// Returns the places around `seq`: the last one that begins at or before it, and the first one
    /// that begins after it.
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

    /// Inserts an entry into a gap or after the end. The gap before it keeps its due time.
    fn put(
        &mut self,
        pool: &mut Pool,
        (before, after): (Option<u32>, Option<u32>),
        (seq, len, packet): (Seq, u32, Option<(Piece, Bytes)>),
        due: Instant,
    ) -> bool {
        let behind = before.map_or(self.next, |place| end_of(&pool.held[place as usize]));
        let gap = match after {
            Some(after) => pool.held[after as usize].gap,
            // Two gaps at the end without a packet between them merge, with the due time of the
            // first.
            None if behind.lt(self.end) => self.tail,
            None => Gap { due, asked: 0 },
        };
        let next = after.unwrap_or(NONE);
        let (piece, payload) = packet.map_or((Piece::Whole, None), |(piece, payload)| (piece, Some(payload)));
        let Some(place) = pool.take(Held { seq, len, piece, payload, gap, next }) else { return false };
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

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use anabranch_testkit::prng::Prng;

    /// Known packets from `next` on: received (`true`) or lost (`false`); all others are missing.
    struct Oracle {
        next: u32,
        end: u32,
        known: BTreeMap<u32, bool>,
    }

    impl Oracle {
        fn ready(&mut self) -> Vec<(u32, bool)> {
            let mut ready = Vec::new();
            while let Some(there) = self.known.remove(&self.next) {
                ready.push((self.next, there));
                self.next += 1;
            }
            ready
        }
    }

    /// Every packet of the output one by one, with whether it was received.
    fn pop(reorder: &mut Reorder, pool: &mut Pool) -> Vec<(u32, bool)> {
        let mut out = Vec::new();
        while let Some(ready) = reorder.pop(pool) {
            match ready {
                Ready::Packet(seq, piece, payload) => {
                    assert_eq!(piece, Piece::of(seq.0 as usize % 3, 3));
                    assert_eq!(payload[..], seq.0.to_be_bytes());
                    out.push((seq.0, true));
                }
                Ready::Gone(range) => out.extend((0..range.len()).map(|i| ((range.start + i).0, false))),
            }
        }
        out
    }

    fn run(seed: u64) {
        let mut prng = Prng::new(seed);
        let first = 1000;
        let mut pool = Pool::new(1000, usize::MAX);
        let mut reorder = Reorder::new(Seq(first), 1000);
        let mut oracle = Oracle { next: first, end: first, known: BTreeMap::new() };
        let due = Instant::from_nanos(7);
        for _ in 0..200 {
            let at = oracle.next + prng.below(20) as u32;
            let mut out = Vec::new();
            match prng.below(8) {
                0 => {
                    let range = Range { start: Seq(at), end: Seq(at) + prng.below(6) as u32 };
                    for seq in (at..range.end.0).filter(|seq| *seq < oracle.end) {
                        oracle.known.entry(seq).or_insert(false);
                    }
                    let first = reorder.give_up(&mut pool, range);
                    out.extend(first.iter().flat_map(|r| (r.start.0..r.end.0).map(|seq| (seq, false))));
                }
                1 => {
                    oracle.end = oracle.end.max(at);
                    reorder.extend(Seq(at), due, &pool);
                }
                _ => {
                    let payload = Bytes::copy_from_slice(&at.to_be_bytes());
                    let piece = Piece::of(at as usize % 3, 3);
                    let placed = reorder.insert(&mut pool, Seq(at), (piece, &payload), due);
                    let known = oracle.known.contains_key(&at);
                    assert_eq!(placed == Placed::Known, known, "seed {seed}, {at}");
                    oracle.known.entry(at).or_insert(true);
                    oracle.end = oracle.end.max(at + 1);
                    out.extend((placed == Placed::Next).then_some((at, true)));
                }
            }
            out.extend(pop(&mut reorder, &mut pool));
            assert_eq!(out, oracle.ready(), "seed {seed}");
            assert_eq!(
                (reorder.next().0, reorder.end().0),
                (oracle.next, oracle.end.max(oracle.next)),
                "seed {seed}"
            );
            let missing: Vec<u32> =
                (oracle.next..oracle.end).filter(|s| !oracle.known.contains_key(s)).collect();
            let gaps: Vec<u32> = reorder.gaps(&pool).flat_map(|(r, _)| r.start.0..r.end.0).collect();
            assert_eq!(gaps, missing, "seed {seed}");
            assert_eq!(reorder.missing(&pool) as usize, missing.len());
            assert_eq!(reorder.is_whole(), missing.is_empty() && oracle.known.is_empty());
        }
        reorder.clear(&mut pool);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn it_agrees_with_a_map_of_all_packets() {
        (0..300).for_each(run);
    }

    /// Regression test from fuzzing: a range this far away was accepted, and the sink sent SNACKs
    /// forever.
    #[test]
    fn what_is_given_up_half_the_numbers_away_changes_nothing() {
        let mut pool = Pool::new(10, usize::MAX);
        let mut reorder = Reorder::new(Seq(0), 10);
        let far = Range { start: Seq(i32::MAX as u32), end: Seq(1 << 31) };
        assert_eq!(reorder.give_up(&mut pool, far), None);
        assert_eq!((reorder.due(&pool), reorder.end(), pool.used()), (None, Seq(0), 0));
    }

    #[test]
    fn a_gap_that_is_filled_in_the_middle_keeps_its_time() {
        let mut pool = Pool::new(10, usize::MAX);
        let mut reorder = Reorder::new(Seq(u32::MAX - 1), 10);
        let at = Instant::from_nanos;
        let insert = |reorder: &mut Reorder, pool: &mut Pool, seq: u32, due: u64| {
            reorder.insert(pool, Seq(seq), (Piece::Whole, &Bytes::new()), at(due))
        };
        assert_eq!(insert(&mut reorder, &mut pool, 3, 50), Placed::Held);
        assert_eq!(insert(&mut reorder, &mut pool, 5, 60), Placed::Held);
        let asked = reorder.ask(&mut pool, at(55), at(55), |asked| at(100 + u64::from(asked)));
        assert_eq!(asked.as_slice(), [Range { start: Seq(u32::MAX - 1), end: Seq(3) }]);
        assert_eq!(insert(&mut reorder, &mut pool, 0, 70), Placed::Held);
        assert_eq!(reorder.due(&pool), Some(at(60)));
        let asked = reorder.ask(&mut pool, at(100), at(100), |asked| at(200 + u64::from(asked)));
        let ranges = [(u32::MAX - 1, 0), (1, 3), (4, 5)].map(|(s, e)| Range { start: Seq(s), end: Seq(e) });
        assert_eq!(asked.as_slice(), ranges);
        assert_eq!(reorder.due(&pool), Some(at(200)));
        reorder.hurry(&mut pool, at(9));
        assert_eq!(reorder.due(&pool), Some(at(9)));
    }

    #[test]
    fn all_bytes_are_counted_and_given_back() {
        let mut pool = Pool::new(10, 20);
        let mut streams = [Reorder::new(Seq(0), 10), Reorder::new(Seq(0), 10)];
        let mut insert = |pool: &mut Pool, stream: usize, seq: u32| {
            let payload = Bytes::copy_from_slice(&seq.to_be_bytes());
            let packet = (Piece::of(seq as usize % 3, 3), &payload);
            streams[stream].insert(pool, Seq(seq), packet, Instant::ZERO)
        };
        assert_eq!(insert(&mut pool, 0, 1), Placed::Held);
        assert_eq!(insert(&mut pool, 1, 5), Placed::Held);
        assert_eq!(insert(&mut pool, 1, 6), Placed::NoRoom, "packets leave half of the room");
        assert_eq!(insert(&mut pool, 0, 0), Placed::Next, "the next packet takes no room");
        assert!(pool.reserve(12) && !pool.reserve(1), "incomplete data has the rest");
        pool.give_back(12);
        assert_eq!(pop(&mut streams[0], &mut pool), [(1, true)]);
        streams[1].clear(&mut pool);
        assert_eq!((pool.bytes, pool.used()), (0, 0));
    }
}
