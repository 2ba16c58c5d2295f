//! Public types of a connection: ids, path facts, events, errors, statistics.

use core::net::IpAddr;

use crate::segment::{AddressId, MpTcpRst};
use crate::tcp::{self, CloseReason};
use crate::time::Duration;

/// Id of a subflow within its connection, in the order of opening. From the 65th subflow on, the id
/// of a closed one may be used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SubflowId(pub u16);

impl SubflowId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Id of a path, assigned by the owner. The connection only returns it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PathId(pub u16);

/// Properties of a path that the owner knows and the connection cannot measure. Each may be
/// unknown.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathFacts {
    /// Number of links.
    pub hops: Option<u16>,
    /// Round-trip time expected before the first is measured (section VI of the paper).
    pub rtt: Option<Duration>,
    /// Interval between consecutive segments at the bottleneck.
    pub service_time: Option<Duration>,
    /// Total transmission time of a segment's payload on all links, each at its own bit rate.
    pub payload_time: Option<Duration>,
    /// Probability that a segment is lost.
    pub loss: Option<f64>,
}

impl PathFacts {
    /// Time to deliver `segments` over this path alone without losses; `None` if round-trip time or
    /// service time is unknown. The first segment arrives after half a round trip. The others
    /// follow at the rate of the bottleneck, or in windows that start at ten (RFC 6928) and double
    /// with each round trip.
    pub fn delivery_time(&self, segments: u64) -> Option<Duration> {
        let (rtt, service) = (self.rtt?, self.service_time?);
        let (mut left, mut window, mut time) = (segments, 10, rtt / 2);
        while left > window && service * window < rtt {
            time += rtt;
            left -= window;
            window *= 2;
        }
        Some(time + service * left)
    }
}

/// An event for the owner, in the order of reporting. [`Event::Readable`] and [`Event::Writable`]
/// are reported once until polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The first subflow is open; data flows.
    Established,
    /// The peer does not support MPTCP, or a middlebox prevents it: the connection continues as
    /// plain TCP on one subflow.
    FellBack,
    /// A further subflow is open.
    SubflowEstablished(SubflowId),
    /// A subflow is closed. The connection stays open while another subflow is open.
    SubflowClosed(SubflowId, CloseReason),
    /// `read` has data.
    Readable,
    /// `write` has room.
    Writable,
    /// The peer has announced another address, with a valid HMAC (RFC 8684 section 3.4.1).
    AddressAdded {
        /// Address id.
        id: AddressId,
        /// The address.
        address: IpAddr,
        /// Port, if it differs from that of the first subflow.
        port: Option<u16>,
    },
    /// The peer has withdrawn an address, and the subflows to it are closed.
    AddressRemoved(AddressId),
    /// The peer has set or cleared the backup flag of a subflow (MP_PRIO).
    Priority(SubflowId, bool),
    /// The peer has sent DATA_FIN, and everything before it can be read.
    PeerClosed,
    /// The connection is closed; no event follows.
    Closed(CloseReason),
}

impl Event {
    /// Whether this event makes an earlier one obsolete: the same address, or the same priority.
    pub(crate) fn replaces(&self, earlier: &Self) -> bool {
        let address = |event: &Self| match event {
            Self::AddressAdded { id, .. } | Self::AddressRemoved(id) => Some(*id),
            _ => None,
        };
        match (self, earlier) {
            (Self::Priority(subflow, _), Self::Priority(other, _)) => subflow == other,
            _ => address(self).is_some_and(|id| address(earlier) == Some(id)),
        }
    }
}

/// Why a subflow cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The peer has not confirmed MPTCP yet, or does not support it.
    #[error("the connection is not a multipath connection (yet)")]
    NotMultipath,
    /// The connection is closed or closing.
    #[error("the connection is closing")]
    Closing,
    /// The limit of open subflows is reached.
    #[error("no further subflow is allowed")]
    TooMany,
    /// The segment is no SYN with MP_JOIN.
    #[error("the segment is no SYN with MP_JOIN")]
    NotJoin,
    /// The token belongs to another connection.
    #[error("the token is not that of this connection")]
    Token,
}

/// Statistics of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// Whether the peer supports MPTCP.
    pub multipath: bool,
    /// Number of subflows that carry data.
    pub subflows: u16,
    /// Bytes written and not yet sent.
    pub unsent: u64,
    /// Bytes sent and not acknowledged by DATA_ACK.
    pub in_flight: u64,
    /// Bytes in the send buffer: written and not acknowledged by DATA_ACK, or acknowledged by it
    /// but still kept by a subflow that has not received its own acknowledgement.
    pub buffered: u64,
    /// Size of the send buffer in bytes.
    pub send_buffer: u32,
    /// Bytes that the peer's window allows beyond its DATA_ACK.
    pub peer_window: u64,
    /// Bytes that can be read.
    pub readable: u64,
    /// Bytes that have arrived out of order.
    pub out_of_order: u64,
    /// Bytes that the peer has acknowledged by DATA_ACK.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes received more than once: re-injected ones, and copies of the redundant scheduler.
    pub bytes_duplicate: u64,
    /// Number of chunks that were sent again on another subflow.
    pub reinjections: u64,
    /// Options and segments dropped: wrong HMAC or keys, impossible numbers, data without a
    /// mapping.
    pub dropped: u64,
}

/// Statistics of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowInfo {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Path of the subflow.
    pub path: PathId,
    /// Whether the subflow carries data.
    pub ready: bool,
    /// Whether the subflow is a backup, used only while no other works: one of both ends has
    /// declared it.
    pub backup: bool,
    /// Whether this end has declared it.
    pub backup_here: bool,
    /// Why the peer has reset the subflow, if it said so (MP_TCPRST, RFC 8684 section 3.6).
    pub reset: Option<MpTcpRst>,
    /// Bytes of data assigned to the subflow, re-injected ones included.
    pub bytes_assigned: u64,
    /// Statistics of its TCP connection.
    pub tcp: tcp::Info,
}
