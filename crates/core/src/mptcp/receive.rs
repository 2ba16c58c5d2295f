//! The receiving half of the data level: one buffer, one window and one order for all subflows.

use alloc::collections::VecDeque;

use bytes::{Buf, Bytes};

use crate::segment::{DataSeqNumber, SeqNumber};
use crate::tcp::{Reassembly, push_joined, small};

/// Received data that was not read yet.
#[derive(Debug)]
pub(crate) struct DataReceiver {
    /// RCV.NXT of the data level: the number that we acknowledge.
    nxt: DataSeqNumber,
    /// Right edge of the window as last offered; it never moves left (RFC 8684 section 3.3.5).
    edge: DataSeqNumber,
    buffer: u32,
    /// Unit to which windows are rounded.
    unit: u32,
    mss: u32,
    ready: VecDeque<Bytes>,
    ready_len: u32,
    /// Keyed by the lower halves of the numbers: all lie within one window, which is far smaller
    /// than 2^31.
    pieces: Reassembly,
    /// End of the peer's stream, once known.
    end: Option<DataSeqNumber>,
    ended: bool,
    pub(crate) received: u64,
    pub(crate) duplicate: u64,
}

/// What received bytes contribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Brought {
    Nothing,
    /// Data in order.
    Data,
    /// The end of the stream, with all data before it.
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
            // The window of a SYN counts from the first byte.
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

    /// The DATA_ACK. A received DATA_FIN takes one number.
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

    /// Silly window avoidance (RFC 9293 section 3.8.6.2.2): the least step of the right edge.
    fn worthwhile(&self) -> u32 {
        (self.buffer / 2).min(self.mss).max(1)
    }

    /// The window of the next segment in bytes, counted from the DATA_ACK.
    pub(crate) fn offer(&mut self) -> u32 {
        let (offered, open) = (self.offered(), self.open());
        if open > offered && open - offered >= self.worthwhile() {
            self.edge = self.nxt + u64::from(open);
        }
        self.offered()
    }

    /// Whether the offered window is closed or almost: the peer may have stopped to send.
    pub(crate) fn is_closed(&self) -> bool {
        self.offered() < self.mss.max(self.buffer / 8)
    }

    /// Whether to send a window update at once.
    pub(crate) fn wants_update(&self) -> bool {
        let (offered, open) = (self.offered(), self.open());
        !self.ended
            && open > offered
            && open - offered >= self.worthwhile()
            && offered <= self.buffer / 2
            && open / 2 >= offered
    }

    /// Sets the end of the stream; returns false if it contradicts earlier data.
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

    /// Stores bytes from `dsn` on; bytes more than one buffer past the window are
    /// cut off.
    pub(crate) fn receive(&mut self, dsn: DataSeqNumber, mut data: Bytes) -> Brought {
        let mut dsn = dsn;
        let old = self.nxt.distance(dsn).clamp(0, data.len() as i64) as usize;
        data.advance(old);
        dsn = dsn + old as u64;
        self.duplicate += old as u64;
        // The window field is rounded to the scale of the window, so the peer may exceed the edge
        // by one unit. Linux exceeds it further: a subflow ignores a smaller window if the segment
        // acknowledges nothing new on that subflow (RFC 9293 section 3.10.7.4), and adds its older
        // window to the new DATA_ACK. The subflow has acknowledged these bytes, so Linux would send
        // what is dropped here only after a long time-out. The older window was at most the buffer.
        let mut limit = self.edge + u64::from(self.unit.max(self.buffer));
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
            // Bytes that the reassembly already held are duplicates.
            self.duplicate += len.saturating_sub(self.pieces.octets() - before);
        }
        if self.reach_end() { Brought::End } else { brought }
    }

    /// Returns true when the end has just been reached.
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

    /// Takes up to `max` bytes from the front.
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        let front = self.ready.front_mut()?;
        if max == 0 {
            return None;
        }
        let data = if front.len() <= max { self.ready.pop_front()? } else { front.split_to(max) };
        self.ready_len -= data.len() as u32;
        Some(data)
    }

    /// Discards all readable data.
    pub(crate) fn discard(&mut self) {
        self.ready.clear();
        self.ready_len = 0;
    }
}

fn low(number: DataSeqNumber) -> SeqNumber {
    SeqNumber(number.0 as u32)
}

/// As for one TCP connection.
const MAX_BUFFER: u32 = 1 << 30;
