//! A cursor over a compressed datagram, and the decompression errors.

use core::fmt;

use crate::reader::Reader;

/// The field that made [`super::decompress`] refuse a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The dispatch is neither LOWPAN_IPHC nor that of an uncompressed IPv6 packet.
    Dispatch,
    /// LOWPAN_IPHC is truncated.
    Iphc,
    /// An address mode is reserved (RFC 6282 section 3.1.1).
    AddressMode,
    /// A context is unknown or, for a multicast address, has more than 64 bits.
    Context,
    /// An address is truncated.
    Address,
    /// LOWPAN_NHC announces an unsupported header.
    NextHeader,
    /// A compressed extension header is truncated, or one that cannot be padded is not a multiple
    /// of 8 bytes.
    Extension,
    /// A compressed UDP header is truncated.
    Udp,
    /// The UDP checksum is elided (RFC 6282 section 4.3.2), which only the upper layers may
    /// authorise.
    UdpChecksum,
    /// An uncompressed IPv6 header is truncated, or has a wrong version or length.
    Ipv6Header,
    /// The packet is longer than its fragments announced, or than an IPv6 packet can be.
    Length,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dispatch => "dispatch",
            Self::Iphc => "LOWPAN_IPHC",
            Self::AddressMode => "address mode",
            Self::Context => "context",
            Self::Address => "address",
            Self::NextHeader => "LOWPAN_NHC",
            Self::Extension => "compressed extension header",
            Self::Udp => "compressed UDP header",
            Self::UdpChecksum => "elided UDP checksum",
            Self::Ipv6Header => "IPv6 header",
            Self::Length => "length of the packet",
        })
    }
}

/// The bytes are not a valid datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset} of a 6LoWPAN datagram")]
pub struct DecompressError {
    /// The invalid or truncated field.
    pub field: Field,
    /// Number of bytes of the datagram read before the error.
    pub offset: usize,
}

/// The part of a datagram that has not been read.
pub(super) struct Input<'a>(Reader<'a>);

impl<'a> Input<'a> {
    pub(super) const fn new(datagram: &'a [u8]) -> Self {
        Self(Reader::new(datagram))
    }

    pub(super) const fn at(&self) -> usize {
        self.0.at()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.0.rest()
    }

    pub(super) const fn error(&self, field: Field) -> DecompressError {
        DecompressError { field, offset: self.at() }
    }

    pub(super) fn take<const N: usize>(&mut self, field: Field) -> Result<[u8; N], DecompressError> {
        self.0.take().ok_or(self.error(field))
    }

    pub(super) fn u8(&mut self, field: Field) -> Result<u8, DecompressError> {
        self.0.u8().ok_or(self.error(field))
    }

    pub(super) fn slice(&mut self, len: usize, field: Field) -> Result<&'a [u8], DecompressError> {
        self.0.slice(len).ok_or(self.error(field))
    }
}
