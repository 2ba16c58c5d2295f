//! Segments of an open connection.

use bytes::Bytes;

use super::Connection;
use crate::segment::{Ecn, Flags, MAX_OPTIONS_LEN, Options, SackBlocks, Segment, SeqNumber, Timestamps};
use crate::tcp::sender::{Mark, Marked, Outgoing};
use crate::time::Instant;

impl Connection {
    /// Returns the next segment. Reports of holes and duplicates come first and without data, so
    /// that the peer can count them (RFC 5681 section 2). Then comes stream data, then an
    /// acknowledgement that no data segment has carried.
    #[inline]
    pub(super) fn poll_stream(&mut self, now: Instant) -> Option<Segment> {
        if self.rx.has_report() && self.rx.ack_due() {
            return self.poll_ack(now);
        }
        if self.multipath.is_some()
            && let Some(segment) = self.poll_urgent(now)
        {
            return Some(segment);
        }
        // RFC 9293 section 3.8.4: a keep-alive probe has SEG.SEQ = SND.NXT - 1.
        if self.probes_silence() {
            return Some(self.bare_segment(now, 1));
        }
        let sack = self.data_sack();
        match self.tx.poll(now) {
            Some(out) => Some(self.data_segment(now, out, sack)),
            None => self.poll_ack(now),
        }
    }

    /// Returns `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>`, if one is due.
    #[inline]
    pub(super) fn poll_ack(&mut self, now: Instant) -> Option<Segment> {
        if !self.rx.ack_due() {
            return None;
        }
        Some(self.bare_segment(now, 0))
    }

    /// An acknowledgement without data, `back` bytes before SND.NXT.
    #[inline]
    pub(super) fn bare_segment(&mut self, now: Instant, back: u32) -> Segment {
        let sack = if self.sends_sack { self.rx.sack_blocks() } else { SackBlocks::EMPTY };
        self.segment(now, self.tx.control_seq() - back, Flags::ACK, Bytes::new(), sack)
    }

    /// The SACK blocks of a data segment, which reduce its payload: as many as the option space
    /// allows, and at most half of the segment.
    #[inline]
    fn data_sack(&mut self) -> SackBlocks {
        if !self.config.sack_on_data || !self.sends_sack || !self.rx.has_holes() {
            self.tx.reserve(0);
            return SackBlocks::EMPTY;
        }
        let timestamps = self.stamps.is_some().then(Timestamps::default);
        let beside = Options { timestamps, ..Options::default() }.wire_len();
        let mut sack = self.rx.held_blocks();
        loop {
            let len = Options { timestamps, sack, ..Options::default() }.wire_len();
            let more = (len - beside) as u32;
            let fits = len + usize::from(self.multipath_room()) <= MAX_OPTIONS_LEN;
            if sack.is_empty() || (fits && more * 2 <= self.tx.mss()) {
                self.tx.reserve(more);
                return sack;
            }
            // The last block is the least recent one (RFC 2018 section 4), so it is dropped first.
            let fewer = sack.as_slice().len() - 1;
            sack = sack.as_slice().iter().take(fewer).copied().collect();
        }
    }

    #[inline]
    fn data_segment(&mut self, now: Instant, out: Outgoing, sack: SackBlocks) -> Segment {
        let flags = match out.mark {
            Mark::None => Flags::ACK,
            Mark::Push => Flags::ACK.with(Flags::PSH),
            Mark::Fin => Flags::ACK.with(Flags::FIN),
        };
        let Marked { ecn, cwr } = out.marked;
        let flags = if cwr { flags.with(Flags::CWR) } else { flags };
        Segment { ecn, ..self.segment(now, out.seq, flags, out.payload, sack) }
    }

    #[inline]
    fn segment(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        flags: Flags,
        payload: Bytes,
        mut sack: SackBlocks,
    ) -> Segment {
        let ack = self.rx.nxt();
        // Every segment carries the acknowledgement, so a delayed one is no longer owed.
        self.rx.acknowledged();
        let timestamps = self.stamps.as_mut().map(|stamps| stamps.stamp(now, ack));
        let mptcp = self.multipath_options(seq, &payload, &mut sack);
        Segment {
            src_port: self.local_port,
            dst_port: self.remote_port,
            seq,
            ack,
            flags: flags.with(self.ecn.echo()),
            window: self.rx.offer(),
            options: Options { timestamps, sack, ..Options::default() },
            mptcp,
            payload,
            // A segment without data must not be ECT (RFC 3168 section 6.1.4); `data_segment` sets
            // the codepoint.
            ecn: Ecn::NotEct,
        }
    }
}
