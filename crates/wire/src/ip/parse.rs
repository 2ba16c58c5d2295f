//! Bytes to header.

use core::fmt;
use core::net::IpAddr;
use core::ops::Range;

use smoltcp::wire::{Ipv4Packet, Ipv6ExtHeader, Ipv6FragmentHeader, Ipv6Packet};

use super::{Fragment, Header, IPV4_HEADER_LEN, IPV6_FRAGMENT_HEADER_LEN, IPV6_HEADER_LEN, Protocol};

/// Which field a packet was refused for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The version is neither 4 nor 6, or there is not one byte.
    Version,
    /// An IPv4 header does not fit into the bytes that are there.
    Ipv4Header,
    /// IPv4 header length: below 20 bytes, or past the end of the packet.
    Ipv4HeaderLength,
    /// IPv4 total length: less than the header, or more than the bytes that are there.
    Ipv4TotalLength,
    /// IPv4 fragment offset: the piece ends where no datagram of 65535 bytes, header included,
    /// does.
    Ipv4FragmentOffset,
    /// IPv4 header checksum.
    Ipv4Checksum,
    /// An IPv6 header does not fit into the bytes that are there.
    Ipv6Header,
    /// IPv6 payload length: more than the bytes that are there.
    Ipv6PayloadLength,
    /// An IPv6 extension header runs past the end of the packet.
    Ipv6Extension,
    /// Hop-by-Hop options that do not follow the IPv6 header (RFC 8200 section 4.1).
    Ipv6HopByHop,
    /// A routing header with segments left: source routing is not done here (RFC 8200 section 4.4,
    /// RFC 5095).
    Ipv6Routing,
    /// IPv6 fragment offset: the piece ends past byte 65535.
    Ipv6FragmentOffset,
    /// The addresses handed in are not of one family.
    Addresses,
    /// The payload is not TCP.
    Protocol,
    /// The payload is a piece of a datagram: reassemble first.
    Fragment,
    /// A TCP header does not fit into the payload.
    TcpHeader,
    /// TCP data offset: below 5 words, or past the end of the payload.
    TcpDataOffset,
    /// TCP checksum over pseudo-header, header and data.
    TcpChecksum,
    /// A TCP option that runs past the header, or has a length that its kind does not allow
    /// (RFC 9293 section 3.2, MUST-7).
    TcpOption,
    /// The segment is longer than 65535 bytes.
    TcpLength,
    /// A UDP header does not fit into the payload.
    UdpHeader,
    /// UDP length: less than the header, or more than the bytes that are there.
    UdpLength,
    /// UDP checksum over pseudo-header, header and data; or none in IPv6.
    UdpChecksum,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "IP version",
            Self::Ipv4Header => "IPv4 header",
            Self::Ipv4HeaderLength => "IPv4 header length",
            Self::Ipv4TotalLength => "IPv4 total length",
            Self::Ipv4FragmentOffset => "IPv4 fragment offset",
            Self::Ipv4Checksum => "IPv4 header checksum",
            Self::Ipv6Header => "IPv6 header",
            Self::Ipv6PayloadLength => "IPv6 payload length",
            Self::Ipv6Extension => "IPv6 extension header",
            Self::Ipv6HopByHop => "IPv6 hop-by-hop options",
            Self::Ipv6Routing => "IPv6 routing header",
            Self::Ipv6FragmentOffset => "IPv6 fragment offset",
            Self::Addresses => "IP addresses",
            Self::Protocol => "IP protocol",
            Self::Fragment => "IP fragment",
            Self::TcpHeader => "TCP header",
            Self::TcpDataOffset => "TCP data offset",
            Self::TcpChecksum => "TCP checksum",
            Self::TcpOption => "TCP option",
            Self::TcpLength => "TCP segment length",
            Self::UdpHeader => "UDP header",
            Self::UdpLength => "UDP length",
            Self::UdpChecksum => "UDP checksum",
        })
    }
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset}")]
pub struct ParseError {
    /// The field that is wrong or cut off.
    pub field: Field,
    /// Where that field begins in the bytes handed in.
    pub offset: usize,
}

impl ParseError {
    pub(super) const fn at(field: Field, offset: usize) -> Self {
        Self { field, offset }
    }
}

/// Reads one packet: its header, and where in `packet` its payload lies.
///
/// Bytes past the packet's own length are ignored (link-layer padding). IPv6 extension headers are
/// skipped, except that behind a Fragment header nothing is: what follows it belongs to the
/// datagram that [`super::Reassembler`] joins.
pub fn parse(packet: &[u8]) -> Result<(Header, Range<usize>), ParseError> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => parse_v4(packet),
        Some(6) => parse_v6(packet),
        _ => Err(ParseError::at(Field::Version, 0)),
    }
}

fn parse_v4(packet: &[u8]) -> Result<(Header, Range<usize>), ParseError> {
    if packet.len() < IPV4_HEADER_LEN {
        return Err(ParseError::at(Field::Ipv4Header, 0));
    }
    let view = Ipv4Packet::new_unchecked(packet);
    let header_len = usize::from(view.header_len());
    if header_len < IPV4_HEADER_LEN || header_len > packet.len() {
        return Err(ParseError::at(Field::Ipv4HeaderLength, 0));
    }
    let total_len = usize::from(view.total_len());
    if total_len < header_len || total_len > packet.len() {
        return Err(ParseError::at(Field::Ipv4TotalLength, 2));
    }
    if !view.verify_checksum() {
        return Err(ParseError::at(Field::Ipv4Checksum, 10));
    }
    let (offset, more) = (view.frag_offset(), view.more_frags());
    if usize::from(offset) + total_len > usize::from(u16::MAX) {
        return Err(ParseError::at(Field::Ipv4FragmentOffset, 6));
    }
    let header = Header {
        src: IpAddr::V4(view.src_addr()),
        dst: IpAddr::V4(view.dst_addr()),
        protocol: Protocol(view.next_header().into()),
        hop_limit: view.hop_limit(),
        traffic_class: view.dscp() << 2 | view.ecn(),
        flow_label: 0,
        ident: u32::from(view.ident()),
        fragment: (offset != 0 || more).then_some(Fragment { offset, more }),
    };
    Ok((header, header_len..total_len))
}

fn parse_v6(packet: &[u8]) -> Result<(Header, Range<usize>), ParseError> {
    if packet.len() < IPV6_HEADER_LEN {
        return Err(ParseError::at(Field::Ipv6Header, 0));
    }
    let view = Ipv6Packet::new_unchecked(packet);
    let end = view.total_len();
    let Some(whole) = packet.get(..end) else {
        return Err(ParseError::at(Field::Ipv6PayloadLength, 4));
    };
    let mut header = Header {
        src: IpAddr::V6(view.src_addr()),
        dst: IpAddr::V6(view.dst_addr()),
        protocol: Protocol(view.next_header().into()),
        hop_limit: view.hop_limit(),
        traffic_class: view.traffic_class(),
        flow_label: view.flow_label(),
        ident: 0,
        fragment: None,
    };
    let mut at = skip_extensions(&mut header.protocol, whole, IPV6_HEADER_LEN)?;
    if header.protocol == Protocol::FRAGMENT {
        at = read_fragment(&mut header, whole, at)?;
    }
    Ok((header, at..end))
}

/// Steps over the extension headers that say nothing to an end host, from `at` on, where one of
/// kind `protocol` lies; leaves the first other protocol in `protocol` and returns where that
/// begins.
pub(super) fn skip_extensions(
    protocol: &mut Protocol,
    octets: &[u8],
    mut at: usize,
) -> Result<usize, ParseError> {
    while matches!(*protocol, Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::DESTINATION_OPTIONS) {
        if *protocol == Protocol::HOP_BY_HOP && at != IPV6_HEADER_LEN {
            return Err(ParseError::at(Field::Ipv6HopByHop, at));
        }
        let rest = octets.get(at..).unwrap_or_default();
        let Ok(extension) = Ipv6ExtHeader::new_checked(rest) else {
            return Err(ParseError::at(Field::Ipv6Extension, at));
        };
        // Segments left is the second byte past next header and length.
        if *protocol == Protocol::ROUTING && extension.payload().get(1) != Some(&0) {
            return Err(ParseError::at(Field::Ipv6Routing, at));
        }
        *protocol = Protocol(extension.next_header().into());
        at += 8 * (usize::from(extension.header_len()) + 1);
    }
    Ok(at)
}

/// Reads the Fragment header at `at`; returns where the piece begins.
fn read_fragment(header: &mut Header, whole: &[u8], at: usize) -> Result<usize, ParseError> {
    let Some(octets) = whole.get(at..at + IPV6_FRAGMENT_HEADER_LEN) else {
        return Err(ParseError::at(Field::Ipv6Extension, at));
    };
    header.protocol = Protocol(octets[0]);
    // smoltcp's view begins past next header and reserved.
    let view = Ipv6FragmentHeader::new_unchecked(&octets[2..]);
    let offset = view.frag_offset() * 8;
    header.ident = view.ident();
    header.fragment = Some(Fragment { offset, more: view.more_frags() });
    let start = at + IPV6_FRAGMENT_HEADER_LEN;
    if usize::from(offset) + (whole.len() - start) > usize::from(u16::MAX) {
        return Err(ParseError::at(Field::Ipv6FragmentOffset, at + 2));
    }
    Ok(start)
}
