//! The node's one receive buffer: pieces of a file from anywhere, out in order.

use alloc::collections::BTreeMap;

use anabranch_wire::set::Range;
use bytes::Bytes;

use crate::set::ranges::RangeSet;

/// Pieces that wait for what comes before them.
#[derive(Debug)]
pub(super) struct Reorder {
    length: u64,
    buffer: u64,
    /// All that has come, delivered or not.
    arrived: RangeSet,
    /// What waits, by offset; pieces do not overlap.
    pieces: BTreeMap<u64, Bytes>,
    delivered: u64,
}

impl Reorder {
    /// Of a file whose octets before `from` are there already.
    pub(super) fn resume(length: u64, buffer: u64, from: u64) -> Self {
        let delivered = from.min(length);
        let mut arrived = RangeSet::new();
        arrived.insert(0, delivered);
        Self { length, buffer, arrived, pieces: BTreeMap::new(), delivered }
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn is_complete(&self) -> bool {
        self.delivered == self.length
    }

    /// Octets that wait.
    pub(super) fn held(&self) -> u64 {
        self.arrived.octets() - self.delivered
    }

    /// What waits, as ranges.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.arrived.as_slice().iter().copied().filter(|r| r.start > self.delivered)
    }

    /// Takes `octets` at `offset` and returns how many were new; `None`, and nothing taken, if they reach
    /// past the file or the buffer.
    pub(super) fn insert(&mut self, offset: u64, octets: Bytes) -> Option<u64> {
        let end = offset.checked_add(octets.len() as u64)?;
        if end > self.length || end > self.delivered.saturating_add(self.buffer) {
            return None;
        }
        let before = self.arrived.octets();
        let mut at = offset;
        while at < end {
            // What is known already is skipped; what is new up to the next known piece is kept.
            if let Some(known) = self.arrived.range_at(at) {
                at = known.end;
                continue;
            }
            let stop = self.arrived.next_from(at).map_or(end, |r| r.start.min(end));
            let piece = octets.slice((at - offset) as usize..(stop - offset) as usize);
            self.pieces.insert(at, piece);
            self.arrived.insert(at, stop);
            at = stop;
        }
        Some(self.arrived.octets() - before)
    }

    /// The next piece in order.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let entry = self.pieces.first_entry().filter(|e| *e.key() == self.delivered)?;
        let piece = entry.remove();
        self.delivered += piece.len() as u64;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_overlapping_pieces_come_out_as_the_file(
            starts in proptest::collection::vec((0usize..500, 1usize..80), 1..80),
            from in 0u64..=500,
        ) {
            let file: Vec<u8> = (0..500u32).map(|i| (i * 7) as u8).collect();
            let mut reorder = Reorder::resume(500, 500, from);
            let mut out = file[..from as usize].to_vec();
            let all = starts.into_iter().chain((0..10).map(|i| (i * 50, 50)));
            for (start, n) in all {
                let end = (start + n).min(500);
                let new = reorder.insert(start as u64, Bytes::copy_from_slice(&file[start..end]));
                prop_assert!(new.is_some());
                while let Some(piece) = reorder.pop() {
                    out.extend_from_slice(&piece);
                }
                prop_assert_eq!(reorder.delivered(), out.len() as u64);
            }
            prop_assert_eq!(out, file);
            prop_assert!(reorder.is_complete());
            prop_assert_eq!(reorder.held(), 0);
        }
    }

    #[test]
    fn nothing_past_the_file_or_the_buffer_is_taken() {
        let mut reorder = Reorder::resume(100, 20, 0);
        assert_eq!(reorder.insert(10, Bytes::from_static(&[0; 11])), None);
        assert_eq!(reorder.insert(90, Bytes::from_static(&[0; 11])), None);
        assert_eq!(reorder.insert(10, Bytes::from_static(&[0; 10])), Some(10));
        assert_eq!(reorder.held(), 10);
    }
}
