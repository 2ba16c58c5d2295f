//! What can be pending.

use crate::packet::{LinkId, NodeId};

/// An application, by its index over the whole simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppId(pub(crate) u32);

/// A pending event. Whatever it means is looked up when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The head of a link's list arrives.
    Arrival {
        /// The link.
        link: LinkId,
        /// The link's generation when this was scheduled; another one makes it void.
        generation: u32,
    },
    /// A connection's time-out may be due.
    Connection {
        /// Its node.
        node: NodeId,
        /// Its slot in the node's table.
        slot: u32,
        /// The slot's generation.
        generation: u32,
    },
    /// An application starts.
    Start(AppId),
    /// An application's timer may be due.
    Timer(AppId),
    /// A fault of the plan takes place, by its index.
    Fault(u32),
    /// Routing has learned of changes.
    Converged,
}

const _: () = assert!(size_of::<Event>() <= 16, "an event is copied often");
