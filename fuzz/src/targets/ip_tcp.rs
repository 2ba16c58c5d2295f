//! IP packets: parses them, encodes the result, and parses it again.

use std::net::IpAddr;

use anabranch_wire::ip::{self, EmitError, Header, Protocol, Reassembler, ReassemblyLimits};
use anabranch_wire::tcp::Segment;
use bytes::Bytes;

use crate::probe::Probe;

/// The first byte holds flags. With bit 0 the checksums of the following packet are corrected
/// first, since otherwise nothing after them would be reached. With bit 1 the rest is several
/// packets for one reassembler, each after a length of two bytes.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((flags, rest)) = input.split_first() else { return };
    let mut reassembler = Reassembler::new(ReassemblyLimits { octets: 4096, datagrams: 3 });
    for packet in packets(rest, flags & 2 != 0) {
        let mut packet = packet.to_vec();
        if flags & 1 != 0 {
            mend(&mut packet);
        }
        one(&packet, &mut reassembler, probe);
    }
}

fn packets(input: &[u8], several: bool) -> Vec<&[u8]> {
    if !several {
        return vec![input];
    }
    let mut packets = Vec::new();
    let mut rest = input;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (packet, next) = after.split_at(after.len().min(usize::from(u16::from_be_bytes(*length)) % 256));
        packets.push(packet);
        rest = next;
    }
    packets
}

fn one(packet: &[u8], reassembler: &mut Reassembler, probe: &mut Probe) {
    let (header, range) = match ip::parse(packet) {
        Ok(read) => read,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= packet.len(), "{error} in {} octets", packet.len());
            return probe.feature((error.field, error.offset.min(64)));
        }
    };
    probe.say(|| format!("{header:?} {range:?}"));
    probe.feature((header.src.is_ipv4(), header.protocol, header.fragment.map(|piece| piece.more)));
    probe.feature(("start", range.start));
    let payload = Bytes::copy_from_slice(&packet[range]);
    same_again(&header, &payload);
    match reassembler.insert(&header, payload, 0) {
        Ok(Some((header, payload))) => {
            assert_eq!(header.fragment, None);
            probe.feature(("whole", payload.len().min(64)));
            if header.protocol == Protocol::UDP {
                datagram(&header, payload, probe);
            } else {
                segment(&header, payload, probe);
            }
        }
        Ok(None) => probe.feature(("pieces", reassembler.len())),
        Err(error) => {
            probe.say(|| error);
            probe.feature(std::mem::discriminant(&error));
        }
    }
    assert!(reassembler.octets() <= 4096 && reassembler.len() <= 3, "{reassembler:?}");
}

/// Encodes the packet and checks that it parses to the same result.
fn same_again(header: &Header, payload: &Bytes) {
    let mut written = Vec::new();
    match ip::emit(header, payload, &mut written) {
        Ok(()) => {
            let (header_again, range) = ip::parse(&written).expect("we wrote it");
            assert_eq!((&header_again, &written[range]), (header, &payload[..]));
        }
        // Valid as a packet, but not as a fragment.
        Err(EmitError::FragmentOffset { .. }) => assert!(header.fragment.is_some()),
        Err(error) => panic!("{header:?}, {} octets: {error}", payload.len()),
    }
}

fn datagram(header: &Header, payload: Bytes, probe: &mut Probe) {
    let len = payload.len();
    let read = match ip::parse_udp(header, payload) {
        Ok(read) => read,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= len);
            return probe.feature((error.field, error.offset));
        }
    };
    probe.say(|| format!("{read:?}"));
    probe.feature(("datagram", read.payload.len().min(64)));
    let mut written = Vec::new();
    ip::emit_udp(header, &read, &mut written).expect("it is no longer than it was");
    let (again, range) = ip::parse(&written).expect("we wrote it");
    assert_eq!(ip::parse_udp(&again, Bytes::copy_from_slice(&written[range])), Ok(read));
}

fn segment(header: &Header, payload: Bytes, probe: &mut Probe) {
    let len = payload.len();
    let segment = match ip::parse_tcp(header, payload) {
        Ok(segment) => segment,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= len);
            return probe.feature((error.field, error.offset));
        }
    };
    probe.say(|| format!("{segment:?}"));
    probe.feature(segment.flags.0);
    let options = &segment.options;
    probe.feature((options.mss.is_some(), options.window_scale, options.sack_permitted));
    probe.feature((options.timestamps.is_some(), options.sack.as_slice().len()));
    segment_again(header, &segment);
}

fn segment_again(header: &Header, segment: &Segment) {
    let mut written = Vec::new();
    match ip::emit_tcp(header, segment, &mut written) {
        Ok(()) => {
            let (header_again, range) = ip::parse(&written).expect("we wrote it");
            let segment_again = ip::parse_tcp(&header_again, Bytes::copy_from_slice(&written[range]));
            assert_eq!(segment_again.as_ref(), Ok(segment));
        }
        // Duplicate options need less space when encoded once, so this cannot fail.
        Err(error) => panic!("{segment:?}: {error}"),
    }
}

/// Corrects lengths and checksums where the packet is long enough.
pub(super) fn mend(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let header_len = usize::from(packet[0] & 15) * 4;
            if (20..=packet.len()).contains(&header_len) {
                let total_len = packet.len().min(usize::from(u16::MAX)) as u16;
                packet[2..4].copy_from_slice(&total_len.to_be_bytes());
                packet[10..12].fill(0);
                let sum = checksum(&packet[..header_len]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        Some(6) if packet.len() >= 40 => {
            let payload_len = (packet.len() - 40).min(usize::from(u16::MAX)) as u16;
            packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
        }
        _ => return,
    }
    mend_tcp(packet);
}

fn mend_tcp(packet: &mut [u8]) {
    let Ok((header, range)) = ip::parse(packet) else { return };
    if header.protocol != Protocol::TCP || header.fragment.is_some() || range.len() < 20 {
        return;
    }
    let tcp = &mut packet[range];
    tcp[16..18].fill(0);
    let mut pseudo = Vec::new();
    for address in [header.src, header.dst] {
        match address {
            IpAddr::V4(address) => pseudo.extend(address.octets()),
            IpAddr::V6(address) => pseudo.extend(address.octets()),
        }
    }
    pseudo.extend([0, Protocol::TCP.0]);
    pseudo.extend((tcp.len() as u16).to_be_bytes());
    pseudo.extend_from_slice(tcp);
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum of RFC 1071, implemented a second time to check the first.
fn checksum(octets: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = octets.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
