//! A compressed datagram, read from the front, and what can be wrong with it.

use core::fmt;

use crate::reader::Reader;

/// Which field a datagram was refused for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// Neither LOWPAN_IPHC nor an uncompressed IPv6 packet.
    Dispatch,
    /// LOWPAN_IPHC is cut off.
    Iphc,
    /// An address mode that is reserved (RFC 6282 section 3.1.1).
    AddressMode,
    /// A context that is not known, or, for a multicast address, one of more than 64 bits.
    Context,
    /// An address is cut off.
    Address,
    /// LOWPAN_NHC of a header that is not understood.
    NextHeader,
    /// A compressed extension header is cut off, or one that cannot be padded is not a multiple of
    /// 8 bytes.
    Extension,
    /// A compressed UDP header is cut off.
    Udp,
    /// The UDP checksum is elided (RFC 6282 section 4.3.2), which only the layers above could
    /// allow.
    UdpChecksum,
    /// An IPv6 header that is not compressed is cut off, or has another version or another length.
    Ipv6Header,
    /// The packet is longer than its fragments said, or than an IPv6 packet can be.
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

/// Bytes that are not a datagram that is understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset} of a 6LoWPAN datagram")]
pub struct DecompressError {
    /// The field that is wrong or cut off.
    pub field: Field,
    /// Where it was met: bytes of the datagram that had been read.
    pub offset: usize,
}

/// What of a datagram has not been read.
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
