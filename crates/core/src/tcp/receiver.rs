//! The receiving half: RCV.NXT and the window (RFC 9293 section 3.3.1), what has arrived and was
//! not read.
//!
//! The window's right edge never moves left (RFC 9293 section 3.8.6.2.1), whatever becomes of the
//! buffer: what was offered is taken. One exception is visible on the wire: a scaled window is
//! rounded, and once the buffer is one unit of the scale in debt it is rounded down (RFC 7323
//! section 2.4).

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
    /// The most that a segment of the peer carries, as far as we can guess.
    mss: u32,
    /// Chunks are joined up to this length.
    small: usize,
    ready: VecDeque<Bytes>,
    ready_len: u32,
    reassembly: Reassembly,
    /// Duplicates are reported (RFC 2883).
    reports_duplicates: bool,
    /// What has arrived twice and was not reported yet.
    duplicate: Option<SackBlock>,
    fin: Fin,
    delay: AckDelay,
    /// As [`Config::ack_gaps`].
    tells_gaps: bool,
    received: u64,
    /// The window of the connection of which this is a subflow, in bytes.
    shared: Option<u32>,
}

/// The end of the peer's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    Unknown,
    /// It has arrived, out of order.
    At(SeqNumber),
    /// Everything before it has arrived.
    Reached,
}

/// What a segment's text has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Nothing in order.
    Nothing,
    /// Bytes in order.
    Data,
    /// The end of the stream, with or without bytes before it.
    End,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        // By our own segment size: one that the peer can choose would have us keep a packet for a
        // few bytes.
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
            delay: AckDelay::new(config.delayed_ack),
            tells_gaps: config.ack_gaps,
            received: 0,
            shared: None,
        }
    }

    /// The peer's SYN: its sequence number and the scaling agreed on.
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

    /// RCV.WND: what the peer was offered and has not used.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.edge.distance(self.nxt).max(0) as u32
    }

    /// How far below RCV.NXT a segment can begin that the peer sends again: the largest window that
    /// it was offered, and no further than the stream itself.
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

    /// The window field of a SYN, never scaled (RFC 7323 section 2.2).
    pub(crate) fn syn_window(&self) -> u16 {
        self.buffer.min(u32::from(u16::MAX)) as u16
    }

    /// The window field of the segment that is about to leave, and the new right edge with it.
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
        // A window smaller than the scale's unit would otherwise never open.
        let rounds_up = target <= offered || down == 0;
        let field = if rounds_up && !in_debt { up as u32 } else { down };
        let field = field.min(u32::from(u16::MAX));
        self.edge = self.edge.max(self.nxt + (field << self.shift));
        field as u16
    }

    /// The window is counted from the DATA_ACK (RFC 8684 section 3.3.5), so that it may shrink here
    /// by what other subflows have brought; what was allowed before is taken still.
    fn offer_shared(&self, window: u32) -> u16 {
        let field = window >> self.shift;
        let field = if window > 0 { field.max(1) } else { 0 };
        field.min(u32::from(u16::MAX)) as u16
    }

    /// The window of the connection above; `None` is our own.
    #[inline]
    pub(crate) fn set_shared_window(&mut self, octets: Option<u32>) {
        self.shared = octets;
        if let Some(octets) = octets {
            self.edge = self.edge.max(self.nxt + octets.max(1 << self.shift).min(MAX_BUFFER));
        }
    }

    /// Bytes in order are with the connection above.
    pub(crate) fn drop_ready(&mut self) {
        self.ready.clear();
        self.ready_len = 0;
    }

    /// Free bytes; negative after the buffer was shrunk or the window rounded up.
    #[inline]
    fn free(&self) -> i64 {
        i64::from(self.buffer) - i64::from(self.ready_len)
    }

    /// The window that the buffer would allow.
    #[inline]
    fn open(&self) -> u32 {
        (self.free().max(0) as u32).min(u32::from(u16::MAX) << self.shift)
    }

    /// The peer's segments are no larger than that (Eff.snd.MSS of its side).
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
    }

    /// Silly window avoidance (RFC 9293 section 3.8.6.2.2): the edge moves by no less.
    #[inline]
    fn worthwhile(&self) -> u32 {
        (self.buffer / 2).min(self.mss).max(1)
    }

    /// The peer should hear at once that the window has opened: it has at least doubled, from half
    /// or less of what it can be.
    pub(crate) fn wants_update(&self) -> bool {
        let (offered, open) = (self.window(), self.open());
        let most = self.buffer.min(u32::from(u16::MAX) << self.shift);
        open > offered
            && open - offered >= self.worthwhile()
            && u64::from(offered) * 2 <= u64::from(most)
            && u64::from(open) >= u64::from(offered) * 2
    }

    /// The text of an acceptable segment (RFC 9293 section 3.10.7.4, seventh and eighth): what lies
    /// outside of the window is cut off. `sack` bytes of SACK blocks came beside it.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        mut payload: Bytes,
        fin: bool,
        sack: u32,
    ) -> Arrival {
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

    /// Nothing is taken past here.
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
                // RFC 5681 section 4.2: at once when a hole is filled.
                self.delay.in_order();
            } else {
                self.delay.segment(now, full + sack, self.mss);
            }
        }
        if self.duplicate.is_some() {
            // RFC 2883 section 4: the block is about the segment that came last, so it does not
            // wait for another.
            self.delay.in_order();
        }
        if self.fin == Fin::At(self.nxt) {
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

    /// Up to `max` bytes from the front.
    #[inline]
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        let front = self.ready.front_mut()?;
        if max == 0 {
            return None;
        }
        let data = if front.len() <= max { self.ready.pop_front()? } else { front.split_to(max) };
        self.ready_len -= data.len() as u32;
        if self.ready_len == 0 {
            // An emptied queue begins at its first place again, which is in the cache.
            self.ready.clear();
        }
        Some(data)
    }

    /// Everything that could be read, or could have been, is dropped.
    pub(crate) fn discard(&mut self) {
        self.ready.clear();
        self.ready_len = 0;
        self.reassembly = Reassembly::default();
    }

    /// Duplicates are reported from now on, or not.
    pub(crate) fn report_duplicates(&mut self, on: bool) {
        self.reports_duplicates = on;
    }

    /// The sequence numbers from `seq` to `end` have arrived. What lies below RCV.NXT had arrived
    /// before, if it is near enough to be a repetition.
    pub(crate) fn note_old(&mut self, seq: SeqNumber, end: SeqNumber) {
        let old = self.nxt.distance(seq);
        if self.reports_duplicates && old > 0 && old as u32 <= self.reach() && end.gt(seq) {
            self.note(SackBlock { left: seq, right: end.min(self.nxt) });
        }
    }

    /// One block is reported in an acknowledgement (RFC 2883 section 4 rule 1), so that it takes in
    /// what touches it. Of those that are apart the last one counts.
    fn note(&mut self, block: SackBlock) {
        let apart = |other: &SackBlock| other.right.lt(block.left) || other.left.gt(block.right);
        self.duplicate = Some(match self.duplicate {
            Some(other) if !apart(&other) => {
                SackBlock { left: other.left.min(block.left), right: other.right.max(block.right) }
            }
            Some(_) | None => block,
        });
    }

    /// The SACK option of an acknowledgement without data: what has arrived twice (RFC 2883 section
    /// 4), then what is held out of order. A duplicate of that is the block touched last, so that
    /// the second block encloses the first.
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

    /// The blocks that are held out of order, the one touched last first (RFC 2018 section 4).
    #[inline]
    pub(crate) fn held_blocks(&self) -> SackBlocks {
        self.reassembly.blocks()
    }

    /// Bytes are held out of order.
    #[inline]
    pub(crate) fn has_holes(&self) -> bool {
        !self.reassembly.is_empty()
    }

    /// The SACK option has something to say that an acknowledgement without data says first.
    #[inline]
    pub(crate) fn has_report(&self) -> bool {
        !self.reassembly.is_empty() || self.duplicate.is_some()
    }

    /// An acknowledgement is to leave without waiting.
    pub(crate) fn acknowledge(&mut self) {
        self.delay.now();
    }

    /// As [`Receiver::acknowledge`], unless one will leave anyway.
    pub(crate) fn acknowledge_once(&mut self) {
        if !self.delay.is_due() {
            self.delay.now();
        }
    }

    #[inline]
    pub(crate) fn ack_due(&self) -> bool {
        self.delay.is_due()
    }

    /// A segment with ACK leaves.
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

/// Appends a chunk, or copies it into the last one if both are small: a peer that sends byte by
/// byte would have us keep a packet for each.
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
