//! RPL, the routing protocol for low-power networks (RFC 6550), as ICMPv6 messages, with an
//! extension that builds multiple paths.
//!
//! [`emit`] and [`parse`] convert between a [`Message`] and a whole ICMPv6 message: DIS, DIO, DAO
//! and DAO-ACK, with the options that this project uses. [`parse`] skips and counts other options.
//! It refuses secured messages and messages of later RFCs.
//!
//! Two options are specific to this project. [`PathTraversed`] lists the nodes that a DIO has
//! passed, and [`PathBuilt`] in a DAO announces a path that a node has built from such a list. They
//! implement the extension of section III of "MPTCP over heterogeneous wireless IoT networks",
//! which does not define an encoding. Their types are in the range that IANA has not assigned.

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

/// The link-local multicast address of all RPL nodes (RFC 6550 section 6).
pub const ALL_RPL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a);

/// A control message (RFC 6550 section 6).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// Solicits a DIO.
    Dis(Dis),
    /// Advertises the parameters needed to join a DODAG.
    Dio(Dio),
    /// Advertises destinations reachable through the sender.
    Dao(Dao),
    /// Acknowledges a DAO.
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
    /// DODAGVersionNumber: incremented by each global repair; wraps (section 7.2).
    pub version: u8,
    /// Rank of the sender, its distance from the root; 65535 is infinite (section 3.5).
    pub rank: u16,
    /// True if the DODAG satisfies the goal of the application.
    pub grounded: bool,
    /// Which downward routes are stored, and by which nodes.
    pub mode: ModeOfOperation,
    /// Preference of this root over others, 0 to 7 (most preferred).
    pub preference: u8,
    /// DTSN: incremented to request DAOs from children; wraps.
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
    /// K: asks the receiver for a DAO-ACK.
    pub ack_request: bool,
    /// DAOSequence, repeated in the DAO-ACK.
    pub sequence: u8,
    /// As in [`Dio::dodag`]; present only for a local instance.
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
    /// DAOSequence of the acknowledged DAO.
    pub sequence: u8,
    /// 0: accepted; 1 to 127: accepted, but the sender should find another parent; from 128:
    /// rejected.
    pub status: u8,
    /// As in [`Dao::dodag`].
    pub dodag: Option<Ipv6Addr>,
    /// Options in order.
    pub options: Vec<ControlOption>,
}

/// Support for downward routes, 0 to 7 (RFC 6550 section 6.3.1). A node may join as a leaf if it
/// does not support a mode, so every number is valid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModeOfOperation(pub u8);

impl ModeOfOperation {
    /// No downward routes.
    pub const NO_DOWNWARD_ROUTES: Self = Self(0);
    /// The root stores all downward routes and writes them into packets (source routing).
    pub const NON_STORING: Self = Self(1);
    /// Each node stores the routes to the nodes below it.
    pub const STORING: Self = Self(2);
    /// As [`Self::STORING`], and routes to multicast groups.
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
