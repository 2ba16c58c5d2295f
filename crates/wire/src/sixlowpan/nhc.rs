//! Extension headers and UDP as LOWPAN_NHC (RFC 6282 section 4).

use alloc::vec::Vec;

use super::input::{DecompressError, Field, Input};
use super::iphc::Next;
use crate::ip::Protocol;

/// A header that LOWPAN_NHC can compress.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header<'a> {
    Extension(Extension<'a>),
    Udp(Udp),
}

/// An IPv6 extension header (RFC 8200 section 4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension<'a> {
    /// EID, the index into [`EXTENSIONS`].
    id: usize,
    /// The next header.
    next: Protocol,
    /// Length of the uncompressed header in bytes.
    len: usize,
    /// For a Fragment header the second byte, which is reserved and sent unchanged; else the length
    /// in bytes of the content.
    second: u8,
    content: &'a [u8],
}

/// A UDP header (RFC 768) whose length field matches the length of the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Udp {
    ports: [u16; 2],
    checksum: [u8; 2],
}

impl<'a> Header<'a> {
    /// Returns the compressible header of kind `protocol` at the front of `octets`, which extend to
    /// the end of the packet. Returns `None` for a header that is malformed, or too long for its
    /// one-byte length.
    pub(super) fn find(protocol: Protocol, octets: &'a [u8]) -> Option<Self> {
        if protocol == Protocol::UDP {
            return Udp::find(octets).map(Self::Udp);
        }
        let id = EXTENSIONS.iter().position(|of| *of == protocol)?;
        let [next, second, ..] = *octets else { return None };
        let is_fragment = protocol == Protocol::FRAGMENT;
        // A Fragment header has a fixed length; its second byte is reserved.
        let len = if is_fragment { 8 } else { 8 * (usize::from(second) + 1) };
        let whole = octets.get(2..len)?;
        let content = if can_be_padded(protocol) { without_padding(whole) } else { whole };
        let second = if is_fragment { second } else { u8::try_from(content.len()).ok()? };
        Some(Self::Extension(Extension { id, next: Protocol(next), len, second, content }))
    }

    /// Length of the uncompressed header in bytes.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Extension(extension) => extension.len,
            Self::Udp(_) => UDP_HEADER_LEN,
        }
    }

    /// Returns the compressible header that follows in `octets`. After a Fragment header there need
    /// not be a header.
    pub(super) fn following<'b>(&self, octets: &'b [u8]) -> Option<Header<'b>> {
        match self {
            Self::Extension(extension) if EXTENSIONS[extension.id] != Protocol::FRAGMENT => {
                Header::find(extension.next, octets)
            }
            _ => None,
        }
    }

    pub(super) fn emit(&self, next: Next, out: &mut Vec<u8>) {
        match self {
            Self::Extension(extension) => extension.emit(next, out),
            Self::Udp(udp) => udp.emit(out),
        }
    }
}

impl Extension<'_> {
    fn emit(&self, next: Next, out: &mut Vec<u8>) {
        out.push(EXTENSION | (self.id as u8) << 1 | u8::from(next == Next::Compressed));
        if next == Next::Inline {
            out.push(self.next.0);
        }
        out.push(self.second);
        out.extend_from_slice(self.content);
    }
}

impl Udp {
    fn find(octets: &[u8]) -> Option<Self> {
        let [s1, s2, d1, d2, l1, l2, c1, c2] = *octets.first_chunk()?;
        let ports = [[s1, s2], [d1, d2]].map(u16::from_be_bytes);
        let is_whole = usize::from(u16::from_be_bytes([l1, l2])) == octets.len();
        is_whole.then_some(Self { ports, checksum: [c1, c2] })
    }

    /// Length of the compressed header in bytes, 4 to 7.
    pub(super) fn compressed_len([src, dst]: [u16; 2]) -> usize {
        1 + 2
            + match (is_nibble(src) && is_nibble(dst), is_octet(src) || is_octet(dst)) {
                (true, _) => 1,
                (false, true) => 3,
                (false, false) => 4,
            }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let [src, dst] = self.ports;
        let ([s1, s2], [d1, d2]) = (src.to_be_bytes(), dst.to_be_bytes());
        // RFC 6282 section 4.3.3: both ports to 4 bits, or one of them to 8 bits, or neither.
        if is_nibble(src) && is_nibble(dst) {
            out.extend_from_slice(&[UDP | 3, s2 << 4 | d2 & 15]);
        } else if is_octet(dst) {
            out.extend_from_slice(&[UDP | 1, s1, s2, d2]);
        } else if is_octet(src) {
            out.extend_from_slice(&[UDP | 2, s2, d1, d2]);
        } else {
            out.extend_from_slice(&[UDP, s1, s2, d1, d2]);
        }
        out.extend_from_slice(&self.checksum);
    }
}

/// True for 0xf0bX, of which four bits are sent.
const fn is_nibble(port: u16) -> bool {
    port & 0xfff0 == 0xf0b0
}

/// True for 0xf0XX, of which eight bits are sent.
const fn is_octet(port: u16) -> bool {
    port & 0xff00 == 0xf000
}

/// Reads the chain of compressed headers and appends the uncompressed headers to `out`. The packet
/// begins at `start` in `out`, and the byte at `next_header` has to be filled in. `total_len` is
/// the length of the packet if only a part of it is present.
pub(super) fn read(
    input: &mut Input<'_>,
    [start, mut next_header]: [usize; 2],
    total_len: Option<u16>,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    loop {
        let error = input.error(Field::NextHeader);
        let first = input.u8(Field::NextHeader)?;
        if first & 0xf8 == UDP {
            out[next_header] = Protocol::UDP.0;
            return read_udp(input, first, total_len.map(|len| start + usize::from(len)), out);
        }
        let id = usize::from(first >> 1 & 7);
        let (true, Some(protocol)) = (first & 0xf0 == EXTENSION, EXTENSIONS.get(id)) else {
            return Err(error);
        };
        out[next_header] = protocol.0;
        next_header = out.len();
        let next = if first & 1 == 0 { Next::Inline } else { Next::Compressed };
        read_extension(input, *protocol, next, out)?;
        if next == Next::Inline {
            return Ok(());
        }
    }
}

/// Reads one extension header after its first byte. If its next header is compressed too, zero is a
/// placeholder for it.
fn read_extension(
    input: &mut Input<'_>,
    protocol: Protocol,
    next: Next,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    let next = match next {
        Next::Inline => input.u8(Field::Extension)?,
        Next::Compressed => 0,
    };
    let error = input.error(Field::Extension);
    let second = input.u8(Field::Extension)?;
    if protocol == Protocol::FRAGMENT {
        out.extend_from_slice(&[next, second]);
        out.extend_from_slice(&input.take::<6>(Field::Extension)?);
        return Ok(());
    }
    let content = input.slice(usize::from(second), Field::Extension)?;
    let words = (2 + content.len()).div_ceil(8);
    let padding = words * 8 - (2 + content.len());
    if padding > 0 && !can_be_padded(protocol) {
        return Err(error);
    }
    // At most 33 words.
    out.extend_from_slice(&[next, (words - 1) as u8]);
    out.extend_from_slice(content);
    out.extend_from_slice(PADDING[padding]);
    Ok(())
}

/// Reads a UDP header after its first byte. The packet ends at `end` of `out`, or with the input.
fn read_udp(
    input: &mut Input<'_>,
    first: u8,
    end: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    if first & UDP_CHECKSUM_ELIDED != 0 {
        return Err(input.error(Field::UdpChecksum));
    }
    let (src, dst) = match first & 3 {
        0 => {
            let [s1, s2, d1, d2] = input.take(Field::Udp)?;
            ([s1, s2], [d1, d2])
        }
        1 => {
            let [s1, s2, d2] = input.take(Field::Udp)?;
            ([s1, s2], [0xf0, d2])
        }
        2 => {
            let [s2, d1, d2] = input.take(Field::Udp)?;
            ([0xf0, s2], [d1, d2])
        }
        _ => {
            let both = input.u8(Field::Udp)?;
            ([0xf0, 0xb0 | both >> 4], [0xf0, 0xb0 | both & 15])
        }
    };
    let checksum: [u8; 2] = input.take(Field::Udp)?;
    let len = match end {
        Some(end) => end.checked_sub(out.len()),
        None => Some(UDP_HEADER_LEN + input.rest().len()),
    };
    let len = len.and_then(|len| u16::try_from(len).ok()).ok_or(input.error(Field::Length))?;
    for pair in [src, dst, len.to_be_bytes(), checksum] {
        out.extend_from_slice(&pair);
    }
    Ok(())
}

/// True for headers that consist of options, whose trailing padding may be elided (RFC 6282 section
/// 4.2).
const fn can_be_padded(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::HOP_BY_HOP | Protocol::DESTINATION_OPTIONS)
}

/// The options without trailing padding, if [`read_extension`] would restore the same padding: a
/// single option.
fn without_padding(options: &[u8]) -> &[u8] {
    let mut at = 0;
    let mut last = 0;
    while let Some(kind) = options.get(at) {
        last = at;
        at += match (kind, options.get(at + 1)) {
            (0, _) => 1,
            (_, Some(len)) => 2 + usize::from(*len),
            (_, None) => return options,
        };
    }
    match options.split_at_checked(last) {
        // An option that runs past the end cannot be padding.
        Some((before, padding)) if at == options.len() && PADDING[1..].contains(&padding) => before,
        _ => options,
    }
}

/// Pad1 and PadN (RFC 8200 section 4.2), by length in bytes.
const PADDING: [&[u8]; 8] = [
    &[],
    &[0],
    &[1, 0],
    &[1, 1, 0],
    &[1, 2, 0, 0],
    &[1, 3, 0, 0, 0],
    &[1, 4, 0, 0, 0, 0],
    &[1, 5, 0, 0, 0, 0, 0],
];

/// Extension headers by EID. 5 and 6 are reserved; 7, an IPv6 header, is not supported.
const EXTENSIONS: [Protocol; 5] = [
    Protocol::HOP_BY_HOP,
    Protocol::ROUTING,
    Protocol::FRAGMENT,
    Protocol::DESTINATION_OPTIONS,
    // Mobility (RFC 6275 section 6.1), which the `ip` module treats as a payload.
    Protocol(135),
];

const EXTENSION: u8 = 0b1110_0000;
const UDP: u8 = 0b1111_0000;
const UDP_CHECKSUM_ELIDED: u8 = 1 << 2;
const UDP_HEADER_LEN: usize = 8;
