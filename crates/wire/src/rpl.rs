//! RPL, the routing of low-power networks (RFC 6550), as ICMPv6 messages; and what builds paths on
//! top of it.
//!
//! [`emit`] and [`parse`] go between a [`Message`] and a whole ICMPv6 message: DIS, DIO, DAO and
//! DAO-ACK, with the options that this project reads. Others are skipped and counted. Secured
//! messages and those of later RFCs are refused.
//!
//! Two options are ours. A DIO says which nodes it has passed ([`PathTraversed`]), and a DAO which
//! path a node has built of that ([`PathBuilt`]): the extension of section III of "MPTCP over
//! heterogeneous wireless IoT networks", which gives no bytes. Their types are of the range that
//! IANA has not assigned.

mod emit;
mod metric;
mod option;
mod parse;

use alloc::vec::Vec;
use core::net::Ipv6Addr;

pub use emit::{EmitError, emit};
pub use metric::{Metric, emit_metrics, parse_metrics};
pub use option::{
    ControlOption, DodagConfiguration, MAX_PATH, NodeType, PathBuilt, PathTraversed, PrefixInformation,
    SolicitedInformation, Target, TransitInformation,
};
pub use parse::{Field, ParseError, Parsed, parse};

/// Whom a node that has no unicast address to send to speaks to: all RPL nodes of the link (RFC
/// 6550 section 6).
pub const ALL_RPL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a);

/// A control message (RFC 6550 section 6).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// Asks for a DIO.
    Dis(Dis),
    /// Says what is needed to join a DODAG.
    Dio(Dio),
    /// Says what can be reached through its sender.
    Dao(Dao),
    /// Answers a DAO.
    DaoAck(DaoAck),
}

/// DODAG Information Solicitation (RFC 6550 section 6.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Dis {
    /// Options in order.
    pub options: Vec<ControlOption>,
}

/// DODAG Information Object (RFC 6550 section 6.3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dio {
    /// RPLInstanceID: below 128 global, from 128 local to the DODAG's root (section 5.1).
    pub instance: u8,
    /// DODAGVersionNumber, which grows with each global repair and wraps (section 7.2).
    pub version: u8,
    /// How far the sender is from the root; 65535 is infinite (section 3.5).
    pub rank: u16,
    /// The DODAG meets the goal of its application.
    pub grounded: bool,
    /// Which routes are kept, and by whom.
    pub mode: ModeOfOperation,
    /// How much the root would like to be chosen, 0 to 7 (the most).
    pub preference: u8,
    /// DTSN: grows when the sender wants DAOs from its children, and wraps.
    pub dtsn: u8,
    /// An address of the root, which names the DODAG.
    pub dodag: Ipv6Addr,
    /// Options in order.
    pub options: Vec<ControlOption>,
}

/// Destination Advertisement Object (RFC 6550 section 6.4).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dao {
    /// As in [`Dio::instance`].
    pub instance: u8,
    /// K: the receiver is to answer with a DAO-ACK.
    pub ack_request: bool,
    /// DAOSequence, repeated in the DAO-ACK.
    pub sequence: u8,
    /// As in [`Dio::dodag`]; there only where the instance is local.
    pub dodag: Option<Ipv6Addr>,
    /// Options in order: a [`TransitInformation`] belongs to the [`Target`]s before it (section
    /// 6.7.8).
    pub options: Vec<ControlOption>,
}

/// DAO Acknowledgement (RFC 6550 section 6.5).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DaoAck {
    /// As in [`Dio::instance`].
    pub instance: u8,
    /// That of the DAO.
    pub sequence: u8,
    /// 0: accepted; 1 to 127: another parent had better be looked for; from 128: refused.
    pub status: u8,
    /// As in [`Dao::dodag`].
    pub dodag: Option<Ipv6Addr>,
    /// Options in order.
    pub options: Vec<ControlOption>,
}

/// Which routes downward there are, 0 to 7 (RFC 6550 section 6.3.1). A node that does not know a
/// mode may join as a leaf, so every number can be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModeOfOperation(pub u8);

impl ModeOfOperation {
    /// None.
    pub const NO_DOWNWARD_ROUTES: Self = Self(0);
    /// The root keeps them all and writes them into packets.
    pub const NON_STORING: Self = Self(1);
    /// Each node keeps those of the nodes below it.
    pub const STORING: Self = Self(2);
    /// The same, and those to multicast groups.
    pub const STORING_WITH_MULTICAST: Self = Self(3);
}

impl Message {
    /// Options in order.
    pub fn options(&self) -> &[ControlOption] {
        match self {
            Self::Dis(message) => &message.options,
            Self::Dio(message) => &message.options,
            Self::Dao(message) => &message.options,
            Self::DaoAck(message) => &message.options,
        }
    }
}

/// The code of an ICMPv6 message of type 155 (RFC 6550 section 6).
mod code {
    pub(super) const DIS: u8 = 0;
    pub(super) const DIO: u8 = 1;
    pub(super) const DAO: u8 = 2;
    pub(super) const DAO_ACK: u8 = 3;
}
