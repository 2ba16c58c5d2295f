//! The node's side for machines with little memory: the same octets on the wire as [`Guard`](crate)
//! of a larger node, in buffers whose size is known before. It needs `alloc` alone, and its entropy
//! is given to it.
//!
//! It does not remember greetings: one that is recorded and sent again is answered again, which
//! costs the node a handshake and gains its sender nothing, as the keys are new each time.

mod noise;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use self::noise::{Agreed, respond};
use crate::greeting::{self, Beginning, MAX_GREETING, Own, Pattern};
use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::layout::{CONTROL, JOIN, LENGTH, OVERHEAD, TAG, nonce};
use crate::octets::{KEY, NoEntropy};
use anabranch_wire::set::{
    Decoder, Item, Join, MAX_NODE_HEADER, Message, TransferId, encode, transfer_of_request,
};
use bytes::Bytes;

/// Where random octets come from: the machine's owner knows.
pub type Entropy = fn(&mut [u8]) -> Result<(), NoEntropy>;

/// Number of transfers whose keys are kept: the present one, and the one last asked for.
pub const KEPT: usize = 2;

/// Octets of plaintext that a sender puts into a record at most, for a node with this buffer: an
/// eighth of it, from 256 octets to 16 KiB. A node has to hold a record whole before it can open
/// it, one for each session.
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

/// A stream is to be reset: its peer has not shown a key that is known, or what it sent was
/// changed, out of place, or longer than there is room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the peer is not known, or its data was changed or is too long")]
pub struct Refused;

/// The keys of one transfer.
struct Keys {
    agreed: Agreed,
    /// Streams that have begun: each number may once.
    begun: [AtomicU32; 8],
}

impl Keys {
    /// Of no transfer.
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

/// The machine's present transfer, and the one that its owner is asked about.
pub type Live = [Option<TransferId>; 2];

/// Whom a node takes files from, and the keys of the transfers that they have asked for.
pub struct Node {
    /// The node's own key; without it only senders with a pre-shared key can connect.
    pub own: Option<SecretKey>,
    /// A key that a sender may have instead.
    pub shared: Option<SharedKey>,
    /// Senders that are known.
    pub senders: Vec<PublicKey>,
    /// Entropy of the machine.
    pub entropy: Entropy,
    transfers: [Option<(TransferId, Arc<Keys>)>; KEPT],
    /// Memory for keys, made once: what comes and goes would leave holes in a small heap.
    pool: Vec<Arc<Keys>>,
}

impl Node {
    /// A node before its first request, for this number of streams at once.
    pub fn new(
        own: Option<SecretKey>,
        shared: Option<SharedKey>,
        senders: Vec<PublicKey>,
        entropy: Entropy,
        streams: usize,
    ) -> Self {
        // A stream that asks for a transfer has keys of its own.
        let mut pool = Vec::with_capacity(KEPT + streams);
        pool.resize_with(KEPT + streams, || Arc::new(Keys::none()));
        Self { own, shared, senders, entropy, transfers: [None, None], pool }
    }

    /// Octets of heap for the keys of all transfers of a node with so many streams.
    pub const fn octets(streams: usize) -> usize {
        let keys = (size_of::<Keys>() + 2 * size_of::<usize>()).next_multiple_of(16);
        (KEPT + streams) * (keys + size_of::<usize>())
    }

    /// The sender that has asked for a transfer; `None` if all that is known is that it has the
    /// shared key.
    pub fn sender(&self, transfer: TransferId) -> Option<PublicKey> {
        self.of(transfer)?.peer()
    }

    fn of(&self, transfer: TransferId) -> Option<&Arc<Keys>> {
        self.transfers.iter().flatten().find(|(id, _)| *id == transfer).map(|(_, keys)| keys)
    }

    /// A sender asks for a transfer; false if that is another sender's. The keys of `live`
    /// transfers are never evicted.
    fn bind(&mut self, transfer: TransferId, keys: &Arc<Keys>, live: Live) -> bool {
        if self.of(transfer).is_some_and(|known| known.peer() != keys.peer()) {
            return false;
        }
        // The last one that was asked for is the first.
        let number = |kept: &Option<(TransferId, _)>| kept.as_ref().map(|(id, _)| *id);
        let same = self.transfers.iter().position(|kept| number(kept) == Some(transfer));
        let is_free = |kept: &Option<_>| number(kept).is_none_or(|id| !live.contains(&Some(id)));
        let Some(place) = same.or_else(|| self.transfers.iter().rposition(is_free)) else {
            // All places are live: the machine answers that it is busy.
            return true;
        };
        self.transfers[place] = Some((transfer, Arc::clone(keys)));
        self.transfers[..=place].rotate_right(1);
        true
    }

    /// Answers a greeting.
    fn answer(&mut self, pattern: Pattern, message: &[u8]) -> Result<(Arc<Keys>, [u8; KEY + TAG]), Refused> {
        let own = match (pattern, &self.own, &self.shared) {
            (Pattern::Known, Some(own), _) => Own::Known(own),
            (Pattern::Shared, _, Some(key)) => Own::Shared(key),
            _ => return Err(Refused),
        };
        let mut ephemeral = [0; KEY];
        (self.entropy)(&mut ephemeral).map_err(|_| Refused)?;
        let ephemeral = SecretKey::from_octets(ephemeral);
        let (agreed, answer) = respond(own, message, &ephemeral, |sender| self.senders.contains(sender))?;
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

/// How far a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Its first octet has not come.
    Fresh,
    /// A greeting, not all of it.
    Greeting(Pattern),
    /// The JOIN of the gateway, not all of it.
    Joining,
    /// The first record has to begin with a REQUEST.
    Request,
    /// The first record has to begin with this JOIN.
    Proof(Join),
    /// Records of a control stream, which has asked for this transfer.
    Control(TransferId),
    /// Records of a session.
    Session,
}

/// What octets of a stream lead to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// Nothing yet.
    Nothing,
    /// An answer to the peer.
    Answer(Bytes),
    /// Octets for the machine.
    Plain(Vec<u8>),
}

/// One stream of a node, between its socket and the machine.
pub struct Stream {
    stage: Stage,
    keys: Option<Arc<Keys>>,
    number: u8,
    /// Records opened and sealed.
    opened: u64,
    sealed: u64,
    /// What has come of a greeting, a JOIN or a record; its capacity is the bound.
    frame: Vec<u8>,
}

impl Stream {
    /// Octets of heap for a stream that takes records of `most` octets.
    pub const fn octets(most: usize) -> usize {
        let record = most + OVERHEAD;
        let greeting = LENGTH + MAX_GREETING;
        if record > greeting { record } else { greeting }
    }

    /// A stream that has just begun, for records of at most `most` octets.
    pub fn new(most: usize) -> Self {
        let frame = Vec::with_capacity(Self::octets(most));
        Self { stage: Stage::Fresh, keys: None, number: CONTROL, opened: 0, sealed: 0, frame }
    }

    /// Begins anew, for another connection in the same memory.
    pub fn reset(&mut self) {
        self.frame.clear();
        let frame = core::mem::take(&mut self.frame);
        *self = Self { stage: Stage::Fresh, keys: None, number: CONTROL, opened: 0, sealed: 0, frame };
    }

    /// Takes octets from the socket, up to the end of one message or record, so that a call
    /// allocates no more than one of them needs. Returns their number, and what they lead to. The
    /// keys of `live` transfers stay, whatever is asked for.
    ///
    /// # Errors
    /// The stream is to be reset.
    pub fn read(&mut self, node: &mut Node, octets: &[u8], live: Live) -> Result<(usize, Said), Refused> {
        let mut taken = 0;
        while let Some(first) = octets.get(taken) {
            if self.stage == Stage::Fresh {
                self.stage = match greeting::beginning(*first) {
                    Beginning::Greeting(pattern) => Stage::Greeting(pattern),
                    Beginning::Other => Stage::Joining,
                };
                // The octet says what the stream is; that of a JOIN belongs to it.
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

    /// Octets of what is coming, as far as is known.
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

    /// A greeting, a JOIN or a record is all there.
    fn whole(&mut self, node: &mut Node, live: Live) -> Result<Said, Refused> {
        match self.stage {
            Stage::Fresh => Ok(Said::Nothing),
            Stage::Greeting(pattern) => {
                let (keys, answer) = node.answer(pattern, &self.frame[LENGTH..])?;
                self.keys = Some(keys);
                self.stage = Stage::Request;
                let mut framed = Vec::with_capacity(LENGTH + answer.len());
                framed.extend_from_slice(&(answer.len() as u16).to_be_bytes());
                framed.extend_from_slice(&answer);
                Ok(Said::Answer(framed.into()))
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
                // With a manifest it goes on in later records; the machine reads it.
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
                // A request with a manifest takes several records. Requests of others may have
                // evicted its keys in between, and the machine must not begin a transfer under the
                // keys of another sender.
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
                // The sender repeats what the gateway says for it: the gateway can change nothing.
                if !plain.starts_with(&said) || !keys.begin(join.session) {
                    return Err(Refused);
                }
                self.stage = Stage::Session;
                Ok(Said::Plain(plain))
            }
            Stage::Session => Ok(Said::Plain(self.open()?)),
        }
    }

    /// What is in a record.
    fn open(&mut self) -> Result<Vec<u8>, Refused> {
        let keys = self.keys.as_ref().ok_or(Refused)?;
        let sealed = &self.frame[LENGTH..];
        let mut plain = Vec::with_capacity(sealed.len().saturating_sub(TAG));
        keys.agreed.ciphers[0].open(nonce(self.number, self.opened), &[], sealed, &mut plain)?;
        self.opened += 1;
        Ok(plain)
    }

    /// The machine writes at most 65,519 octets: the record.
    ///
    /// # Errors
    /// The peer has not shown who it is.
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

    /// The peer will send no more.
    ///
    /// # Errors
    /// It has stopped in the middle of something.
    pub fn end(&self) -> Result<(), Refused> {
        if self.frame.is_empty() { Ok(()) } else { Err(Refused) }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// What octets begin with. No message to a node is longer than what is copied of them.
fn item(octets: &[u8]) -> Result<Option<Item>, anabranch_wire::set::DecodeError> {
    let mut decoder = Decoder::of_node();
    decoder.push(Bytes::copy_from_slice(&octets[..octets.len().min(MAX_NODE_HEADER)]));
    decoder.next_item()
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests;
