//! Options of control messages (RFC 6550 section 6.7).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

/// The most nodes that a path in an option has: its length has one byte, and one byte is not of
/// the path.
pub const MAX_PATH: usize = (u8::MAX as usize - 1) / 2;

/// An option that is read. Padding is none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ControlOption {
    /// DAG Metric Container (section 6.7.4): objects of RFC 6551, for [`super::parse_metrics`]; at
    /// most 255 bytes.
    DagMetricContainer(Vec<u8>),
    /// DODAG Configuration.
    DodagConfiguration(DodagConfiguration),
    /// RPL Target.
    Target(Target),
    /// Transit Information.
    TransitInformation(TransitInformation),
    /// Solicited Information.
    SolicitedInformation(SolicitedInformation),
    /// Prefix Information.
    PrefixInformation(PrefixInformation),
    /// Ours: which nodes a DIO has passed.
    PathTraversed(PathTraversed),
    /// Ours: a path that a node has built.
    PathBuilt(PathBuilt),
}

/// What all nodes of a DODAG go by (RFC 6550 section 6.7.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DodagConfiguration {
    /// A: nodes have to authenticate themselves.
    pub authenticated: bool,
    /// PCS: bits of the path control field that are used, less one; 0 to 7.
    pub path_control_size: u8,
    /// DIOIntervalDoublings: how often the Trickle interval doubles.
    pub interval_doublings: u8,
    /// DIOIntervalMin: the shortest Trickle interval is two to this power, in milliseconds.
    pub interval_min: u8,
    /// DIORedundancyConstant: so many consistent DIOs heard suppress one's own; 0 never does.
    pub redundancy: u8,
    /// MaxRankIncrease: how much a node's rank may grow within a version; 0 is no limit.
    pub max_rank_increase: u16,
    /// MinHopRankIncrease: the least by which the rank grows from hop to hop.
    pub min_hop_rank_increase: u16,
    /// OCP: which objective function makes the rank (RFC 6552 is 0).
    pub objective_code_point: u16,
    /// How long a route lives, in lifetime units; 255 is forever.
    pub default_lifetime: u8,
    /// Seconds of a lifetime unit.
    pub lifetime_unit: u16,
}

/// What can be reached (RFC 6550 section 6.7.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// Bits of the prefix that count, at most 128; a node is a prefix of 128.
    pub prefix_len: u8,
    /// The prefix. What is past its length is not sent, and read as zero.
    pub prefix: Ipv6Addr,
}

/// How a target is reached (RFC 6550 section 6.7.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransitInformation {
    /// E: the target is not of the RPL network.
    pub external: bool,
    /// Which of its parents a node would rather be reached through (section 9.9); one bit each.
    pub path_control: u8,
    /// Grows with each new statement on the target, and wraps.
    pub path_sequence: u8,
    /// How long this holds, in lifetime units; 0 takes it back, 255 is forever.
    pub path_lifetime: u8,
    /// The parent, in non-storing mode.
    pub parent: Option<Ipv6Addr>,
}

/// Whom a DIS asks: those for whom every predicate holds (RFC 6550 section 6.7.9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SolicitedInformation {
    /// I: nodes of this instance.
    pub instance: Option<u8>,
    /// D: nodes of this DODAG.
    pub dodag: Option<Ipv6Addr>,
    /// V: nodes of this version.
    pub version: Option<u8>,
}

/// A prefix for the addresses of nodes (RFC 6550 section 6.7.10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrefixInformation {
    /// Bits of the prefix that count, at most 128.
    pub prefix_len: u8,
    /// L: addresses with this prefix are on the link.
    pub on_link: bool,
    /// A: nodes make their addresses of it.
    pub autonomous: bool,
    /// R: the prefix is a whole address of the sender.
    pub router_address: bool,
    /// Seconds; 4294967295 is forever.
    pub valid_lifetime: u32,
    /// Seconds; 4294967295 is forever.
    pub preferred_lifetime: u32,
    /// The prefix, or the sender's address.
    pub prefix: Ipv6Addr,
}

/// What kind of node sends a DIO (NT).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeType {
    /// It has no link but IEEE 802.15.4.
    Ieee802154,
    /// It has another one too, as to a cellular network.
    MultiLink,
    /// It is between the cellular network and the root.
    BaseStation,
}

/// Which nodes a DIO has passed, and what its sender is. Type 0xf0; a byte of node type, then two
/// bytes for each node, big-endian.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathTraversed {
    /// Of the sender.
    pub node_type: NodeType,
    /// Multi-link nodes on the path, the sender included, the root not; at most 15. High bits of
    /// the same byte.
    pub multi_link: u8,
    /// Short addresses from the root to the sender, both included; at most [`MAX_PATH`].
    pub path: Vec<u16>,
}

/// A path that a node has built and numbered, for those on it to keep. Type 0xf1; a byte of path
/// number, then two bytes for each node, big-endian.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathBuilt {
    /// The node's number for the path.
    pub id: u8,
    /// Short addresses from the node to the root, both included; at most [`MAX_PATH`].
    pub path: Vec<u16>,
}

impl NodeType {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Ieee802154 => 0,
            Self::MultiLink => 1,
            Self::BaseStation => 2,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Ieee802154),
            1 => Some(Self::MultiLink),
            2 => Some(Self::BaseStation),
            _ => None,
        }
    }
}

impl Target {
    /// The prefix with zeros past its length.
    pub(super) const fn masked(&self) -> Ipv6Addr {
        let past = match u128::MAX.checked_shr(self.prefix_len as u32) {
            Some(past) => past,
            None => 0,
        };
        Ipv6Addr::from_bits(self.prefix.to_bits() & !past)
    }
}

/// The types of options (RFC 6550 section 6.7.1, and the registry of IANA, "RPL Control Message
/// Options").
pub(super) mod kind {
    pub(in super::super) const PAD1: u8 = 0;
    pub(in super::super) const PAD_N: u8 = 1;
    pub(in super::super) const DAG_METRIC_CONTAINER: u8 = 2;
    pub(in super::super) const DODAG_CONFIGURATION: u8 = 4;
    pub(in super::super) const TARGET: u8 = 5;
    pub(in super::super) const TRANSIT_INFORMATION: u8 = 6;
    pub(in super::super) const SOLICITED_INFORMATION: u8 = 7;
    pub(in super::super) const PREFIX_INFORMATION: u8 = 8;
    /// Ours: not assigned.
    pub(in super::super) const PATH_TRAVERSED: u8 = 0xf0;
    /// Ours: not assigned.
    pub(in super::super) const PATH_BUILT: u8 = 0xf1;
}

/// Bits in the byte of flags of an option.
pub(super) mod flag {
    /// DODAG Configuration: A. The low three bits are PCS.
    pub(in super::super) const AUTHENTICATED: u8 = 1 << 3;
    pub(in super::super) const PATH_CONTROL_SIZE: u8 = 7;
    /// Transit Information: E.
    pub(in super::super) const EXTERNAL: u8 = 1 << 7;
    /// Solicited Information: V, I, D.
    pub(in super::super) const VERSION: u8 = 1 << 7;
    pub(in super::super) const INSTANCE: u8 = 1 << 6;
    pub(in super::super) const DODAG: u8 = 1 << 5;
    /// Prefix Information: L, A, R.
    pub(in super::super) const ON_LINK: u8 = 1 << 7;
    pub(in super::super) const AUTONOMOUS: u8 = 1 << 6;
    pub(in super::super) const ROUTER_ADDRESS: u8 = 1 << 5;
}
