//! AODV, the routing on demand of ad hoc networks (RFC 3561), as the payload of UDP datagrams on
//! port [`PORT`].
//!
//! [`emit`] and [`parse`] go between a [`Message`] and the bytes of a datagram: RREQ, RREP, RERR
//! and RREP-ACK. A Hello is an RREP (section 6.9). Extensions are read from RREQ and RREP (section
//! 9); the one that is known is the Hello interval. Others are skipped and counted, unless their
//! type says that they may not be.

mod emit;
mod parse;

use alloc::vec::Vec;
use core::net::Ipv4Addr;

pub use emit::{EmitError, emit};
pub use parse::{Field, ParseError, Parsed, parse};

/// The UDP port of both ends (RFC 3561 section 6).
pub const PORT: u16 = 654;

/// A destination's sequence number. It wraps, so there is no order among all, only between two (RFC
/// 3561 section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// The one before it.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.wrapping_sub(1))
    }

    /// The difference as a signed number is greater than zero (RFC 3561 section 6.1).
    pub const fn is_newer_than(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// The newer of the two.
    #[must_use]
    pub const fn newer(self, other: Self) -> Self {
        if other.is_newer_than(self) { other } else { self }
    }
}

/// A control message (RFC 3561 section 5).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// Asks for a route.
    Request(RouteRequest),
    /// Gives one, or is a Hello.
    Reply(RouteReply),
    /// Says which destinations cannot be reached any more.
    Error(RouteError),
    /// Acknowledges a reply.
    ReplyAck,
}

/// RREQ (RFC 3561 section 5.1). The flags J and R belong to multicast, which this project has not;
/// they are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RouteRequest {
    /// J: reserved for multicast.
    pub join: bool,
    /// R: reserved for multicast.
    pub repair: bool,
    /// G: an intermediate node that answers tells the destination too (section 6.6.3).
    pub gratuitous: bool,
    /// D: only the destination may answer.
    pub destination_only: bool,
    /// Hops from the originator to the node that sends this.
    pub hop_count: u8,
    /// RREQ ID: names the request together with the originator's address.
    pub id: u32,
    /// Whom a route is wanted to.
    pub destination: Ipv4Addr,
    /// The newest that is known of the destination; `None` is U, unknown.
    pub destination_sequence: Option<SequenceNumber>,
    /// Who wants it.
    pub originator: Ipv4Addr,
    /// The originator's own.
    pub originator_sequence: SequenceNumber,
}

/// RREP (RFC 3561 section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RouteReply {
    /// R: reserved for multicast.
    pub repair: bool,
    /// A: whoever gets it sends an RREP-ACK.
    pub acknowledge: bool,
    /// The route is to all nodes with this many equal bits in front, 0 to 31; 0 is the one node
    /// (section 7).
    pub prefix_size: u8,
    /// Hops from the node that sends this to the destination.
    pub hop_count: u8,
    /// Whom the route leads to.
    pub destination: Ipv4Addr,
    /// The destination's.
    pub destination_sequence: SequenceNumber,
    /// Who asked for the route.
    pub originator: Ipv4Addr,
    /// How long the route is good, in milliseconds.
    pub lifetime: u32,
    /// How long it is from one Hello of the sender to the next, in milliseconds: an extension
    /// (section 9.1).
    pub hello_interval: Option<u32>,
}

/// RERR (RFC 3561 section 5.3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RouteError {
    /// N: the link was repaired, and the route shall not be deleted (section 6.12).
    pub no_delete: bool,
    /// Who cannot be reached, 1 to 255.
    pub unreachable: Vec<Unreachable>,
}

/// A destination that cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unreachable {
    /// Its address.
    pub destination: Ipv4Addr,
    /// Its sequence number, one more than that of the route that broke; 0 where none is known.
    pub sequence: SequenceNumber,
}

/// The first byte of a message (RFC 3561 section 10).
mod kind {
    pub(super) const REQUEST: u8 = 1;
    pub(super) const REPLY: u8 = 2;
    pub(super) const ERROR: u8 = 3;
    pub(super) const REPLY_ACK: u8 = 4;
}

/// The flags, all in the second byte.
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
    /// From here on an extension that is not understood may not be skipped.
    pub(super) const MANDATORY: u8 = 128;
}

/// The largest prefix size that five bits can say.
const MAX_PREFIX_SIZE: u8 = 31;
