//! Out-of-order data.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::{Buf, Bytes};

use crate::segment::{SackBlock, SackBlocks, SeqNumber};

/// Pieces past RCV.NXT, sorted and disjoint. The caller bounds them by the window, so sequence
/// comparisons are valid.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pieces: VecDeque<Piece>,
    /// Runs of adjacent pieces, most recent first (RFC 2018 section 4).
    runs: Vec<SackBlock>,
    octets: u64,
    /// Adjacent pieces are merged by copying up to this length: a small piece would keep a whole
    /// packet alive for a few bytes.
    small: usize,
}

#[derive(Debug)]
struct Piece {
    seq: SeqNumber,
    data: Bytes,
}

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Sets the largest payload of a segment.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.small = small(mss);
    }

    /// Number of bytes held.
    pub(crate) fn octets(&self) -> u64 {
        self.octets
    }

    /// Number of chunks held.
    pub(crate) fn chunks(&self) -> usize {
        self.pieces.len()
    }

    /// Stores the new bytes of `data`; bytes already held are kept.
    pub(crate) fn insert(&mut self, seq: SeqNumber, mut data: Bytes) {
        // The window bounds the number of full segments, so only small ones need this limit.
        let pieces = self.pieces.len();
        if data.is_empty() || pieces >= MAX_PIECES && self.octets < pieces as u64 * SMALL_PIECE {
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
            let Some(next) = self.pieces.get(i) else { return self.place(i, seq, data) };
            let gap = (next.seq.distance(seq).max(0) as usize).min(data.len());
            let end = next.end();
            if gap > 0 {
                self.place(i, seq, data.split_to(gap));
                seq += gap as u32;
            }
            let covered = (end.distance(seq).max(0) as usize).min(data.len());
            data.advance(covered);
            seq += covered as u32;
            i = self.pieces.partition_point(|p| p.seq.lt(seq));
        }
    }

    /// Inserts new bytes before piece `i`, and merges small adjacent pieces.
    fn place(&mut self, i: usize, seq: SeqNumber, data: Bytes) {
        self.octets += data.len() as u64;
        let data = if data.len() < self.small { Bytes::copy_from_slice(&data) } else { data };
        self.pieces.insert(i, Piece { seq, data });
        self.join(i);
        if let Some(before) = i.checked_sub(1) {
            self.join(before);
        }
    }

    /// Merges piece `i` and the next one if they are adjacent and small.
    #[inline]
    fn join(&mut self, i: usize) {
        let (Some(first), Some(second)) = (self.pieces.get(i), self.pieces.get(i + 1)) else { return };
        if first.end() != second.seq {
            return;
        }
        if let Some(data) = joined(&first.data, &second.data, self.small) {
            self.pieces[i].data = data;
            self.pieces.remove(i + 1);
        }
    }

    /// Takes the first piece with its number.
    pub(crate) fn pop_first(&mut self) -> Option<(SeqNumber, Bytes)> {
        let seq = self.pieces.front()?.seq;
        self.pop(seq).map(|data| (seq, data))
    }

    /// Takes the piece that contains `nxt`, without its bytes before `nxt`.
    pub(crate) fn pop(&mut self, nxt: SeqNumber) -> Option<Bytes> {
        loop {
            let front = self.pieces.front()?;
            if front.seq.gt(nxt) {
                return None;
            }
            let Piece { seq, mut data } = self.pieces.pop_front()?;
            self.octets -= data.len() as u64;
            self.runs.retain(|run| run.right.gt(seq + data.len() as u32));
            let old = nxt.distance(seq) as usize;
            if old < data.len() {
                data.advance(old);
                return Some(data);
            }
        }
    }

    /// Number of the first byte held.
    pub(crate) fn first(&self) -> Option<SeqNumber> {
        self.pieces.front().map(|piece| piece.seq)
    }

    /// Takes the first bytes held of those from `left` to `right` that are in one piece. These
    /// numbers may be anywhere, as those that a peer names.
    pub(crate) fn cut(&mut self, left: SeqNumber, right: SeqNumber) -> Option<(SeqNumber, Bytes)> {
        let i = self.pieces.partition_point(|p| p.end().le(left));
        let piece = self.pieces.get(i)?;
        let (len, held) = (right.0.wrapping_sub(left.0), piece.data.len() as u32);
        let (ahead, before) = (piece.seq.0.wrapping_sub(left.0), left.0.wrapping_sub(piece.seq.0));
        let (before, n) = if ahead < len {
            (0, held.min(len - ahead))
        } else if before < held {
            (before, len.min(held - before))
        } else {
            return None;
        };
        let Piece { seq, data: mut first } = self.pieces.remove(i)?;
        self.octets -= u64::from(held);
        let mut taken = first.split_off(before as usize);
        let rest = taken.split_off(n as usize);
        let (from, to) = (seq + before, seq + before + n);
        self.forget(SackBlock { left: from, right: to });
        if !rest.is_empty() {
            self.place(i, to, rest);
        }
        if !first.is_empty() {
            self.place(i, seq, first);
        }
        Some((from, taken))
    }

    /// The first run of bytes from `seq` to `end` that is already held (RFC 2883 section 4.2.3).
    pub(crate) fn overlap(&self, seq: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        let clipped = |run: &SackBlock| SackBlock { left: run.left.max(seq), right: run.right.min(end) };
        let some = |block: &SackBlock| block.left.lt(block.right);
        self.runs.iter().map(clipped).filter(some).min_by_key(|block| block.left.distance(seq))
    }

    /// The most recent runs, for the SACK option.
    #[inline]
    pub(crate) fn blocks(&self) -> SackBlocks {
        self.runs.iter().copied().collect()
    }

    /// Splits the run that contains all of `gap`.
    fn forget(&mut self, gap: SackBlock) {
        let contains = |run: &SackBlock| run.left.le(gap.left) && gap.right.le(run.right);
        let Some(k) = self.runs.iter().position(contains) else { return };
        let run = self.runs.remove(k);
        for part in [SackBlock { left: gap.right, ..run }, SackBlock { right: gap.left, ..run }] {
            if part.left.lt(part.right) {
                self.runs.insert(k, part);
            }
        }
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

/// Both chunks in one, if together they have at most `small` bytes.
#[inline]
pub(crate) fn joined(first: &[u8], second: &[u8], small: usize) -> Option<Bytes> {
    (first.len() + second.len() <= small).then(|| [first, second].concat().into())
}

/// Length up to which chunks are merged. Full segments are longer, so they are never copied.
pub(crate) const fn small(mss: u32) -> usize {
    let half = mss as usize / 2;
    if half < MOST_COPIED { half } else { MOST_COPIED }
}

/// Upper bound of merged chunks: about the size of a usual packet.
const MOST_COPIED: usize = 1024;

/// Limits for segments that are small on average: a peer cannot make us keep more handles.
const MAX_PIECES: usize = 4096;
const SMALL_PIECE: u64 = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: SeqNumber = SeqNumber(u32::MAX - 40);
    const SPACE: u32 = 100;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_agree_with_a_bit_per_octet(
            mss in 0..60_u32,
            ops in prop::collection::vec((0..SPACE, 1..20_u32, 0..10), 1..60),
        ) {
            let mut held = [false; SPACE as usize];
            let mut nxt = 0;
            let mut buffer = Reassembly::default();
            buffer.set_mss(mss);
            for (at, n, kind) in ops {
                if kind < 2 {
                    // These bytes find their place elsewhere.
                    let (from, to) = (START + at, START + at + n);
                    while let Some((seq, data)) = buffer.cut(from, to) {
                        for (i, octet) in data.iter().enumerate() {
                            let place = seq.distance(START) as usize + i;
                            prop_assert!(held[place] && (at..at + n).contains(&(place as u32)));
                            prop_assert_eq!(usize::from(*octet), place);
                            held[place] = false;
                        }
                    }
                    let end = (at + n).min(SPACE) as usize;
                    prop_assert!(!held[at as usize..end].contains(&true));
                } else if kind < 4 {
                    // The bytes up to RCV.NXT arrive in order.
                    nxt = (nxt + n).min(SPACE);
                    while let Some(data) = buffer.pop(START + nxt) {
                        let expected: Vec<u8> = (nxt..nxt + data.len() as u32).map(|i| i as u8).collect();
                        prop_assert_eq!(&data[..], &expected[..]);
                        nxt += data.len() as u32;
                    }
                    held[..nxt as usize].fill(false);
                } else {
                    let (from, to) = (at.max(nxt + 1), (at + n).min(SPACE));
                    if from >= to {
                        continue;
                    }
                    buffer.insert(START + from, (from..to).map(|i| i as u8).collect::<Vec<_>>().into());
                    held[from as usize..to as usize].fill(true);
                    let first = buffer.blocks().as_slice()[0];
                    prop_assert!(first.left.le(START + from) && first.right.ge(START + to));
                }
                let mut bits = [false; SPACE as usize];
                for run in &buffer.runs {
                    let range = run.left.distance(START).max(nxt as i32) as usize..run.right.distance(START) as usize;
                    prop_assert!(bits[range.clone()].iter().all(|bit| !bit), "runs overlap");
                    bits[range].fill(true);
                }
                prop_assert_eq!(bits, held);
                let octets: usize = buffer.pieces.iter().map(|p| p.data.len()).sum();
                prop_assert_eq!(octets, held.iter().filter(|bit| **bit).count());
                prop_assert_eq!(buffer.octets(), octets as u64);
                let touching = buffer.pieces.iter().zip(buffer.pieces.iter().skip(1)).filter(|(a, b)| a.end() == b.seq);
                prop_assert!(touching.into_iter().all(|(a, b)| a.data.len() + b.data.len() > buffer.small));
            }
        }
    }
}
