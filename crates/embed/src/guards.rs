//! Encryption between the connections of a node and its receiver, for a node with keys.

#[cfg(feature = "noise")]
use alloc::boxed::Box;
#[cfg(feature = "noise")]
use alloc::vec::Vec;

use anabranch_core::set::{StreamId, TransferId};
#[cfg(feature = "noise")]
use anabranch_secure::small::{Entropy, Live, Node, Said, Stream, record};
#[cfg(feature = "noise")]
use anabranch_secure::{PublicKey, SecretKey, SharedKey};
use bytes::Bytes;

#[cfg(feature = "noise")]
use crate::api::MAX_CONNECTIONS;

/// Heap sizes for encryption.
#[cfg(feature = "noise")]
pub(crate) mod octets {
    use super::*;

    /// Heap use of a handshake: the decrypted payload of its message, and the answer.
    pub(crate) const HANDSHAKE: usize = 256 + 64;
    /// Heap use of a record in addition to its plaintext: a copy of the REQUEST or JOIN at its
    /// beginning.
    pub(crate) const RECORD: usize = 128 + 16;

    pub(crate) fn lasting(buffer: u32, connections: u8, senders: u8) -> usize {
        let connections = usize::from(connections);
        let stream = Stream::octets(record(buffer.into())).next_multiple_of(16);
        size_of::<Keys>() + usize::from(senders) * 32 + connections * stream + Node::octets(connections)
    }

    /// Number of bytes taken per call: the content of one record.
    pub(crate) fn passed(buffer: u32) -> usize {
        record(buffer.into())
    }
}

/// Without encryption no heap is needed.
#[cfg(not(feature = "noise"))]
pub(crate) mod octets {
    pub(crate) fn lasting(_: u32, _: u8, _: u8) -> usize {
        0
    }

    pub(crate) fn passed(_: u32) -> usize {
        0
    }

    pub(crate) const HANDSHAKE: usize = 0;
    pub(crate) const RECORD: usize = 0;
}

/// The connection must be reset: see `anabranch_secure::small::Refused`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused;

/// Key of a node, and the senders that it accepts.
#[derive(Debug)]
#[cfg(feature = "noise")]
pub struct Keys {
    node: Node,
    streams: [Option<Stream>; MAX_CONNECTIONS as usize],
    /// The answer to a greeting, until it is polled.
    answer: Option<(StreamId, Bytes)>,
}

/// Key of a node, and the senders that it accepts. Uninhabited without the feature `noise`.
#[derive(Debug)]
#[cfg(not(feature = "noise"))]
pub enum Keys {}

#[cfg(feature = "noise")]
impl Keys {
    /// Creates the keys of a node with this buffer, in bytes, and number of connections. `own` is
    /// the node's X25519 key, `senders` are public keys, and `shared` is a pre-shared key. The
    /// memory of all streams is allocated here, because a fragmented heap might have no place for
    /// such a large block later.
    pub fn new(
        (buffer, connections): (u32, u8),
        own: Option<SecretKey>,
        shared: Option<SharedKey>,
        senders: Vec<PublicKey>,
        entropy: Entropy,
    ) -> Box<Self> {
        let node = Node::new(own, shared, senders, entropy, connections.into());
        let mut keys = Box::new(Self { node, streams: Default::default(), answer: None });
        let streams = keys.streams.iter_mut().take(connections.into());
        streams.for_each(|stream| *stream = Some(Stream::new(record(buffer.into()))));
        keys
    }

    pub(crate) fn reset(&mut self, slot: usize) {
        self.streams[slot].iter_mut().for_each(Stream::reset);
    }

    /// Returns the number of bytes taken from a connection and their meaning for the receiver.
    /// `live` transfers keep their keys.
    pub(crate) fn read(
        &mut self,
        slot: usize,
        id: StreamId,
        octets: &[u8],
        live: Live,
    ) -> Result<(usize, Bytes), Refused> {
        let stream = self.streams[slot].as_mut().ok_or(Refused)?;
        let (taken, said) = stream.read(&mut self.node, octets, live).map_err(|_| Refused)?;
        let plain = match said {
            Said::Nothing => Bytes::new(),
            Said::Answer(answer) => {
                self.answer = Some((id, answer));
                Bytes::new()
            }
            Said::Plain(plain) => plain.into(),
        };
        Ok((taken, plain))
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
    pub(crate) fn reset(&mut self, _: usize) {
        match *self {}
    }

    pub(crate) fn read(
        &mut self,
        _: usize,
        _: StreamId,
        _: &[u8],
        _: [Option<TransferId>; 2],
    ) -> Result<(usize, Bytes), Refused> {
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
