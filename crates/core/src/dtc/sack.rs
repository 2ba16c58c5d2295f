//! SACK as a signal between nodes (section IV-B): the gaps of an acknowledgement, and blocks added
//! by a node.

use crate::segment::{SackBlock, SackBlocks, SeqNumber};

/// The SACK blocks of an acknowledgement. Ignores blocks that are empty, reversed, not above the
/// acknowledgement number (D-SACK, RFC 2883), or farther above it than any window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    ack: SeqNumber,
    blocks: SackBlocks,
    edge: Option<SeqNumber>,
}

impl Gaps {
    pub(super) fn of(ack: SeqNumber, reported: &SackBlocks) -> Self {
        let offset = |seq: SeqNumber| seq.0.wrapping_sub(ack.0);
        let counts = |b: &&SackBlock| {
            offset(b.left) > 0 && offset(b.left) < offset(b.right) && offset(b.right) <= LARGEST_WINDOW
        };
        let blocks: SackBlocks = reported.as_slice().iter().filter(counts).copied().collect();
        let edge = blocks.as_slice().iter().map(|b| b.right).reduce(SeqNumber::max);
        Self { ack, blocks, edge }
    }

    /// End of the highest reported block.
    pub(super) fn edge(&self) -> Option<SeqNumber> {
        self.edge
    }

    /// Whether there is a gap.
    pub(super) fn any(&self) -> bool {
        self.edge.is_some()
    }

    /// Whether all bytes are reported.
    pub(super) fn cover(&self, left: SeqNumber, right: SeqNumber) -> bool {
        self.blocks.as_slice().iter().any(|b| b.left.le(left) && right.le(b.right))
    }

    /// Whether the bytes lie below the highest reported one; bytes above it may still be in flight
    /// (erratum D11).
    pub(super) fn below_edge(&self, right: SeqNumber) -> bool {
        self.edge.is_some_and(|edge| right.le(edge))
    }

    /// Whether every byte from the acknowledgement number to the highest reported one is reported,
    /// if `held` is (action 3.3, erratum D12).
    pub(super) fn filled_by(&self, held: SackBlock) -> bool {
        let Some(edge) = self.edge else { return false };
        let mut reached = self.ack;
        while reached.lt(edge) {
            let all = self.blocks.as_slice().iter().chain([&held]);
            let next = all.filter(|b| b.left.le(reached) && b.right.gt(reached)).map(|b| b.right);
            match next.reduce(SeqNumber::max) {
                Some(right) => reached = right,
                None => return false,
            }
        }
        true
    }

    /// Adds a block; returns false if the option has no room.
    pub(super) fn add(&mut self, held: SackBlock) -> bool {
        let Some(blocks) = with_block(&self.blocks, held) else { return false };
        self.blocks = blocks;
        self.edge = Some(self.edge.map_or(held.right, |edge| edge.max(held.right)));
        true
    }
}

/// `blocks` with one more block, merged with adjacent ones; `None` if there is no room.
pub(super) fn with_block(blocks: &SackBlocks, held: SackBlock) -> Option<SackBlocks> {
    let join = |all: SackBlock, b: &SackBlock| {
        let touches = b.left.le(all.right) && all.left.le(b.right);
        let joined = SackBlock { left: all.left.min(b.left), right: all.right.max(b.right) };
        if touches { joined } else { all }
    };
    // One pass per block, because a merged block may touch one that was checked before.
    let joined = (0..SackBlocks::MAX).fold(held, |all, _| blocks.as_slice().iter().fold(all, join));
    let touches = |b: &SackBlock| b.left.le(joined.right) && joined.left.le(b.right);
    let mut out = SackBlocks::EMPTY;
    let mut placed = false;
    // The most recent block stays first (RFC 2018 section 4): the merged block takes the place of
    // the first that it contains.
    for block in blocks.as_slice() {
        if !touches(block) {
            out.push(*block);
        } else if !placed {
            out.push(joined);
            placed = true;
        }
    }
    (placed || out.push(joined)).then_some(out)
}

/// Largest window (RFC 7323 section 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;
