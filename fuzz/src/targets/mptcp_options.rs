//! MPTCP options: parses them, encodes the result, and parses it again.

use std::net::IpAddr;

use anabranch_wire::ip::{self, Header, Protocol};
use anabranch_wire::mptcp::Mptcp;
use bytes::Bytes;

use crate::probe::Probe;

/// The input is the options of a TCP header, at most 40 bytes. With bit 0 of the first byte, the
/// rest is one MPTCP option without its kind and length, which are added.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((flags, rest)) = input.split_first() else { return };
    let mut options = Vec::new();
    if flags & 1 != 0 {
        let rest = &rest[..rest.len().min(38)];
        options.extend([30, rest.len() as u8 + 2]);
        options.extend(rest);
    } else {
        options.extend(&rest[..rest.len().min(40)]);
    }
    options.resize(options.len().next_multiple_of(4), 1);
    let header = Header::new(IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]), Protocol::TCP);
    let mut tcp = vec![0; 20];
    tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
    tcp.extend(&options);
    let unknown = ip::has_unknown_tcp_options(&tcp);
    let sum = checksum(&tcp);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let segment = match ip::parse_tcp(&header, Bytes::from(tcp)) {
        Ok(segment) => segment,
        Err(error) => return probe.feature((error.field, error.offset)),
    };
    probe.say(|| format!("{:?}", segment.mptcp));
    probe.feature((unknown, segment.mptcp.dss().map(|dss| (dss.wire_len(), dss.data_fin()))));
    for option in segment.mptcp.options() {
        probe.feature((std::mem::discriminant(option), option.wire_len()));
    }
    if segment.mptcp == Mptcp::NONE {
        return;
    }
    let mut packet = Vec::new();
    ip::emit_tcp(&header, &segment, &mut packet).expect("what had room has room again");
    let (header_again, range) = ip::parse(&packet).expect("we wrote it");
    let segment_again = ip::parse_tcp(&header_again, Bytes::copy_from_slice(&packet[range]));
    assert_eq!(segment_again.as_ref(), Ok(&segment));
}

/// The checksum of RFC 9293, section 3.1, with the pseudo-header of the two test addresses.
fn checksum(tcp: &[u8]) -> u16 {
    let mut sum = [10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, tcp.len() as u8]
        .chunks(2)
        .chain(tcp.chunks(2))
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
        .sum::<u32>();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}
