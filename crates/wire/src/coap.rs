//! Messages of CoAP over UDP (RFC 7252 section 3), with the options of block-wise transfers (RFC
//! 7959, RFC 9177).
//!
//! [`Message::encode`] and [`decode`] convert between a [`Message`] and the bytes of a datagram. An
//! option is a number and its bytes; [`Message::uint`] and [`Message::block`] read the values that
//! block-wise transfers need. [`missing`] is the payload with which a server requests blocks.

mod decode;
pub mod missing;

use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

pub use decode::{DecodeError, decode};

/// The UDP port of servers (RFC 7252 section 6.1).
pub const PORT: u16 = 5683;
/// Length of the fixed header in bytes.
pub const HEADER: usize = 4;
/// Length of the longest token in bytes (RFC 7252 section 3).
pub const MAX_TOKEN: usize = 8;
/// The content format application/missing-blocks+cbor-seq (RFC 9177 section 12.3).
pub const MISSING_BLOCKS: u32 = 272;
/// The byte between options and payload.
const MARKER: u8 = 0xff;

/// Type of a message (RFC 7252 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// CON: the receiver acknowledges the message.
    Confirmable,
    /// NON: the message is not acknowledged.
    NonConfirmable,
    /// ACK: acknowledges the confirmable message with the same message ID.
    Acknowledgement,
    /// RST: the message with the same message ID could not be processed.
    Reset,
}

impl Type {
    const ALL: [Self; 4] = [Self::Confirmable, Self::NonConfirmable, Self::Acknowledgement, Self::Reset];

    /// The number on the wire.
    const fn number(self) -> u8 {
        self as u8
    }
}

/// Code of a message: a method, a response code, or empty. Displayed as `c.dd` (RFC 7252 section
/// 3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(
    /// Class in the upper three bits, detail in the lower five.
    pub u8,
);

impl Code {
    /// 0.00: no request and no response.
    pub const EMPTY: Self = Self::new(0, 0);
    /// 0.01
    pub const GET: Self = Self::new(0, 1);
    /// 0.03
    pub const PUT: Self = Self::new(0, 3);
    /// 2.01: the resource was created.
    pub const CREATED: Self = Self::new(2, 1);
    /// 2.04: the resource was changed.
    pub const CHANGED: Self = Self::new(2, 4);
    /// 2.05: the payload is the resource.
    pub const CONTENT: Self = Self::new(2, 5);
    /// 2.31: the block was received, and more are expected (RFC 7959 section 2.9.1).
    pub const CONTINUE: Self = Self::new(2, 31);
    /// 4.00
    pub const BAD_REQUEST: Self = Self::new(4, 0);
    /// 4.02: a critical option was not understood.
    pub const BAD_OPTION: Self = Self::new(4, 2);
    /// 4.04
    pub const NOT_FOUND: Self = Self::new(4, 4);
    /// 4.05
    pub const METHOD_NOT_ALLOWED: Self = Self::new(4, 5);
    /// 4.08: blocks are missing (RFC 7959 section 2.9.2).
    pub const INCOMPLETE: Self = Self::new(4, 8);
    /// 4.13: the body or the block is too large (RFC 7959 section 2.9.3).
    pub const TOO_LARGE: Self = Self::new(4, 13);

    /// The code of a class (0 to 7) and a detail (0 to 31).
    pub const fn new(class: u8, detail: u8) -> Self {
        Self(class << 5 | detail & 31)
    }

    /// The class: 0 is a request, 2 success, 4 an error of the client, 5 one of the server.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Whether this is the code of a request.
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.0 != 0
    }

    /// Whether this is the code of a response.
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2 | 4 | 5)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.0 & 31)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Numbers of options.
pub mod option {
    /// Uri-Host (RFC 7252 section 5.10.1).
    pub const URI_HOST: u16 = 3;
    /// ETag: identifies a version of a resource (RFC 7252 section 5.10.6).
    pub const ETAG: u16 = 4;
    /// Uri-Port (RFC 7252 section 5.10.1).
    pub const URI_PORT: u16 = 7;
    /// Uri-Path: one segment of the path (RFC 7252 section 5.10.1).
    pub const URI_PATH: u16 = 11;
    /// Content-Format (RFC 7252 section 5.10.3).
    pub const CONTENT_FORMAT: u16 = 12;
    /// Uri-Query (RFC 7252 section 5.10.1).
    pub const URI_QUERY: u16 = 15;
    /// Accept (RFC 7252 section 5.10.4).
    pub const ACCEPT: u16 = 17;
    /// Q-Block1 (RFC 9177 section 4).
    pub const Q_BLOCK1: u16 = 19;
    /// Block2 (RFC 7959 section 2.1).
    pub const BLOCK2: u16 = 23;
    /// Block1 (RFC 7959 section 2.1).
    pub const BLOCK1: u16 = 27;
    /// Size2: length of the body of a response (RFC 7959 section 4).
    pub const SIZE2: u16 = 28;
    /// Q-Block2 (RFC 9177 section 4).
    pub const Q_BLOCK2: u16 = 31;
    /// Size1: length of the body of a request (RFC 7252 section 5.10.9).
    pub const SIZE1: u16 = 60;
    /// Request-Tag: tells bodies of requests apart (RFC 9175 section 3).
    pub const REQUEST_TAG: u16 = 292;

    /// Whether a receiver that does not understand the option must refuse the message (RFC 7252
    /// section 5.4.6).
    pub const fn is_critical(number: u16) -> bool {
        number & 1 == 1
    }
}

/// A token: at most [`MAX_TOKEN`] bytes that match a response to its request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Token {
    len: u8,
    octets: [u8; MAX_TOKEN],
}

impl Token {
    /// The token with these bytes; `None` if there are more than [`MAX_TOKEN`].
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut octets = [0; MAX_TOKEN];
        octets.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self { len: from.len() as u8, octets })
    }

    /// The bytes of the token.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// The value of Block1, Block2, Q-Block1 or Q-Block2 (RFC 7959 section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Block {
    /// NUM: number of the block, less than 2 to the power of 20.
    pub num: u32,
    /// M: whether more blocks follow.
    pub more: bool,
    /// SZX, 0 to 6: the size of a block is 16 bytes times 2 to the power of SZX.
    pub szx: u8,
}

impl Block {
    /// Number of different block numbers.
    pub const NUMBERS: u32 = 1 << 20;
    /// Largest SZX; 7 is reserved (RFC 7959 section 2.2).
    pub const MAX_SZX: u8 = 6;

    /// The SZX of a block size; `None` if it is no power of two from 16 to 1024.
    pub const fn szx_of(size: u16) -> Option<u8> {
        match size {
            16..=1024 if size.is_power_of_two() => Some(size.trailing_zeros() as u8 - 4),
            _ => None,
        }
    }

    /// Size of the block in bytes.
    pub const fn size(self) -> usize {
        16 << self.szx
    }

    /// Offset of the block in the body.
    pub const fn offset(self) -> usize {
        self.num as usize * self.size()
    }

    const fn value(self) -> u32 {
        self.num << 4 | (self.more as u32) << 3 | self.szx as u32
    }

    /// The block of an option value; `None` if SZX is 7, or the number has more than 20 bits.
    const fn of(value: u32) -> Option<Self> {
        let (num, more, szx) = (value >> 4, value & 8 != 0, (value & 7) as u8);
        if szx > Self::MAX_SZX || num >= Self::NUMBERS {
            return None;
        }
        Some(Self { num, more, szx })
    }
}

/// A CoAP message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Type of the message.
    pub kind: Type,
    /// Method or response code.
    pub code: Code,
    /// Message ID: matches an ACK or RST to its message, and detects duplicates.
    pub id: u16,
    /// Token of the request; empty in an empty message.
    pub token: Token,
    /// Numbers and values of the options, by ascending number; options of one number keep their
    /// order.
    options: Vec<(u16, Bytes)>,
    /// The payload. An empty payload and none are the same.
    pub payload: Bytes,
}

impl Message {
    /// A message without options and payload.
    pub const fn new(kind: Type, code: Code, id: u16, token: Token) -> Self {
        Self { kind, code, id, token, options: Vec::new(), payload: Bytes::new() }
    }

    /// An empty message: an ACK without a response, or an RST (RFC 7252 section 4.1).
    pub fn empty(kind: Type, id: u16) -> Self {
        Self::new(kind, Code::EMPTY, id, Token::default())
    }

    /// Numbers and values of the options, in the order of the wire.
    pub fn options(&self) -> &[(u16, Bytes)] {
        &self.options
    }

    /// Adds an option behind those with the same number.
    #[must_use]
    pub fn with(mut self, number: u16, value: impl Into<Bytes>) -> Self {
        let place = self.options.partition_point(|(other, _)| *other <= number);
        self.options.insert(place, (number, value.into()));
        self
    }

    /// Adds an option with an unsigned integer, in as few bytes as possible (RFC 7252 section 3.2).
    #[must_use]
    pub fn with_uint(self, number: u16, value: u32) -> Self {
        let octets = value.to_be_bytes();
        let zeros = value.leading_zeros() as usize / 8;
        self.with(number, Bytes::copy_from_slice(&octets[zeros..]))
    }

    /// Adds an option with the value of a block.
    #[must_use]
    pub fn with_block(self, number: u16, block: Block) -> Self {
        self.with_uint(number, block.value())
    }

    /// Sets the payload.
    #[must_use]
    pub fn with_payload(self, payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// Values of the options with this number.
    pub fn values(&self, number: u16) -> impl Iterator<Item = &Bytes> {
        self.options.iter().filter(move |(other, _)| *other == number).map(|(_, value)| value)
    }

    /// Value of the first option with this number as an unsigned integer; `None` if it is missing
    /// or needs more than 32 bits.
    pub fn uint(&self, number: u16) -> Option<u32> {
        uint(self.values(number).next()?)
    }

    /// The blocks of the options with this number; `None` stands for an invalid value.
    pub fn blocks(&self, number: u16) -> impl Iterator<Item = Option<Block>> {
        self.values(number).map(|value| Block::of(uint(value)?))
    }

    /// The block of the first option with this number; `None` if the option is missing or invalid.
    pub fn block(&self, number: u16) -> Option<Block> {
        self.blocks(number).next()?
    }

    /// Whether there is an option with this number.
    pub fn has(&self, number: u16) -> bool {
        self.values(number).next().is_some()
    }

    /// Appends the message to `out` as one datagram. Of an option value, at most 65,804 bytes are
    /// written, the longest value that the format has.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([0x40 | self.kind.number() << 4 | self.token.len, self.code.0]);
        out.extend(self.id.to_be_bytes());
        out.extend(self.token.octets());
        let mut last = 0;
        for (number, value) in &self.options {
            let value = &value[..value.len().min(usize::from(u16::MAX) + EXTENDED_TWO as usize)];
            let (delta, delta_more) = nibble(u32::from(number - last));
            let (len, len_more) = nibble(value.len() as u32);
            out.push(delta << 4 | len);
            out.extend(delta_more.octets());
            out.extend(len_more.octets());
            out.extend(value);
            last = *number;
        }
        if !self.payload.is_empty() {
            out.push(MARKER);
            out.extend(&self.payload);
        }
    }
}

/// Offset of a delta or length in one extended byte (RFC 7252 section 3.1).
const EXTENDED_ONE: u32 = 13;
/// Offset of a delta or length in two extended bytes.
const EXTENDED_TWO: u32 = 269;

/// The nibble of a delta or length, and its extended bytes.
fn nibble(value: u32) -> (u8, Token) {
    let extended = |octets: &[u8]| Token::new(octets).unwrap_or_default();
    match value {
        0..EXTENDED_ONE => (value as u8, Token::default()),
        EXTENDED_ONE..EXTENDED_TWO => (13, extended(&[(value - EXTENDED_ONE) as u8])),
        _ => (14, extended(&((value - EXTENDED_TWO) as u16).to_be_bytes())),
    }
}

/// An unsigned integer of an option; leading zeros are allowed (RFC 7252 section 3.2).
fn uint(octets: &[u8]) -> Option<u32> {
    octets.iter().try_fold(0u32, |value, octet| Some(value.checked_mul(256)? | u32::from(*octet)))
}
