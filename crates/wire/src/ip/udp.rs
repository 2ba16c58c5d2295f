//! A UDP datagram as the payload of a packet (RFC 768).

use alloc::vec::Vec;

use bytes::Bytes;
use smoltcp::wire::UdpPacket;

use super::emit::emit_header;
use super::tcp::addresses;
use super::{EmitError, Field, Header, ParseError, Protocol};

/// Length of a UDP header in bytes.
pub const UDP_HEADER_LEN: usize = 8;
/// Offsets of length and checksum in the UDP header.
const LENGTH_OFFSET: usize = 4;
const CHECKSUM_OFFSET: usize = 6;

/// A UDP datagram.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UdpDatagram {
    /// Source port; 0 if the sender expects no answer.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// The data carried.
    pub payload: Bytes,
}

impl UdpDatagram {
    /// Bytes of header and payload.
    #[inline]
    pub fn wire_len(&self) -> usize {
        UDP_HEADER_LEN + self.payload.len()
    }
}

/// Appends the packet that carries `datagram` to `out`. On error, `out` is unchanged.
///
/// The packet's protocol is UDP regardless of [`Header::protocol`]. It always has a checksum.
pub fn emit_udp(header: &Header, datagram: &UdpDatagram, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let len = datagram.wire_len();
    let says = u16::try_from(len).map_err(|_| EmitError::TooLong { octets: len })?;
    emit_header(&Header { protocol: Protocol::UDP, ..*header }, len, out)?;
    let start = out.len();
    out.resize(start + UDP_HEADER_LEN, 0);
    out.extend_from_slice(&datagram.payload);
    let mut view = UdpPacket::new_unchecked(&mut out[start..]);
    view.set_src_port(datagram.src_port);
    view.set_dst_port(datagram.dst_port);
    view.set_len(says);
    view.fill_checksum(&header.src.into(), &header.dst.into());
    Ok(())
}

/// Parses the datagram in `payload`, which is the whole payload of a packet with this header. Bytes
/// after the length that the datagram states are ignored. IPv4 permits a missing checksum
/// (RFC 768), IPv6 does not (RFC 8200 section 8.1).
///
/// Offsets in errors count from the start of `payload`.
pub fn parse_udp(header: &Header, payload: Bytes) -> Result<UdpDatagram, ParseError> {
    let (src, dst) = addresses(header)?;
    if header.protocol != Protocol::UDP {
        return Err(ParseError::at(Field::Protocol, 0));
    }
    if header.fragment.is_some_and(|fragment| fragment.offset != 0 || fragment.more) {
        return Err(ParseError::at(Field::Fragment, 0));
    }
    if payload.len() < UDP_HEADER_LEN {
        return Err(ParseError::at(Field::UdpHeader, 0));
    }
    let view = UdpPacket::new_unchecked(&payload[..]);
    let len = usize::from(view.len());
    if len < UDP_HEADER_LEN || len > payload.len() {
        return Err(ParseError::at(Field::UdpLength, LENGTH_OFFSET));
    }
    let unchecked = view.checksum() == 0;
    if unchecked && header.src.is_ipv6() || !unchecked && !view.verify_checksum(&src, &dst) {
        return Err(ParseError::at(Field::UdpChecksum, CHECKSUM_OFFSET));
    }
    let (src_port, dst_port) = (view.src_port(), view.dst_port());
    Ok(UdpDatagram { src_port, dst_port, payload: payload.slice(UDP_HEADER_LEN..len) })
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::super::parse;
    use super::*;

    fn ends() -> [Header; 2] {
        let header = |src: &str, dst: &str| {
            let address = |text: &str| -> IpAddr { text.parse().unwrap() };
            Header::new(address(src), address(dst), Protocol::UDP)
        };
        [header("10.0.0.1", "10.0.0.2"), header("fd00::1", "fd00::2")]
    }

    fn datagram() -> UdpDatagram {
        UdpDatagram { src_port: 654, dst_port: 5000, payload: Bytes::from_static(b"seven o") }
    }

    fn octets(header: &Header) -> Vec<u8> {
        let mut packet = Vec::new();
        emit_udp(header, &datagram(), &mut packet).unwrap();
        let (read, range) = parse(&packet).unwrap();
        assert_eq!(read.protocol, Protocol::UDP);
        packet[range].to_vec()
    }

    #[test]
    fn what_is_written_is_read() {
        for header in ends() {
            assert_eq!(parse_udp(&header, octets(&header).into()), Ok(datagram()));
        }
    }

    #[test]
    fn a_checksum_may_be_missing_in_ipv4_only() {
        for header in ends() {
            let mut octets = octets(&header);
            octets[CHECKSUM_OFFSET..UDP_HEADER_LEN].fill(0);
            let read = parse_udp(&header, octets.into()).map_err(|error| error.field);
            let expected = if header.src.is_ipv4() { Ok(datagram()) } else { Err(Field::UdpChecksum) };
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for header in ends() {
            let refusal = |change: fn(&mut Vec<u8>)| {
                let mut octets = octets(&header);
                change(&mut octets);
                parse_udp(&header, octets.into()).unwrap_err().field
            };
            assert_eq!(refusal(|o| o.truncate(7)), Field::UdpHeader);
            assert_eq!(refusal(|o| o[5] = 7), Field::UdpLength);
            assert_eq!(refusal(|o| o[5] += 1), Field::UdpLength);
            assert_eq!(refusal(|o| o[9] ^= 1), Field::UdpChecksum);
            let tcp = Header { protocol: Protocol::TCP, ..header };
            assert_eq!(parse_udp(&tcp, octets(&header).into()).unwrap_err().field, Field::Protocol);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for header in ends() {
            let payload = Bytes::from(alloc::vec![0; header.max_datagram() - UDP_HEADER_LEN + 1]);
            let long = UdpDatagram { payload, ..datagram() };
            let mut out = Vec::new();
            assert!(matches!(emit_udp(&header, &long, &mut out), Err(EmitError::TooLong { .. })));
            assert!(out.is_empty());
        }
    }
}
