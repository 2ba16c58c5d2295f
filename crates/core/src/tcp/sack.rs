//! The peer's SACK reports above SND.UNA (RFC 2018, RFC 6675).
//!
//! A report never frees data: only the cumulative acknowledgement does (RFC 2018 section 8,
//! reneging).

use alloc::vec::Vec;

use crate::segment::{SackBlock, SeqNumber};

/// Sorted, disjoint, never touching blocks above SND.UNA.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    blocks: Vec<SackBlock>,
}

impl Scoreboard {
    /// Adds a block above SND.UNA; returns the merged block that contains it. Returns `None` if
    /// there are already `most` blocks, the number of segments in flight: an honest peer never
    /// reports more.
    pub(crate) fn add(&mut self, block: SackBlock, most: usize) -> Option<SackBlock> {
        let first = self.blocks.partition_point(|b| b.right.lt(block.left));
        let count = self.blocks[first..].iter().take_while(|b| b.left.le(block.right)).count();
        if count == 0 {
            if self.blocks.len() >= most {
                return None;
            }
            self.blocks.insert(first, block);
            return Some(block);
        }
        let (head, tail) = (self.blocks[first], self.blocks[first + count - 1]);
        let merged = SackBlock { left: head.left.min(block.left), right: tail.right.max(block.right) };
        self.blocks[first] = merged;
        self.blocks.drain(first + 1..first + count);
        Some(merged)
    }

    /// Drops the blocks below the new SND.UNA.
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

    /// Drops all blocks.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The block with the highest bytes.
    pub(crate) fn last(&self) -> Option<SackBlock> {
        self.blocks.last().copied()
    }

    /// IsLost() (RFC 6675 section 4) holds for unreported bytes before this edge: DupThresh blocks,
    /// or more than (DupThresh - 1) SMSS bytes, are reported above them.
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

    /// Number of reported bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.blocks.iter().map(len).sum()
    }

    /// Number of reported bytes in `from..to`.
    pub(crate) fn reported(&self, from: SeqNumber, to: SeqNumber) -> u32 {
        let first = self.blocks.partition_point(|b| b.right.le(from));
        let clipped = |b: &SackBlock| b.right.min(to).distance(b.left.max(from)).max(0) as u32;
        self.blocks[first..].iter().take_while(|b| b.left.lt(to)).map(clipped).sum()
    }

    /// The first unreported run of bytes at or after `from`, up to the next block or `to`.
    pub(crate) fn hole(&self, from: SeqNumber, to: SeqNumber) -> Option<SackBlock> {
        let mut left = from;
        let first = self.blocks.partition_point(|b| b.right.le(from));
        for block in &self.blocks[first..] {
            if block.left.gt(left) {
                let right = block.left.min(to);
                return left.lt(right).then_some(SackBlock { left, right });
            }
            left = block.right;
        }
        left.lt(to).then_some(SackBlock { left, right: to })
    }

    /// The last unreported run of bytes in `from..to`.
    pub(crate) fn last_hole(&self, from: SeqNumber, to: SeqNumber) -> Option<SackBlock> {
        let right = match self.blocks.last() {
            Some(last) if last.right == to => last.left,
            Some(_) | None => to,
        };
        let floor = self.blocks.iter().rev().map(|b| b.right).find(|edge| edge.lt(right));
        let left = floor.unwrap_or(from).max(from);
        left.lt(right).then_some(SackBlock { left, right })
    }
}

/// The D-SACK block of an acknowledgement (RFC 2883 section 4): the first block, if it lies below
/// the acknowledgement or within the second block.
pub(crate) fn duplicate(ack: SeqNumber, blocks: &[SackBlock]) -> Option<SackBlock> {
    let (first, rest) = blocks.split_first()?;
    let sane = first.left.lt(first.right) && ack.distance(first.left).unsigned_abs() <= REACH;
    let below = first.right.le(ack);
    let within = rest.first().is_some_and(|all| all.left.le(first.left) && first.right.le(all.right));
    (sane && (below || within)).then_some(*first)
}

#[inline]
fn len(block: &SackBlock) -> u32 {
    block.right.distance(block.left).max(0) as u32
}

/// DupThresh (RFC 5681 section 3.2, RFC 6675 section 2).
pub(crate) const DUP_THRESH: u32 = 3;
/// Largest distance from the acknowledgement to a duplicate in bytes, well below half of the
/// sequence space.
const REACH: u32 = 1 << 30;
