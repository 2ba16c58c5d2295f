//! What was sent again, and which of that the peer has had twice (RFC 2883, RFC 3708 section 2).

use alloc::vec::Vec;

use crate::segment::{SackBlock, SeqNumber};

/// The retransmissions since the last loss episode began that the peer has not reported as
/// duplicates. A packet that the network doubles is none of them, and says nothing of the sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    runs: Vec<SackBlock>,
    /// Some bytes left more than twice, or there were too many runs: which copy a report is about
    /// is not known.
    unclear: bool,
}

impl Repeats {
    /// An episode begins.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.unclear = false;
    }

    /// The bytes from `seq` to `end` leave again.
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

    /// The peer has had `block` twice; true if it was sent again. A block is one duplicate segment
    /// (RFC 2883 section 4), so that one with more in it than was sent again is none of ours.
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

    /// Each retransmission was reported as a duplicate, if there were any.
    pub(super) fn all_reported(&self) -> bool {
        self.runs.is_empty() && !self.unclear
    }
}

/// Runs that are kept; a recovery with more of them has lost something.
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

    /// A peer that reports bytes here and there cannot make us keep more.
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
