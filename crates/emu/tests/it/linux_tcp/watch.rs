//! Observations on the wire: options offered and used, and resets.

use anabranch_core::segment::{Ecn, Flags, Segment, SeqNumber};
use anabranch_core::time::Instant;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point};

/// What one end has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) segments: u64,
    /// Options of its SYN.
    pub(crate) offered: Options,
    /// Number of later segments with each option.
    pub(crate) with_timestamps: u64,
    pub(crate) with_sack: u64,
    pub(crate) zero_windows: u64,
    /// Largest window field after the SYN.
    pub(crate) largest_window: u16,
    pub(crate) fins: u64,
    /// Number of resets of a connection.
    pub(crate) resets: u64,
    /// Number of resets after its FIN was acknowledged. It may then have forgotten the connection
    /// and must answer a late segment with a reset (RFC 9293 section 3.10.7.1). The peer has all
    /// data by then and is in TIME-WAIT.
    pub(crate) resets_afterwards: u64,
    /// Number of segments that acknowledge, cumulatively or by SACK, data that had not arrived.
    pub(crate) false_claims: u64,
    pub(crate) ecn: SeenEcn,
    pub(crate) dsack: SeenDsack,
    /// Sequence number after the last byte received.
    heard: Option<SeqNumber>,
    /// Sequence number after the last byte sent.
    sent: Option<SeqNumber>,
    /// Sequence number after its FIN.
    end: Option<SeqNumber>,
    /// True once the peer's acknowledgement of the FIN has arrived.
    end_acked: bool,
}

/// ECN of one end (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SeenEcn {
    /// Number of SYNs and SYN-ACKs.
    pub(crate) syns: u64,
    /// Number of SYNs that request ECN.
    pub(crate) asks: u64,
    /// Number of SYN-ACKs that accept it.
    pub(crate) agrees: u64,
    /// Number of segments with ECT or CE.
    pub(crate) capable: u64,
    /// Number of ECT segments without data or with retransmitted data: both are forbidden (sections
    /// 6.1.4 and 6.1.5).
    pub(crate) wrongly_capable: u64,
    /// Number of segments with ECE after the handshake.
    pub(crate) echoes: u64,
    /// Number of segments with an ECE that is not due, or without one that is due. Exact only for
    /// our end: a segment of the kernel may have left its TCP before the mark arrived there.
    pub(crate) wrong_echoes: u64,
    /// Number of segments with CWR after the handshake.
    pub(crate) reduced: u64,
    /// Number of segments with new data that arrived with CE.
    pub(crate) marks_heard: u64,
    /// A mark has arrived, and no CWR since then.
    echo_due: bool,
}

/// D-SACK of one end (RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SeenDsack {
    /// Number of segments whose first SACK block reports a duplicate.
    pub(crate) reports: u64,
    /// Number of segments with only data that had arrived before. Exact if packets stay in order.
    pub(crate) duplicates_heard: u64,
}

/// Options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) window_scaling: bool,
}

/// Watches both ends, by node index; counts packets that are not TCP segments.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) ends: [Seen; 2],
    pub(crate) unread: u64,
}

impl Observer for Watch {
    fn on_packet(&mut self, _: Instant, _: LinkId, point: Point, packet: &Packet) {
        let (NodeId(src), NodeId(dst)) = (packet.src, packet.dst);
        match (point, &packet.payload) {
            (Point::Sent, Payload::Tcp(segment)) => self.ends[src as usize].count(segment),
            (Point::Received, Payload::Tcp(segment)) => self.ends[dst as usize].hear(segment),
            (Point::Sent, Payload::Udp(_) | Payload::Opaque(_) | Payload::Fragment(_)) => self.unread += 1,
            (Point::Received | Point::Dropped(_), _) => {}
        }
    }
}

impl Seen {
    fn count(&mut self, segment: &Segment) {
        let Segment { flags, options, window, .. } = segment;
        self.segments += 1;
        if let Some(heard) = self.heard {
            let acks = !flags.contains(Flags::ACK) || segment.ack.le(heard);
            let blocks = options.sack.as_slice().iter().all(|b| b.left.lt(b.right) && b.right.le(heard));
            self.false_claims += u64::from(!acks || !blocks);
        }
        if flags.contains(Flags::RST) {
            *(if self.end_acked { &mut self.resets_afterwards } else { &mut self.resets }) += 1;
            return;
        }
        self.count_ecn(segment);
        if flags.contains(Flags::FIN) {
            self.fins += 1;
            self.end = Some(segment.seq_end());
        }
        if flags.contains(Flags::SYN) {
            self.offered = Options {
                sack: options.sack_permitted,
                timestamps: options.timestamps.is_some(),
                window_scaling: options.window_scale.is_some(),
            };
            return;
        }
        self.with_timestamps += u64::from(options.timestamps.is_some());
        self.with_sack += u64::from(!options.sack.is_empty());
        self.dsack.reports += u64::from(reports_duplicate(segment));
        self.zero_windows += u64::from(*window == 0);
        self.largest_window = self.largest_window.max(*window);
    }

    fn count_ecn(&mut self, segment: &Segment) {
        let Segment { flags, payload, .. } = segment;
        let ecn = &mut self.ecn;
        let [ece, cwr] = [Flags::ECE, Flags::CWR].map(|flag| flags.contains(flag));
        let new = self.sent.is_none_or(|sent| segment.seq_end().gt(sent));
        if segment.ecn.is_capable() {
            ecn.capable += 1;
            ecn.wrongly_capable += u64::from(payload.is_empty() || !new);
        }
        if flags.contains(Flags::SYN) {
            let acks = flags.contains(Flags::ACK);
            ecn.syns += 1;
            ecn.asks += u64::from(!acks && ece && cwr);
            ecn.agrees += u64::from(acks && ece && !cwr);
        } else {
            ecn.echoes += u64::from(ece);
            ecn.wrong_echoes += u64::from(ece != ecn.echo_due);
            ecn.reduced += u64::from(cwr);
        }
        if new {
            self.sent = Some(segment.seq_end());
        }
    }

    fn hear(&mut self, segment: &Segment) {
        let end = segment.seq_end();
        let new = self.heard.is_none_or(|heard| end.gt(heard));
        if !segment.payload.is_empty() {
            self.dsack.duplicates_heard += u64::from(!new);
            if new {
                self.ecn.hear(segment);
            }
        }
        self.heard = Some(self.heard.map_or(end, |heard| heard.max(end)));
        self.end_acked |= segment.flags.contains(Flags::ACK) && self.end == Some(segment.ack);
    }
}

impl SeenEcn {
    /// Processes data that arrives for the first time.
    fn hear(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::CWR) {
            self.echo_due = false;
        }
        if segment.ecn == Ecn::Ce {
            self.echo_due = true;
            self.marks_heard += 1;
        }
    }
}

/// True if the first SACK block is below the acknowledgement or within the second block (RFC 2883
/// section 4).
fn reports_duplicate(segment: &Segment) -> bool {
    match segment.options.sack.as_slice() {
        [] => false,
        [first, ..] if first.right.le(segment.ack) => true,
        [first, second, ..] => second.left.le(first.left) && first.right.le(second.right),
        [_] => false,
    }
}
