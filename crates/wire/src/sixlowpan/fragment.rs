//! Fragmentation of datagrams into frames (RFC 4944 section 5.3).

use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::ops::Range;

use super::compress::Compressed;
use super::iphc;
use crate::reader::Reader;

/// Length in bytes of the longest packet that can be fragmented: datagram_size has 11 bits.
pub const MAX_DATAGRAM: usize = 2047;
/// Length of the header of the first fragment in bytes.
pub const FIRST_FRAGMENT_HEADER_LEN: usize = 4;
/// Length of the header of every later fragment in bytes.
pub const FRAGMENT_HEADER_LEN: usize = 5;

/// Content of a frame, from the first bytes of its payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dispatch {
    /// A whole datagram: see [`super::decompress`].
    Datagram,
    /// The first fragment of a datagram, with its headers.
    First {
        /// Length of the packet before compression in bytes, at most 2047.
        datagram_size: u16,
        /// Tag that identifies the datagram on this link.
        tag: u16,
    },
    /// A later fragment.
    Subsequent {
        /// As in the first piece.
        datagram_size: u16,
        /// As in the first piece.
        tag: u16,
        /// Offset of this fragment in the packet before compression: a multiple of 8, at most 2040.
        offset: u16,
    },
}

/// A frame that carries no datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The frame has no payload.
    #[error("a frame without payload carries no datagram")]
    Empty,
    /// A fragment header is truncated.
    #[error("a fragment header of {octets} octets is cut off")]
    FragmentHeader {
        /// Number of bytes present.
        octets: usize,
    },
    /// Not a 6LoWPAN dispatch (RFC 4944 section 5.1), or one that is not supported.
    #[error("dispatch {dispatch:#04x} is not understood")]
    Unknown {
        /// The first byte.
        dispatch: u8,
    },
}

/// Reads the dispatch of a frame. Returns it with its length in bytes; the datagram or the fragment
/// follows it. The length is 0 for a whole datagram.
pub fn parse_dispatch(payload: &[u8]) -> Result<(Dispatch, usize), DispatchError> {
    let dispatch = *payload.first().ok_or(DispatchError::Empty)?;
    let cut_off = DispatchError::FragmentHeader { octets: payload.len() };
    let mut reader = Reader::new(payload);
    let mut field = || reader.u16().ok_or(cut_off);
    let read = match dispatch {
        iphc::UNCOMPRESSED => Dispatch::Datagram,
        _ if dispatch >> 5 == iphc::DISPATCH => Dispatch::Datagram,
        _ if dispatch & !SIZE_BITS == FIRST => {
            Dispatch::First { datagram_size: field()? & SIZE, tag: field()? }
        }
        _ if dispatch & !SIZE_BITS == SUBSEQUENT => {
            let (datagram_size, tag) = (field()? & SIZE, field()?);
            let offset = u16::from(reader.u8().ok_or(cut_off)?) * 8;
            Dispatch::Subsequent { datagram_size, tag, offset }
        }
        _ => return Err(DispatchError::Unknown { dispatch }),
    };
    Ok((read, reader.at()))
}

/// Type of the header before a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PieceKind {
    /// The datagram fits into one frame; there is no fragment header.
    Whole,
    /// FRAG1.
    First,
    /// FRAGN.
    Subsequent,
}

/// The part of a datagram that one frame carries.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// Type of the fragment header.
    pub kind: PieceKind,
    /// Offset of this piece in the packet before compression, in bytes: a multiple of 8; 0 for the
    /// first.
    pub offset: u16,
    /// Length of this piece before compression in bytes, headers included.
    pub uncompressed_len: u16,
    /// The range of the compressed datagram that the frame carries.
    pub range: Range<usize>,
    /// Length of the packet before compression in bytes, for the header.
    datagram_size: u16,
}

impl Piece {
    /// Length of the fragment header in bytes: 0, 4 or 5.
    pub const fn header_len(&self) -> usize {
        match self.kind {
            PieceKind::Whole => 0,
            PieceKind::First => FIRST_FRAGMENT_HEADER_LEN,
            PieceKind::Subsequent => FRAGMENT_HEADER_LEN,
        }
    }

    /// Length of the MAC payload in bytes: fragment header and piece.
    pub const fn frame_payload_len(&self) -> usize {
        self.header_len() + (self.range.end - self.range.start)
    }

    /// Appends the fragment header with the datagram's `tag`. The caller appends the bytes of
    /// [`Piece::range`].
    pub fn emit_header(&self, tag: u16, out: &mut Vec<u8>) {
        let dispatch = match self.kind {
            PieceKind::Whole => return,
            PieceKind::First => FIRST,
            PieceKind::Subsequent => SUBSEQUENT,
        };
        let size = u16::from(dispatch) << 8 | self.datagram_size;
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&tag.to_be_bytes());
        if self.kind == PieceKind::Subsequent {
            // At most 2040 / 8.
            out.push((self.offset / 8) as u8);
        }
    }
}

/// Why a datagram cannot be fragmented.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The packet is longer than [`MAX_DATAGRAM`]; the layer above must send smaller packets.
    #[error("a packet of {octets} octets is too long for fragments")]
    TooLong {
        /// Length of the packet in bytes.
        octets: usize,
    },
    /// The headers do not fit into the first frame (RFC 6282 section 2), or a frame has no room for
    /// 8 bytes of the packet.
    #[error("frames with {room} octets of payload have no room for a datagram with {header_len} of headers")]
    Room {
        /// MAC payload of a frame in bytes.
        room: usize,
        /// Length of the compressed headers in bytes.
        header_len: usize,
    },
}

/// Iterator over the pieces of a datagram in order.
#[derive(Clone, Debug)]
pub struct Split {
    /// Length of the datagram in bytes.
    len: usize,
    /// Bytes saved by compression.
    saved: usize,
    datagram_size: u16,
    /// End of the first piece in the datagram.
    first: usize,
    /// Length of every other piece except the last, in bytes.
    piece: usize,
    /// Start of the next piece in the datagram; `None` after the last.
    next: Option<usize>,
}

/// Computes how a datagram is cut into frames with at most `room` bytes of MAC payload each.
///
/// A datagram that fits yields one piece without a fragment header. Otherwise each piece fills its
/// frame as far as alignment allows: every piece except the last holds a multiple of 8 bytes of the
/// packet before compression.
///
/// The lengths are those returned by [`super::compress`], or the sum of
/// [`super::compressed_header_len`] and a payload length.
pub fn split(datagram: &Compressed, room: usize) -> Result<Split, SplitError> {
    let &Compressed { header_len, len, uncompressed_len } = datagram;
    let no_room = SplitError::Room { room, header_len };
    if len <= room {
        // A whole datagram has no fragment header, so its size need not fit into 11 bits.
        let datagram_size = uncompressed_len.min(usize::from(u16::MAX)) as u16;
        return Ok(Split { len, saved: 0, datagram_size, first: len, piece: len, next: Some(0) });
    }
    if uncompressed_len > MAX_DATAGRAM {
        return Err(SplitError::TooLong { octets: uncompressed_len });
    }
    // An uncompressed header costs its dispatch byte, so the datagram is longer than the packet.
    let saved = uncompressed_len.checked_sub(len).ok_or(no_room)?;
    // Offsets count bytes of the packet before compression, so the first piece and the saved bytes
    // together must be a multiple of 8.
    let first = (room.saturating_sub(FIRST_FRAGMENT_HEADER_LEN) + saved) / 8 * 8;
    let first = first.checked_sub(saved).filter(|first| *first >= header_len && *first > 0).ok_or(no_room)?;
    let piece = room.saturating_sub(FRAGMENT_HEADER_LEN) / 8 * 8;
    if piece == 0 {
        return Err(no_room);
    }
    // Checked above to be at most 2047.
    Ok(Split { len, saved, datagram_size: uncompressed_len as u16, first, piece, next: Some(0) })
}

/// As [`split`], but the first piece holds exactly `first` bytes of the packet before compression,
/// a multiple of 8. A node that forwards fragments with a header of another length (RFC 8930
/// section 5) uses this so that the later fragments keep their offsets.
///
/// # Errors
///
/// [`SplitError::Room`] also if the first piece does not fit, or does not contain all headers.
pub fn split_at(datagram: &Compressed, room: usize, first: u16) -> Result<Split, SplitError> {
    let &Compressed { header_len, len, uncompressed_len } = datagram;
    let no_room = SplitError::Room { room, header_len };
    if uncompressed_len > MAX_DATAGRAM {
        return Err(SplitError::TooLong { octets: uncompressed_len });
    }
    let saved = uncompressed_len.checked_sub(len).ok_or(no_room)?;
    let piece = room.saturating_sub(FRAGMENT_HEADER_LEN) / 8 * 8;
    let fits = |first: &usize| (header_len..len).contains(first) && first + FIRST_FRAGMENT_HEADER_LEN <= room;
    let first = usize::from(first).checked_sub(saved).filter(fits).ok_or(no_room)?;
    if piece == 0 || !(first + saved).is_multiple_of(8) {
        return Err(no_room);
    }
    // Checked above to be at most 2047.
    Ok(Split { len, saved, datagram_size: uncompressed_len as u16, first, piece, next: Some(0) })
}

impl Iterator for Split {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let start = self.next?;
        let whole = self.first == self.len;
        let (kind, end) = match start {
            0 if whole => (PieceKind::Whole, self.len),
            0 => (PieceKind::First, self.first),
            _ => (PieceKind::Subsequent, self.len.min(start + self.piece)),
        };
        self.next = (end < self.len).then_some(end);
        // Compression has shortened only the headers, which are all in the first piece.
        let offset = if start == 0 { 0 } else { (start + self.saved) as u16 };
        let uncompressed_end = if whole { self.datagram_size } else { (end + self.saved) as u16 };
        let uncompressed_len = uncompressed_end - offset;
        Some(Piece { kind, offset, uncompressed_len, range: start..end, datagram_size: self.datagram_size })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self.next {
            None => 0,
            Some(0) => 1 + (self.len - self.first).div_ceil(self.piece.max(1)),
            Some(start) => (self.len - start).div_ceil(self.piece),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Split {}
impl FusedIterator for Split {}

const FIRST: u8 = 0b1100_0000;
const SUBSEQUENT: u8 = 0b1110_0000;
/// The bits of datagram_size in the first byte.
const SIZE_BITS: u8 = 7;
/// The bits of datagram_size in the first two bytes.
const SIZE: u16 = 0x7ff;
