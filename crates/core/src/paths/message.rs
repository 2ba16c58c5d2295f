//! Messages between routers.

use alloc::vec::Vec;

use crate::time::Duration;

/// A short address of IEEE 802.15.4, which identifies a node.
pub type ShortAddress = u16;

/// The nodes of a path from the announcing node to the root, both included.
pub type Path = Vec<ShortAddress>;

/// Whether the path contains the link, or the node if `link` has one node only.
pub(super) fn leads_over(path: &[ShortAddress], link: &[ShortAddress]) -> bool {
    path.windows(link.len().max(1)).any(|part| part == link)
}

/// The rank of a node that offers no path to the root (RFC 6550 section 17).
pub const INFINITE_RANK: u16 = 0xffff;

/// Node type: NT of section III.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeType {
    /// One IEEE 802.15.4 interface: 0.
    Ieee802154,
    /// A node with an additional cellular interface, or the data centre: 1.
    MultiLink,
    /// A base station: 2. The paper's paths contain base stations, but its DIOs define no number
    /// for them.
    BaseStation,
}

/// Quality of a link or a path: metrics of RFC 6551.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics {
    /// Latency of a packet without payload, including queueing and channel access; for a path the
    /// sum. T_e and STT of section VI.
    pub latency: Duration,
    /// Throughput in bytes per second on the link; for a path the minimum.
    pub throughput: u32,
}

impl Metrics {
    /// The metrics of a path without links.
    pub const NOWHERE: Self = Self { latency: Duration::ZERO, throughput: u32::MAX };

    /// Returns the metrics of the path extended by one link.
    pub fn and(self, link: Self) -> Self {
        Self { latency: self.latency + link.latency, throughput: self.throughput.min(link.throughput) }
    }
}

/// A path that a node offers to its neighbours. With [`INFINITE_RANK`] it withdraws paths. These
/// are all paths from the first node of `path` to the second. If `path` has one node only, they are
/// all paths through that node, which has lost its routes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dio {
    /// The sender's rank on this path.
    pub rank: u16,
    /// The sender's type.
    pub node_type: NodeType,
    /// Number of multi-link nodes on the path, including the sender, without the root.
    pub multi_link: u8,
    /// The nodes of the path, the sender first.
    pub path: Path,
    /// Metrics of the path, if every node on it knows those of its link.
    pub metrics: Option<Metrics>,
    /// ETX of the path in units of 1/128 (RFC 6551 section 4.3.2), for [`super::Objective::Mrhof`].
    pub etx: Option<u16>,
}

/// A request to store or delete a path at the nodes on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dao {
    /// The number of the path at its owner, from 1.
    pub path_id: u8,
    /// DAOSequence (RFC 6550 section 6.4).
    pub sequence: u8,
    /// Whether the lifetime is 0, as in a No-Path DAO (RFC 6550 section 6.4.3).
    pub withdrawn: bool,
    /// The nodes of the path, its owner first.
    pub path: Path,
}

/// The root's confirmation that it has stored a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DaoAck {
    /// The owner of the path.
    pub source: ShortAddress,
    /// The number of the path.
    pub path_id: u8,
    /// The sequence number of the DAO.
    pub sequence: u8,
}

/// A message for the owner to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Sends a DIO to all neighbours.
    Dio(Dio),
    /// Sends a DIO to one neighbour.
    DioTo {
        /// The neighbour.
        to: ShortAddress,
        /// The message.
        dio: Dio,
    },
    /// Requests DIOs (RFC 6550 section 6.2).
    Dis {
        /// The neighbour; `None` means all.
        to: Option<ShortAddress>,
    },
    /// Sends a DAO to a neighbour.
    Dao {
        /// The neighbour.
        to: ShortAddress,
        /// The message.
        dao: Dao,
    },
    /// Sends a DAO-ACK to a neighbour.
    DaoAck {
        /// The neighbour.
        to: ShortAddress,
        /// The message.
        ack: DaoAck,
    },
}
