//! Fragmentation of a datagram to an MTU (RFC 791 section 3.2, RFC 8200 section 4.5).

use core::iter::FusedIterator;
use core::ops::Range;

use super::{EmitError, Fragment, Header};

/// Iterator over the fragments of a datagram in order: the header of each, and the range of the
/// payload that it carries.
#[derive(Clone, Debug)]
pub struct Fragments {
    header: Header,
    payload_len: usize,
    /// Bytes in each fragment except the last.
    piece: usize,
    /// Where the next fragment begins; `None` after the last.
    next: Option<usize>,
}

/// Cuts `payload_len` bytes after `header` into packets of at most `mtu` bytes, header included.
///
/// A payload that fits yields one packet with `header` unchanged. Otherwise the length of each
/// fragment except the last is a multiple of 8 bytes, and an IPv6 fragment has 8 more bytes of
/// header. All fragments have the identification of `header`, which the caller must have chosen
/// anew for this datagram (RFC 6864 section 4.3). A fragment can be fragmented again, as IPv4
/// routers do. IPv6 routers must not (RFC 8200 section 4.5); the caller has to observe that.
pub fn fragment(header: &Header, payload_len: usize, mtu: usize) -> Result<Fragments, EmitError> {
    let offset = header.fragment.map_or(0, |fragment| usize::from(fragment.offset));
    if payload_len.saturating_add(offset) > header.max_datagram() {
        return Err(EmitError::TooLong { octets: payload_len });
    }
    let mut fragments = Fragments { header: *header, payload_len, piece: payload_len, next: Some(0) };
    if header.wire_len() + payload_len > mtu {
        let more = false;
        let cut =
            Header { fragment: Some(header.fragment.unwrap_or(Fragment { offset: 0, more })), ..*header };
        fragments.piece = mtu.saturating_sub(cut.wire_len()) / 8 * 8;
        if fragments.piece == 0 {
            return Err(EmitError::Mtu { mtu });
        }
        fragments.header = cut;
    }
    Ok(fragments)
}

impl Iterator for Fragments {
    type Item = (Header, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next?;
        let end = self.payload_len.min(start + self.piece);
        let last = end == self.payload_len;
        self.next = (!last).then_some(end);
        let fragment = self.header.fragment.map(|whole| Fragment {
            // `fragment` has checked that the offset of the last byte fits.
            offset: whole.offset + start as u16,
            more: whole.more || !last,
        });
        Some((Header { fragment, ..self.header }, start..end))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.next.map_or(0, |start| (self.payload_len - start).div_ceil(self.piece.max(1)).max(1));
        (left, Some(left))
    }
}

impl ExactSizeIterator for Fragments {}
impl FusedIterator for Fragments {}
