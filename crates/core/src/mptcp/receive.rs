//! The receiving half on the level of data: one buffer, one window, one order for all subflows.

use alloc::collections::VecDeque;

use bytes::{Buf, Bytes};

use crate::segment::{DataSeqNumber, SeqNumber};
use crate::tcp::{Reassembly, push_joined, small};

/// What has arrived and was not read.
#[derive(Debug)]
pub(crate) struct DataReceiver {
    /// RCV.NXT of data: what we acknowledge.
    nxt: DataSeqNumber,
    /// The right edge of the window as last offered; it never moves left (RFC 8684 section 3.3.5).
    edge: DataSeqNumber,
    buffer: u32,
    /// What windows are rounded to.
    unit: u32,
    mss: u32,
    ready: VecDeque<Bytes>,
    ready_len: u32,
    /// By the lower halves of their numbers: all lie within one window, which is far smaller than
    /// 2^31.
    pieces: Reassembly,
    /// Where the peer's stream ends, once known.
    end: Option<DataSeqNumber>,
    ended: bool,
    pub(crate) received: u64,
    pub(crate) duplicate: u64,
}

/// What bytes have brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Brought {
    Nothing,
    /// Something in order.
    Data,
    /// The end, and what was before it.
    End,
}

impl DataReceiver {
    /// `first` is the number of the first byte.
    pub(crate) fn new(first: DataSeqNumber, buffer: u32, shift: u8, mss: u32) -> Self {
        let buffer = buffer.min(MAX_BUFFER);
        let mut pieces = Reassembly::default();
        pieces.set_mss(mss);
        Self {
            nxt: first,
            // A SYN's window counts from the first byte.
            edge: first + u64::from(buffer.min(u32::from(u16::MAX))),
            buffer,
            unit: 1 << shift.min(14),
            mss: mss.max(1),
            ready: VecDeque::new(),
            ready_len: 0,
            pieces,
            end: None,
            ended: false,
            received: 0,
            duplicate: 0,
        }
    }

    /// The DATA_ACK: a DATA_FIN that was reached takes a number too.
    pub(crate) fn acknowledges(&self) -> DataSeqNumber {
        self.nxt + u64::from(self.ended)
    }

    pub(crate) fn nxt(&self) -> DataSeqNumber {
        self.nxt
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn readable(&self) -> u32 {
        self.ready_len
    }

    pub(crate) fn out_of_order(&self) -> u64 {
        self.pieces.octets()
    }

    pub(crate) fn set_buffer(&mut self, octets: u32) {
        self.buffer = octets.min(MAX_BUFFER);
    }

    fn offered(&self) -> u32 {
        self.edge.distance(self.nxt).max(0) as u32
    }

    fn open(&self) -> u32 {
        self.buffer.saturating_sub(self.ready_len)
    }

    /// Silly window avoidance (RFC 9293 section 3.8.6.2.2).
    fn worthwhile(&self) -> u32 {
        (self.buffer / 2).min(self.mss).max(1)
    }

    /// The window of the next segment, in bytes from the DATA_ACK.
    pub(crate) fn offer(&mut self) -> u32 {
        let (offered, open) = (self.offered(), self.open());
        if open > offered && open - offered >= self.worthwhile() {
            self.edge = self.nxt + u64::from(open);
        }
        self.offered()
    }

    /// The peer should hear at once that the window has opened.
    pub(crate) fn wants_update(&self) -> bool {
        let (offered, open) = (self.offered(), self.open());
        !self.ended
            && open > offered
            && open - offered >= self.worthwhile()
            && offered <= self.buffer / 2
            && open / 2 >= offered
    }

    /// The stream ends at `end`. False if that cannot be.
    pub(crate) fn end_at(&mut self, end: DataSeqNumber) -> bool {
        match self.end {
            Some(known) => known == end,
            None if end.lt(self.nxt) => false,
            None => {
                self.end = Some(end);
                true
            }
        }
    }

    /// Bytes from `dsn` on; what lies outside of the window is cut off.
    pub(crate) fn receive(&mut self, dsn: DataSeqNumber, mut data: Bytes) -> Brought {
        let mut dsn = dsn;
        let old = self.nxt.distance(dsn).clamp(0, data.len() as i64) as usize;
        data.advance(old);
        dsn = dsn + old as u64;
        self.duplicate += old as u64;
        let mut limit = self.edge + u64::from(self.unit);
        if let Some(end) = self.end
            && end.lt(limit)
        {
            limit = end;
        }
        data.truncate(limit.distance(dsn).max(0) as usize);
        let mut brought = Brought::Nothing;
        if dsn == self.nxt && !data.is_empty() {
            self.push(data);
            while let Some(next) = self.pieces.pop(low(self.nxt)) {
                self.push(next);
            }
            brought = Brought::Data;
        } else if !data.is_empty() {
            let before = self.pieces.octets();
            let len = data.len() as u64;
            self.pieces.insert(low(dsn), data);
            self.duplicate += len.saturating_sub(self.pieces.octets() - before);
        }
        if self.reach_end() { Brought::End } else { brought }
    }

    /// True when the end has just been reached.
    pub(crate) fn reach_end(&mut self) -> bool {
        let reached = !self.ended && self.end == Some(self.nxt);
        self.ended |= reached;
        reached
    }

    fn push(&mut self, data: Bytes) {
        self.nxt = self.nxt + data.len() as u64;
        self.ready_len += data.len() as u32;
        self.received += data.len() as u64;
        push_joined(&mut self.ready, data, small(self.mss));
    }

    /// Up to `max` bytes from the front.
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        let front = self.ready.front_mut()?;
        if max == 0 {
            return None;
        }
        let data = if front.len() <= max { self.ready.pop_front()? } else { front.split_to(max) };
        self.ready_len -= data.len() as u32;
        Some(data)
    }

    /// Nothing can be read any more.
    pub(crate) fn discard(&mut self) {
        self.ready.clear();
        self.ready_len = 0;
    }
}

fn low(number: DataSeqNumber) -> SeqNumber {
    SeqNumber(number.0 as u32)
}

/// As of one TCP connection.
const MAX_BUFFER: u32 = 1 << 30;
