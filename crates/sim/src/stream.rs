//! What an application knows of a TCP connection.

use std::fmt;

use anabranch_core::tcp::CloseReason;

use crate::packet::NodeId;

/// A connection of one node. Stays valid until its [`StreamEvent::Closed`] has been handled; from
/// then on it names nothing, and never another connection.
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

/// What an application learns of a connection, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// A peer's connection to a port on which we listen is open.
    Accepted {
        /// The port.
        port: u16,
        /// The peer.
        peer: NodeId,
    },
    /// Our connection is open.
    Opened,
    /// There is something to read.
    Readable,
    /// Octets were acknowledged: there is room to write again, and windows have moved.
    Writable,
    /// The peer has finished; everything before can be read.
    PeerClosed,
    /// It is over. What has arrived in order can still be read while this event is handled.
    Closed(CloseReason),
}
