//! IP fragmentation on the path and reassembly at the destination.
//!
//! Any node fragments a packet that exceeds the MTU of the next link, as IPv4 routers do (RFC 791
//! section 2.3). IPv6 routers must not; there, fragmentation represents the adaptation layer of a
//! low-power network, with the fragment header of RFC 8200 section 4.5. Only the destination
//! reassembles, within [`REASSEMBLY_TIMEOUT`] and a bounded buffer.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_core::segment::Ecn;
use anabranch_core::time::{Duration, Instant};

use crate::packet::{Fragment, IpVersion, NodeId, Packet, Payload, Whole};

/// Time for which fragments wait for the rest of their packet (RFC 8200 section 4.5).
pub const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of incomplete packets that a node holds; beyond it the oldest packets are dropped.
pub const REASSEMBLY_BUFFER: u64 = 256 * 1024;

/// Splits a packet into fragments of at most `mtu` bytes, in order; `number` gives each its packet
/// number. `None` if the MTU has no room for 8 bytes after the header.
pub fn split(
    packet: &Packet,
    mtu: u32,
    ip: IpVersion,
    mut number: impl FnMut() -> u64,
) -> Option<Vec<Packet>> {
    let room = mtu.checked_sub(ip.fragment_header_len())? & !7;
    if room == 0 {
        return None;
    }
    let (whole, first, len) = match &packet.payload {
        Payload::Tcp(segment) => (Arc::new(Whole::Tcp(segment.clone())), 0, segment.wire_len() as u32),
        Payload::Udp(datagram) => (Arc::new(Whole::Udp(datagram.clone())), 0, datagram.wire_len() as u32),
        Payload::Opaque(opaque) => (Arc::new(Whole::Opaque(opaque.clone())), 0, opaque.octets.len() as u32),
        Payload::Fragment(piece) => (piece.whole.clone(), piece.offset, piece.len),
    };
    let cut = packet.whole_id();
    let piece = |at: u32| {
        let len = room.min(len - at);
        let offset = first + at;
        let payload = Payload::Fragment(Fragment { whole: whole.clone(), packet: cut, offset, len });
        let outer = packet.outer.clone();
        Packet { id: number(), wire_len: ip.fragment_header_len() + len, outer, payload, ..*packet }
    };
    Some((0..len).step_by(room as usize).map(piece).collect())
}

/// A packet of which some fragments have arrived.
#[derive(Debug)]
struct Partial {
    src: NodeId,
    identification: u32,
    since: Instant,
    whole: Arc<Whole>,
    /// ECN bits of the first fragment, or CE once any fragment has it (RFC 3168 section 5.3).
    ecn: Ecn,
    /// Ranges of bytes that have arrived: disjoint, not adjacent, in order.
    ranges: Vec<(u32, u32)>,
}

/// Counters of a node's reassembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReassemblyMetrics {
    /// Packets reassembled.
    pub completed: u64,
    /// Packets given up after [`REASSEMBLY_TIMEOUT`].
    pub timed_out: u64,
    /// Packets dropped from a full buffer.
    pub evicted: u64,
}

/// Incomplete packets of one node, oldest first.
#[derive(Debug, Default)]
pub struct Reassembly {
    partials: VecDeque<Partial>,
    held: u64,
    metrics: ReassemblyMetrics,
}

impl Reassembly {
    /// Handles a fragment of a packet from `src`, with its identification and ECN bits. If it was
    /// the last one missing, returns the packet's content and its ECN bits.
    pub fn handle_fragment(
        &mut self,
        now: Instant,
        src: NodeId,
        (identification, ecn): (u32, Ecn),
        piece: Fragment,
    ) -> Option<(Ecn, Whole)> {
        self.expire(now);
        let same = |p: &Partial| p.src == src && p.identification == identification;
        let at = self.partials.iter().position(same).unwrap_or_else(|| {
            let whole = piece.whole.clone();
            let ranges = Vec::new();
            self.partials.push_back(Partial { src, identification, since: now, whole, ecn, ranges });
            self.partials.len() - 1
        });
        let partial = &mut self.partials[at];
        if ecn == Ecn::Ce {
            partial.ecn = ecn;
        }
        self.held += u64::from(add_range(&mut partial.ranges, piece.offset, piece.offset + piece.len));
        if partial.ranges == [(0, partial.whole.wire_len() as u32)] {
            let done = self.partials.remove(at)?;
            self.held -= done.whole.wire_len() as u64;
            self.metrics.completed += 1;
            let whole = Arc::try_unwrap(done.whole).unwrap_or_else(|shared| (*shared).clone());
            return Some((done.ecn, whole));
        }
        while self.held > REASSEMBLY_BUFFER {
            self.drop_oldest();
            self.metrics.evicted += 1;
        }
        None
    }

    /// The counters.
    pub fn metrics(&self) -> &ReassemblyMetrics {
        &self.metrics
    }

    fn expire(&mut self, now: Instant) {
        while self.partials.front().is_some_and(|p| p.since + REASSEMBLY_TIMEOUT <= now) {
            self.drop_oldest();
            self.metrics.timed_out += 1;
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.partials.pop_front() {
            self.held -= oldest.ranges.iter().map(|(a, b)| u64::from(b - a)).sum::<u64>();
        }
    }
}

/// Adds [start, end) to a list of disjoint ranges; returns the number of new bytes.
pub(crate) fn add_range(ranges: &mut Vec<(u32, u32)>, start: u32, end: u32) -> u32 {
    let before: u32 = ranges.iter().map(|(a, b)| b - a).sum();
    let first = ranges.partition_point(|r| r.1 < start);
    let last = ranges.partition_point(|r| r.0 <= end);
    let merged = match ranges.get(first..last) {
        Some([]) | None => (start, end),
        Some(touched) => (start.min(touched[0].0), end.max(touched[touched.len() - 1].1)),
    };
    ranges.splice(first..last, [merged]);
    ranges.iter().map(|(a, b)| b - a).sum::<u32>() - before
}

#[cfg(test)]
mod tests {
    use anabranch_core::segment::Segment;
    use anabranch_wire::ip::Protocol;
    use bytes::Bytes;

    use super::*;
    use crate::packet::Opaque;

    fn packet(octets: usize) -> Packet {
        let segment = Segment { payload: Bytes::from(vec![7; octets]), ..Segment::default() };
        let wire_len = 40 + segment.wire_len() as u32;
        let payload = Payload::Tcp(segment);
        Packet {
            id: 0,
            src: NodeId(0),
            dst: NodeId(1),
            wire_len,
            identification: 9,
            hop_limit: 64,
            traffic_class: 0,
            path: 0,
            outer: None,
            payload,
        }
    }

    fn piece(packet: Packet) -> Fragment {
        match packet.payload {
            Payload::Fragment(fragment) => fragment,
            Payload::Tcp(_) | Payload::Udp(_) | Payload::Opaque(_) => panic!("not a fragment"),
        }
    }

    #[test]
    fn pieces_fit_and_make_the_whole_in_any_order() {
        let whole = packet(1000);
        let pieces = split(&whole, 127, IpVersion::V6, || 1).unwrap();
        assert_eq!(pieces.len(), 1020usize.div_ceil(72));
        assert!(pieces.iter().all(|p| p.wire_len <= 127));
        // A second router fragments a fragment again.
        let again = split(&pieces[3], 80, IpVersion::V6, || 2).unwrap();
        assert_eq!(again.len(), 3);
        let mut all: Vec<_> =
            pieces.into_iter().enumerate().filter(|(i, _)| *i != 3).map(|(_, p)| p).collect();
        all.extend(again);
        all.reverse();
        let last = all.pop().unwrap();
        let mut reassembly = Reassembly::default();
        for p in all.iter().chain(&all) {
            let given = reassembly.handle_fragment(Instant::ZERO, p.src, (9, Ecn::Ect0), piece(p.clone()));
            assert_eq!(given, None);
        }
        // RFC 3168 section 5.3: one marked fragment marks the packet.
        let (ecn, done) =
            reassembly.handle_fragment(Instant::ZERO, last.src, (9, Ecn::Ce), piece(last)).unwrap();
        assert_eq!(ecn, Ecn::Ce);
        assert_eq!(format!("{:?}", Payload::from(done)), format!("{:?}", whole.payload));
        assert_eq!(reassembly.held, 0);
    }

    #[test]
    fn what_is_not_tcp_is_cut_and_joined_too() {
        let octets = Bytes::from_iter((0..1480).map(|i| i as u8));
        let opaque = Opaque { protocol: Protocol::UDP, octets };
        let whole = Packet { wire_len: 1500, payload: Payload::Opaque(opaque.clone()), ..packet(0) };
        let pieces = split(&whole, 576, IpVersion::V4, || 1).unwrap();
        assert_eq!(pieces.len(), 3);
        let mut reassembly = Reassembly::default();
        let mut done = None;
        for p in pieces {
            assert_eq!(done, None);
            done = reassembly.handle_fragment(Instant::ZERO, p.src, (9, Ecn::Ect0), piece(p));
        }
        assert_eq!(done, Some((Ecn::Ect0, Whole::Opaque(opaque))));
    }

    #[test]
    fn an_mtu_without_room_cuts_nothing() {
        assert!(split(&packet(100), 55, IpVersion::V6, || 1).is_none());
        assert!(split(&packet(100), 56, IpVersion::V6, || 1).is_some());
    }

    #[test]
    fn old_pieces_and_too_many_go() {
        let pieces = split(&packet(60_000), 1500, IpVersion::V4, || 1).unwrap();
        let mut reassembly = Reassembly::default();
        for identification in 0..5 {
            for p in &pieces[1..] {
                reassembly.handle_fragment(
                    Instant::ZERO,
                    p.src,
                    (identification, Ecn::NotEct),
                    piece(p.clone()),
                );
            }
        }
        assert_eq!(reassembly.metrics.evicted, 1);
        let late = Instant::ZERO + REASSEMBLY_TIMEOUT;
        assert!(
            reassembly.handle_fragment(late, NodeId(0), (4, Ecn::NotEct), piece(pieces[0].clone())).is_none()
        );
        assert_eq!(reassembly.metrics.timed_out, 4);
    }
}
