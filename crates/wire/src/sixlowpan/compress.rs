//! Compresses packets.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::context::Contexts;
use super::iphc::{Iphc, Next};
use super::nhc::{Header, Udp};
use super::{Ipv6Header, Link};
use crate::ip::{IPV6_HEADER_LEN, Protocol};

/// The lengths of a compressed datagram, which are sufficient to cut it into frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compressed {
    /// Length of the compressed headers in bytes, at the front of the datagram. The first frame
    /// carries all of them.
    pub header_len: usize,
    /// Length of the datagram in bytes.
    pub len: usize,
    /// Length of the packet before compression, in bytes.
    pub uncompressed_len: usize,
}

/// Why bytes cannot be compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// Not an IPv6 packet: another version, or fewer than 40 bytes.
    #[error("{octets} octets are not an IPv6 packet")]
    NotIpv6 {
        /// Number of bytes.
        octets: usize,
    },
    /// The payload length, which is not sent, differs from the number of bytes after the header.
    #[error("an IPv6 header announces {announced} octets of payload, and {octets} follow")]
    PayloadLength {
        /// Payload length in the header.
        announced: usize,
        /// Number of bytes after the header.
        octets: usize,
    },
}

/// Appends the datagram that carries `ipv6_packet` over `link` to `out`. On error, `out` is
/// unchanged.
///
/// Each address gets the shortest encoding that [`super::decompress`] expands to the same address
/// with these contexts and this link. Of equally short encodings the stateless one is used, then
/// the context with the lower number. The UDP checksum is always sent.
pub fn compress(
    ipv6_packet: &[u8],
    link: &Link,
    contexts: &Contexts,
    out: &mut Vec<u8>,
) -> Result<Compressed, CompressError> {
    let header = read_header(ipv6_packet)?;
    let start = out.len();
    let mut at = IPV6_HEADER_LEN;
    let mut following = Header::find(header.next_header, &ipv6_packet[at..]);
    Iphc::new(&header, next(&following), link, contexts).emit(out);
    while let Some(this) = following {
        at += this.len();
        following = this.following(&ipv6_packet[at..]);
        this.emit(next(&following), out);
    }
    let header_len = out.len() - start;
    out.extend_from_slice(&ipv6_packet[at..]);
    Ok(Compressed { header_len, len: out.len() - start, uncompressed_len: ipv6_packet.len() })
}

const fn next(following: &Option<Header<'_>>) -> Next {
    match following {
        None => Next::Inline,
        Some(_) => Next::Compressed,
    }
}

fn read_header(packet: &[u8]) -> Result<Ipv6Header, CompressError> {
    let error = CompressError::NotIpv6 { octets: packet.len() };
    let (octets, payload) = packet.split_first_chunk::<IPV6_HEADER_LEN>().ok_or(error)?;
    let [v, class, f1, f2, l1, l2, next_header, hop_limit, addresses @ ..] = *octets;
    if v >> 4 != 6 {
        return Err(error);
    }
    let announced = usize::from(u16::from_be_bytes([l1, l2]));
    if announced != payload.len() {
        return Err(CompressError::PayloadLength { announced, octets: payload.len() });
    }
    let mut ends = [[0; 16]; 2];
    ends.as_flattened_mut().copy_from_slice(&addresses);
    let [src, dst] = ends.map(Ipv6Addr::from_octets);
    Ok(Ipv6Header {
        src,
        dst,
        traffic_class: v << 4 | class >> 4,
        flow_label: u32::from_be_bytes([0, class & 15, f1, f2]),
        next_header: Protocol(next_header),
        hop_limit,
    })
}

/// Length in bytes of the headers that [`compress`] produces for a packet without extension
/// headers: [`Compressed::header_len`].
///
/// `udp_ports` are source and destination port of a UDP header that is compressed too. Pass `None`
/// for other packets, including UDP with a length that differs from the packet's.
pub fn compressed_header_len(
    header: &Ipv6Header,
    udp_ports: Option<[u16; 2]>,
    link: &Link,
    contexts: &Contexts,
) -> usize {
    match udp_ports {
        None => Iphc::new(header, Next::Inline, link, contexts).len(),
        Some(ports) => Iphc::new(header, Next::Compressed, link, contexts).len() + Udp::compressed_len(ports),
    }
}
