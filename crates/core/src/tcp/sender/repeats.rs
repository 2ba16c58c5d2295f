//! Retransmissions, and the peer's reports of duplicates among them (RFC 2883, RFC 3708 section 2).

use alloc::vec::Vec;

use crate::segment::{SackBlock, SeqNumber};

/// Retransmissions of the last loss episode that the peer has not reported as duplicates. Packets
/// duplicated by the network are not among them, and say nothing about the sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    runs: Vec<SackBlock>,
    /// Whether it is unknown which copy a report means: some bytes were sent more than twice, or
    /// there were too many runs.
    unclear: bool,
}

impl Repeats {
    /// Begins an episode.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.unclear = false;
    }

    /// Records a retransmission of the bytes from `seq` to `end`.
    pub(super) fn sent(&mut self, seq: SeqNumber, end: SeqNumber) {
        let overlaps = |run: &SackBlock| run.left.lt(end) && run.right.gt(seq);
        if self.runs.iter().any(overlaps) {
            self.unclear = true;
        } else if let Some(run) = self.runs.iter_mut().find(|run| run.right == seq) {
            run.right = end;
        } else {
            self.keep(SackBlock { left: seq, right: end });
        }
    }

    /// Processes a report that `block` has arrived twice; returns whether it was retransmitted. A
    /// block is one duplicate segment (RFC 2883 section 4), so a block with more than the
    /// retransmitted bytes is not a duplicate of ours.
    pub(super) fn reported(&mut self, block: SackBlock) -> bool {
        let around = |run: &SackBlock| run.left.le(block.left) && run.right.ge(block.right);
        let Some(i) = self.runs.iter().position(around) else { return false };
        let run = self.runs.swap_remove(i);
        self.keep(SackBlock { left: run.left, right: block.left });
        self.keep(SackBlock { left: block.right, right: run.right });
        true
    }

    fn keep(&mut self, run: SackBlock) {
        if run.left == run.right {
            return;
        }
        self.unclear |= self.runs.len() == MOST;
        if self.runs.len() < MOST {
            self.runs.push(run);
        }
    }

    /// Whether every retransmission was reported as a duplicate; true without retransmissions.
    pub(super) fn all_reported(&self) -> bool {
        self.runs.is_empty() && !self.unclear
    }
}

/// Largest number of runs; a recovery with more of them has certainly lost data.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const START: SeqNumber = SeqNumber(u32::MAX - 20);

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: START + left, right: START + right }
    }

    fn sent(runs: &[(u32, u32)]) -> Repeats {
        let mut repeats = Repeats::default();
        runs.iter().for_each(|&(from, to)| repeats.sent(START + from, START + to));
        repeats
    }

    #[test]
    fn reports_take_away_what_was_sent_again_and_nothing_else() {
        let mut repeats = sent(&[(0, 10), (10, 20), (40, 60)]);
        assert!(!repeats.reported(block(20, 40)), "doubled by the network");
        assert!(repeats.reported(block(45, 50)) && !repeats.reported(block(45, 50)));
        assert!(repeats.reported(block(0, 20)));
        assert!(!repeats.reported(block(30, 45)), "more than was sent again");
        assert!(!repeats.all_reported());
        assert!(repeats.reported(block(40, 45)) && repeats.reported(block(50, 60)));
        assert!(repeats.all_reported());
    }

    /// A peer that reports scattered bytes cannot increase the memory.
    #[test]
    fn reports_of_parts_are_bounded() {
        let mut repeats = sent(&[(0, 100_000)]);
        (0..20_000).for_each(|at| {
            repeats.reported(block(5 * at + 1, 5 * at + 2));
        });
        assert!(repeats.runs.len() <= MOST && !repeats.all_reported());
    }

    #[test]
    fn what_left_three_times_is_unclear() {
        let mut repeats = sent(&[(0, 10), (5, 10)]);
        assert!(repeats.reported(block(0, 10)));
        assert!(!repeats.all_reported());
        repeats.clear();
        assert!(repeats.all_reported());
        let mut many = Repeats::default();
        (0..1000).for_each(|at| many.sent(START + 2 * at, START + 2 * at + 1));
        assert_eq!(many.runs.len(), MOST);
        (0..1000).for_each(|at| {
            many.reported(block(2 * at, 2 * at + 1));
        });
        assert!(many.runs.is_empty() && !many.all_reported());
    }
}
