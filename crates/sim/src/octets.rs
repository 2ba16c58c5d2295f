//! Conversion between packets and bytes, with checksums.

use anabranch_core::segment::Flags;
use anabranch_wire::ip::{self, EmitError, Header, Protocol};
use bytes::Bytes;

use crate::address::address_of;
use crate::packet::{Fragment, IpVersion, Opaque, Packet, Payload, Whole};

/// The IP header of a packet that is not a fragment. A path of the network hides the flow label
/// that the packet has outside.
pub fn header(ip: IpVersion, packet: &Packet) -> Header {
    let outer = packet.outer.as_deref().copied().unwrap_or_default();
    let src = outer.src.unwrap_or_else(|| address_of(ip, packet.src));
    let dst = outer.dst.unwrap_or_else(|| address_of(ip, packet.dst));
    let protocol = match &packet.payload {
        Payload::Tcp(_) => Protocol::TCP,
        Payload::Udp(_) => Protocol::UDP,
        Payload::Opaque(opaque) => opaque.protocol,
        Payload::Fragment(piece) => piece.whole.protocol(),
    };
    Header {
        hop_limit: packet.hop_limit,
        ident: packet.identification,
        traffic_class: packet.traffic_class,
        flow_label: if packet.path == 0 { outer.flow_label } else { packet.path.into() },
        ..Header::new(src, dst, protocol)
    }
}

/// The bytes of a packet on the wire.
pub fn write(ip: IpVersion, packet: &Packet) -> Result<Vec<u8>, EmitError> {
    let header = header(ip, packet);
    let mut octets = Vec::with_capacity(packet.wire_len as usize);
    match &packet.payload {
        Payload::Tcp(segment) => ip::emit_tcp(&header, segment, &mut octets)?,
        Payload::Udp(datagram) => ip::emit_udp(&header, datagram, &mut octets)?,
        Payload::Opaque(opaque) => {
            ip::emit(&header, &opaque.octets, &mut octets)?;
        }
        Payload::Fragment(piece) => write_piece(&header, piece, &mut octets)?,
    }
    Ok(octets)
}

/// Writes a fragment: a part of the bytes of the whole packet, whose checksum covers all of them.
fn write_piece(header: &Header, piece: &Fragment, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let mut octets = Vec::new();
    let whole = match &*piece.whole {
        Whole::Tcp(cut) => {
            ip::emit_tcp(header, cut, &mut octets)?;
            &octets[header.wire_len()..]
        }
        Whole::Udp(cut) => {
            ip::emit_udp(header, cut, &mut octets)?;
            &octets[header.wire_len()..]
        }
        Whole::Opaque(opaque) => &opaque.octets[..],
    };
    // Only a packet that cannot be emitted is longer than 65,535 bytes.
    let fragment = ip::Fragment { offset: piece.offset as u16, more: piece.more() };
    let start = piece.offset as usize;
    let header = Header { fragment: Some(fragment), ..*header };
    ip::emit(&header, &whole[start..start + piece.len as usize], out)
}

/// The content of the packet with this header. The caller reassembles fragments first.
///
/// A TCP segment is parsed, so that nodes on the path that understand TCP see it, unless parsing
/// would change it: a segment with a bad checksum, with urgent data, or with options that a
/// [`anabranch_core::segment::Segment`] cannot hold, stays opaque. Padding and the order of options
/// are not preserved; of four SACK blocks the first three are.
pub fn read(header: &Header, payload: Bytes) -> Whole {
    if header.protocol == Protocol::TCP
        && !ip::has_unknown_tcp_options(&payload)
        && let Ok(segment) = ip::parse_tcp(header, payload.clone())
        && !segment.flags.contains(Flags::URG)
    {
        return Whole::Tcp(segment);
    }
    Whole::Opaque(Opaque { protocol: header.protocol, octets: payload })
}

#[cfg(test)]
mod tests {
    use anabranch_core::segment::{Options, Segment};

    use super::*;
    use crate::packet::NodeId;

    fn packet(payload: Payload) -> Packet {
        let (src, dst) = (NodeId(0), NodeId(1));
        Packet {
            id: 0,
            src,
            dst,
            wire_len: 0,
            identification: 7,
            hop_limit: 62,
            traffic_class: 0,
            path: 3,
            outer: None,
            payload,
        }
    }

    fn through(ip: IpVersion, payload: Payload) -> Whole {
        let octets = write(ip, &packet(payload)).unwrap();
        let (header, range) = anabranch_wire::ip::parse(&octets).unwrap();
        assert_eq!((header.hop_limit, header.flow_label), (62, if ip == IpVersion::V6 { 3 } else { 0 }));
        read(&header, Bytes::from(octets).slice(range))
    }

    #[test]
    fn what_goes_out_comes_in_again() {
        let options = Options { mss: Some(1460), window_scale: Some(7), ..Options::default() };
        let segment = Segment { src_port: 5, flags: Flags::SYN, window: 9, options, ..Segment::default() };
        let opaque = Opaque { protocol: Protocol::UDP, octets: Bytes::from_static(b"eight of") };
        for ip in [IpVersion::V4, IpVersion::V6] {
            for whole in [Whole::Tcp(segment.clone()), Whole::Opaque(opaque.clone())] {
                assert_eq!(through(ip, whole.clone().into()), whole);
            }
        }
    }

    #[test]
    fn a_segment_that_cannot_be_understood_stays_as_it_is() {
        let header = Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::TCP);
        let segment =
            Segment { options: Options { mss: Some(1), ..Options::default() }, ..Segment::default() };
        let mut octets = Vec::new();
        ip::emit_tcp(&header, &segment, &mut octets).unwrap();
        let octets = Bytes::from(octets).slice(header.wire_len()..);
        assert_eq!(read(&header, octets.clone()), Whole::Tcp(segment));
        let spoilt = |at: usize, octet: u8| {
            let mut octets = octets.to_vec();
            octets[at] = octet;
            Bytes::from(octets)
        };
        let urgent = Segment { flags: Flags::URG, ..Segment::default() };
        let mut with_urgent = Vec::new();
        ip::emit_tcp(&header, &urgent, &mut with_urgent).unwrap();
        let urgent = Bytes::from(with_urgent).slice(header.wire_len()..);
        assert!(matches!(read(&header, urgent), Whole::Opaque(_)), "its pointer would be lost");
        // A wrong checksum; an unknown option, for which the checksum does not matter.
        for octets in [spoilt(16, octets[16] ^ 1), spoilt(20, 77)] {
            let opaque = Opaque { protocol: Protocol::TCP, octets: octets.clone() };
            assert_eq!(read(&header, octets), Whole::Opaque(opaque));
        }
    }
}
