//! Node side for devices with little memory: the wire format of [`Guard`](crate), in buffers of
//! known size. It needs only `alloc`; the caller provides entropy.
//!
//! It does not remember greetings: a replayed greeting is answered again. This costs the node a
//! handshake but does not help the attacker, since the keys are new each time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::greeting::{self, Beginning, MAX_GREETING, Own, Pattern, Purpose};
use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::layout::{CONTROL, JOIN, LENGTH, OVERHEAD, TAG, nonce};
pub use crate::noise::Refused;
use crate::noise::{Agreed, receive};
use crate::octets::{KEY, NoEntropy};
use anabranch_wire::set::{
    Decoder, Item, Join, MAX_NODE_HEADER, Message, TransferId, encode, transfer_of_request,
};
use bytes::Bytes;

/// Source of random bytes, provided by the platform.
pub type Entropy = fn(&mut [u8]) -> Result<(), NoEntropy>;

/// Number of transfers whose keys are kept: the current one, and the last one requested.
pub const KEPT: usize = 2;

/// Length limit of the plaintext in a record from a sender to a node with a buffer of this size: an
/// eighth of the buffer, from 256 bytes to 16 KiB. A node must hold a whole record before it can
/// open it, one per session.
pub const fn record(buffer: u64) -> usize {
    let eighth = buffer / 8;
    if eighth < 256 {
        256
    } else if eighth > 16 << 10 {
        16 << 10
    } else {
        eighth as usize
    }
}

/// The keys of one transfer.
struct Keys {
    agreed: Agreed,
    /// Bitmap of the streams that have begun; each number may begin once.
    begun: [AtomicU32; 8],
}

impl Keys {
    /// A placeholder without a transfer.
    fn none() -> Self {
        Self { agreed: Agreed::none(), begun: Default::default() }
    }

    fn begin(&self, stream: u8) -> bool {
        let bit = 1 << (stream % 32);
        self.begun[usize::from(stream / 32)].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    fn peer(&self) -> Option<PublicKey> {
        self.agreed.peer
    }
}

/// The machine's current transfer, and the transfer that its owner is deciding about.
pub type Live = [Option<TransferId>; 2];

/// The senders that a node accepts, and the keys of their transfers.
pub struct Node {
    /// The node's own key; without it only senders with a pre-shared key can connect.
    pub own: Option<SecretKey>,
    /// A pre-shared key that senders may use instead.
    pub shared: Option<SharedKey>,
    /// Public keys of accepted senders.
    pub senders: Vec<PublicKey>,
    /// Source of entropy.
    pub entropy: Entropy,
    transfers: [Option<(TransferId, Arc<Keys>)>; KEPT],
    /// Memory for keys, allocated once: repeated allocation would fragment a small heap.
    pool: Vec<Arc<Keys>>,
}

impl Node {
    /// Creates a node for `streams` simultaneous streams, before its first request.
    pub fn new(
        own: Option<SecretKey>,
        shared: Option<SharedKey>,
        senders: Vec<PublicKey>,
        entropy: Entropy,
        streams: usize,
    ) -> Self {
        // A stream that requests a transfer needs keys of its own.
        let mut pool = Vec::with_capacity(KEPT + streams);
        pool.resize_with(KEPT + streams, || Arc::new(Keys::none()));
        Self { own, shared, senders, entropy, transfers: [None, None], pool }
    }

    /// Heap bytes for the keys of all transfers of a node with this number of streams.
    pub const fn octets(streams: usize) -> usize {
        let keys = (size_of::<Keys>() + 2 * size_of::<usize>()).next_multiple_of(16);
        (KEPT + streams) * (keys + size_of::<usize>())
    }

    /// The sender that requested a transfer; `None` if it is known only by the pre-shared key.
    pub fn sender(&self, transfer: TransferId) -> Option<PublicKey> {
        self.of(transfer)?.peer()
    }

    fn of(&self, transfer: TransferId) -> Option<&Arc<Keys>> {
        self.transfers.iter().flatten().find(|(id, _)| *id == transfer).map(|(_, keys)| keys)
    }

    /// Stores the keys of a requested transfer. Returns false if the transfer belongs to another
    /// sender. Keys of `live` transfers are never evicted.
    fn bind(&mut self, transfer: TransferId, keys: &Arc<Keys>, live: Live) -> bool {
        if self.of(transfer).is_some_and(|known| known.peer() != keys.peer()) {
            return false;
        }
        // Entries are in the order of the last request, newest first.
        let number = |kept: &Option<(TransferId, _)>| kept.as_ref().map(|(id, _)| *id);
        let same = self.transfers.iter().position(|kept| number(kept) == Some(transfer));
        let is_free = |kept: &Option<_>| number(kept).is_none_or(|id| !live.contains(&Some(id)));
        let Some(place) = same.or_else(|| self.transfers.iter().rposition(is_free)) else {
            // All places are live: the machine will answer that it is busy.
            return true;
        };
        self.transfers[place] = Some((transfer, Arc::clone(keys)));
        self.transfers[..=place].rotate_right(1);
        true
    }

    /// Answers a greeting with a framed message.
    fn answer(&mut self, pattern: Pattern, message: &[u8]) -> Result<(Arc<Keys>, Vec<u8>), Refused> {
        let own = match (pattern, &self.own, &self.shared) {
            (Pattern::Known, Some(own), _) => Own::Known(own),
            (Pattern::Shared, _, Some(key)) => Own::Shared(key),
            _ => return Err(Refused),
        };
        let mut ephemeral = [0; KEY];
        (self.entropy)(&mut ephemeral).map_err(|_| Refused)?;
        let ephemeral = SecretKey::from_octets(ephemeral);
        let mut payload = Vec::with_capacity(message.len());
        let is_known = |sender: &PublicKey| self.senders.contains(sender);
        let received = receive(Purpose::Transfer, own, message, &mut payload, is_known)?;
        let mut answer = Vec::with_capacity(LENGTH + KEY + TAG);
        answer.extend_from_slice(&((KEY + TAG) as u16).to_be_bytes());
        let agreed = received.answer(&ephemeral, &[], &mut answer)?;
        // An entry to which no stream and no transfer refers.
        let free = self.pool.iter_mut().find(|keys| Arc::strong_count(keys) == 1).ok_or(Refused)?;
        *Arc::get_mut(free).ok_or(Refused)? = Keys { agreed, begun: Default::default() };
        Ok((Arc::clone(free), answer))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("senders", &self.senders).finish_non_exhaustive()
    }
}

/// State of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// No byte has arrived.
    Fresh,
    /// Part of a greeting has arrived.
    Greeting(Pattern),
    /// Part of the gateway's JOIN has arrived.
    Joining,
    /// The first record must begin with a REQUEST.
    Request,
    /// The first record must begin with this JOIN.
    Proof(Join),
    /// Records of a control stream that requested this transfer.
    Control(TransferId),
    /// Records of a session.
    Session,
}

/// Result of processing bytes of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// More bytes are needed.
    Nothing,
    /// An answer to the peer.
    Answer(Bytes),
    /// Plaintext for the machine.
    Plain(Vec<u8>),
}

/// One stream of a node, between its socket and the machine.
pub struct Stream {
    stage: Stage,
    keys: Option<Arc<Keys>>,
    number: u8,
    /// Numbers of records opened and sealed.
    opened: u64,
    sealed: u64,
    /// The received part of a greeting, a JOIN or a record; its capacity is the limit.
    frame: Vec<u8>,
}

impl Stream {
    /// Heap bytes of a stream whose records have at most `most` bytes of plaintext.
    pub const fn octets(most: usize) -> usize {
        let record = most + OVERHEAD;
        let greeting = LENGTH + MAX_GREETING;
        if record > greeting { record } else { greeting }
    }

    /// Creates a stream for records of at most `most` bytes of plaintext.
    pub fn new(most: usize) -> Self {
        let frame = Vec::with_capacity(Self::octets(most));
        Self { stage: Stage::Fresh, keys: None, number: CONTROL, opened: 0, sealed: 0, frame }
    }

    /// Prepares the stream for another connection in the same memory.
    pub fn reset(&mut self) {
        self.frame.clear();
        let frame = core::mem::take(&mut self.frame);
        *self = Self { stage: Stage::Fresh, keys: None, number: CONTROL, opened: 0, sealed: 0, frame };
    }

    /// Takes bytes from the socket, up to the end of one message or record, so that a call
    /// allocates no more than one of them needs. Returns the number of bytes taken and the result.
    /// Keys of `live` transfers are kept regardless of the request.
    ///
    /// # Errors
    /// The stream must be reset.
    pub fn read(&mut self, node: &mut Node, octets: &[u8], live: Live) -> Result<(usize, Said), Refused> {
        let mut taken = 0;
        while let Some(first) = octets.get(taken) {
            if self.stage == Stage::Fresh {
                self.stage = match greeting::beginning(*first) {
                    Beginning::Greeting(pattern) => Stage::Greeting(pattern),
                    Beginning::Other => Stage::Joining,
                };
                // The first byte tells the type of the stream. A JOIN includes this byte; other
                // types do not.
                if self.stage != Stage::Joining {
                    taken += 1;
                    continue;
                }
            }
            let wanted = self.wanted()?;
            let n = (wanted - self.frame.len()).min(octets.len() - taken);
            self.frame.extend_from_slice(&octets[taken..taken + n]);
            taken += n;
            if self.frame.len() < self.wanted()? {
                continue;
            }
            let said = self.whole(node, live)?;
            self.frame.clear();
            return Ok((taken, said));
        }
        Ok((taken, Said::Nothing))
    }

    /// Length of the expected message in bytes, as far as it is known.
    fn wanted(&self) -> Result<usize, Refused> {
        if self.stage == Stage::Joining {
            return Ok(JOIN);
        }
        let Some(length) = self.frame.first_chunk() else { return Ok(LENGTH) };
        let length = usize::from(u16::from_be_bytes(*length));
        let is_greeting = matches!(self.stage, Stage::Greeting(_));
        let is_possible = if is_greeting { length <= MAX_GREETING } else { length > TAG };
        if length == 0 || !is_possible || LENGTH + length > self.frame.capacity() {
            return Err(Refused);
        }
        Ok(LENGTH + length)
    }

    /// Processes a complete greeting, JOIN or record.
    fn whole(&mut self, node: &mut Node, live: Live) -> Result<Said, Refused> {
        match self.stage {
            Stage::Fresh => Ok(Said::Nothing),
            Stage::Greeting(pattern) => {
                let (keys, answer) = node.answer(pattern, &self.frame[LENGTH..])?;
                self.keys = Some(keys);
                self.stage = Stage::Request;
                Ok(Said::Answer(answer.into()))
            }
            Stage::Joining => {
                let Ok(Some(Item::Message(Message::Join(join)))) = item(&self.frame) else {
                    return Err(Refused);
                };
                if join.session == CONTROL {
                    return Err(Refused);
                }
                self.keys = Some(Arc::clone(node.of(join.transfer).ok_or(Refused)?));
                self.number = join.session;
                self.stage = Stage::Proof(join);
                Ok(Said::Nothing)
            }
            Stage::Request => {
                let plain = self.open()?;
                // A request with a manifest continues in later records; the machine parses it.
                let transfer = transfer_of_request(&plain).ok_or(Refused)?;
                let keys = self.keys.as_ref().ok_or(Refused)?;
                if !node.bind(transfer, keys, live) {
                    return Err(Refused);
                }
                self.stage = Stage::Control(transfer);
                Ok(Said::Plain(plain))
            }
            Stage::Control(transfer) => {
                let plain = self.open()?;
                let keys = self.keys.as_ref().ok_or(Refused)?;
                // A request with a manifest takes several records. Requests of other senders may
                // have evicted its keys meanwhile, and the machine must not begin a transfer under
                // another sender's keys.
                let is_own = match node.of(transfer) {
                    Some(kept) => kept.peer() == keys.peer(),
                    None => node.bind(transfer, keys, live),
                };
                if is_own { Ok(Said::Plain(plain)) } else { Err(Refused) }
            }
            Stage::Proof(join) => {
                let plain = self.open()?;
                let mut said = Vec::with_capacity(JOIN);
                encode(&Message::Join(join), &mut said);
                let keys = self.keys.as_ref().ok_or(Refused)?;
                // The sender repeats the JOIN inside its first record, so the gateway cannot change
                // it.
                if !plain.starts_with(&said) || !keys.begin(join.session) {
                    return Err(Refused);
                }
                self.stage = Stage::Session;
                Ok(Said::Plain(plain))
            }
            Stage::Session => Ok(Said::Plain(self.open()?)),
        }
    }

    /// Opens the record in `frame`.
    fn open(&mut self) -> Result<Vec<u8>, Refused> {
        let keys = self.keys.as_ref().ok_or(Refused)?;
        let sealed = &self.frame[LENGTH..];
        let mut plain = Vec::with_capacity(sealed.len().saturating_sub(TAG));
        keys.agreed.ciphers[0].open(nonce(self.number, self.opened), &[], sealed, &mut plain)?;
        self.opened += 1;
        Ok(plain)
    }

    /// Seals a record of at most 65,519 bytes written by the machine.
    ///
    /// # Errors
    /// The peer has not proved its identity.
    pub fn seal(&mut self, octets: &[u8]) -> Result<Bytes, Refused> {
        let is_proven = matches!(self.stage, Stage::Control(_) | Stage::Session);
        let keys = self.keys.as_ref().filter(|_| is_proven).ok_or(Refused)?;
        let length = u16::try_from(octets.len() + TAG).map_err(|_| Refused)?;
        let mut record = Vec::with_capacity(octets.len() + OVERHEAD);
        record.extend_from_slice(&length.to_be_bytes());
        record.extend_from_slice(octets);
        let nonce = nonce(self.number, self.sealed);
        let tag = keys.agreed.ciphers[1].seal(nonce, &[], &mut record[LENGTH..])?;
        record.extend_from_slice(&tag);
        self.sealed += 1;
        Ok(record.into())
    }

    /// Handles the end of the peer's stream.
    ///
    /// # Errors
    /// The peer stopped within a message or a record.
    pub fn end(&self) -> Result<(), Refused> {
        if self.frame.is_empty() { Ok(()) } else { Err(Refused) }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// Decodes the first item. No message to a node is longer than the part that is copied here.
fn item(octets: &[u8]) -> Result<Option<Item>, anabranch_wire::set::DecodeError> {
    let mut decoder = Decoder::of_node();
    decoder.push(Bytes::copy_from_slice(&octets[..octets.len().min(MAX_NODE_HEADER)]));
    decoder.next_item()
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests;
