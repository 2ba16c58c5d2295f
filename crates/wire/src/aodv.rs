//! Messages of AODV, the on-demand routing protocol for ad hoc networks (RFC 3561), as payloads of
//! UDP datagrams on port [`PORT`].
//!
//! [`emit`] and [`parse`] convert between a [`Message`] and the bytes of a datagram: RREQ, RREP,
//! RERR and RREP-ACK. A Hello message is an RREP (section 6.9). [`parse`] reads the extensions of
//! RREQ and RREP (section 9) and understands one of them, the Hello interval. It skips and counts
//! other extensions, unless their type forbids skipping; then it refuses the message.

mod emit;
mod parse;

use alloc::vec::Vec;
use core::net::Ipv4Addr;

pub use emit::{EmitError, emit};
pub use parse::{Field, ParseError, Parsed, parse};

/// The UDP port of both ends (RFC 3561 section 6).
pub const PORT: u16 = 654;

/// The sequence number of a destination. Sequence numbers wrap, so they have no total order; only
/// two of them can be compared (RFC 3561 section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// The next sequence number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// The previous sequence number.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.wrapping_sub(1))
    }

    /// True if the difference, read as a signed number, is greater than zero (RFC 3561 section
    /// 6.1).
    pub const fn is_newer_than(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// The newer of the two numbers.
    #[must_use]
    pub const fn newer(self, other: Self) -> Self {
        if other.is_newer_than(self) { other } else { self }
    }
}

/// A control message (RFC 3561 section 5).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// RREQ: requests a route.
    Request(RouteRequest),
    /// RREP: announces a route, or is a Hello.
    Reply(RouteReply),
    /// RERR: lists destinations that became unreachable.
    Error(RouteError),
    /// RREP-ACK: acknowledges an RREP.
    ReplyAck,
}

/// RREQ (RFC 3561 section 5.1). The multicast flags J and R are kept, but this project does not
/// route multicast.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RouteRequest {
    /// J: reserved for multicast.
    pub join: bool,
    /// R: reserved for multicast.
    pub repair: bool,
    /// G: an intermediate node that answers also informs the destination (section 6.6.3).
    pub gratuitous: bool,
    /// D: only the destination may answer.
    pub destination_only: bool,
    /// Hops from the originator to the node that sends this copy.
    pub hop_count: u8,
    /// RREQ ID: identifies the request together with the originator's address.
    pub id: u32,
    /// Destination of the requested route.
    pub destination: Ipv4Addr,
    /// The newest sequence number known for the destination; `None` sets U (unknown).
    pub destination_sequence: Option<SequenceNumber>,
    /// Node that requests the route.
    pub originator: Ipv4Addr,
    /// The originator's own sequence number.
    pub originator_sequence: SequenceNumber,
}

/// RREP (RFC 3561 section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RouteReply {
    /// R: reserved for multicast.
    pub repair: bool,
    /// A: the receiver answers with an RREP-ACK.
    pub acknowledge: bool,
    /// Prefix length of a route to a subnet, 0 to 31 bits; 0 means a route to one host (section 7).
    pub prefix_size: u8,
    /// Hops from the node that sends this copy to the destination.
    pub hop_count: u8,
    /// Destination of the route.
    pub destination: Ipv4Addr,
    /// The destination's sequence number.
    pub destination_sequence: SequenceNumber,
    /// Node that requested the route.
    pub originator: Ipv4Addr,
    /// Lifetime of the route in milliseconds.
    pub lifetime: u32,
    /// Interval between Hello messages of the sender, in milliseconds: an extension (section 9.1).
    pub hello_interval: Option<u32>,
}

/// RERR (RFC 3561 section 5.3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RouteError {
    /// N: the link was repaired, so the receiver must not delete the route (section 6.12).
    pub no_delete: bool,
    /// The unreachable destinations, 1 to 255.
    pub unreachable: Vec<Unreachable>,
}

/// One destination that became unreachable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unreachable {
    /// Address of the destination.
    pub destination: Ipv4Addr,
    /// Sequence number of the destination: that of the broken route plus one; 0 if none is known.
    pub sequence: SequenceNumber,
}

/// Message types, in the first byte (RFC 3561 section 10).
mod kind {
    pub(super) const REQUEST: u8 = 1;
    pub(super) const REPLY: u8 = 2;
    pub(super) const ERROR: u8 = 3;
    pub(super) const REPLY_ACK: u8 = 4;
}

/// Flags, all in the second byte.
mod flag {
    pub(super) const REQUEST_JOIN: u8 = 0x80;
    pub(super) const REQUEST_REPAIR: u8 = 0x40;
    pub(super) const REQUEST_GRATUITOUS: u8 = 0x20;
    pub(super) const REQUEST_DESTINATION_ONLY: u8 = 0x10;
    pub(super) const REQUEST_UNKNOWN_SEQUENCE: u8 = 0x08;
    pub(super) const REPLY_REPAIR: u8 = 0x80;
    pub(super) const REPLY_ACKNOWLEDGE: u8 = 0x40;
    pub(super) const ERROR_NO_DELETE: u8 = 0x80;
}

/// Extensions (RFC 3561 section 9).
mod extension {
    /// Section 9.1.
    pub(super) const HELLO_INTERVAL: u8 = 1;
    /// Extensions of this type and above must not be skipped if they are not understood.
    pub(super) const MANDATORY: u8 = 128;
}

/// Largest prefix size that fits into the five-bit field.
const MAX_PREFIX_SIZE: u8 = 31;
