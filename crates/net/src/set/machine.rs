//! Properties of machines that the socket driver needs beyond the `Machine` trait of `core::set`.

use anabranch_core::set::{Gateway, Machine, Receiver, Relay, Sender, SenderId, StreamId, TransferId};
use anabranch_secure::{MAX_PLAIN, small};

/// Which streams stop reading while many bytes wait to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// Only the stream on which they wait: its input is answered on the same stream.
    Own,
    /// All streams: input of one stream is written to another.
    All,
}

/// A machine over sockets.
pub(super) trait OverSockets: Machine {
    /// See [`Held`].
    const HELD: Held;

    /// Plaintext bytes that the peer accepts in a record.
    fn record(&self) -> usize {
        MAX_PLAIN
    }

    /// The gateway to which a stream leads, if any.
    fn gateway_of(&self, _stream: StreamId) -> Option<&Gateway> {
        None
    }

    /// At a node: names the sender of the next request on a stream.
    fn introduce(&mut self, _stream: StreamId, _sender: SenderId) {}

    /// At a node: the current transfer, and the transfer that its owner is deciding about.
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
