//! The sending half of the data level: written data, its assignment to subflows, and
//! acknowledgements.
//!
//! A *chunk* is the data that one call of the scheduler has assigned to a subflow, at most one
//! segment. It is kept until its DATA_ACK (RFC 8684 section 3.3.5), so that it can be sent on
//! another subflow.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::segment::{DataSeqNumber, SeqNumber};
use crate::tcp::SendQueue;
use crate::time::Instant;

/// One chunk on one subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// The subflow's index.
    pub(crate) on: usize,
    pub(crate) seq: SeqNumber,
    pub(crate) end: SeqNumber,
    pub(crate) at: Instant,
}

/// Bytes that were assigned together.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) dsn: DataSeqNumber,
    pub(crate) len: u32,
    first: Copy,
    more: Vec<Copy>,
    /// To be sent again on another subflow as soon as one has room.
    pub(crate) lost: bool,
}

impl Chunk {
    pub(crate) fn end(&self) -> DataSeqNumber {
        self.dsn + u64::from(self.len)
    }

    pub(crate) fn copies(&self) -> impl Iterator<Item = &Copy> {
        core::iter::once(&self.first).chain(&self.more)
    }

    pub(crate) fn is_on(&self, subflow: usize) -> bool {
        self.copies().any(|copy| copy.on == subflow)
    }
}

/// Bytes that the peer has acknowledged on the data level and that subflows still keep. Copies
/// share one memory.
#[derive(Debug)]
struct Kept {
    first: Copy,
    more: Vec<Copy>,
}

impl Kept {
    /// Number of bytes left: a subflow keeps data past its SND.UNA.
    fn octets(&self, una: impl Fn(usize) -> Option<SeqNumber>) -> u32 {
        let left = |copy: &Copy| {
            let una = una(copy.on)?;
            Some(copy.end.distance(copy.seq.max(una)).max(0) as u32)
        };
        core::iter::once(&self.first).chain(&self.more).filter_map(left).max().unwrap_or(0)
    }
}

/// Bytes that were skipped by the scheduler.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: DataSeqNumber,
    to: DataSeqNumber,
}

/// All data written and not acknowledged.
#[derive(Debug)]
pub(crate) struct DataSender {
    /// SND.UNA of data.
    una: DataSeqNumber,
    queue: SendQueue,
    /// End of the bytes ever assigned, except the gaps.
    next: DataSeqNumber,
    /// Skipped ranges before `next`.
    gaps: VecDeque<Gap>,
    /// Assigned chunks, ordered and disjoint.
    chunks: VecDeque<Chunk>,
    /// Whether any chunk may be marked as lost.
    any_lost: bool,
    /// Right edge of the peer's window: the largest DATA_ACK + window received on any subflow.
    edge: DataSeqNumber,
    buffer: u32,
    /// Data acknowledged by DATA_ACK that subflows still keep, because their own acknowledgement is
    /// missing, and its number of bytes.
    kept: Vec<Kept>,
    kept_octets: u32,
    closed: bool,
    fin_acked: bool,
    pub(crate) acked: u64,
    pub(crate) reinjections: u64,
}

impl DataSender {
    /// `first` is the number of the first byte.
    pub(crate) fn new(first: DataSeqNumber, buffer: u32) -> Self {
        Self {
            una: first,
            queue: SendQueue::default(),
            next: first,
            gaps: VecDeque::new(),
            chunks: VecDeque::new(),
            any_lost: false,
            edge: first,
            buffer: buffer.min(MAX_BUFFER),
            kept: Vec::new(),
            kept_octets: 0,
            closed: false,
            fin_acked: false,
            acked: 0,
            reinjections: 0,
        }
    }

    /// As `tcp::Connection::write`.
    pub(crate) fn write(&mut self, data: &mut Bytes) -> usize {
        let n = data.len().min(self.room() as usize);
        if n > 0 {
            self.queue.push(data.split_to(n));
        }
        n
    }

    fn room(&self) -> u32 {
        // Kept data is acknowledged on the data level, but it still occupies memory.
        self.buffer.saturating_sub(self.queue.len()).saturating_sub(self.kept_octets)
    }

    /// As `tcp::Connection::set_send_buffer`; returns whether the buffer was full and has room now.
    pub(crate) fn set_buffer(&mut self, octets: u32) -> bool {
        let had = self.room() > 0;
        self.buffer = octets.min(MAX_BUFFER);
        !had && self.room() > 0
    }

    /// Size of the buffer in bytes.
    pub(crate) fn buffer(&self) -> u32 {
        self.buffer
    }

    /// Number of bytes in the buffer.
    pub(crate) fn buffered(&self) -> u64 {
        u64::from(self.queue.len()) + u64::from(self.kept_octets)
    }

    /// Counts the acknowledged data that subflows still keep; `una` returns a subflow's SND.UNA, or
    /// `None` if it is closed. Returns whether the buffer was full and has room now.
    pub(crate) fn count_kept(&mut self, una: impl Fn(usize) -> Option<SeqNumber>) -> bool {
        let had = self.room() > 0;
        let mut octets = 0;
        self.kept.retain(|kept| {
            let left = kept.octets(&una);
            octets += left;
            left > 0
        });
        self.kept_octets = octets;
        !had && self.room() > 0
    }

    /// Takes all unassigned data, for the fallback to plain TCP. Must be called before the first
    /// DATA_ACK. Assigned data is already queued on the subflow.
    pub(crate) fn take_unassigned(&mut self) -> Bytes {
        let assigned = self.next.distance(self.una).max(0) as u32;
        let rest = self.queue.slice(assigned, self.queue.len() - assigned);
        self.queue.clear();
        self.chunks.clear();
        self.gaps.clear();
        rest
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Just past the last byte written: the number of the DATA_FIN after the close.
    pub(crate) fn end(&self) -> DataSeqNumber {
        self.una + u64::from(self.queue.len())
    }

    pub(crate) fn una(&self) -> DataSeqNumber {
        self.una
    }

    pub(crate) fn fin_acked(&self) -> bool {
        self.fin_acked
    }

    /// Bytes never assigned.
    pub(crate) fn unsent(&self) -> u64 {
        let gaps: i64 = self.gaps.iter().map(|gap| gap.to.distance(gap.from)).sum();
        (self.end().distance(self.next) + gaps).max(0) as u64
    }

    /// Bytes assigned and not acknowledged.
    pub(crate) fn in_flight(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.len)).sum()
    }

    pub(crate) fn has_chunks(&self) -> bool {
        !self.chunks.is_empty()
    }

    pub(crate) fn peer_window(&self) -> u64 {
        self.edge.distance(self.una).max(0) as u64
    }

    /// Processes a DATA_ACK with the window of its segment. Returns `None` if it acknowledges data
    /// that was never sent, otherwise whether anything has moved.
    pub(crate) fn acknowledge(&mut self, ack: DataSeqNumber, window: u32) -> Option<bool> {
        // What the scheduler has skipped was never sent.
        let sent = self.gaps.front().map_or(self.next, |gap| gap.from);
        // The DATA_FIN takes one number, and it is sent only after all data was assigned.
        let most = if self.closed && sent == self.end() { sent + 1 } else { sent };
        if !ack.le(most) {
            return None;
        }
        let edge = self.edge.max(ack + u64::from(window));
        let mut moved = edge != self.edge;
        self.edge = edge;
        if self.closed && ack == self.end() + 1 && !self.fin_acked {
            self.fin_acked = true;
            moved = true;
        }
        let n = ack.distance(self.una).clamp(0, i64::from(self.queue.len())) as u32;
        if n > 0 {
            self.advance(n);
            moved = true;
        }
        Some(moved)
    }

    fn advance(&mut self, n: u32) {
        self.queue.advance(n);
        self.una = self.una + u64::from(n);
        self.acked += u64::from(n);
        let una = self.una;
        while let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.end().le(una)) {
            keep(&mut self.kept, Kept { first: chunk.first, more: chunk.more });
        }
        while self.gaps.front().is_some_and(|gap| gap.to.le(una)) {
            self.gaps.pop_front();
        }
        if let Some(chunk) = self.chunks.front_mut() {
            // A DATA_ACK may end within a chunk: the acknowledged part is only kept for the
            // subflow.
            let cut = una.distance(chunk.dsn).clamp(0, i64::from(chunk.len)) as u32;
            if cut > 0 {
                let part = |copy: &Copy| Copy { end: copy.seq + cut, ..*copy };
                let more = chunk.more.iter().map(part).collect();
                keep(&mut self.kept, Kept { first: part(&chunk.first), more });
            }
            chunk.dsn = chunk.dsn + u64::from(cut);
            chunk.len -= cut;
            chunk.first.seq += cut;
            chunk.more.iter_mut().for_each(|copy| copy.seq += cut);
        }
    }

    /// The bytes to assign next: at most `most`, after skipping `skip` unassigned bytes, and none
    /// past the peer's window.
    pub(crate) fn peek(&self, skip: u64, most: u32) -> Option<(DataSeqNumber, u32)> {
        let mut skip = skip as i64;
        let tail = Gap { from: self.next, to: self.end() };
        for gap in self.gaps.iter().chain(core::iter::once(&tail)) {
            let len = gap.to.distance(gap.from);
            if skip < len {
                let from = gap.from + skip.max(0) as u64;
                let room = self.edge.distance(from).clamp(0, i64::from(most));
                let n = gap.to.distance(from).min(room) as u32;
                return (n > 0).then_some((from, n));
            }
            skip -= len.max(0);
        }
        None
    }

    /// Whether only the peer's window limits the `len` bytes from `dsn` on: more data waits.
    pub(crate) fn is_cut_by_window(&self, dsn: DataSeqNumber, len: u32) -> bool {
        let end = dsn + u64::from(len);
        end == self.edge && end.lt(self.end())
    }

    /// Assigns a range returned by [`DataSender::peek`].
    pub(crate) fn assign(&mut self, dsn: DataSeqNumber, len: u32, copy: Copy) {
        let end = dsn + u64::from(len);
        if self.next.le(dsn) {
            if self.next != dsn {
                self.gaps.push_back(Gap { from: self.next, to: dsn });
            }
            self.next = end;
        } else if let Some(i) = self.gaps.iter().position(|gap| gap.from.le(dsn) && end.le(gap.to)) {
            let gap = self.gaps[i];
            self.gaps.remove(i);
            if end != gap.to {
                self.gaps.insert(i, Gap { from: end, to: gap.to });
            }
            if gap.from != dsn {
                self.gaps.insert(i, Gap { from: gap.from, to: dsn });
            }
        }
        let at = self.chunks.partition_point(|chunk| chunk.dsn.lt(dsn));
        self.chunks.insert(at, Chunk { dsn, len, first: copy, more: Vec::new(), lost: false });
    }

    /// Whether data that a subflow has sent is still stored.
    pub(crate) fn is_on(&self, subflow: usize) -> bool {
        let kept =
            |kept: &Kept| core::iter::once(&kept.first).chain(&kept.more).any(|copy| copy.on == subflow);
        self.chunks.iter().any(|chunk| chunk.is_on(subflow)) || self.kept.iter().any(kept)
    }

    pub(crate) fn data(&self, dsn: DataSeqNumber, len: u32) -> Bytes {
        self.queue.slice(dsn.distance(self.una).max(0) as u32, len)
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    pub(crate) fn chunk(&self, index: usize) -> Option<&Chunk> {
        self.chunks.get(index)
    }

    /// Records a copy of a chunk on a further subflow.
    pub(crate) fn copied(&mut self, index: usize, copy: Copy) {
        if let Some(chunk) = self.chunks.get_mut(index) {
            chunk.more.push(copy);
            chunk.lost = false;
            self.reinjections += 1;
        }
    }

    /// Marks the chunks for which `is_lost` holds.
    pub(crate) fn mark_lost(&mut self, mut is_lost: impl FnMut(&Chunk) -> bool) {
        for chunk in &mut self.chunks {
            if !chunk.lost && is_lost(chunk) {
                chunk.lost = true;
                self.any_lost = true;
            }
        }
    }

    /// Index of the first marked chunk for which `wanted` holds.
    pub(crate) fn first_lost(&mut self, wanted: impl Fn(&Chunk) -> bool) -> Option<usize> {
        if !self.any_lost {
            return None;
        }
        // Acknowledged chunks have taken their marks with them, so the flag is computed again.
        self.any_lost = self.chunks.iter().any(|chunk| chunk.lost);
        self.chunks.iter().position(|chunk| chunk.lost && wanted(chunk))
    }

    /// Removes the marks of the chunks for which `is_kept` holds.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&Chunk) -> bool) {
        self.chunks.iter_mut().filter(|chunk| chunk.lost && is_kept(chunk)).for_each(|c| c.lost = false);
    }

    /// Removes the mark of a chunk.
    pub(crate) fn found(&mut self, index: usize) {
        if let Some(chunk) = self.chunks.get_mut(index) {
            chunk.lost = false;
        }
    }
}

/// Stores data that subflows keep, and merges it with the preceding data if both are on the same
/// subflows. A peer that acknowledges byte by byte can therefore not make the list grow.
fn keep(kept: &mut Vec<Kept>, new: Kept) {
    let follows = |before: &Copy, after: &Copy| before.on == after.on && before.end == after.seq;
    match kept.iter_mut().rev().find(|before| before.first.on == new.first.on) {
        Some(before)
            if before.more.len() == new.more.len()
                && follows(&before.first, &new.first)
                && before.more.iter().zip(&new.more).all(|(a, b)| follows(a, b)) =>
        {
            before.first.end = new.first.end;
            before.more.iter_mut().zip(&new.more).for_each(|(a, b)| a.end = b.end);
        }
        Some(_) | None => kept.push(new),
    }
}

/// As for one TCP connection.
const MAX_BUFFER: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const FIRST: DataSeqNumber = DataSeqNumber(100);

    fn sender(window: u32) -> DataSender {
        let mut sender = DataSender::new(FIRST, 1_000);
        sender.write(&mut Bytes::from(vec![0; 1_000]));
        assert_eq!(sender.acknowledge(FIRST, window), Some(true));
        sender
    }

    fn copy(on: usize, seq: u32, len: u32) -> Copy {
        let seq = SeqNumber(seq);
        Copy { on, seq, end: seq + len, at: Instant::ZERO }
    }

    #[test]
    fn what_was_skipped_cannot_be_acknowledged() {
        let mut sender = sender(1_000);
        sender.assign(FIRST, 100, copy(0, 0, 100));
        sender.assign(FIRST + 200, 100, copy(1, 0, 100));
        for ack in [101, 200, 300] {
            assert_eq!(sender.acknowledge(FIRST + ack, 1_000), None, "{ack}");
        }
        assert_eq!(sender.acknowledge(FIRST + 100, 1_000), Some(true));
        assert_eq!(sender.peek(0, 1_000), Some((FIRST + 100, 100)));
    }

    /// RFC 8684 section 3.3.2 lets the peer acknowledge any byte: the bytes that subflows still
    /// keep stay one entry.
    #[test]
    fn acknowledgements_byte_by_byte_are_kept_together() {
        let mut sender = sender(1_000);
        sender.assign(FIRST, 500, copy(0, 0, 500));
        sender.copied(0, copy(1, 7, 500));
        for ack in 1..400 {
            assert_eq!(sender.acknowledge(FIRST + ack, 1_000), Some(true));
        }
        assert_eq!(sender.kept.len(), 1);
        sender.count_kept(|on| Some(SeqNumber(if on == 0 { 0 } else { 207 })));
        assert_eq!(sender.kept_octets, 399);
    }
}
