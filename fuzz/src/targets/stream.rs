//! Checks of sent segments.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_core::segment::Segment;
use anabranch_wire::ip::{self, Header, Protocol};
use bytes::Bytes;

/// The byte at `at` of the stream that an end writes.
pub(super) fn octet(at: u32) -> u8 {
    (u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Checks that a sent segment can be encoded, and parses to the same segment.
pub(super) fn survives_the_wire(segment: &Segment) {
    let header = Header::new(IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), Protocol::TCP);
    let mut packet = Vec::new();
    ip::emit_tcp(&header, segment, &mut packet).expect("a segment that fits into a packet");
    let (header, range) = ip::parse(&packet).expect("we wrote it");
    let read = ip::parse_tcp(&header, Bytes::from(packet).slice(range));
    assert_eq!(read.as_ref(), Ok(segment));
}
