//! SACK as a signal between nodes (section IV-B): which gaps an acknowledgement shows, and how a
//! node adds what it holds.

use crate::segment::{SackBlock, SackBlocks, SeqNumber};

/// What an acknowledgement says above its number. Blocks that are empty, reversed, not above the
/// number (D-SACK, RFC 2883) or farther above it than any window do not count.
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

    /// There is at least one gap.
    pub(super) fn any(&self) -> bool {
        self.edge.is_some()
    }

    /// All bytes are reported.
    pub(super) fn cover(&self, left: SeqNumber, right: SeqNumber) -> bool {
        self.blocks.as_slice().iter().any(|b| b.left.le(left) && right.le(b.right))
    }

    /// The bytes lie below the highest reported one: what is above may be under way (erratum D11).
    pub(super) fn below_edge(&self, right: SeqNumber) -> bool {
        self.edge.is_some_and(|edge| right.le(edge))
    }

    /// Every byte from the acknowledgement number to the highest reported one is reported, if
    /// `held` is (action 3.3, erratum D12).
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

    /// A further block is reported from here on; false if the option has no room for it.
    pub(super) fn add(&mut self, held: SackBlock) -> bool {
        let Some(blocks) = with_block(&self.blocks, held) else { return false };
        self.blocks = blocks;
        self.edge = Some(self.edge.map_or(held.right, |edge| edge.max(held.right)));
        true
    }
}

/// `blocks` with one more, joined with what it touches; `None` if there is no room.
pub(super) fn with_block(blocks: &SackBlocks, held: SackBlock) -> Option<SackBlocks> {
    let join = |all: SackBlock, b: &SackBlock| {
        let touches = b.left.le(all.right) && all.left.le(b.right);
        let joined = SackBlock { left: all.left.min(b.left), right: all.right.max(b.right) };
        if touches { joined } else { all }
    };
    // Once for each block: what is joined may touch one that was passed over.
    let joined = (0..SackBlocks::MAX).fold(held, |all, _| blocks.as_slice().iter().fold(all, join));
    let touches = |b: &SackBlock| b.left.le(joined.right) && joined.left.le(b.right);
    let mut out = SackBlocks::EMPTY;
    let mut placed = false;
    // The most recent block stays first (RFC 2018 section 4): the joined one takes the place of the
    // first that it swallows.
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

/// RFC 7323 section 2.3.
const LARGEST_WINDOW: u32 = 1 << 30;
