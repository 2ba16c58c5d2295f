//! Segments that leave once the connection is open.

use bytes::Bytes;

use super::Connection;
use crate::segment::{Flags, Options, SackBlocks, Segment, SeqNumber};
use crate::tcp::sender::{Mark, Outgoing};
use crate::time::Instant;

impl Connection {
    /// What a hole makes us say comes first and bare, so that the peer can count it (RFC 5681 section 2);
    /// then the stream; then an acknowledgement that no data took along.
    #[inline]
    pub(super) fn poll_stream(&mut self, now: Instant) -> Option<Segment> {
        if self.rx.has_holes() && self.rx.ack_due() {
            return self.poll_ack(now);
        }
        if self.multipath.is_some()
            && let Some(segment) = self.poll_urgent(now)
        {
            return Some(segment);
        }
        match self.tx.poll(now) {
            Some(out) => Some(self.data_segment(now, out)),
            None => self.poll_ack(now),
        }
    }

    /// `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>`, if one is owed.
    #[inline]
    pub(super) fn poll_ack(&mut self, now: Instant) -> Option<Segment> {
        if !self.rx.ack_due() {
            return None;
        }
        Some(self.bare_segment(now, 0))
    }

    /// An acknowledgement without data, `back` octets before SND.NXT.
    #[inline]
    pub(super) fn bare_segment(&mut self, now: Instant, back: u32) -> Segment {
        let sack = if self.sends_sack { self.rx.sack_blocks() } else { SackBlocks::EMPTY };
        self.segment(now, self.tx.control_seq() - back, Flags::ACK, Bytes::new(), sack)
    }

    #[inline]
    fn data_segment(&mut self, now: Instant, out: Outgoing) -> Segment {
        let flags = match out.mark {
            Mark::None => Flags::ACK,
            Mark::Push => Flags::ACK.with(Flags::PSH),
            Mark::Fin => Flags::ACK.with(Flags::FIN),
        };
        self.segment(now, out.seq, flags, out.payload, SackBlocks::EMPTY)
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
        self.rx.acknowledged();
        let timestamps = self.stamps.as_mut().map(|stamps| stamps.stamp(now, ack));
        let mptcp = self.multipath_options(seq, payload.len(), &mut sack);
        Segment {
            src_port: self.local_port,
            dst_port: self.remote_port,
            seq,
            ack,
            flags,
            window: self.rx.offer(),
            options: Options { timestamps, sack, ..Options::default() },
            mptcp,
            payload,
        }
    }
}
