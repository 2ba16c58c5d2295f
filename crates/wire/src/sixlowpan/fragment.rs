//! A datagram cut into frames (RFC 4944 section 5.3).

use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::ops::Range;

use super::compress::Compressed;
use super::iphc;
use crate::reader::Reader;

/// The largest packet that fragments can carry: the 11 bits of datagram_size.
pub const MAX_DATAGRAM: usize = 2047;
/// Bytes before the first piece of a datagram.
pub const FIRST_FRAGMENT_HEADER_LEN: usize = 4;
/// Bytes before each other piece.
pub const FRAGMENT_HEADER_LEN: usize = 5;

/// What a frame's payload begins with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dispatch {
    /// A datagram that is whole: see [`super::decompress`].
    Datagram,
    /// The first piece of a datagram, with its headers.
    First {
        /// Bytes of the packet as it was before compression, at most 2047.
        datagram_size: u16,
        /// Which datagram of this link.
        tag: u16,
    },
    /// Another piece.
    Subsequent {
        /// As in the first piece.
        datagram_size: u16,
        /// As in the first piece.
        tag: u16,
        /// Bytes of the packet as it was before this piece: a multiple of 8, at most 2040.
        offset: u16,
    },
}

/// A frame that carries no datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// There is not one byte.
    #[error("a frame without payload carries no datagram")]
    Empty,
    /// A fragment header is cut off.
    #[error("a fragment header of {octets} octets is cut off")]
    FragmentHeader {
        /// How many there are.
        octets: usize,
    },
    /// Not of 6LoWPAN (RFC 4944 section 5.1), or a header that is not understood here.
    #[error("dispatch {dispatch:#04x} is not understood")]
    Unknown {
        /// The first byte.
        dispatch: u8,
    },
}

/// Reads what a frame carries, and how many bytes of `payload` say so. What follows those is the
/// datagram or a piece of it; a whole datagram has none before it.
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

/// What stands before a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PieceKind {
    /// The datagram fits into one frame: nothing.
    Whole,
    /// FRAG1.
    First,
    /// FRAGN.
    Subsequent,
}

/// What one frame carries of a datagram.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// Which header it has.
    pub kind: PieceKind,
    /// Bytes of the packet as it was before this piece; a multiple of 8, and 0 for the first.
    pub offset: u16,
    /// Bytes of the packet as it was in this piece: those that its headers become, and the others.
    pub uncompressed_len: u16,
    /// Which bytes of the compressed datagram it carries.
    pub range: Range<usize>,
    /// Bytes of the packet as it was, for the header.
    datagram_size: u16,
}

impl Piece {
    /// Bytes of the fragment header: 0, 4 or 5.
    pub const fn header_len(&self) -> usize {
        match self.kind {
            PieceKind::Whole => 0,
            PieceKind::First => FIRST_FRAGMENT_HEADER_LEN,
            PieceKind::Subsequent => FRAGMENT_HEADER_LEN,
        }
    }

    /// Bytes of MAC payload: the fragment header and the piece.
    pub const fn frame_payload_len(&self) -> usize {
        self.header_len() + (self.range.end - self.range.start)
    }

    /// Appends the fragment header, which names the datagram `tag`; the bytes of [`Piece::range`]
    /// follow it.
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

/// Why a datagram cannot be cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The packet is longer than [`MAX_DATAGRAM`]: the layer above has to send smaller ones.
    #[error("a packet of {octets} octets is too long for fragments")]
    TooLong {
        /// Its length.
        octets: usize,
    },
    /// The headers do not fit into the first frame (RFC 6282 section 2), or a frame has no room for
    /// 8 bytes of the packet.
    #[error("frames with {room} octets of payload have no room for a datagram with {header_len} of headers")]
    Room {
        /// Payload length in bytes that a frame has.
        room: usize,
        /// Bytes of the compressed headers.
        header_len: usize,
    },
}

/// The pieces of a datagram in order.
#[derive(Clone, Debug)]
pub struct Split {
    /// Bytes of the datagram.
    len: usize,
    /// What compression has saved, in bytes.
    saved: usize,
    datagram_size: u16,
    /// Where the first piece ends in the datagram.
    first: usize,
    /// Bytes of every other piece but the last.
    piece: usize,
    /// Where the next piece begins in the datagram; `None` after the last.
    next: Option<usize>,
}

/// Says how a datagram is cut into frames with at most `room` bytes of MAC payload each.
///
/// What fits is one piece without a fragment header. Otherwise each piece takes as much as its
/// frame has room for, so that every piece but the last stands for a multiple of 8 bytes of the
/// packet as it was.
///
/// The lengths are those that [`super::compress`] returns, or what the caller adds up of
/// [`super::compressed_header_len`] and a payload.
pub fn split(datagram: &Compressed, room: usize) -> Result<Split, SplitError> {
    let &Compressed { header_len, len, uncompressed_len } = datagram;
    let no_room = SplitError::Room { room, header_len };
    if len <= room {
        // Nothing of a whole datagram is said that would have to fit into 11 bits.
        let datagram_size = uncompressed_len.min(usize::from(u16::MAX)) as u16;
        return Ok(Split { len, saved: 0, datagram_size, first: len, piece: len, next: Some(0) });
    }
    if uncompressed_len > MAX_DATAGRAM {
        return Err(SplitError::TooLong { octets: uncompressed_len });
    }
    // An uncompressed header costs its dispatch byte: then the datagram is the longer one.
    let saved = uncompressed_len.checked_sub(len).ok_or(no_room)?;
    let first = (room.saturating_sub(FIRST_FRAGMENT_HEADER_LEN) + saved) / 8 * 8;
    let first = first.checked_sub(saved).filter(|first| *first >= header_len && *first > 0).ok_or(no_room)?;
    let piece = room.saturating_sub(FRAGMENT_HEADER_LEN) / 8 * 8;
    if piece == 0 {
        return Err(no_room);
    }
    // Checked to be at most 2047.
    Ok(Split { len, saved, datagram_size: uncompressed_len as u16, first, piece, next: Some(0) })
}

/// As [`split`], with a first piece that stands for `first` bytes of the packet as it was, a
/// multiple of 8: what a node does that passes pieces on with another header than they came with
/// (RFC 8930 section 5), since the others keep their place.
///
/// # Errors
///
/// [`SplitError::Room`] also if the first piece does not fit, or does not hold the headers.
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
    // Checked to be at most 2047.
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
/// Those in the first two.
const SIZE: u16 = 0x7ff;
