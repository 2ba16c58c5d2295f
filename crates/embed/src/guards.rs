//! Encryption: what stands between the connections of a node and its receiver, if the node has keys.

#[cfg(feature = "noise")]
use alloc::boxed::Box;
#[cfg(feature = "noise")]
use alloc::vec::Vec;

use anabranch_core::set::{StreamId, TransferId};
#[cfg(feature = "noise")]
use anabranch_secure::small::{Entropy, KEPT, Node, Stream, record};
#[cfg(feature = "noise")]
use anabranch_secure::{PublicKey, SecretKey, SharedKey};
use bytes::Bytes;

#[cfg(feature = "noise")]
use crate::api::MAX_CONNECTIONS;

/// What encryption takes of the heap.
#[cfg(feature = "noise")]
pub(crate) mod octets {
    use super::*;

    /// All that a handshake allocates: what is decrypted of its message, and the answer.
    const HANDSHAKE: usize = 384;

    pub(crate) fn lasting(buffer: u32, connections: u8, senders: u8) -> usize {
        let connections = usize::from(connections);
        let stream = Stream::octets(record(buffer.into())).next_multiple_of(16);
        size_of::<Keys>()
            + usize::from(senders) * 32
            + connections * stream
            // A connection that asks for a transfer has keys of its own.
            + (KEPT + connections) * Node::TRANSFER_OCTETS.next_multiple_of(16)
    }

    pub(crate) fn needs(buffer: u32, read: u16) -> usize {
        HANDSHAKE + record(buffer.into()) + usize::from(read) + 64
    }
}

/// Without encryption nothing is needed.
#[cfg(not(feature = "noise"))]
pub(crate) mod octets {
    pub(crate) fn lasting(_: u32, _: u8, _: u8) -> usize {
        0
    }

    pub(crate) fn needs(_: u32, _: u16) -> usize {
        0
    }
}

/// A connection is to be reset: see `anabranch_secure::small::Refused`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused;

/// Who a node is, and whom it takes files from.
#[derive(Debug)]
#[cfg(feature = "noise")]
pub struct Keys {
    node: Node,
    streams: [Option<Stream>; MAX_CONNECTIONS as usize],
    record: usize,
    /// The answer to a greeting, until it is polled.
    answer: Option<(StreamId, Bytes)>,
}

/// Who a node is, and whom it takes files from: nothing, without the feature `noise`.
#[derive(Debug)]
#[cfg(not(feature = "noise"))]
pub enum Keys {}

#[cfg(feature = "noise")]
impl Keys {
    /// For a node with `buffer` octets of receive buffer. `own` is the node's X25519 key, for the public keys in `senders`; `shared` is
    /// the pre-shared key.
    pub fn new(
        buffer: u32,
        own: Option<SecretKey>,
        shared: Option<SharedKey>,
        senders: Vec<PublicKey>,
        entropy: Entropy,
    ) -> Box<Self> {
        let node = Node::new(own, shared, senders, entropy);
        Box::new(Self { node, streams: Default::default(), record: record(buffer.into()), answer: None })
    }

    pub(crate) fn open(&mut self, slot: usize) {
        self.streams[slot] = Some(Stream::new(self.record));
    }

    pub(crate) fn close(&mut self, slot: usize) {
        self.streams[slot] = None;
    }

    /// What octets of a connection mean to the receiver.
    pub(crate) fn read(&mut self, slot: usize, id: StreamId, octets: &[u8]) -> Result<Bytes, Refused> {
        let stream = self.streams[slot].as_mut().ok_or(Refused)?;
        let mut plain = Vec::with_capacity(self.record + octets.len());
        let answer = stream.read(&mut self.node, octets, &mut plain).map_err(|_| Refused)?;
        self.answer = answer.map(|answer| (id, answer));
        Ok(plain.into())
    }

    pub(crate) fn take_answer(&mut self) -> Option<(StreamId, Bytes)> {
        self.answer.take()
    }

    pub(crate) fn seal(&mut self, slot: usize, octets: &[u8]) -> Result<Bytes, Refused> {
        self.streams[slot].as_mut().and_then(|stream| stream.seal(octets).ok()).ok_or(Refused)
    }

    pub(crate) fn is_between_records(&self, slot: usize) -> bool {
        self.streams[slot].as_ref().is_some_and(|stream| stream.end().is_ok())
    }

    pub(crate) fn sender(&self, transfer: TransferId) -> Option<[u8; 32]> {
        self.node.sender(transfer).map(|key| key.0)
    }
}

#[cfg(not(feature = "noise"))]
#[expect(clippy::needless_pass_by_ref_mut, reason = "as with the feature")]
impl Keys {
    pub(crate) fn open(&mut self, _: usize) {
        match *self {}
    }

    pub(crate) fn close(&mut self, _: usize) {
        match *self {}
    }

    pub(crate) fn read(&mut self, _: usize, _: StreamId, _: &[u8]) -> Result<Bytes, Refused> {
        match *self {}
    }

    pub(crate) fn take_answer(&mut self) -> Option<(StreamId, Bytes)> {
        match *self {}
    }

    pub(crate) fn seal(&mut self, _: usize, _: &[u8]) -> Result<Bytes, Refused> {
        match *self {}
    }

    pub(crate) fn is_between_records(&self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn sender(&self, _: TransferId) -> Option<[u8; 32]> {
        match *self {}
    }
}
