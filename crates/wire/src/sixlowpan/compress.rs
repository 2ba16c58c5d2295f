//! A packet made a datagram.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::context::Contexts;
use super::iphc::{Iphc, Next};
use super::nhc::{Header, Udp};
use super::{Ipv6Header, Link};
use crate::ip::{IPV6_HEADER_LEN, Protocol};

/// The lengths of a datagram, which are all that cutting it into frames needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compressed {
    /// Bytes of the compressed headers, at the front of the datagram; the first frame carries them
    /// all.
    pub header_len: usize,
    /// Bytes of the datagram.
    pub len: usize,
    /// Bytes of the packet as it was.
    pub uncompressed_len: usize,
}

/// Why bytes cannot be compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// Not an IPv6 packet: another version, or fewer than 40 bytes.
    #[error("{octets} octets are not an IPv6 packet")]
    NotIpv6 {
        /// How many there are.
        octets: usize,
    },
    /// The payload length, which is not sent, is not that of the bytes behind the header.
    #[error("an IPv6 header announces {announced} octets of payload, and {octets} follow")]
    PayloadLength {
        /// What the header says.
        announced: usize,
        /// What is there.
        octets: usize,
    },
}

/// Appends the datagram that carries `ipv6_packet` over `link` to `out`; on an error `out` is as it
/// was.
///
/// Each address gets the shortest form that [`super::decompress`] makes the same address of, with
/// these contexts and this link. Of two that are equally short, the stateless one is taken, then
/// the context of the lower number. The UDP checksum is always sent.
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

/// Bytes of the headers that [`compress`] makes of a packet without extension headers:
/// [`Compressed::header_len`].
///
/// `udp_ports`, source and destination, are those of a UDP header that is compressed too; `None`
/// for all else, UDP with a length that is not the packet's included.
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
