//! What is seen on the wire: which options were offered and used, and whether a reset flew.

use anabranch_core::segment::{Flags, Segment, SeqNumber};
use anabranch_core::time::Instant;
use anabranch_sim::packet::{LinkId, NodeId, Packet, Payload};
use anabranch_sim::trace::{Observer, Point};

/// What one end has put on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) segments: u64,
    /// What its SYN offered.
    pub(crate) offered: Options,
    /// What its other segments carried.
    pub(crate) with_timestamps: u64,
    pub(crate) with_sack: u64,
    pub(crate) zero_windows: u64,
    /// Largest window field after the SYN.
    pub(crate) largest_window: u16,
    pub(crate) fins: u64,
    /// Resets of a connection.
    pub(crate) resets: u64,
    /// Resets after it has heard that its FIN came: then it may know nothing of the connection any more, and must
    /// answer a segment that was late so (RFC 9293 section 3.10.7.1). The peer has all by then and is in TIME-WAIT.
    pub(crate) resets_afterwards: u64,
    /// Segments that acknowledge, or say by SACK to have, what had not come.
    pub(crate) false_claims: u64,
    /// Behind the last octet that has come.
    heard: Option<SeqNumber>,
    /// Behind its FIN.
    end: Option<SeqNumber>,
    /// The peer's acknowledgement of that has arrived.
    end_acked: bool,
}

/// Options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) window_scaling: bool,
}

/// Watches both ends, by the index of their node; packets that are no TCP segments are counted.
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
        self.zero_windows += u64::from(*window == 0);
        self.largest_window = self.largest_window.max(*window);
    }

    fn hear(&mut self, segment: &Segment) {
        let end = segment.seq_end();
        self.heard = Some(self.heard.map_or(end, |heard| heard.max(end)));
        self.end_acked |= segment.flags.contains(Flags::ACK) && self.end == Some(segment.ack);
    }
}
