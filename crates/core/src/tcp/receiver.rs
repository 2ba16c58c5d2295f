//! The receiving half of a connection: RCV.NXT and the window (RFC 9293 section 3.3.1), and the
//! data that was received and not yet read.
//!
//! The right edge of the window never moves left (RFC 9293 section 3.8.6.2.1), whatever happens to
//! the buffer: offered bytes are accepted. One exception is visible on the wire. A scaled window is
//! rounded up, but down once the buffer is short by one unit of the scale (RFC 7323 section 2.4).

mod delay;
mod reassembly;

use alloc::collections::VecDeque;

use bytes::{Buf, Bytes};

pub(crate) use self::reassembly::{Reassembly, small};

use self::delay::AckDelay;
use self::reassembly::joined;
use super::config::Config;
use super::sender::MAX_BUFFER;
use crate::segment::{SackBlock, SackBlocks, SeqNumber};
use crate::time::Instant;

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// IRS.
    irs: SeqNumber,
    /// RCV.NXT.
    nxt: SeqNumber,
    /// RCV.NXT + RCV.WND as last offered.
    edge: SeqNumber,
    buffer: u32,
    /// Rcv.Wind.Shift (RFC 7323 section 2.2).
    shift: u8,
    /// Largest payload of the peer's segments, as far as known.
    mss: u32,
    /// Chunks are merged up to this length.
    small: usize,
    ready: VecDeque<Bytes>,
    ready_len: u32,
    reassembly: Reassembly,
    /// Whether duplicates are reported (RFC 2883).
    reports_duplicates: bool,
    /// Data that has arrived twice and was not reported yet.
    duplicate: Option<SackBlock>,
    fin: Fin,
    delay: AckDelay,
    /// As [`Config::ack_gaps`].
    tells_gaps: bool,
    received: u64,
    /// The receive window of the MPTCP connection in bytes, if this is a subflow.
    shared: Option<u32>,
}

/// State of the end of the peer's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    Unknown,
    /// The FIN has arrived out of order.
    At(SeqNumber),
    /// The FIN and everything before it has arrived.
    Reached,
}

/// What the data of a segment contributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// No data in order.
    Nothing,
    /// Data in order.
    Data,
    /// The end of the stream, with or without data before it.
    End,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        // Uses our own segment size. If the peer could choose the size, it could make us keep a
        // whole packet for a few bytes.
        let mss = u32::from(config.mss.max(1));
        let mut reassembly = Reassembly::default();
        reassembly.set_mss(mss);
        Self {
            irs: SeqNumber(0),
            nxt: SeqNumber(0),
            edge: SeqNumber(0),
            buffer: config.receive_buffer.min(MAX_BUFFER),
            shift: 0,
            mss,
            small: small(mss),
            ready: VecDeque::new(),
            ready_len: 0,
            reassembly,
            reports_duplicates: false,
            duplicate: None,
            fin: Fin::Unknown,
            delay: AckDelay::new(config.delayed_ack, config.ack_remainder),
            tells_gaps: config.ack_gaps,
            received: 0,
            shared: None,
        }
    }

    /// Handles the peer's SYN: its sequence number and the negotiated scaling.
    pub(crate) fn synchronise(&mut self, irs: SeqNumber, shift: u8) {
        self.irs = irs;
        self.nxt = irs + 1;
        self.edge = self.nxt + u32::from(self.syn_window());
        self.shift = shift;
    }

    pub(crate) fn irs(&self) -> SeqNumber {
        self.irs
    }

    #[inline]
    pub(crate) fn nxt(&self) -> SeqNumber {
        self.nxt
    }

    /// RCV.WND: the part of the offered window that the peer has not used.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.edge.distance(self.nxt).max(0) as u32
    }

    /// How far below RCV.NXT a retransmitted segment can begin: the largest offered window, but not
    /// beyond the start of the stream.
    pub(crate) fn reach(&self) -> u32 {
        let window = self.buffer.max(self.window()).max(u32::from(u16::MAX));
        u64::from(window).min(self.received + u64::from(self.fin == Fin::Reached)) as u32
    }

    pub(crate) fn readable(&self) -> u32 {
        self.ready_len
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn buffer(&self) -> u32 {
        self.buffer
    }

    pub(crate) fn set_buffer(&mut self, octets: u32) {
        self.buffer = octets.min(MAX_BUFFER);
    }

    /// Window field of a SYN, never scaled (RFC 7323 section 2.2).
    pub(crate) fn syn_window(&self) -> u16 {
        self.buffer.min(u32::from(u16::MAX)) as u16
    }

    /// Returns the window field of the segment that is about to leave, and moves the right edge.
    #[inline]
    pub(crate) fn offer(&mut self) -> u16 {
        if let Some(window) = self.shared {
            return self.offer_shared(window);
        }
        let offered = self.window();
        let open = self.open();
        let target = if open > offered && open - offered >= self.worthwhile() { open } else { offered };
        let unit = 1_i64 << self.shift;
        let up = (i64::from(target) + unit - 1) >> self.shift;
        let in_debt = (up << self.shift) > self.free() + unit;
        let down = target >> self.shift;
        // Rounded down, a window below the unit of the scale would never open.
        let rounds_up = target <= offered || down == 0;
        let field = if rounds_up && !in_debt { up as u32 } else { down };
        let field = field.min(u32::from(u16::MAX));
        self.edge = self.edge.max(self.nxt + (field << self.shift));
        field as u16
    }

    /// The window of a subflow counts from the DATA_ACK (RFC 8684 section 3.3.5), so it may shrink
    /// here when other subflows deliver data. Bytes offered before are still accepted.
    fn offer_shared(&self, window: u32) -> u16 {
        let field = window >> self.shift;
        let field = if window > 0 { field.max(1) } else { 0 };
        field.min(u32::from(u16::MAX)) as u16
    }

    /// Sets the receive window of the MPTCP connection; `None` uses our own buffer.
    #[inline]
    pub(crate) fn set_shared_window(&mut self, octets: Option<u32>) {
        self.shared = octets;
        if let Some(octets) = octets {
            self.edge = self.edge.max(self.nxt + octets.max(1 << self.shift).min(MAX_BUFFER));
        }
    }

    /// Discards readable data, which the MPTCP connection has taken.
    pub(crate) fn drop_ready(&mut self) {
        self.ready.clear();
        self.ready_len = 0;
    }

    /// Free bytes; negative after the buffer has shrunk or the window was rounded up.
    #[inline]
    fn free(&self) -> i64 {
        i64::from(self.buffer) - i64::from(self.ready_len)
    }

    /// The window that the free buffer allows.
    #[inline]
    fn open(&self) -> u32 {
        (self.free().max(0) as u32).min(u32::from(u16::MAX) << self.shift)
    }

    /// Sets the largest payload of the peer's segments (Eff.snd.MSS of the peer).
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
    }

    /// Silly window avoidance (RFC 9293 section 3.8.6.2.2): the least step of the right edge.
    #[inline]
    fn worthwhile(&self) -> u32 {
        (self.buffer / 2).min(self.mss).max(1)
    }

    /// Whether to send a window update at once: the window has at least doubled, from at most half
    /// of its maximum.
    pub(crate) fn wants_update(&self) -> bool {
        let (offered, open) = (self.window(), self.open());
        let most = self.buffer.min(u32::from(u16::MAX) << self.shift);
        open > offered
            && open - offered >= self.worthwhile()
            && u64::from(offered) * 2 <= u64::from(most)
            && u64::from(open) >= u64::from(offered) * 2
    }

    /// Processes the data of an acceptable segment (RFC 9293 section 3.10.7.4, seventh and eighth).
    /// Data outside of the window is cut off. `sack` is the number of bytes of SACK blocks in the
    /// segment.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        mut payload: Bytes,
        fin: bool,
        sack: u32,
    ) -> Arrival {
        // RFC 9293 section 3.10.7.4, seventh: data after the peer's FIN is ignored.
        if self.fin == Fin::Reached {
            return Arrival::Nothing;
        }
        let full = payload.len() as u32;
        let end = seq + full;
        let mut seq = seq;
        let old = self.nxt.distance(seq).max(0) as usize;
        if old > 0 {
            self.note_old(seq, end);
            payload.advance(old.min(payload.len()));
            seq = self.nxt.min(end);
        }
        payload.truncate(self.limit().distance(seq).max(0) as usize);
        if fin && self.fin == Fin::Unknown && end.ge(self.nxt) && end.lt(self.edge) {
            self.fin = Fin::At(end);
        }
        if old == 0
            && self.reports_duplicates
            && let Some(held) = self.reassembly.overlap(seq, seq + payload.len() as u32)
        {
            self.note(held);
        }
        if seq == self.nxt {
            self.in_order(now, payload, full, sack)
        } else {
            // RFC 5681 section 4.2: an out-of-order segment is acknowledged at once, which gives
            // the sender duplicate acknowledgements.
            let tells = self.tells_gaps || payload.is_empty();
            if !payload.is_empty() {
                self.reassembly.insert(seq, payload);
            }
            if tells {
                self.delay.now();
            } else {
                self.delay.segment(now, full + sack, self.mss);
            }
            Arrival::Nothing
        }
    }

    /// End of the sequence numbers that are accepted.
    #[inline]
    fn limit(&self) -> SeqNumber {
        match self.fin {
            Fin::At(end) => end.min(self.edge),
            Fin::Unknown | Fin::Reached => self.edge,
        }
    }

    #[inline]
    fn in_order(&mut self, now: Instant, payload: Bytes, full: u32, sack: u32) -> Arrival {
        let mut arrival = Arrival::Nothing;
        if payload.is_empty() {
            // A segment without new data shows that the peer has missed an acknowledgement.
            if full > 0 {
                self.delay.now();
            }
        } else {
            self.push(payload);
            arrival = Arrival::Data;
            let fills = !self.reassembly.is_empty();
            if fills {
                while let Some(next) = self.reassembly.pop(self.nxt) {
                    self.push(next);
                }
            }
            if fills && self.tells_gaps {
                // RFC 5681 section 4.2: acknowledge at once when a hole is filled.
                self.delay.in_order();
            } else {
                self.delay.segment(now, full + sack, self.mss);
            }
        }
        if self.duplicate.is_some() {
            // RFC 2883 section 4: the D-SACK block describes the segment that triggers the
            // acknowledgement, so the acknowledgement is not delayed.
            self.delay.in_order();
        }
        if self.fin == Fin::At(self.nxt) {
            // RFC 9293 section 3.10.7.4, eighth: the FIN is acknowledged, at once.
            self.fin = Fin::Reached;
            self.nxt += 1;
            self.edge = self.edge.max(self.nxt);
            self.delay.in_order();
            arrival = Arrival::End;
        }
        arrival
    }

    #[inline]
    fn push(&mut self, data: Bytes) {
        let n = data.len() as u32;
        self.nxt += n;
        self.ready_len += n;
        self.received += u64::from(n);
        push_joined(&mut self.ready, data, self.small);
    }

    /// Takes up to `max` bytes from the front.
    #[inline]
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        let front = self.ready.front_mut()?;
        if max == 0 {
            return None;
        }
        let data = if front.len() <= max { self.ready.pop_front()? } else { front.split_to(max) };
        self.ready_len -= data.len() as u32;
        if self.ready_len == 0 {
            // Resets an empty queue to its first slot, which is in the CPU cache.
            self.ready.clear();
        }
        Some(data)
    }

    /// Discards all received data.
    pub(crate) fn discard(&mut self) {
        self.ready.clear();
        self.ready_len = 0;
        self.reassembly = Reassembly::default();
    }

    /// Sets whether duplicates are reported.
    pub(crate) fn report_duplicates(&mut self, on: bool) {
        self.reports_duplicates = on;
    }

    /// Notes the arrival of sequence numbers from `seq` to `end`. Those below RCV.NXT are
    /// duplicates if they are near enough to be a retransmission.
    pub(crate) fn note_old(&mut self, seq: SeqNumber, end: SeqNumber) {
        let old = self.nxt.distance(seq);
        if self.reports_duplicates && old > 0 && old as u32 <= self.reach() && end.gt(seq) {
            self.note(SackBlock { left: seq, right: end.min(self.nxt) });
        }
    }

    /// An acknowledgement reports one duplicate block (RFC 2883 section 4 rule 1), so adjacent ones
    /// are merged. Of separate ones the last is kept.
    fn note(&mut self, block: SackBlock) {
        let apart = |other: &SackBlock| other.right.lt(block.left) || other.left.gt(block.right);
        self.duplicate = Some(match self.duplicate {
            Some(other) if !apart(&other) => {
                SackBlock { left: other.left.min(block.left), right: other.right.max(block.right) }
            }
            Some(_) | None => block,
        });
    }

    /// The SACK option of an acknowledgement without data: first the duplicate (RFC 2883 section
    /// 4), then the out-of-order blocks. A duplicate of out-of-order data lies in the most recent
    /// block, so the second block encloses the first.
    #[inline]
    pub(crate) fn sack_blocks(&mut self) -> SackBlocks {
        match self.duplicate.take() {
            None => self.reassembly.blocks(),
            Some(duplicate) => {
                let held = self.reassembly.blocks();
                core::iter::once(duplicate).chain(held.as_slice().iter().copied()).collect()
            }
        }
    }

    /// The out-of-order blocks, most recent first (RFC 2018 section 4).
    #[inline]
    pub(crate) fn held_blocks(&self) -> SackBlocks {
        self.reassembly.blocks()
    }

    /// Whether out-of-order data is held.
    #[inline]
    pub(crate) fn has_holes(&self) -> bool {
        !self.reassembly.is_empty()
    }

    /// Whether the next acknowledgement without data has SACK blocks.
    #[inline]
    pub(crate) fn has_report(&self) -> bool {
        !self.reassembly.is_empty() || self.duplicate.is_some()
    }

    /// Schedules an acknowledgement without delay.
    pub(crate) fn acknowledge(&mut self) {
        self.delay.now();
    }

    /// As [`Receiver::acknowledge`], unless an acknowledgement is due already.
    pub(crate) fn acknowledge_once(&mut self) {
        if !self.delay.is_due() {
            self.delay.now();
        }
    }

    #[inline]
    pub(crate) fn ack_due(&self) -> bool {
        self.delay.is_due()
    }

    /// Notes that a segment with ACK was sent.
    #[inline]
    pub(crate) fn acknowledged(&mut self) {
        self.delay.sent();
    }

    #[inline]
    pub(crate) fn ack_deadline(&self) -> Option<Instant> {
        self.delay.deadline()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.delay.handle_timeout(now);
    }
}

/// Appends a chunk, or copies it into the last one if both are small. Otherwise a peer that sends
/// single bytes would make us keep a packet for each.
#[inline]
pub(crate) fn push_joined(queue: &mut VecDeque<Bytes>, data: Bytes, small: usize) {
    if data.len() < small
        && let Some(last) = queue.back_mut()
        && let Some(both) = joined(last, &data, small)
    {
        *last = both;
    } else {
        queue.push_back(data);
    }
}

#[cfg(test)]
mod tests;
