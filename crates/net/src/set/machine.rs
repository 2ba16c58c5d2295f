//! What sockets need to know of a machine, beside what `core::set` has.

use anabranch_core::set::{Gateway, Machine, Receiver, Relay, Sender, SenderId, StreamId, TransferId};
use anabranch_secure::{MAX_PLAIN, small};

/// Which streams stop reading while much waits to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// That on which it waits: what is read there is answered there.
    Own,
    /// All: what is read on one is written on another.
    All,
}

/// A machine over sockets.
pub(super) trait OverSockets: Machine {
    /// See [`Held`].
    const HELD: Held;

    /// Bytes of plaintext that the peer has room for in a record.
    fn record(&self) -> usize {
        MAX_PLAIN
    }

    /// The gateway that a stream leads to, if it leads to one.
    fn gateway_of(&self, _stream: StreamId) -> Option<&Gateway> {
        None
    }

    /// At a node: the request that comes next on a stream is of this sender.
    fn introduce(&mut self, _stream: StreamId, _sender: SenderId) {}

    /// At a node: the present transfer, and the one that its owner is asked about.
    fn live(&self) -> [Option<TransferId>; 2] {
        [None; 2]
    }
}

impl OverSockets for Sender {
    const HELD: Held = Held::Own;

    fn record(&self) -> usize {
        small::record(self.node_buffer())
    }

    fn gateway_of(&self, stream: StreamId) -> Option<&Gateway> {
        Self::gateway_of(self, stream)
    }
}

impl OverSockets for Relay {
    const HELD: Held = Held::All;
}

impl OverSockets for Receiver {
    const HELD: Held = Held::Own;

    fn introduce(&mut self, stream: StreamId, sender: SenderId) {
        Self::introduce(self, stream, sender);
    }

    fn live(&self) -> [Option<TransferId>; 2] {
        [self.present(), self.asked()].map(|request| Some(request?.transfer))
    }
}
