//! What a sink tells its owner.

use anabranch_wire::rdca::{Range, Seq};
use bytes::Bytes;

/// A sender, as the sink's owner names it: an address's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerId(pub u64);

/// How a stream ended at the sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// The sender has closed it, and every packet was delivered or reported as gone.
    Complete,
    /// The sender has given it up.
    Reset,
    /// The sender began anew: it has restarted, or took this sink for restarted.
    Replaced,
    /// The sender was silent for too long ([`SinkConfig::idle`](crate::rdca::SinkConfig::idle)).
    Idle,
    /// The owner has given it up ([`Sink::abort`](crate::rdca::Sink::abort)).
    Aborted,
}

/// What the sink tells its owner, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SinkEvent {
    /// A stream begins; its first packet will be `first`.
    Opened {
        /// From whom.
        peer: PeerId,
        /// The first packet.
        first: Seq,
    },
    /// What the application wrote next, once all of it is there. Between two of one stream no
    /// packet is left out but those of [`SinkEvent::Gone`].
    Packet {
        /// From whom.
        peer: PeerId,
        /// The number of its packet, or of the first that it was cut into.
        seq: Seq,
        /// What the application wrote.
        payload: Bytes,
    },
    /// These packets are lost: the sender does not retain them any more, and tells its own
    /// application the same; or they are pieces of data of which another is lost.
    Gone {
        /// From whom.
        peer: PeerId,
        /// Which.
        range: Range,
    },
    /// The stream is over.
    Ended {
        /// From whom.
        peer: PeerId,
        /// How.
        end: StreamEnd,
        /// The packet that would have been next. What was held beyond is thrown away.
        next: Seq,
    },
}

/// What a sink has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SinkCounters {
    /// Datagrams that cannot be read.
    pub malformed: u64,
    /// Messages that belong to no stream, or come from the wrong side.
    pub strange: u64,
    /// Packets that came for the first time.
    pub packets: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets for which there was no room.
    pub no_room: u64,
    /// Messages sent.
    pub replies: u64,
    /// Messages sent.
    pub snacks: u64,
    /// Messages sent.
    pub congestions: u64,
    /// Messages sent.
    pub confirms: u64,
    /// Messages sent.
    pub refusals: u64,
}
