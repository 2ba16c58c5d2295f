//! Decompresses datagrams.

use alloc::vec::Vec;

use super::context::Contexts;
use super::input::{DecompressError, Field, Input};
use super::iphc::{self, Next};
use super::nhc;
use super::{Ipv6Header, Link};
use crate::ip::IPV6_HEADER_LEN;

/// Lengths of the headers of a decompressed datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decompressed {
    /// Length of the compressed headers in bytes, at the front of the datagram.
    pub header_len: usize,
    /// Length of the same headers after decompression, at the front of the packet.
    pub uncompressed_header_len: usize,
}

/// Appends the packet that `datagram` carried over `link` to `out`. On error, `out` is unchanged.
///
/// If `datagram` is only the first fragment, `total_len` is the length of the whole packet, which
/// the fragment headers carry. The function then appends the front of the packet, with the lengths
/// of the whole packet in its headers. Without `total_len`, `datagram` is complete.
pub fn decompress(
    datagram: &[u8],
    link: &Link,
    contexts: &Contexts,
    total_len: Option<u16>,
    out: &mut Vec<u8>,
) -> Result<Decompressed, DecompressError> {
    let start = out.len();
    let result = match datagram.first() {
        Some(first) if first >> 5 == iphc::DISPATCH => compressed(datagram, link, contexts, total_len, out),
        Some(&iphc::UNCOMPRESSED) => uncompressed(&datagram[1..], total_len, out),
        _ => Err(DecompressError { field: Field::Dispatch, offset: 0 }),
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// An uncompressed IPv6 packet after its dispatch byte (RFC 4944 section 5.1).
fn uncompressed(
    packet: &[u8],
    total_len: Option<u16>,
    out: &mut Vec<u8>,
) -> Result<Decompressed, DecompressError> {
    let error = |field| DecompressError { field, offset: 1 };
    let Some(&[first, _, _, _, high, low, ..]) = packet.first_chunk::<IPV6_HEADER_LEN>() else {
        return Err(error(Field::Ipv6Header));
    };
    let total_len = total_len.map_or(packet.len(), usize::from);
    let announced = IPV6_HEADER_LEN + usize::from(u16::from_be_bytes([high, low]));
    if first >> 4 != 6 || announced != total_len {
        return Err(error(Field::Ipv6Header));
    }
    if packet.len() > total_len {
        return Err(error(Field::Length));
    }
    out.extend_from_slice(packet);
    Ok(Decompressed { header_len: 1 + IPV6_HEADER_LEN, uncompressed_header_len: IPV6_HEADER_LEN })
}

fn compressed(
    datagram: &[u8],
    link: &Link,
    contexts: &Contexts,
    total_len: Option<u16>,
    out: &mut Vec<u8>,
) -> Result<Decompressed, DecompressError> {
    let start = out.len();
    let mut input = Input::new(datagram);
    let (header, next) = iphc::read(&mut input, link, contexts)?;
    emit_header(&header, out);
    if next == Next::Compressed {
        nhc::read(&mut input, [start, start + NEXT_HEADER], total_len, out)?;
    }
    let read = Decompressed { header_len: input.at(), uncompressed_header_len: out.len() - start };
    let here = read.uncompressed_header_len + input.rest().len();
    let payload_len = total_len.map_or(here, usize::from).checked_sub(IPV6_HEADER_LEN);
    match payload_len.and_then(|len| u16::try_from(len).ok()) {
        Some(len) if IPV6_HEADER_LEN + usize::from(len) >= here => {
            out[start + PAYLOAD_LENGTH..][..2].copy_from_slice(&len.to_be_bytes());
        }
        _ => return Err(input.error(Field::Length)),
    }
    out.extend_from_slice(input.rest());
    Ok(read)
}

/// Appends the header with a payload length of zero, which is filled in later.
fn emit_header(header: &Ipv6Header, out: &mut Vec<u8>) {
    let [_, high, middle, low] = header.flow_label.to_be_bytes();
    let class = header.traffic_class;
    out.extend_from_slice(&[6 << 4 | class >> 4, class << 4 | high, middle, low, 0, 0]);
    out.extend_from_slice(&[header.next_header.0, header.hop_limit]);
    out.extend_from_slice(&header.src.octets());
    out.extend_from_slice(&header.dst.octets());
}

/// Offset of the payload length in an IPv6 header.
const PAYLOAD_LENGTH: usize = 4;
/// Offset of the next header in an IPv6 header.
const NEXT_HEADER: usize = 6;
