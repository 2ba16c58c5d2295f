//! Options of control messages (RFC 6550 section 6.7).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

/// Largest number of nodes in a path option: the length field has one byte, and one byte of the
/// content is not part of the path.
pub const MAX_PATH: usize = (u8::MAX as usize - 1) / 2;

/// A known option. Padding is not kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ControlOption {
    /// DAG Metric Container (section 6.7.4): objects of RFC 6551, at most 255 bytes. See
    /// [`super::parse_metrics`].
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
    /// Project-specific: the nodes that a DIO has passed.
    PathTraversed(PathTraversed),
    /// Project-specific: a path that a node has built.
    PathBuilt(PathBuilt),
}

/// Parameters that all nodes of a DODAG share (RFC 6550 section 6.7.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DodagConfiguration {
    /// A: nodes must authenticate themselves.
    pub authenticated: bool,
    /// PCS: number of bits used in the path control field, minus one; 0 to 7.
    pub path_control_size: u8,
    /// DIOIntervalDoublings: number of doublings of the Trickle interval.
    pub interval_doublings: u8,
    /// DIOIntervalMin: the shortest Trickle interval is 2 to this power, in milliseconds.
    pub interval_min: u8,
    /// DIORedundancyConstant: number of consistent DIOs heard that suppress a node's own DIO; 0
    /// disables suppression.
    pub redundancy: u8,
    /// MaxRankIncrease: largest increase of a node's rank within a DODAG version; 0 is unlimited.
    pub max_rank_increase: u16,
    /// MinHopRankIncrease: smallest increase of the rank per hop.
    pub min_hop_rank_increase: u16,
    /// OCP: the objective function that computes the rank (0 is that of RFC 6552).
    pub objective_code_point: u16,
    /// Default lifetime of a route in lifetime units; 255 is infinite.
    pub default_lifetime: u8,
    /// Length of a lifetime unit in seconds.
    pub lifetime_unit: u16,
}

/// A reachable destination (RFC 6550 section 6.7.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// Prefix length in bits, at most 128; 128 for a single node.
    pub prefix_len: u8,
    /// The prefix. Bits past its length are not sent and are read as zero.
    pub prefix: Ipv6Addr,
}

/// How a target is reached (RFC 6550 section 6.7.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransitInformation {
    /// E: the target is outside the RPL network.
    pub external: bool,
    /// Preference among the parents of the target (section 9.9); one bit each.
    pub path_control: u8,
    /// Incremented with each new statement about the target; wraps.
    pub path_sequence: u8,
    /// Lifetime in lifetime units; 0 withdraws the target, 255 is infinite.
    pub path_lifetime: u8,
    /// Address of the parent, in non-storing mode.
    pub parent: Option<Ipv6Addr>,
}

/// Selects the nodes that answer a DIS: those that match every predicate (RFC 6550 section 6.7.9).
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
    /// Prefix length in bits, at most 128.
    pub prefix_len: u8,
    /// L: addresses with this prefix are on the link.
    pub on_link: bool,
    /// A: nodes configure their addresses from the prefix.
    pub autonomous: bool,
    /// R: the prefix field holds a whole address of the sender.
    pub router_address: bool,
    /// Lifetime in seconds; 4294967295 is infinite.
    pub valid_lifetime: u32,
    /// Lifetime in seconds; 4294967295 is infinite.
    pub preferred_lifetime: u32,
    /// The prefix, or the address of the sender.
    pub prefix: Ipv6Addr,
}

/// Type of the node that sends a DIO (NT).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeType {
    /// The node has only IEEE 802.15.4 links.
    Ieee802154,
    /// The node also has another link, such as a cellular one.
    MultiLink,
    /// The node lies between the cellular network and the root.
    BaseStation,
}

/// The nodes that a DIO has passed, and the type of its sender. Type 0xf0: one byte of node type,
/// then two bytes for each node, big-endian.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathTraversed {
    /// Type of the sender.
    pub node_type: NodeType,
    /// Number of multi-link nodes on the path, at most 15. The sender counts, the root does not.
    /// Stored in the high bits of the byte of node type.
    pub multi_link: u8,
    /// Short addresses from the root to the sender, both included; at most [`MAX_PATH`].
    pub path: Vec<u16>,
}

/// A numbered path that a node has built, for the nodes on the path to store. Type 0xf1: one byte
/// of path number, then two bytes for each node, big-endian.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathBuilt {
    /// Path number, assigned by the node.
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
    /// The prefix with the bits past its length set to zero.
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
    /// Project-specific, not assigned by IANA.
    pub(in super::super) const PATH_TRAVERSED: u8 = 0xf0;
    /// Project-specific, not assigned by IANA.
    pub(in super::super) const PATH_BUILT: u8 = 0xf1;
}

/// Flag bits of an option.
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
