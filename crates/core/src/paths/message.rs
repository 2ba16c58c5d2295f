//! What routers say to each other.

use alloc::vec::Vec;

use crate::time::Duration;

/// A short address of IEEE 802.15.4, by which nodes are named.
pub type ShortAddress = u16;

/// Nodes from the one that speaks of the path to the root, both included.
pub type Path = Vec<ShortAddress>;

/// The path leads over that link, or through that node if it names one only.
pub(super) fn leads_over(path: &[ShortAddress], link: &[ShortAddress]) -> bool {
    path.windows(link.len().max(1)).any(|part| part == link)
}

/// The rank of a node that is no way to the root (RFC 6550 section 17).
pub const INFINITE_RANK: u16 = 0xffff;

/// NT of section III.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeType {
    /// One interface, IEEE 802.15.4: 0.
    Ieee802154,
    /// A cellular interface beside it, or the data centre: 1.
    MultiLink,
    /// A base station, which the paper's paths name but its DIOs have no number for: 2.
    BaseStation,
}

/// How good a link or a path is: metrics of RFC 6551.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics {
    /// For a packet without payload, waiting and channel access included; of a path the sum. T_e
    /// and STT of section VI.
    pub latency: Duration,
    /// Bytes per second on the wire; of a path the least.
    pub throughput: u32,
}

impl Metrics {
    /// Of a path without links.
    pub const NOWHERE: Self = Self { latency: Duration::ZERO, throughput: u32::MAX };

    /// Of a path with one more link.
    pub fn and(self, link: Self) -> Self {
        Self { latency: self.latency + link.latency, throughput: self.throughput.min(link.throughput) }
    }
}

/// A path that is offered to all neighbours. With [`INFINITE_RANK`] it withdraws: every path that
/// goes from the first node of `path` to the second, or, if there is one only, everything that this
/// node had stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dio {
    /// Of the sender, on this path.
    pub rank: u16,
    /// Of the sender.
    pub node_type: NodeType,
    /// Multi-link nodes on the path, the sender included, the root not.
    pub multi_link: u8,
    /// The path traversed, the sender first.
    pub path: Path,
    /// Of that path, if every node on it knows its link.
    pub metrics: Option<Metrics>,
    /// ETX of that path in units of 1/128 (RFC 6551 section 4.3.2), for
    /// [`super::Objective::Mrhof`].
    pub etx: Option<u16>,
}

/// A path that the nodes on it shall store, or forget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dao {
    /// Its number at the node that it belongs to, from 1.
    pub path_id: u8,
    /// DAOSequence (RFC 6550 section 6.4).
    pub sequence: u8,
    /// The lifetime is 0: a No-Path DAO (RFC 6550 section 6.4.3).
    pub withdrawn: bool,
    /// The node that it belongs to first.
    pub path: Path,
}

/// The root has stored a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DaoAck {
    /// The node that it belongs to.
    pub source: ShortAddress,
    /// The path's number.
    pub path_id: u8,
    /// That of the DAO.
    pub sequence: u8,
}

/// What a router wants sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// To all neighbours.
    Dio(Dio),
    /// To one.
    DioTo {
        /// The neighbour.
        to: ShortAddress,
        /// The message.
        dio: Dio,
    },
    /// Asks for DIOs (RFC 6550 section 6.2).
    Dis {
        /// A neighbour; `None` is all.
        to: Option<ShortAddress>,
    },
    /// To one.
    Dao {
        /// The neighbour.
        to: ShortAddress,
        /// The message.
        dao: Dao,
    },
    /// To one.
    DaoAck {
        /// The neighbour.
        to: ShortAddress,
        /// The message.
        ack: DaoAck,
    },
}
