//! The receive buffer of the node: accepts pieces of a file in any order and delivers them in
//! order.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;

use anabranch_wire::set::Range;
use bytes::Bytes;

use super::ReceiverConfig;
use crate::set::ranges::RangeSet;

/// Largest number of bytes taken from a ring at once; bounds the short-lived copy.
const FROM_RING: u64 = 256;

/// Storage of bytes that wait for preceding ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// Each piece as received, without a copy. A small piece may keep a whole read buffer alive.
    Pieces,
    /// A ring of the size of the buffer, allocated once for all transfers. Small pieces therefore
    /// cannot increase its memory. Delivered bytes are copied when the driver polls them. Until
    /// then the ring stays full, so a driver must poll until `None` before it passes more data.
    Ring,
}

/// The stored bytes; [`Reorder`] knows which ranges are valid.
#[derive(Debug)]
pub(super) enum Waiting {
    /// By offset; pieces do not overlap.
    Pieces(BTreeMap<u64, Bytes>),
    /// The byte at offset `i` of the file is at `i` modulo the length.
    Ring(Box<[u8]>),
}

impl Waiting {
    pub(super) fn new(holding: Holding, buffer: u32) -> Self {
        match holding {
            Holding::Pieces => Self::Pieces(BTreeMap::new()),
            Holding::Ring => Self::Ring(vec![0; buffer as usize].into_boxed_slice()),
        }
    }

    /// Discards the contents for another file.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Pieces(pieces) => pieces.clear(),
            // Stale bytes are never read, because `Reorder` knows none of them.
            Self::Ring(_) => {}
        }
    }

    fn put(&mut self, at: u64, piece: Bytes) {
        match self {
            Self::Pieces(pieces) => {
                pieces.insert(at, piece);
            }
            Self::Ring(ring) => {
                let (head, tail) = parts(ring, at, piece.len());
                let (first, second) = piece.split_at(head.len());
                ring[head].copy_from_slice(first);
                ring[tail].copy_from_slice(second);
            }
        }
    }

    /// Takes bytes from `at` on, at least one and none past `end`.
    fn take(&mut self, at: u64, end: u64) -> Option<Bytes> {
        match self {
            Self::Pieces(pieces) => {
                pieces.first_entry().filter(|e| *e.key() == at).map(|entry| entry.remove())
            }
            Self::Ring(ring) => {
                let n = end.saturating_sub(at).min(FROM_RING);
                let (head, _) = parts(ring, at, n as usize);
                (n > 0).then(|| Bytes::copy_from_slice(&ring[head]))
            }
        }
    }
}

/// The positions of `n` bytes from `at` on in a ring that has room for them: up to its end, and
/// from its beginning.
fn parts(ring: &[u8], at: u64, n: usize) -> (core::ops::Range<usize>, core::ops::Range<usize>) {
    let size = ring.len();
    let start = at.checked_rem(size as u64).unwrap_or(0) as usize;
    let head = n.min(size - start);
    (start..start + head, 0..(n - head).min(start))
}

/// Received ranges of one file, and the limits for further ones.
#[derive(Debug)]
pub(super) struct Reorder {
    length: u64,
    buffer: u64,
    /// Largest number of separate pieces.
    pieces: usize,
    /// All received bytes, delivered or not.
    arrived: RangeSet,
    /// All bytes before this one have been received.
    delivered: u64,
    /// All bytes before this one have been popped.
    popped: u64,
}

impl Reorder {
    /// Starts a file whose bytes before `from` are already present.
    pub(super) fn resume(length: u64, config: &ReceiverConfig, from: u64) -> Self {
        let mut arrived = match config.holding {
            Holding::Pieces => RangeSet::new(),
            // Room for the waiting pieces, the delivered range, and the one piece that exceeds the
            // limit.
            Holding::Ring => RangeSet::with_capacity(config.pieces + 2),
        };
        let delivered = from.min(length);
        arrived.insert(0, delivered);
        let (buffer, pieces) = (u64::from(config.buffer), config.pieces);
        Self { length, buffer, pieces, arrived, delivered, popped: delivered }
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn is_complete(&self) -> bool {
        self.delivered == self.length
    }

    /// Number of waiting bytes.
    pub(super) fn held(&self) -> u64 {
        self.arrived.octets() - self.delivered
    }

    /// Ranges of waiting bytes.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.arrived.as_slice().iter().copied().filter(|r| r.start > self.delivered)
    }

    /// Number of bytes at `offset` that fit into the buffer.
    pub(super) fn room_from(&self, offset: u64) -> usize {
        usize::try_from(self.popped.saturating_add(self.buffer).saturating_sub(offset)).unwrap_or(usize::MAX)
    }

    /// Stores `octets` at `offset` and returns the number of new bytes. Returns `None` and stores
    /// nothing if they exceed the file, the buffer, or the number of pieces.
    pub(super) fn insert(&mut self, waiting: &mut Waiting, offset: u64, octets: Bytes) -> Option<u64> {
        let end = offset.checked_add(octets.len() as u64)?;
        if end > self.length || end > self.popped.saturating_add(self.buffer) {
            return None;
        }
        if offset > self.delivered && self.is_full(waiting, offset, end) {
            return None;
        }
        let before = self.arrived.octets();
        let mut at = offset;
        while at < end {
            // Known bytes are skipped; new bytes up to the next known range are stored.
            if let Some(known) = self.arrived.range_at(at) {
                at = known.end;
                continue;
            }
            let stop = self.arrived.next_from(at).map_or(end, |r| r.start.min(end));
            waiting.put(at, octets.slice((at - offset) as usize..(stop - offset) as usize));
            self.arrived.insert(at, stop);
            at = stop;
        }
        self.delivered = self.arrived.prefix();
        Some(self.arrived.octets() - before)
    }

    /// Whether `offset..end` exceeds the number of pieces. A piece that fills several gaps may add
    /// one piece per gap, so the number never exceeds twice the limit.
    fn is_full(&self, waiting: &Waiting, offset: u64, end: u64) -> bool {
        match waiting {
            Waiting::Pieces(pieces) => pieces.len() >= self.pieces,
            Waiting::Ring(_) => !self.arrived.touches(offset, end) && self.ranges().count() >= self.pieces,
        }
    }

    /// Takes the next bytes in order.
    pub(super) fn pop(&mut self, waiting: &mut Waiting) -> Option<Bytes> {
        let piece = waiting.take(self.popped, self.delivered)?;
        self.popped += piece.len() as u64;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn new(length: u64, buffer: u32, holding: Holding, from: u64) -> (Reorder, Waiting) {
        let config = ReceiverConfig { buffer, holding, pieces: 100, ..ReceiverConfig::default() };
        (Reorder::resume(length, &config, from), Waiting::new(holding, buffer))
    }

    fn either() -> impl Strategy<Value = Holding> {
        any::<bool>().prop_map(|ring| if ring { Holding::Ring } else { Holding::Pieces })
    }

    proptest! {
        #[test]
        fn any_overlapping_pieces_come_out_as_the_file(
            starts in proptest::collection::vec((0usize..500, 1usize..80), 1..80),
            from in 0u64..=500,
            holding in either(),
            buffer in 60u32..600,
        ) {
            let file: Vec<u8> = (0..500u32).map(|i| (i * 7) as u8).collect();
            let (mut reorder, mut waiting) = new(500, buffer, holding, from);
            let mut out = file[..from as usize].to_vec();
            let all = starts.into_iter().chain((0..10).map(|i| (i * 50, 50)));
            for (start, n) in all {
                let end = (start + n).min(500);
                let octets = Bytes::copy_from_slice(&file[start..end]);
                let new = reorder.insert(&mut waiting, start as u64, octets);
                prop_assert_eq!(new.is_some(), end <= out.len() + buffer as usize);
                while let Some(piece) = reorder.pop(&mut waiting) {
                    out.extend_from_slice(&piece);
                }
                prop_assert_eq!(reorder.delivered(), out.len() as u64);
            }
            prop_assert_eq!(out, file);
            prop_assert!(reorder.is_complete());
            prop_assert_eq!(reorder.held(), 0);
        }

        /// Single bytes at any offset: the number of pieces stays bounded, and the file is
        /// completed.
        #[test]
        fn no_more_pieces_wait_than_may(
            starts in proptest::collection::vec((0u64..500, 1usize..4), 1..600),
            holding in either(),
        ) {
            let config = ReceiverConfig { buffer: 500, holding, pieces: 7, ..ReceiverConfig::default() };
            let (mut reorder, mut waiting) = (Reorder::resume(500, &config, 0), Waiting::new(holding, 500));
            let mut out = 0;
            for (start, n) in starts.into_iter().chain((0..500).map(|i| (i, 1))) {
                let octets = Bytes::from(vec![0; n.min((500 - start) as usize)]);
                let taken = reorder.insert(&mut waiting, start, octets);
                prop_assert!(taken.is_some() || start > out, "what is next is always taken");
                while let Some(piece) = reorder.pop(&mut waiting) {
                    out += piece.len() as u64;
                }
                match &waiting {
                    Waiting::Pieces(pieces) => prop_assert!(pieces.len() <= 2 * 7),
                    Waiting::Ring(ring) => prop_assert!(ring.len() == 500 && reorder.ranges().count() <= 7),
                }
                prop_assert!(reorder.arrived.as_slice().len() <= 2 * 7 + 1);
            }
            prop_assert!(reorder.is_complete());
        }
    }

    #[test]
    fn nothing_past_the_file_or_the_buffer_is_taken() {
        for holding in [Holding::Pieces, Holding::Ring] {
            let (mut reorder, mut waiting) = new(100, 20, holding, 0);
            let mut insert = |at, n| reorder.insert(&mut waiting, at, Bytes::from(vec![0; n]));
            assert_eq!(insert(10, 11), None);
            assert_eq!(insert(90, 11), None);
            assert_eq!(insert(u64::MAX, 1), None);
            assert_eq!(insert(10, 10), Some(10));
            assert_eq!(reorder.held(), 10);
        }
    }

    #[test]
    fn a_ring_is_as_full_as_it_was_until_it_is_popped() {
        let (mut reorder, mut waiting) = new(100, 20, Holding::Ring, 0);
        assert_eq!(reorder.insert(&mut waiting, 0, Bytes::from_static(&[1; 20])), Some(20));
        assert_eq!((reorder.delivered(), reorder.held()), (20, 0));
        assert_eq!(reorder.insert(&mut waiting, 20, Bytes::from_static(&[2; 1])), None);
        assert_eq!(reorder.pop(&mut waiting).as_deref(), Some(&[1; 20][..]));
        assert_eq!(reorder.pop(&mut waiting), None);
        assert_eq!(reorder.insert(&mut waiting, 20, Bytes::from_static(&[2; 1])), Some(1));
    }
}
