//! An application's view of a TCP connection.

use std::fmt;

use anabranch_core::tcp::CloseReason;

use crate::packet::NodeId;

/// A connection of one node. It is valid until its [`StreamEvent::Closed`] has been handled. From
/// then on it refers to nothing, and never to another connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl fmt::Debug for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}.{}", self.slot, self.generation)
    }
}

/// An event of a connection. Events are delivered in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// A connection of a peer to a listening port has been established.
    Accepted {
        /// The local port.
        port: u16,
        /// The peer.
        peer: NodeId,
    },
    /// A connection of this application has been established.
    Opened,
    /// There is data to read.
    Readable,
    /// Data was acknowledged: there may be room to write, and windows have changed.
    Writable,
    /// The peer has closed its sending direction; all data before can be read.
    PeerClosed,
    /// The connection is over. Data that has arrived in order can still be read while this event is
    /// handled.
    Closed(CloseReason),
}
