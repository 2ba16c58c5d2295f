//! Parses packets.

use core::fmt;
use core::net::IpAddr;
use core::ops::Range;

use smoltcp::wire::{Ipv4Packet, Ipv6ExtHeader, Ipv6FragmentHeader, Ipv6Packet};

use super::{Fragment, Header, IPV4_HEADER_LEN, IPV6_FRAGMENT_HEADER_LEN, IPV6_HEADER_LEN, Protocol};

/// The field that made a parser refuse a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The version is neither 4 nor 6, or the packet is empty.
    Version,
    /// The packet is shorter than an IPv4 header.
    Ipv4Header,
    /// The IPv4 header length is below 20 bytes, or past the end of the packet.
    Ipv4HeaderLength,
    /// The IPv4 total length is less than the header, or more than the packet.
    Ipv4TotalLength,
    /// The IPv4 fragment ends past the longest datagram, 65535 bytes with header.
    Ipv4FragmentOffset,
    /// The IPv4 header checksum is wrong.
    Ipv4Checksum,
    /// The packet is shorter than an IPv6 header.
    Ipv6Header,
    /// The IPv6 payload length exceeds the packet.
    Ipv6PayloadLength,
    /// An IPv6 extension header runs past the end of the packet.
    Ipv6Extension,
    /// Hop-by-Hop options do not directly follow the IPv6 header (RFC 8200 section 4.1).
    Ipv6HopByHop,
    /// A routing header has segments left; source routing is not supported (RFC 8200 section 4.4,
    /// RFC 5095).
    Ipv6Routing,
    /// The IPv6 fragment ends past byte 65535.
    Ipv6FragmentOffset,
    /// The two addresses passed in belong to different families.
    Addresses,
    /// The payload is not TCP.
    Protocol,
    /// The payload is a fragment; reassemble the datagram first.
    Fragment,
    /// The payload is shorter than a TCP header.
    TcpHeader,
    /// The TCP data offset is below 5 words, or past the end of the payload.
    TcpDataOffset,
    /// The TCP checksum over pseudo-header, header and data is wrong.
    TcpChecksum,
    /// A TCP option runs past the header, or has a length that its kind does not allow (RFC 9293
    /// section 3.2, MUST-7).
    TcpOption,
    /// The segment is longer than 65535 bytes.
    TcpLength,
    /// The payload is shorter than a UDP header.
    UdpHeader,
    /// The UDP length is less than the header, or more than the payload.
    UdpLength,
    /// The UDP checksum over pseudo-header, header and data is wrong, or missing in IPv6.
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

/// The bytes are not a valid packet, segment or datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset}")]
pub struct ParseError {
    /// The invalid or truncated field.
    pub field: Field,
    /// Offset of that field in the bytes passed in.
    pub offset: usize,
}

impl ParseError {
    pub(super) const fn at(field: Field, offset: usize) -> Self {
        Self { field, offset }
    }
}

/// Parses one packet. Returns its header and the range of its payload in `packet`.
///
/// Bytes after the length that the packet states are ignored (link-layer padding). IPv6 extension
/// headers are skipped, except after a Fragment header: what follows one belongs to the datagram
/// that [`super::Reassembler`] joins.
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

/// Skips the extension headers that do not concern an end host. The first has kind `protocol`
/// and lies at `at`. Stores the first other protocol in `protocol` and returns its offset.
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
        // Segments left is the second byte after next header and length.
        if *protocol == Protocol::ROUTING && extension.payload().get(1) != Some(&0) {
            return Err(ParseError::at(Field::Ipv6Routing, at));
        }
        *protocol = Protocol(extension.next_header().into());
        at += 8 * (usize::from(extension.header_len()) + 1);
    }
    Ok(at)
}

/// Reads the Fragment header at `at`. Returns the offset of the fragment's data.
fn read_fragment(header: &mut Header, whole: &[u8], at: usize) -> Result<usize, ParseError> {
    let Some(octets) = whole.get(at..at + IPV6_FRAGMENT_HEADER_LEN) else {
        return Err(ParseError::at(Field::Ipv6Extension, at));
    };
    header.protocol = Protocol(octets[0]);
    // The view of smoltcp begins after the next header and reserved bytes.
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
