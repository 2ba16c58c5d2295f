//! Events and counters of a sink.

use anabranch_wire::rdca::{Range, Seq, StreamId};
use bytes::Bytes;

/// Identifies a sender for the sink's owner: a number for its address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerId(pub u64);

/// The reason why a stream ended at the sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// The sender has closed the stream, and every packet was delivered or reported as lost.
    Complete,
    /// The sender has aborted the stream.
    Reset,
    /// The sender started a new stream: it has restarted, or it assumed that the sink had
    /// restarted.
    Replaced,
    /// The sender was silent for too long ([`SinkConfig::idle`](crate::rdca::SinkConfig::idle)).
    Idle,
    /// The owner has aborted the stream ([`Sink::abort`](crate::rdca::Sink::abort)).
    Aborted,
}

/// An event for the sink's owner; events come in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SinkEvent {
    /// A stream was opened; its first packet will be `first`.
    Opened {
        /// The sender.
        peer: PeerId,
        /// The number of the first packet.
        first: Seq,
    },
    /// The next data of the application, complete. Between two such events of a stream, only
    /// packets reported by [`SinkEvent::Gone`] are missing.
    Packet {
        /// The sender.
        peer: PeerId,
        /// The number of the packet, or of the first packet of fragmented data.
        seq: Seq,
        /// The data that the sending application wrote.
        payload: Bytes,
    },
    /// These packets are lost. The sender no longer has them and reports the same range to its own
    /// application, or they are fragments of data of which another fragment is lost.
    Gone {
        /// The sender.
        peer: PeerId,
        /// The lost packets.
        range: Range,
    },
    /// The stream has ended.
    Ended {
        /// The sender.
        peer: PeerId,
        /// The reason.
        end: StreamEnd,
        /// The number of the next packet in order. Held packets after it are discarded.
        next: Seq,
    },
}

/// A position in a stream: all packets before it were handed to the sink's owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    pub(super) stream: StreamId,
    pub(super) next: Seq,
}

/// Event counts of a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SinkCounters {
    /// Datagrams that cannot be decoded.
    pub malformed: u64,
    /// Messages that belong to no stream, or of a type that only a sink sends.
    pub strange: u64,
    /// Packets received for the first time.
    pub packets: u64,
    /// Packets received again.
    pub duplicates: u64,
    /// Packets dropped for lack of space.
    pub no_room: u64,
    /// Replies sent.
    pub replies: u64,
    /// SNACKs sent.
    pub snacks: u64,
    /// Congestion notifications sent.
    pub congestions: u64,
    /// Confirmations sent.
    pub confirms: u64,
    /// Refusals sent.
    pub refusals: u64,
}
