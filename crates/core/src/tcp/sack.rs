//! The sender's scoreboard (RFC 6675): what the peer holds above SND.UNA, what is lost, what to send next.
//!
//! It never frees data: only the cumulative acknowledgement does (RFC 2018 section 8, reneging).

use alloc::vec::Vec;

use crate::segment::{SackBlock, SeqNumber};

/// Sorted, disjoint, never touching blocks above SND.UNA.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    blocks: Vec<SackBlock>,
    /// HighRxt: just past the highest octet sent again in this recovery.
    high_rxt: SeqNumber,
    /// RescueRxt (RFC 6675 section 2).
    rescue: Option<SeqNumber>,
}

impl Scoreboard {
    /// Takes what the peer reports; true if any octet is news. Blocks that are empty, reversed or outside of
    /// (SND.UNA, SND.MAX] are ignored, as are D-SACKs (RFC 2883).
    pub(crate) fn update(&mut self, una: SeqNumber, max: SeqNumber, reported: &[SackBlock]) -> bool {
        let mut news = false;
        // Offsets, since the comparisons of sequence numbers hold only near each other.
        let offset = |seq: SeqNumber| seq.0.wrapping_sub(una.0);
        for block in reported {
            let (left, right) = (offset(block.left), offset(block.right));
            news |= left < right && right <= offset(max) && self.add(*block);
        }
        news
    }

    fn add(&mut self, block: SackBlock) -> bool {
        let first = self.blocks.partition_point(|b| b.right.lt(block.left));
        let count = self.blocks[first..].iter().take_while(|b| b.left.le(block.right)).count();
        if count == 0 {
            if self.blocks.len() >= MAX_BLOCKS {
                return false;
            }
            self.blocks.insert(first, block);
            return true;
        }
        let (head, tail) = (self.blocks[first], self.blocks[first + count - 1]);
        let merged = SackBlock { left: head.left.min(block.left), right: tail.right.max(block.right) };
        if count == 1 && merged == head {
            return false;
        }
        self.blocks[first] = merged;
        self.blocks.drain(first + 1..first + count);
        true
    }

    /// SND.UNA has moved.
    #[inline]
    pub(crate) fn advance(&mut self, una: SeqNumber) {
        if self.blocks.is_empty() {
            return;
        }
        let gone = self.blocks.partition_point(|b| b.right.le(una));
        self.blocks.drain(..gone);
        if let Some(first) = self.blocks.first_mut() {
            first.left = first.left.max(una);
        }
    }

    /// Forgets everything: a time-out may mean that the peer reneged (RFC 2018 section 8).
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.rescue = None;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A recovery begins at `una` (RFC 6675 section 5 step 4).
    pub(crate) fn begin_recovery(&mut self, una: SeqNumber) {
        self.high_rxt = una;
        self.rescue = None;
    }

    /// What IsLost() holds below (RFC 6675 section 4): octets before this edge that are not reported have
    /// DupThresh blocks, or more than (DupThresh - 1) SMSS octets, reported above them.
    pub(crate) fn lost_edge(&self, mss: u32) -> Option<SeqNumber> {
        let (mut blocks, mut octets) = (0_u32, 0_u32);
        for block in self.blocks.iter().rev() {
            blocks += 1;
            octets = octets.saturating_add(len(block));
            if blocks >= DUP_THRESH || octets > (DUP_THRESH - 1).saturating_mul(mss) {
                return Some(block.left);
            }
        }
        None
    }

    /// Octets in `from..to` that the peer does not report.
    fn missing(&self, from: SeqNumber, to: SeqNumber) -> u32 {
        to.distance(from).max(0) as u32 - self.reported(from, to)
    }

    /// Octets in `from..to` that the peer reports.
    pub(crate) fn reported(&self, from: SeqNumber, to: SeqNumber) -> u32 {
        let clipped = |b: &SackBlock| b.right.min(to).distance(b.left.max(from)).max(0) as u32;
        self.blocks.iter().map(clipped).sum()
    }

    /// SetPipe() (RFC 6675 section 4): octets thought to be in the network.
    pub(crate) fn pipe(&self, una: SeqNumber, max: SeqNumber, mss: u32) -> u32 {
        let not_lost = self.lost_edge(mss).map_or(una, |edge| edge.max(una));
        self.missing(not_lost, max) + self.missing(una, self.high_rxt.max(una).min(max))
    }

    /// The first unreported run of octets at or after `from`, up to the next block or `to`.
    pub(crate) fn hole(&self, from: SeqNumber, to: SeqNumber) -> Option<SackBlock> {
        let mut left = from;
        for block in &self.blocks {
            if block.right.le(left) {
                continue;
            }
            if block.left.gt(left) {
                let right = block.left.min(to);
                return left.lt(right).then_some(SackBlock { left, right });
            }
            left = block.right;
        }
        left.lt(to).then_some(SackBlock { left, right: to })
    }

    /// NextSeg() rule 1 (RFC 6675 section 4): the next hole that is lost and was not sent again.
    pub(crate) fn next_lost(&self, una: SeqNumber, mss: u32) -> Option<SackBlock> {
        self.hole(self.high_rxt.max(una), self.lost_edge(mss)?)
    }

    /// NextSeg() rule 3: the next hole below what is reported, lost or not.
    pub(crate) fn next_doubtful(&self, una: SeqNumber) -> Option<SackBlock> {
        self.hole(self.high_rxt.max(una), self.blocks.last()?.left)
    }

    /// NextSeg() rule 4: once per recovery, the last unreported segment.
    pub(crate) fn rescue(&mut self, una: SeqNumber, max: SeqNumber, mss: u32) -> Option<SackBlock> {
        if self.rescue.is_some_and(|at| una.le(at)) {
            return None;
        }
        let right = match self.blocks.last() {
            Some(last) if last.right == max => last.left,
            Some(_) | None => max,
        };
        let floor = self.blocks.iter().rev().map(|b| b.right).find(|edge| edge.lt(right));
        let left = floor.unwrap_or(una).max(una).max(right - mss.min(right.distance(una).max(0) as u32));
        if left.ge(right) {
            return None;
        }
        self.rescue = Some(max);
        Some(SackBlock { left, right })
    }

    /// Everything up to `end` has been sent again.
    pub(crate) fn retransmitted(&mut self, end: SeqNumber) {
        self.high_rxt = self.high_rxt.max(end);
    }
}

#[inline]
fn len(block: &SackBlock) -> u32 {
    block.right.distance(block.left).max(0) as u32
}

/// RFC 5681 section 3.2, RFC 6675 section 2.
pub(crate) const DUP_THRESH: u32 = 3;
/// More blocks than any window here needs; a peer cannot make us keep more.
const MAX_BLOCKS: usize = 1024;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    const UNA: SeqNumber = SeqNumber(u32::MAX - 30);
    const SPACE: u32 = 80;
    const MSS: u32 = 4;

    /// The scoreboard against a bit per octet: RFC 6675 section 4 word by word.
    struct Oracle {
        held: Vec<bool>,
        una: u32,
    }

    impl Oracle {
        fn octets_and_runs_above(&self, from: u32) -> (u32, u32) {
            let tail = &self.held[from as usize..];
            let octets = tail.iter().filter(|held| **held).count() as u32;
            let starts = (0..tail.len()).filter(|&i| tail[i] && (i == 0 || !tail[i - 1])).count();
            (octets, starts as u32)
        }

        fn is_lost(&self, octet: u32) -> bool {
            let (octets, runs) = self.octets_and_runs_above(octet);
            runs >= DUP_THRESH || octets > (DUP_THRESH - 1) * MSS
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
        Forget,
    }

    fn any_op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => (0..SPACE, 1..12_u32).prop_map(|(at, n)| Op::Report(at, n)),
            1 => (0..SPACE / 8).prop_map(Op::Advance),
            2 => Just(Op::Resend),
            1 => Just(Op::Forget),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn scoreboard_agrees_with_a_bit_per_octet(ops in prop::collection::vec(any_op(), 1..60)) {
            let mut board = Scoreboard::default();
            board.begin_recovery(UNA);
            let mut oracle = Oracle { held: vec![false; SPACE as usize], una: 0 };
            let (mut high_rxt, max) = (0, UNA + SPACE);
            for op in ops {
                let una = UNA + oracle.una;
                match op {
                    Op::Report(at, n) => {
                        let block = SackBlock { left: UNA + at, right: UNA + (at + n) };
                        let range = at as usize..(at + n) as usize;
                        let sane = at >= oracle.una && at + n <= SPACE;
                        let news = sane && oracle.held[range.clone()].iter().any(|held| !held);
                        prop_assert_eq!(board.update(una, max, &[block]), news);
                        if sane {
                            oracle.held[range].fill(true);
                        }
                    }
                    Op::Advance(n) => {
                        oracle.una = (oracle.una + n).min(SPACE);
                        oracle.held[..oracle.una as usize].fill(false);
                        board.advance(UNA + oracle.una);
                    }
                    Op::Resend => {
                        let hole = board.next_lost(una, MSS);
                        let left = oracle.next_lost(high_rxt);
                        prop_assert_eq!(hole.map(|hole| hole.left), left.map(|at| UNA + at));
                        if let Some(hole) = hole {
                            let end = hole.right.min(hole.left + MSS);
                            board.retransmitted(end);
                            high_rxt = end.distance(UNA) as u32;
                        }
                    }
                    Op::Forget => {
                        board.clear();
                        oracle.held.fill(false);
                    }
                }
                let una = UNA + oracle.una;
                prop_assert_eq!(board.is_empty(), !oracle.held.contains(&true));
                prop_assert_eq!(board.pipe(una, max, MSS), oracle.pipe(high_rxt));
            }
        }
    }

    #[test]
    fn nonsense_is_not_taken() {
        let mut board = Scoreboard::default();
        let at = |n: u32| UNA + n;
        for (left, right) in
            [(at(9), at(5)), (at(5), at(5)), (UNA - 9, at(5)), (at(70), at(90)), (at(1 << 31), at(9))]
        {
            assert!(!board.update(UNA, at(SPACE), &[SackBlock { left, right }]));
        }
        assert!(board.is_empty());
    }

    #[test]
    fn rescue_takes_the_last_unreported_segment_once() {
        let mut board = Scoreboard::default();
        board.begin_recovery(UNA);
        board.update(UNA, UNA + 40, &[SackBlock { left: UNA + 10, right: UNA + 20 }]);
        let rescue = board.rescue(UNA, UNA + 40, MSS);
        assert_eq!(rescue, Some(SackBlock { left: UNA + 36, right: UNA + 40 }));
        assert_eq!(board.rescue(UNA, UNA + 40, MSS), None);
    }
}
