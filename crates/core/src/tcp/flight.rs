//! Segments that were sent and are not acknowledged: what the peer has reported of each, and
//! whether it is lost (RFC 6675 section 4).
//!
//! [`Scoreboard`] holds the peer's reports, and [`Flight`] the consequences for each segment. A
//! loss is judged once and remembered. The number of bytes in the network is therefore a counter
//! and not a sum over the queue.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::rate::Rate;
use super::sack::Scoreboard;
use crate::segment::{SackBlock, SeqNumber};
use crate::time::{Duration, Instant};

/// The sender's retransmission queue.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// From SND.UNA to SND.MAX without gaps.
    segments: VecDeque<Sent>,
    board: Scoreboard,
    /// Bytes estimated to be in the network, copies counted.
    pipe: u32,
    /// Bytes that are lost and not yet retransmitted.
    lost: u32,
    /// No segment before this number is lost.
    lost_from: SeqNumber,
    /// All segments before this number were judged by the peer's reports.
    judged: SeqNumber,
    /// HighRxt: just past the highest byte retransmitted in this recovery.
    high_rxt: SeqNumber,
    /// RescueRxt (RFC 6675 section 2).
    rescue: Option<SeqNumber>,
    /// Number of segments ever found lost.
    losses: u64,
    /// RACK.fack (RFC 8985 section 6.2 step 3): just past the highest byte delivered.
    highest: Option<SeqNumber>,
    /// Deliveries since the last call of `take_arrivals`.
    arrivals: Arrivals,
    /// Transmissions in the order of time, for RACK. Stale entries are dropped when they reach the
    /// front.
    order: VecDeque<Transmission>,
    /// Rate sampling, for controllers that use it.
    pub(crate) rate: Option<Box<Rate>>,
}

/// Summary of newly delivered segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    /// The last-sent one of the segments that were sent once.
    pub(crate) first: Option<Transmission>,
    /// The last-sent one of the segments that were retransmitted.
    pub(crate) again: Option<Transmission>,
    /// Whether a segment that was sent once arrived after a later one.
    pub(crate) reordered: bool,
}

impl Arrivals {
    /// Whether a whole segment has arrived.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.first.is_some() || self.again.is_some()
    }
}

/// When a segment was sent. Of two segments sent at the same time, the one with the higher sequence
/// number counts as later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transmission {
    pub(crate) at: Instant,
    pub(crate) end: SeqNumber,
}

impl Transmission {
    /// RACK_sent_after() (RFC 8985 section 6.2).
    #[inline]
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        self.at > other.at || (self.at == other.at && self.end.gt(other.end))
    }
}

/// One segment, as last sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: SeqNumber,
    end: SeqNumber,
    /// When it was last sent.
    at: Instant,
    /// Number of transmissions estimated to be in the network.
    copies: u8,
    /// Whether the segment was sent more than once.
    again: bool,
    fate: Fate,
}

/// Known state of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// No report yet.
    Unknown,
    /// Lost, and to be retransmitted.
    Lost,
    /// The peer has reported it.
    Reported,
}

impl Sent {
    fn len(&self) -> u32 {
        self.end.distance(self.seq).max(0) as u32
    }

    fn weight(&self) -> u32 {
        self.len() * u32::from(self.copies)
    }
}

impl Flight {
    /// SetPipe() (RFC 6675 section 4): bytes estimated to be in the network.
    #[inline]
    pub(crate) fn pipe(&self) -> u32 {
        self.pipe
    }

    /// Bytes that are lost and not yet retransmitted.
    #[inline]
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Bytes in `from..to` that the peer has reported.
    pub(crate) fn reported(&self, from: SeqNumber, to: SeqNumber) -> u32 {
        self.board.reported(from, to)
    }

    /// The first run of bytes in `from..to` that the peer has not reported.
    pub(crate) fn hole(&self, from: SeqNumber, to: SeqNumber) -> Option<SackBlock> {
        self.board.hole(from, to)
    }

    /// Records a sent segment: at SND.MAX, or a retransmission.
    #[inline]
    pub(crate) fn sent(&mut self, at: Instant, seq: SeqNumber, end: SeqNumber) {
        let (before, again) = (self.pipe, self.segments.back().is_some_and(|last| last.end != seq));
        if again {
            self.sent_again(at, seq, end);
        } else {
            if self.segments.is_empty() {
                (self.lost_from, self.judged, self.high_rxt) = (seq, seq, seq);
            }
            self.pipe += end.distance(seq).max(0) as u32;
            self.segments.push_back(Sent { seq, end, at, copies: 1, again: false, fate: Fate::Unknown });
        }
        if let Some(rate) = &mut self.rate {
            rate.sent(at, (seq, end), (before, self.pipe), again);
        }
    }

    fn sent_again(&mut self, at: Instant, seq: SeqNumber, end: SeqNumber) {
        let mut i = self.index(seq);
        let Some(found) = self.take(i) else { return };
        if found.seq.lt(seq) {
            self.put(i, Sent { end: seq, ..found });
            self.keep_order_of(Transmission { at: found.at, end: seq });
            i += 1;
        }
        let (mut last, mut copies) = (found, found.copies);
        while last.end.lt(end)
            // A retransmission may begin and end within segments, because segment sizes change. The
            // pieces that are cut off keep their own history.
            && let Some(next) = self.take(i)
        {
            copies = copies.min(next.copies);
            last = next;
        }
        // RFC 6675 counts a byte at most twice.
        let copies = (copies + 1).min(2);
        self.put(i, Sent { seq, end, at, copies, again: true, fate: Fate::Unknown });
        if last.end.gt(end) {
            self.put(i + 1, Sent { seq: end, ..last });
        }
        self.high_rxt = self.high_rxt.max(end);
        if self.lost_from == seq {
            self.lost_from = end;
        }
    }

    /// Removes a segment.
    fn take(&mut self, i: usize) -> Option<Sent> {
        self.forget(i);
        self.segments.remove(i)
    }

    /// Inserts a segment and adds it to the counters.
    fn put(&mut self, i: usize, segment: Sent) {
        self.pipe += segment.weight();
        if segment.fate == Fate::Lost {
            self.lost += segment.len();
        }
        self.segments.insert(i, segment);
    }

    /// Subtracts a segment from the counters.
    #[inline]
    fn forget(&mut self, i: usize) {
        if let Some(segment) = self.segments.get(i) {
            self.pipe -= segment.weight();
            if segment.fate == Fate::Lost {
                self.lost -= segment.len();
            }
        }
    }

    /// Index of the first segment that ends past `seq`.
    fn index(&self, seq: SeqNumber) -> usize {
        self.segments.partition_point(|segment| segment.end.le(seq))
    }

    /// Removes the segments below the new SND.UNA.
    #[inline]
    pub(crate) fn acknowledge(&mut self, una: SeqNumber) {
        // One acknowledgement may cover several segments, so all are compared with the highest byte
        // before it.
        let highest = self.highest;
        while let Some(first) = self.segments.front() {
            if first.seq.ge(una) {
                break;
            }
            let first = *first;
            let rest = Sent { seq: una.min(first.end), ..first };
            if first.fate != Fate::Reported && rest.len() == 0 {
                self.arrived(&first, highest);
            } else if first.fate != Fate::Reported
                && let Some(rate) = &mut self.rate
            {
                // A part of a segment gives no rate sample, but its bytes count as delivered.
                rate.count(una.distance(first.seq).max(0) as u32);
            }
            self.forget(0);
            self.segments.pop_front();
            if rest.len() > 0 {
                self.put(0, rest);
            }
        }
        self.board.advance(una);
        if let Some(rate) = &mut self.rate {
            rate.acknowledged(una);
        }
        self.lost_from = self.lost_from.max(una);
        self.judged = self.judged.max(una);
        self.high_rxt = self.high_rxt.max(una);
    }

    /// Processes the peer's SACK blocks; returns the number of newly reported bytes. Ignores blocks
    /// that are empty, reversed or outside of (SND.UNA, SND.MAX], and D-SACKs (RFC 2883).
    pub(crate) fn report(&mut self, una: SeqNumber, max: SeqNumber, blocks: &[SackBlock]) -> u32 {
        let mut news = 0;
        // The blocks of one acknowledgement are ordered by recency, not by arrival (RFC 2018
        // section 4), so all of them are compared with the highest byte before it.
        let highest = self.highest;
        // Offsets from SND.UNA: sequence comparisons are valid only within half of the space, and a
        // block of a hostile peer may lie anywhere.
        let offset = |seq: SeqNumber| seq.0.wrapping_sub(una.0);
        for block in blocks {
            let (left, right) = (offset(block.left), offset(block.right));
            if left < right && right <= offset(max) {
                let missing = right - left - self.board.reported(block.left, block.right);
                if let Some(hole) = self.board.hole(block.left, block.right)
                    && let Some(merged) = self.board.add(*block, self.segments.len())
                {
                    news += missing;
                    // A block usually grows at its end. Skipping the known part keeps the cost
                    // proportional to the new segments.
                    self.mark_reported(SackBlock { left: hole.left, ..*block }, merged, highest);
                }
            }
        }
        news
    }

    /// Marks segments that `block` touches and that lie within `merged` as delivered. A partly
    /// reported segment waits for the rest: splitting it would let a peer make us keep more
    /// segments than we have sent.
    fn mark_reported(&mut self, block: SackBlock, merged: SackBlock, highest: Option<SeqNumber>) {
        let mut i = self.index(block.left);
        while let Some(&segment) = self.segments.get(i)
            && segment.seq.lt(block.right)
        {
            if segment.fate != Fate::Reported && segment.seq.ge(merged.left) && segment.end.le(merged.right) {
                self.forget(i);
                self.segments[i] = Sent { copies: 0, fate: Fate::Reported, ..segment };
                self.arrived(&segment, highest);
            }
            i += 1;
        }
    }

    /// Notes that a segment has arrived. `highest` is the highest byte delivered before.
    #[inline]
    fn arrived(&mut self, segment: &Sent, highest: Option<SeqNumber>) {
        if let Some(rate) = &mut self.rate {
            rate.arrived(segment.at, segment.seq, segment.end);
        }
        let transmission = Transmission { at: segment.at, end: segment.end };
        let newest = if segment.again { &mut self.arrivals.again } else { &mut self.arrivals.first };
        if newest.is_none_or(|newest| transmission.is_after(&newest)) {
            *newest = Some(transmission);
        }
        // RFC 8985 section 6.2 step 3: only a segment that was sent once can show reordering,
        // because a retransmission always arrives out of order.
        self.arrivals.reordered |= !segment.again && highest.is_some_and(|highest| highest.ge(segment.end));
        if self.highest.is_none_or(|highest| highest.lt(segment.end)) {
            self.highest = Some(segment.end);
        }
    }

    /// Takes the deliveries since the last call.
    #[inline]
    pub(crate) fn take_arrivals(&mut self) -> Arrivals {
        core::mem::take(&mut self.arrivals)
    }

    /// Number of segments ever found lost; never decreases.
    #[inline]
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// Bytes above SND.UNA that the peer has reported.
    pub(crate) fn reported_bytes(&self) -> u32 {
        self.board.bytes()
    }

    /// Records the order of transmissions, for RACK.
    #[inline]
    pub(crate) fn note_order(&mut self, at: Instant, end: SeqNumber) {
        self.order.push_back(Transmission { at, end });
    }

    /// Records the rest of a segment of which a part was retransmitted.
    fn keep_order_of(&mut self, part: Transmission) {
        if !self.order.is_empty() {
            let i = self.order.partition_point(|other| part.is_after(other));
            self.order.insert(i, part);
        }
    }

    /// RACK_detect_loss() (RFC 8985 section 6.2 step 5): marks the segments lost that were sent
    /// before `newest` and at least `wait` ago. Returns when the next of the others becomes due.
    pub(crate) fn lose_by_time(
        &mut self,
        newest: &Transmission,
        now: Instant,
        wait: Duration,
    ) -> Option<Instant> {
        while let Some(transmission) = self.order.front() {
            let Transmission { at, end } = *transmission;
            let i = self.index(end - 1);
            let stands = |segment: &&Sent| segment.at == at && segment.fate == Fate::Unknown;
            if self.segments.get(i).filter(stands).is_some_and(|segment| segment.seq.lt(end)) {
                if !newest.is_after(transmission) {
                    // Later entries were sent even later.
                    return None;
                }
                if at + wait > now {
                    return Some(at + wait);
                }
                self.lose(i);
            }
            // The entry is stale, or its segment was marked lost above.
            self.order.pop_front();
        }
        None
    }

    /// RACK_mark_losses_on_RTO() (RFC 8985 section 6.3): marks the first segment lost, and the
    /// segments that were sent at least `wait` ago.
    pub(crate) fn lose_on_timeout(&mut self, now: Instant, wait: Duration) {
        // A peer that has reneged may have dropped all reported data (RFC 2018 section 8).
        if self.is_reneged() {
            return self.lose_all();
        }
        self.rescue = None;
        for i in 0..self.segments.len() {
            let segment = &self.segments[i];
            if segment.fate == Fate::Unknown && (i == 0 || segment.at + wait <= now) {
                self.lose(i);
            }
        }
    }

    /// The last segment that was sent.
    pub(crate) fn last(&self) -> Option<SackBlock> {
        self.segments.back().map(|last| SackBlock { left: last.seq, right: last.end })
    }

    /// IsLost() (RFC 6675 section 4) for all segments; returns whether the first is lost.
    pub(crate) fn judge(&mut self, mss: u32) -> bool {
        let Some(edge) = self.board.lost_edge(mss) else { return false };
        let mut i = self.index(self.judged);
        while let Some(&segment) = self.segments.get(i)
            && segment.end.le(edge)
        {
            if segment.fate == Fate::Unknown {
                self.judge_one(i, segment);
            }
            i += 1;
        }
        self.judged = self.judged.max(edge);
        self.segments.front().is_some_and(|first| first.end.le(edge))
    }

    /// Marks the first transmission of a segment lost. A second transmission in this recovery
    /// (rules 3 and 4 of NextSeg) is not judged again.
    fn judge_one(&mut self, i: usize, segment: Sent) {
        let resent = segment.copies > 1 && segment.seq.lt(self.high_rxt);
        if resent {
            // The first transmission has left the network; the second one still counts.
            self.forget(i);
            self.segments[i].copies = 1;
            self.pipe += segment.len();
        } else if segment.copies == 1 && segment.seq.ge(self.high_rxt) {
            self.lose(i);
        }
    }

    /// Marks a segment lost to congestion, for retransmission.
    fn lose(&mut self, i: usize) {
        self.withdraw(i);
        let segment = self.segments[i];
        if let Some(rate) = &mut self.rate {
            rate.lost(segment.at, segment.seq, segment.end);
        }
    }

    /// Marks a segment for retransmission without a sign of congestion.
    fn withdraw(&mut self, i: usize) {
        self.forget(i);
        let segment = &mut self.segments[i];
        segment.copies = 0;
        segment.fate = Fate::Lost;
        self.losses += 1;
        self.lost += segment.len();
        self.lost_from = self.lost_from.min(segment.seq);
    }

    /// Reverts all loss marks: the losses were spurious, and the segments are in the network.
    /// `ordered` rebuilds the order of transmissions for RACK.
    pub(crate) fn lose_none(&mut self, ordered: bool) {
        for i in 0..self.segments.len() {
            if self.segments[i].fate == Fate::Lost {
                self.forget(i);
                let segment = &mut self.segments[i];
                (segment.fate, segment.copies) = (Fate::Unknown, 1);
                self.pipe += segment.len();
            }
        }
        self.rescue = None;
        // Later reports must judge the reverted segments again.
        if let Some(first) = self.segments.front() {
            self.judged = first.seq;
        }
        self.keep_order(ordered);
    }

    /// Rebuilds the order of all transmissions that may be lost, or clears it.
    pub(crate) fn keep_order(&mut self, ordered: bool) {
        self.order.clear();
        if ordered {
            let unknown = self.segments.iter().filter(|segment| segment.fate == Fate::Unknown);
            self.order.extend(unknown.map(|segment| Transmission { at: segment.at, end: segment.end }));
            let sooner = |a: &Transmission, b: &Transmission| {
                a.at.cmp(&b.at).then_with(|| a.end.distance(b.end).cmp(&0))
            };
            self.order.make_contiguous().sort_unstable_by(sooner);
        }
    }

    /// Marks the first segment lost, whatever was reported.
    pub(crate) fn lose_first(&mut self) {
        self.give_up(1, Self::lose);
    }

    /// Marks the first segment for retransmission without a sign of congestion: the route was lost.
    pub(crate) fn withdraw_first(&mut self) {
        self.give_up(1, Self::withdraw);
    }

    /// Marks all unreported segments lost.
    pub(crate) fn lose_all(&mut self) {
        self.give_up_all(Self::lose);
    }

    /// Marks all unreported segments for retransmission without a sign of congestion: the peer's
    /// window was closed.
    pub(crate) fn withdraw_all(&mut self) {
        self.give_up_all(Self::withdraw);
    }

    fn give_up_all(&mut self, one: fn(&mut Self, usize)) {
        self.check_reneging();
        self.rescue = None;
        self.give_up(self.segments.len(), one);
    }

    /// Applies `one` to the unreported and not yet lost ones of the first `most` segments.
    fn give_up(&mut self, most: usize, one: fn(&mut Self, usize)) {
        for i in 0..most.min(self.segments.len()) {
            if self.segments[i].fate == Fate::Unknown {
                one(self, i);
            }
        }
    }

    /// Whether the peer has reneged: it does not acknowledge data at SND.UNA that it has reported.
    pub(crate) fn is_reneged(&self) -> bool {
        self.segments.front().is_some_and(|first| first.fate == Fate::Reported)
    }

    /// Reports stay valid over a time-out unless the peer has reneged. Then the first segment is
    /// among the reported ones, because the peer would have acknowledged it otherwise (RFC 2018
    /// section 8).
    fn check_reneging(&mut self) {
        if self.is_reneged() {
            self.board.clear();
            for segment in self.segments.iter_mut().filter(|segment| segment.fate == Fate::Reported) {
                segment.fate = Fate::Unknown;
            }
        }
    }

    /// Begins a recovery at `una` (RFC 6675 section 5 step 4).
    pub(crate) fn begin_recovery(&mut self, una: SeqNumber) {
        self.high_rxt = una;
        self.rescue = None;
    }

    /// NextSeg() rule 1 (RFC 6675 section 4): the first run of lost segments. The run may exceed
    /// `mss` bytes; it ends at the last segment sent or before one that is not lost.
    pub(crate) fn next_lost(&mut self, mss: u32) -> Option<SackBlock> {
        if self.lost == 0 {
            return None;
        }
        let lost = |segment: &Sent| segment.fate == Fate::Lost;
        let mut i = self.index(self.lost_from);
        while !lost(self.segments.get(i)?) {
            i += 1;
        }
        let Sent { seq: left, end: mut right, .. } = self.segments[i];
        self.lost_from = left;
        while (right.distance(left).max(0) as u32) < mss
            && let Some(next) = self.segments.get(i + 1)
            && lost(next)
        {
            right = next.end;
            i += 1;
        }
        Some(SackBlock { left, right })
    }

    /// NextSeg() rule 3: the next unreported segment below the reported ones, lost or not.
    pub(crate) fn next_doubtful(&self, una: SeqNumber) -> Option<SackBlock> {
        self.board.hole(self.high_rxt.max(una), self.board.last()?.left)
    }

    /// NextSeg() rule 4: once per recovery, the last unreported segment.
    pub(crate) fn rescue(&mut self, una: SeqNumber, max: SeqNumber, mss: u32) -> Option<SackBlock> {
        if self.rescue.is_some_and(|at| una.le(at)) {
            return None;
        }
        let last = self.board.last_hole(una, max)?;
        self.rescue = Some(max);
        let left = last.left.max(last.right - mss.min(last.right.distance(una).max(0) as u32));
        Some(SackBlock { left, ..last })
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::tcp::sack::DUP_THRESH;

    const UNA: SeqNumber = SeqNumber(u32::MAX - 30);
    const SPACE: u32 = 80;
    const MSS: u32 = 4;

    /// A flight in which all of [`SPACE`] was sent, one byte per segment, and a recovery begins.
    fn flight() -> Flight {
        let mut flight = Flight::default();
        (0..SPACE).for_each(|at| flight.sent(Instant::ZERO, UNA + at, UNA + (at + 1)));
        flight.begin_recovery(UNA);
        flight
    }

    /// One bit per byte: RFC 6675 section 4 taken literally.
    struct Oracle {
        held: Vec<bool>,
        /// Whether the byte was ever judged lost. Reports may join runs and so reduce their number,
        /// but a loss stays a loss.
        lost: Vec<bool>,
        una: u32,
    }

    impl Oracle {
        fn octets_and_runs_above(&self, from: u32) -> (u32, u32) {
            let tail = &self.held[from as usize..];
            let octets = tail.iter().filter(|held| **held).count() as u32;
            let starts = (0..tail.len()).filter(|&i| tail[i] && (i == 0 || !tail[i - 1])).count();
            (octets, starts as u32)
        }

        fn judge(&mut self) {
            for octet in 0..SPACE {
                let (octets, runs) = self.octets_and_runs_above(octet);
                self.lost[octet as usize] |= runs >= DUP_THRESH || octets > (DUP_THRESH - 1) * MSS;
            }
        }

        fn is_lost(&self, octet: u32) -> bool {
            self.lost[octet as usize]
        }

        fn pipe(&self, high_rxt: u32) -> u32 {
            let mut pipe = 0;
            for octet in self.una..SPACE {
                if !self.held[octet as usize] {
                    pipe += u32::from(!self.is_lost(octet)) + u32::from(octet < high_rxt);
                }
            }
            pipe
        }

        fn next_lost(&self, high_rxt: u32) -> Option<u32> {
            (self.una.max(high_rxt)..SPACE).find(|&o| !self.held[o as usize] && self.is_lost(o))
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Report(u32, u32),
        Advance(u32),
        Resend,
    }

    fn any_op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => (0..SPACE, 1..12_u32).prop_map(|(at, n)| Op::Report(at, n)),
            1 => (0..SPACE / 8).prop_map(Op::Advance),
            4 => Just(Op::Resend),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn losses_agree_with_a_bit_per_byte(ops in prop::collection::vec(any_op(), 1..60)) {
            let mut flight = flight();
            let bits = || vec![false; SPACE as usize];
            let mut oracle = Oracle { held: bits(), lost: bits(), una: 0 };
            let (mut high_rxt, max) = (0, UNA + SPACE);
            for op in ops {
                let una = UNA + oracle.una;
                match op {
                    Op::Report(at, n) => {
                        let block = SackBlock { left: UNA + at, right: UNA + (at + n) };
                        let range = at as usize..(at + n).min(SPACE) as usize;
                        let sane = at >= oracle.una && at + n <= SPACE;
                        let missing = oracle.held[range.clone()].iter().filter(|held| !**held).count() as u32;
                        let news = if sane { missing } else { 0 };
                        prop_assert_eq!(flight.report(una, max, &[block]), news);
                        if sane {
                            oracle.held[range].fill(true);
                        }
                    }
                    Op::Advance(n) => {
                        oracle.una = (oracle.una + n).min(SPACE);
                        oracle.held[..oracle.una as usize].fill(false);
                        flight.acknowledge(UNA + oracle.una);
                    }
                    Op::Resend => {
                        let hole = flight.next_lost(MSS);
                        let left = oracle.next_lost(high_rxt);
                        prop_assert_eq!(hole.map(|hole| hole.left), left.map(|at| UNA + at));
                        if let Some(SackBlock { left, .. }) = hole {
                            flight.sent(Instant::ZERO, left, left + 1);
                            high_rxt = (left + 1).distance(UNA) as u32;
                        }
                    }
                }
                flight.judge(MSS);
                oracle.judge();
                prop_assert_eq!(flight.board.is_empty(), !oracle.held.contains(&true));
                prop_assert_eq!(flight.pipe(), oracle.pipe(high_rxt));
            }
        }

        /// For any sequence of transmissions, losses, retransmissions in other pieces and reports,
        /// the counters are the sums over all segments, and the segments cover the outstanding
        /// data.
        #[test]
        fn counters_are_sums(ops in prop::collection::vec((0..7_u8, 0..SPACE, 1..9_u32), 1..80)) {
            let mut flight = Flight::default();
            let (mut una, mut max) = (UNA, UNA);
            for (kind, at, n) in ops {
                let at = una + at.min(max.distance(una) as u32);
                match kind {
                    0 | 1 => {
                        flight.sent(Instant::ZERO, max, max + n);
                        max += n;
                    }
                    2 if at.lt(max) => {
                        flight.sent(Instant::ZERO, at, at + n);
                        max = max.max(at + n);
                    }
                    3 => {
                        flight.report(una, max, &[SackBlock { left: at, right: at + n }]);
                        flight.judge(MSS);
                    }
                    4 => {
                        una = at.min(una + n);
                        flight.acknowledge(una);
                    }
                    5 => flight.lose_all(),
                    6 => flight.lose_none(true),
                    _ => {}
                }
                let weights: u32 = flight.segments.iter().map(Sent::weight).sum();
                let lost = |segment: &&Sent| segment.fate == Fate::Lost;
                prop_assert_eq!(flight.pipe(), weights);
                prop_assert_eq!(flight.lost(), flight.segments.iter().filter(lost).map(Sent::len).sum::<u32>());
                let mut edge = una;
                for segment in &flight.segments {
                    prop_assert_eq!(segment.seq, edge);
                    prop_assert!(segment.len() > 0);
                    edge = segment.end;
                }
                prop_assert_eq!(edge, max);
                let first = flight.segments.iter().find(lost).map(|segment| segment.seq);
                prop_assert_eq!(flight.next_lost(MSS).map(|run| run.left), first);
            }
        }
    }

    proptest! {
        /// However segments are cut on retransmission: once a later transmission has arrived,
        /// detection by time finds every unreported segment lost, and none twice.
        #[test]
        fn time_finds_every_loss(ops in prop::collection::vec((0..5_u8, 0..SPACE, 1..9_u32), 1..80)) {
            let mut flight = Flight::default();
            let (mut una, mut max) = (UNA, UNA);
            let at = |tick: usize| Instant::ZERO + Duration::from_millis(tick as u64 / 2);
            for (tick, &(kind, from, n)) in ops.iter().enumerate() {
                let from = una + from.min(max.distance(una) as u32);
                match kind {
                    0 | 1 => {
                        flight.sent(at(tick), max, max + n);
                        max += n;
                        flight.note_order(at(tick), max);
                    }
                    2 if from.lt(max) => {
                        let end = (from + n).min(max);
                        flight.sent(at(tick), from, end);
                        flight.note_order(at(tick), end);
                    }
                    3 => {
                        flight.report(una, max, &[SackBlock { left: from, right: from + n }]);
                    }
                    4 => {
                        una = from.min(una + n);
                        flight.acknowledge(una);
                    }
                    _ => {}
                }
            }
            let later = Transmission { at: at(ops.len() + 2), end: max };
            prop_assert_eq!(flight.lose_by_time(&later, later.at, Duration::ZERO), None);
            prop_assert!(flight.segments.iter().all(|segment| segment.fate != Fate::Unknown), "{:?}", flight.segments);
            prop_assert!(flight.order.is_empty());
        }
    }

    /// The remembered edges start at the first segment, in either half of the sequence space.
    #[test]
    fn losses_are_judged_wherever_the_sequence_numbers_begin() {
        for una in [0, 1 << 30, 1 << 31, 3 << 30].map(SeqNumber) {
            let mut flight = Flight::default();
            (0..8).for_each(|at| flight.sent(Instant::ZERO, una + at * MSS, una + (at + 1) * MSS));
            flight.report(una, una + 8 * MSS, &[SackBlock { left: una + 3 * MSS, right: una + 8 * MSS }]);
            assert!(flight.judge(MSS));
            assert_eq!((flight.lost(), flight.pipe()), (3 * MSS, 0), "{una:?}");
        }
    }

    #[test]
    fn nonsense_is_not_taken() {
        let mut flight = flight();
        let at = |n: u32| UNA + n;
        for (left, right) in
            [(at(9), at(5)), (at(5), at(5)), (UNA - 9, at(5)), (at(70), at(90)), (at(1 << 31), at(9))]
        {
            assert_eq!(flight.report(UNA, at(SPACE), &[SackBlock { left, right }]), 0);
        }
        assert!(flight.board.is_empty());
    }

    #[test]
    fn rescue_takes_the_last_unreported_segment_once() {
        let mut flight = flight();
        flight.report(UNA, UNA + 40, &[SackBlock { left: UNA + 10, right: UNA + 20 }]);
        let rescue = flight.rescue(UNA, UNA + 40, MSS);
        assert_eq!(rescue, Some(SackBlock { left: UNA + 36, right: UNA + 40 }));
        assert_eq!(flight.rescue(UNA, UNA + 40, MSS), None);
    }

    /// RFC 2018 section 8: reports are kept over a time-out, unless the first segment is among
    /// them.
    #[test]
    fn a_time_out_forgets_only_what_the_peer_takes_back() {
        let mut kept = flight();
        kept.report(UNA, UNA + SPACE, &[SackBlock { left: UNA + 10, right: UNA + 20 }]);
        kept.lose_all();
        assert_eq!((kept.pipe(), kept.lost()), (0, SPACE - 10));
        let mut reneged = flight();
        reneged.report(UNA, UNA + SPACE, &[SackBlock { left: UNA, right: UNA + 20 }]);
        reneged.lose_all();
        assert_eq!((reneged.pipe(), reneged.lost()), (0, SPACE));
        assert!(reneged.board.is_empty());
    }
}
