//! Packets and times for the tests of disciplines and cables.

use anabranch_core::segment::Ecn;
use anabranch_core::time::{Duration, Instant};

use crate::packet::{NodeId, Packet, PacketHandle, PacketSlab, Payload};

/// `n` packets of 1000 bytes.
pub(in crate::link) fn packets(n: usize, ecn: Ecn) -> Vec<PacketHandle> {
    let mut slab = PacketSlab::default();
    let packet = |id| Packet {
        id,
        src: NodeId(0),
        dst: NodeId(1),
        wire_len: 1000,
        identification: 0,
        hop_limit: 1,
        traffic_class: ecn as u8,
        path: 0,
        outer: None,
        payload: Payload::Tcp(Default::default()),
    };
    (0..n as u64).map(|id| slab.insert(packet(id))).collect()
}

pub(super) fn micros(n: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(n)
}
