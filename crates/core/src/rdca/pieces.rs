//! Reassembly of the application's data from packets (section 3.2.1).

use alloc::boxed::Box;
use alloc::vec::Vec;

use anabranch_wire::rdca::{Piece, Range, Seq};
use bytes::Bytes;

use super::config::LONGEST;
use super::reorder::Pool;
use crate::time::Instant;

/// The received part of the next data, if it is incomplete.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Option<Box<Begun>>);

#[derive(Clone, Debug)]
struct Begun {
    first: Seq,
    bytes: Vec<u8>,
    /// When the last piece came.
    at: Instant,
}

/// Result of a packet for the application: data that will never be complete, then complete data.
type Told = (Option<Range>, Option<(Seq, Bytes)>);

impl Pieces {
    /// Takes the next packet in order.
    pub(super) fn take(
        &mut self,
        now: Instant,
        pool: &mut Pool,
        (seq, piece, payload): (Seq, Piece, Bytes),
    ) -> Told {
        match piece {
            Piece::Whole => (self.give_up(pool, seq), Some((seq, payload))),
            Piece::First => {
                let gone = self.give_up(pool, seq);
                if pool.reserve(payload.len()) {
                    self.0 = Some(Box::new(Begun { first: seq, bytes: payload.into(), at: now }));
                    return (gone, None);
                }
                (Some(Range { start: gone.map_or(seq, |gone| gone.start), end: seq + 1 }), None)
            }
            Piece::Middle | Piece::Last => {
                // The limit on the length keeps a sender from filling the memory with data that
                // never ends.
                let is_last = piece == Piece::Last;
                let fits = |begun: &&mut Box<Begun>| begun.bytes.len() + payload.len() <= LONGEST;
                // The last piece frees the room of all.
                let begun = self.0.as_mut().filter(fits);
                let Some(begun) = begun.filter(|_| is_last || pool.reserve(payload.len())) else {
                    let end = seq + 1;
                    return (Some(self.give_up(pool, end).unwrap_or(Range { start: seq, end })), None);
                };
                if !is_last {
                    begun.bytes.extend_from_slice(&payload);
                    begun.at = now;
                    return (None, None);
                }
                let whole = self.end(pool).map(|mut begun| {
                    begun.bytes.extend_from_slice(&payload);
                    (begun.first, begun.bytes.into())
                });
                (None, whole)
            }
        }
    }

    /// Handles the loss of the next packets. Received parts of the same data are lost with them.
    pub(super) fn gone(&mut self, pool: &mut Pool, range: Range) -> Range {
        self.give_up(pool, range.end).unwrap_or(range)
    }

    /// Drops the incomplete data, which then ends before `end`.
    pub(super) fn give_up(&mut self, pool: &mut Pool, end: Seq) -> Option<Range> {
        self.end(pool).map(|begun| Range { start: begun.first, end })
    }

    fn end(&mut self, pool: &mut Pool) -> Option<Box<Begun>> {
        let begun = self.0.take()?;
        pool.give_back(begun.bytes.len());
        Some(begun)
    }

    /// When the last piece of the incomplete data came.
    pub(super) fn stalled_since(&self) -> Option<Instant> {
        self.0.as_ref().map(|begun| begun.at)
    }

    /// Number of the first packet of the incomplete data.
    pub(super) fn begun(&self) -> Option<Seq> {
        self.0.as_ref().map(|begun| begun.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u32, end: u32) -> Range {
        Range { start: Seq(start), end: Seq(end) }
    }

    #[test]
    fn what_lacks_a_piece_is_gone_from_its_first_to_its_last() {
        let (mut pool, mut pieces) = (Pool::new(0, usize::MAX), Pieces::default());
        let mut take = |seq, piece| {
            pieces.take(Instant::ZERO, &mut pool, (Seq(seq), piece, Bytes::from(std::vec![seq as u8])))
        };
        assert_eq!(take(0, Piece::First), (None, None));
        assert_eq!(take(1, Piece::Middle), (None, None));
        assert_eq!(take(2, Piece::Last), (None, Some((Seq(0), Bytes::from_static(&[0, 1, 2])))));
        assert_eq!(take(3, Piece::First), (None, None));
        assert_eq!(pieces.begun(), Some(Seq(3)));
        assert_eq!(pieces.gone(&mut pool, range(4, 5)), range(3, 5));
        let mut take = |seq, piece| pieces.take(Instant::ZERO, &mut pool, (Seq(seq), piece, Bytes::new()));
        assert_eq!(take(5, Piece::Middle), (Some(range(5, 6)), None));
        assert_eq!(take(6, Piece::Last), (Some(range(6, 7)), None));
        // A sender that violates the order of pieces.
        assert_eq!(take(7, Piece::First), (None, None));
        assert_eq!(take(8, Piece::First), (Some(range(7, 8)), None));
        assert_eq!(take(9, Piece::Whole), (Some(range(8, 9)), Some((Seq(9), Bytes::new()))));
        assert_eq!(pieces.gone(&mut pool, range(10, 12)), range(10, 12));
    }

    #[test]
    fn no_sender_fills_the_memory_with_a_packet_without_end() {
        let (mut pool, mut pieces) = (Pool::new(0, usize::MAX), Pieces::default());
        pieces.take(Instant::ZERO, &mut pool, (Seq(0), Piece::First, Bytes::new()));
        let middle = Bytes::from(std::vec![0; 1000]);
        let gone = (1..100).find_map(|seq| {
            pieces.take(Instant::ZERO, &mut pool, (Seq(seq), Piece::Middle, middle.clone())).0
        });
        assert_eq!(gone, Some(range(0, 67)));
        assert_eq!(pieces.begun(), None);
    }

    #[test]
    fn incomplete_data_without_room_is_gone() {
        let (mut pool, mut pieces) = (Pool::new(0, 25), [Pieces::default(), Pieces::default()]);
        let mut take = |sender: usize, seq, piece| {
            pieces[sender].take(Instant::ZERO, &mut pool, (Seq(seq), piece, Bytes::from_static(&[0; 10]))).0
        };
        assert_eq!(take(0, 0, Piece::First), None);
        assert_eq!(take(1, 0, Piece::First), None);
        assert_eq!(take(1, 1, Piece::Middle), Some(range(0, 2)));
        assert_eq!(take(1, 2, Piece::Last), Some(range(2, 3)));
        // The sender that has given up has left its room.
        assert_eq!(take(0, 1, Piece::Middle), None);
        assert_eq!(take(1, 3, Piece::First), Some(range(3, 4)));
        assert_eq!(take(0, 2, Piece::First), Some(range(0, 2)));
        assert_eq!(take(1, 4, Piece::First), None);
    }
}
