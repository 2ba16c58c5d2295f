//! What the owner of a connection sees of it.

use core::net::IpAddr;

use crate::segment::AddressId;
use crate::tcp::{self, CloseReason};
use crate::time::Duration;

/// A subflow of one connection, in the order of opening. Never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SubflowId(pub u16);

impl SubflowId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A path, by the owner's numbering; the connection only hands it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PathId(pub u16);

/// What the owner knows of a path and the connection cannot measure. All may be unknown.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathFacts {
    /// Links of the path.
    pub hops: Option<u16>,
    /// Round-trip time expected before the first is measured (section VI of the paper).
    pub rtt: Option<Duration>,
    /// Time from the sending of one segment to that of the next at the bottleneck.
    pub service_time: Option<Duration>,
    /// Time that the payload of one segment takes on all links together, each at its own bit rate.
    pub payload_time: Option<Duration>,
    /// Probability that a segment is lost.
    pub loss: Option<f64>,
}

impl PathFacts {
    /// How long `segments` take over this path alone, as far as round trip and service time are
    /// known and nothing is lost: the first after half a round trip, the others behind it at the
    /// pace of the bottleneck, or in windows that double with each round trip, from ten (RFC 6928).
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

/// What the owner learns, in order. [`Event::Readable`] and [`Event::Writable`] are told once until
/// polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The first subflow is open; data flows.
    Established,
    /// The peer does not speak MPTCP, or something between does not let it: this is plain TCP on
    /// one subflow.
    FellBack,
    /// A further subflow is open.
    SubflowEstablished(SubflowId),
    /// A subflow is over; the connection lives while another does.
    SubflowClosed(SubflowId, CloseReason),
    /// There is something for `read`.
    Readable,
    /// There is room for `write` again.
    Writable,
    /// The peer has another address; its HMAC was right (RFC 8684 section 3.4.1).
    AddressAdded {
        /// Its number.
        id: AddressId,
        /// The address.
        address: IpAddr,
        /// Its port, if it is not that of the first subflow.
        port: Option<u16>,
    },
    /// An address of the peer is gone, and subflows to it are closed.
    AddressRemoved(AddressId),
    /// The peer wants this subflow to be a backup, or no longer (MP_PRIO).
    Priority(SubflowId, bool),
    /// The peer has sent DATA_FIN, and everything before it can be read.
    PeerClosed,
    /// The connection is over; nothing follows.
    Closed(CloseReason),
}

/// Why a subflow is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The peer has not yet shown that it speaks MPTCP, or has shown that it does not.
    #[error("the connection is not a multipath connection (yet)")]
    NotMultipath,
    /// The connection is closed or about to be.
    #[error("the connection is closing")]
    Closing,
    /// As many as allowed are open.
    #[error("no further subflow is allowed")]
    TooMany,
    /// The segment is no SYN with MP_JOIN.
    #[error("the segment is no SYN with MP_JOIN")]
    NotJoin,
    /// The token names another connection.
    #[error("the token is not that of this connection")]
    Token,
}

/// A connection's figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// The peer speaks MPTCP.
    pub multipath: bool,
    /// Subflows that carry data.
    pub subflows: u16,
    /// Bytes written and never sent.
    pub unsent: u64,
    /// Bytes sent and not acknowledged by DATA_ACK.
    pub in_flight: u64,
    /// Bytes in the send buffer: written and not acknowledged by DATA_ACK, or acknowledged there
    /// and kept for a subflow that has not heard of it.
    pub buffered: u64,
    /// Bytes that the send buffer takes at most.
    pub send_buffer: u32,
    /// Bytes that the peer allows beyond its DATA_ACK.
    pub peer_window: u64,
    /// Bytes that can be read.
    pub readable: u64,
    /// Bytes that have arrived out of order.
    pub out_of_order: u64,
    /// Bytes of ours that the peer has acknowledged by DATA_ACK.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes received that were there already: re-injected ones, and copies of the redundant
    /// scheduler.
    pub bytes_duplicate: u64,
    /// Segments' worth of data that was sent on a further subflow.
    pub reinjections: u64,
    /// Options and segments dropped: wrong HMAC or keys, impossible numbers, data without a
    /// mapping.
    pub dropped: u64,
}

/// A subflow's figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowInfo {
    /// Which.
    pub id: SubflowId,
    /// On which path.
    pub path: PathId,
    /// It carries data.
    pub ready: bool,
    /// To be used only while no other works.
    pub backup: bool,
    /// Bytes of data assigned to it, re-injected ones included.
    pub bytes_assigned: u64,
    /// As a TCP connection.
    pub tcp: tcp::Info,
}
