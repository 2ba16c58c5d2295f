//! ICMPv6 (RFC 4443): type, code and checksum. The body is opaque to this module.
//!
//! [`crate::rpl`] reads the body of type 155.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use core::ops::Range;

use smoltcp::wire::Icmpv6Packet;

/// Bytes before the body: type, code and checksum (RFC 4443 section 2.1).
pub const HEADER_LEN: usize = 4;

/// The message type (IANA registry "ICMPv6 type numbers").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kind(pub u8);

impl Kind {
    /// Destination Unreachable (RFC 4443 section 3.1).
    pub const DESTINATION_UNREACHABLE: Self = Self(1);
    /// Packet Too Big (RFC 4443 section 3.2).
    pub const PACKET_TOO_BIG: Self = Self(2);
    /// Time Exceeded (RFC 4443 section 3.3).
    pub const TIME_EXCEEDED: Self = Self(3);
    /// Parameter Problem (RFC 4443 section 3.4).
    pub const PARAMETER_PROBLEM: Self = Self(4);
    /// Echo Request (RFC 4443 section 4.1).
    pub const ECHO_REQUEST: Self = Self(128);
    /// Echo Reply (RFC 4443 section 4.2).
    pub const ECHO_REPLY: Self = Self(129);
    /// Redirect (RFC 4861 section 4.5).
    pub const REDIRECT: Self = Self(137);
    /// A control message of RPL (RFC 6550 section 6).
    pub const RPL: Self = Self(155);

    /// Whether it is an error message, and not an informational one (RFC 4443 section 2.1).
    pub const fn is_error(self) -> bool {
        self.0 < 128
    }
}

/// The header without the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// Message type.
    pub kind: Kind,
    /// Message code, whose meaning depends on the type.
    pub code: u8,
}

/// The field that made [`parse`] refuse a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The message is shorter than the 4-byte header.
    Header,
    /// The checksum over pseudo-header and message is wrong (RFC 4443 section 2.3).
    Checksum,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "ICMPv6 header",
            Self::Checksum => "ICMPv6 checksum",
        })
    }
}

/// The bytes are not a valid ICMPv6 message between these addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset}")]
pub struct ParseError {
    /// The invalid or truncated field.
    pub field: Field,
    /// Offset of that field in bytes.
    pub offset: usize,
}

/// Appends the message from `src` to `dst` to `out` as the payload of an IPv6 packet. The caller
/// ensures that `body` fits into one packet.
pub fn emit(header: &Header, body: &[u8], [src, dst]: [Ipv6Addr; 2], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[header.kind.0, header.code, 0, 0]);
    out.extend_from_slice(body);
    Icmpv6Packet::new_unchecked(&mut out[start..]).fill_checksum(&src, &dst);
}

/// Parses the whole payload of a packet from `src` to `dst`. Returns the header and the range of
/// the body in `octets`.
pub fn parse(octets: &[u8], [src, dst]: [Ipv6Addr; 2]) -> Result<(Header, Range<usize>), ParseError> {
    let &[kind, code, _, _, ..] = octets else {
        return Err(ParseError { field: Field::Header, offset: 0 });
    };
    if !Icmpv6Packet::new_unchecked(octets).verify_checksum(&src, &dst) {
        return Err(ParseError { field: Field::Checksum, offset: 2 });
    }
    Ok((Header { kind: Kind(kind), code }, HEADER_LEN..octets.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [Ipv6Addr; 2] =
        [Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a)];
    const DIS: Header = Header { kind: Kind::RPL, code: 0 };

    /// The sum, by hand: fe80 + 1 + ff02 + 1a + 6 + 58 + 9b00 is 298dd, folded 98df.
    #[test]
    fn the_checksum_covers_the_pseudo_header() {
        let mut out = Vec::new();
        emit(&DIS, &[0, 0], ENDS, &mut out);
        assert_eq!(out, [155, 0, 0x67, 0x20, 0, 0]);
        assert_eq!(parse(&out, ENDS), Ok((DIS, 4..6)));
        let [src, dst] = ENDS;
        assert!(parse(&out, [dst, src]).is_ok(), "a sum has no order");
        let error = ParseError { field: Field::Checksum, offset: 2 };
        assert_eq!(parse(&out, [src, src]), Err(error));
        assert_eq!(parse(&out[..5], ENDS), Err(error));
        assert_eq!(parse(&out[..3], ENDS).unwrap_err().field, Field::Header);
    }
}
