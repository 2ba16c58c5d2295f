//! What has arrived out of order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::{Buf, Bytes};

use crate::segment::{SackBlock, SackBlocks, SeqNumber};

/// Pieces past RCV.NXT, sorted and disjoint. The caller bounds them by the window, so all comparisons are
/// safe.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    pieces: VecDeque<Piece>,
    /// Runs of touching pieces, the one touched last first (RFC 2018 section 4).
    runs: Vec<SackBlock>,
}

#[derive(Debug)]
struct Piece {
    seq: SeqNumber,
    data: Bytes,
}

impl Reassembly {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes what is new of `data`; what is held already wins.
    pub(super) fn insert(&mut self, seq: SeqNumber, mut data: Bytes) {
        if self.pieces.len() >= MAX_PIECES {
            return;
        }
        let (mut seq, end) = (seq, seq + data.len() as u32);
        self.touch(SackBlock { left: seq, right: end });
        let mut i = self.pieces.partition_point(|p| p.seq.le(seq));
        if let Some(before) = i.checked_sub(1).and_then(|i| self.pieces.get(i)) {
            let covered = (before.end().distance(seq).max(0) as usize).min(data.len());
            data.advance(covered);
            seq += covered as u32;
        }
        while !data.is_empty() {
            let Some(next) = self.pieces.get(i) else {
                self.pieces.push_back(Piece { seq, data });
                return;
            };
            let gap = (next.seq.distance(seq).max(0) as usize).min(data.len());
            let after = next.data.len();
            if gap > 0 {
                let piece = Piece { seq, data: data.split_to(gap) };
                self.pieces.insert(i, piece);
                seq += gap as u32;
                i += 1;
            }
            let covered = after.min(data.len());
            data.advance(covered);
            seq += covered as u32;
            i += 1;
        }
    }

    /// The piece that begins at `nxt`, what lies before it cut off.
    pub(super) fn pop(&mut self, nxt: SeqNumber) -> Option<Bytes> {
        loop {
            let front = self.pieces.front()?;
            if front.seq.gt(nxt) {
                return None;
            }
            let Piece { seq, mut data } = self.pieces.pop_front()?;
            self.runs.retain(|run| run.right.gt(seq + data.len() as u32));
            let old = nxt.distance(seq) as usize;
            if old < data.len() {
                data.advance(old);
                return Some(data);
            }
        }
    }

    /// The most recent runs.
    #[inline]
    pub(super) fn blocks(&self) -> SackBlocks {
        self.runs.iter().copied().collect()
    }

    fn touch(&mut self, mut run: SackBlock) {
        self.runs.retain(|other| {
            let apart = other.right.lt(run.left) || other.left.gt(run.right);
            if !apart {
                run.left = run.left.min(other.left);
                run.right = run.right.max(other.right);
            }
            apart
        });
        self.runs.insert(0, run);
    }
}

impl Piece {
    fn end(&self) -> SeqNumber {
        self.seq + self.data.len() as u32
    }
}

/// A peer cannot make us keep more handles, however small its segments.
const MAX_PIECES: usize = 4096;
