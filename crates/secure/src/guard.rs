//! Encryption of one stream, between its socket and its protocol machine.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_wire::set::{Decoder, Item, Join, Message, encode, transfer_of_request};
use bytes::{BufMut, Bytes, BytesMut};
use snow::HandshakeState;

use crate::frames::Frames;
use crate::gateway::Doorkeeper;
use crate::greeting::{self, Beginning, Failed, MAX_GREETING, Own, Pattern, Proof, Purpose};
use crate::keys::PublicKey;
use crate::layout::{CONTROL, JOIN};
use crate::node::NodeKeys;
use crate::record::{Bad, MAX_PLAIN, Opener, Sealer, TransferKeys};
use crate::roster::{Member, Peer};
use crate::sender::SenderKeys;
use crate::small;

/// Why a stream is refused. The owner resets the stream without an explanation, so that the peer
/// learns nothing from the refusal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Refused {
    /// The greeting is invalid, or its sender is unknown.
    #[error("the peer has not shown a known key")]
    Stranger,
    /// The key was revoked after the stream began.
    #[error("the peer's key is revoked")]
    Revoked,
    /// The greeting was seen before.
    #[error("the peer repeats an earlier greeting")]
    Replayed,
    /// The session number was already used under these keys. Sealing with it would reuse nonces.
    #[error("the session number was used before with the same keys")]
    Repeated,
    /// A record does not authenticate: it was changed or reordered.
    #[error("a record was changed or is out of order")]
    Tampered,
    /// The input is neither a greeting nor a record: another protocol, or no encryption.
    #[error("unexpected data: the peer uses another protocol or no encryption")]
    Garbled,
    /// The stream ends within a record.
    #[error("the stream ends within a record")]
    Truncated,
    /// The session belongs to a transfer that was not requested.
    #[error("the session belongs to no requested transfer")]
    Unasked,
}

impl From<Bad> for Refused {
    fn from(bad: Bad) -> Self {
        match bad {
            Bad::Length => Self::Garbled,
            Bad::Tag => Self::Tampered,
        }
    }
}

/// Maps a handshake that failed because of the peer's message.
impl From<Failed> for Refused {
    fn from(_: Failed) -> Self {
        Self::Stranger
    }
}

#[cfg(test)]
mod tests;

/// Both directions of an encrypted stream.
#[derive(Debug)]
struct Sealed {
    out: Sealer,
    into: Opener,
}

impl Sealed {
    /// Creates the directions of the stream with this number.
    fn new(keys: &Arc<TransferKeys>, stream: u8) -> Result<Self, Refused> {
        let out = keys.sealer(stream).ok_or(Refused::Repeated)?;
        Ok(Self { out, into: keys.opener(stream) })
    }
}

/// State of a stream.
enum Stage {
    /// Not encrypted here: bytes pass through unchanged.
    Passing,
    /// Encrypted in both directions.
    Sealed(Sealed),
    /// Sender, control stream: waiting for the node to answer the greeting.
    AwaitNode { noise: Box<HandshakeState>, shared: Arc<SenderKeys> },
    /// Sender, session: waiting for the machine to write the SETSYN.
    BeforeSetSyn { shared: Arc<SenderKeys>, gateway: PublicKey, keys: Arc<TransferKeys> },
    /// Sender, session: waiting for the gateway's answer. Records for the node are sealed meanwhile
    /// and follow the greeting.
    AwaitGateway { noise: Box<HandshakeState>, sealed: Sealed, begun: bool },
    /// Gateway: waiting for the sender's greeting.
    AwaitSender(Arc<Doorkeeper>),
    /// Gateway: waiting for the machine's SETACK, which becomes the answer to the greeting.
    AwaitSetAck(Box<HandshakeState>),
    /// Node: waiting for the first bytes of a stream.
    AwaitCaller(Arc<NodeKeys>),
    /// Node, control stream: the greeting is answered; waiting for the REQUEST.
    AwaitRequest { shared: Arc<NodeKeys>, sealed: Sealed },
    /// Node, session: the gateway's JOIN has arrived; waiting for the sender's record.
    AwaitProof { join: Join, opener: Opener },
    /// The stream has ended.
    Over,
}

/// Encrypts and authenticates one stream, between its socket and its machine.
pub struct Guard {
    stage: Stage,
    /// Plaintext of the machine, not yet sealed.
    plain: VecDeque<Bytes>,
    /// Bytes ready for the socket.
    ready: VecDeque<Bytes>,
    /// Number of bytes in `plain` and `ready`.
    waiting: usize,
    frames: Frames,
    /// At a gateway or a node: the peer, once it is authenticated.
    member: Option<Arc<Member>>,
    /// Length limit of the plaintext in a record that we seal, in bytes.
    most: usize,
    /// Value of `most` after the peer has answered.
    later: usize,
}

impl Guard {
    /// A stream without encryption, or one whose encryption is end to end between other hosts.
    pub fn passing() -> Self {
        Self::at(Stage::Passing)
    }

    /// The control stream of a sender.
    ///
    /// # Errors
    /// No entropy is available, or the node's key is invalid.
    pub fn control(shared: &Arc<SenderKeys>) -> Result<Self, Refused> {
        Self::control_with(shared, None)
    }

    fn control_with(shared: &Arc<SenderKeys>, ephemeral: Option<&[u8]>) -> Result<Self, Refused> {
        let mut noise = Box::new(greeting::begin(Purpose::Transfer, shared.proof(), ephemeral)?);
        let number = shared.next_number().to_be_bytes();
        let first = greeting::first(shared.pattern(), &mut noise, &number)?;
        // The node announces its buffer in its answer. Until then records have the size that every
        // node accepts.
        let most = small::record(0);
        let mut guard = Self { most, ..Self::at(Stage::AwaitNode { noise, shared: Arc::clone(shared) }) };
        guard.hand_out(first);
        Ok(guard)
    }

    /// A session of a sender through the gateway with the public key `gateway`.
    ///
    /// # Errors
    /// The node has not answered a greeting yet.
    pub fn session(shared: &Arc<SenderKeys>, gateway: PublicKey) -> Result<Self, Refused> {
        // A session uses the keys of the handshake on the control stream.
        let keys = shared.transfer().ok_or(Refused::Unasked)?;
        Ok(Self::at(Stage::BeforeSetSyn { shared: Arc::clone(shared), gateway, keys }))
    }

    /// A stream from a sender, at a gateway.
    pub fn gateway(door: &Arc<Doorkeeper>) -> Self {
        Self::at(Stage::AwaitSender(Arc::clone(door)))
    }

    /// An incoming stream at a node.
    pub fn node(shared: &Arc<NodeKeys>) -> Self {
        Self::at(Stage::AwaitCaller(Arc::clone(shared)))
    }

    fn at(stage: Stage) -> Self {
        Self {
            stage,
            plain: VecDeque::new(),
            waiting: 0,
            ready: VecDeque::new(),
            frames: Frames::default(),
            member: None,
            most: MAX_PLAIN,
            later: MAX_PLAIN,
        }
    }

    /// Limits the plaintext of each record to this many bytes, the peer's memory limit, and to at
    /// most [`MAX_PLAIN`].
    pub fn sealing_at_most(self, most: usize) -> Self {
        let most = most.min(MAX_PLAIN);
        Self { most, later: most, ..self }
    }

    /// True if bytes pass through unchanged.
    pub fn is_passing(&self) -> bool {
        matches!(self.stage, Stage::Passing)
    }

    /// True if the peer has proved its identity.
    pub fn is_proven(&self) -> bool {
        match self.stage {
            Stage::Passing | Stage::Sealed(_) | Stage::AwaitSetAck(_) => true,
            Stage::AwaitNode { .. }
            | Stage::BeforeSetSyn { .. }
            | Stage::AwaitGateway { .. }
            | Stage::AwaitSender(_)
            | Stage::AwaitCaller(_)
            | Stage::AwaitRequest { .. }
            | Stage::AwaitProof { .. }
            | Stage::Over => false,
        }
    }

    /// True if the peer has sent what a known peer sends first: a greeting of a known key or, on a
    /// session, the JOIN of a requested transfer. Both can be replayed, so this is weaker than
    /// [`Guard::is_proven`].
    pub fn is_introduced(&self) -> bool {
        matches!(self.stage, Stage::AwaitRequest { .. } | Stage::AwaitProof { .. }) || self.is_proven()
    }

    /// Number of bytes that the machine has written and [`Guard::poll_transmit`] has not returned.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes bytes from the machine.
    ///
    /// # Errors
    /// The machine writes something that this state does not allow, or a handshake fails locally.
    pub fn write(&mut self, octets: Bytes) -> Result<(), Refused> {
        match &mut self.stage {
            Stage::Passing => self.hand_out(octets),
            // The stream is about to be reset, so the bytes are dropped.
            Stage::Over => {}
            Stage::AwaitSetAck(noise) => {
                let answer = greeting::message(noise, &octets)?;
                self.hand_out(answer);
                self.stage = Stage::Passing;
            }
            Stage::BeforeSetSyn { .. } => self.greet(&octets)?,
            // TCP delivers the SETSYN reliably, so a repeated one is dropped.
            Stage::AwaitGateway { begun: false, .. } if is_setsyn(&octets) => {}
            Stage::AwaitGateway { begun, .. } => {
                *begun = true;
                self.keep(octets);
            }
            Stage::Sealed(_)
            | Stage::AwaitNode { .. }
            | Stage::AwaitSender(_)
            | Stage::AwaitCaller(_)
            | Stage::AwaitRequest { .. }
            | Stage::AwaitProof { .. } => self.keep(octets),
        }
        Ok(())
    }

    fn hand_out(&mut self, octets: Bytes) {
        self.waiting += octets.len();
        self.ready.push_back(octets);
    }

    fn keep(&mut self, octets: Bytes) {
        self.waiting += octets.len();
        self.plain.push_back(octets);
    }

    /// Sends the SETSYN to the gateway inside the greeting, and seals it for the node as a JOIN.
    fn greet(&mut self, setsyn: &Bytes) -> Result<(), Refused> {
        let mut decoder = Decoder::new();
        decoder.push(setsyn.clone());
        let Ok(Some(Item::Message(Message::SetSyn(message)))) = decoder.next_item() else {
            return Err(Refused::Garbled);
        };
        let Stage::BeforeSetSyn { shared, gateway, keys } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            return Ok(());
        };
        // Before any output: a session number that was used before is no reason to call a gateway.
        let sealed = Sealed::new(&keys, message.join.session)?;
        let proof = Proof::Known { own: shared.own(), peer: &gateway };
        let mut noise = Box::new(greeting::begin(Purpose::Hop, proof, None)?);
        let mut payload = BytesMut::new();
        payload.put_u64(shared.next_number());
        payload.extend_from_slice(setsyn);
        self.hand_out(greeting::first(Pattern::Known, &mut noise, &payload)?);
        self.stage = Stage::AwaitGateway { noise, sealed, begun: false };
        self.keep(join_octets(message.join));
        Ok(())
    }

    /// Returns the next bytes for the socket. Write them completely before the next call, and call
    /// only when the socket is writable: bytes that wait here longer share a record.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        if let Some(octets) = self.ready.pop_front() {
            self.waiting -= octets.len();
            return Some(octets);
        }
        if self.plain.is_empty() {
            return None;
        }
        let (Stage::Sealed(sealed) | Stage::AwaitGateway { sealed, .. } | Stage::AwaitRequest { sealed, .. }) =
            &mut self.stage
        else {
            return None;
        };
        let mut gathered = [0; MAX_PLAIN];
        // Gather small writes of the machine into one record, which costs a length field and a tag.
        let most = self.most;
        let mut n = 0;
        while let Some(front) = self.plain.front_mut() {
            let part = front.len().min(most - n);
            gathered[n..n + part].copy_from_slice(&front.split_to(part));
            n += part;
            if !front.is_empty() {
                break;
            }
            self.plain.pop_front();
        }
        self.waiting -= n;
        if n == 0 {
            return None;
        }
        // The length is within the limit, so sealing fails only if the nonces are exhausted.
        let record = sealed.out.seal(&gathered[..n]).ok();
        if record.is_none() {
            self.stage = Stage::Over;
        }
        record
    }

    /// Takes bytes from the socket and returns plaintext for the machine.
    ///
    /// # Errors
    /// The stream must be reset.
    pub fn read(&mut self, octets: Bytes) -> Result<Option<Bytes>, Refused> {
        // Checked for every input, so that a revocation also ends streams that are already open.
        if self.member.as_ref().is_some_and(|member| member.is_revoked()) {
            self.stage = Stage::Over;
            return Err(Refused::Revoked);
        }
        if self.is_passing() {
            return Ok(Some(octets));
        }
        self.frames.push(&octets);
        let mut plain = BytesMut::new();
        loop {
            // If `advance` fails, the stream stays `Over` and accepts nothing more.
            let stage = std::mem::replace(&mut self.stage, Stage::Over);
            let (stage, more) = self.advance(stage, &mut plain)?;
            self.stage = stage;
            if !more {
                break;
            }
        }
        Ok(if plain.is_empty() { None } else { Some(plain.freeze()) })
    }

    /// Handles the end of the peer's stream.
    ///
    /// # Errors
    /// The peer stopped within a greeting or a record.
    pub fn end(&self) -> Result<(), Refused> {
        if self.frames.peek().is_empty() { Ok(()) } else { Err(Refused::Truncated) }
    }

    /// Performs one step. Returns true if another step may be possible.
    fn advance(&mut self, stage: Stage, plain: &mut BytesMut) -> Result<(Stage, bool), Refused> {
        let frames = &mut self.frames;
        Ok(match stage {
            // The peer must not send in these states.
            Stage::Over | Stage::BeforeSetSyn { .. } => return Err(Refused::Garbled),
            // Bytes after the greeting belong to the relay.
            Stage::AwaitSetAck(noise) => {
                plain.extend_from_slice(&frames.rest());
                frames.release();
                (Stage::AwaitSetAck(noise), false)
            }
            Stage::Passing => {
                plain.extend_from_slice(&frames.rest());
                frames.release();
                (Stage::Passing, false)
            }
            Stage::Sealed(mut sealed) => {
                let opened = sealed.into.open(frames)?;
                if !opened.is_empty() {
                    self.most = self.later;
                }
                append(plain, opened);
                (Stage::Sealed(sealed), false)
            }
            Stage::AwaitNode { mut noise, shared } => {
                let Some(answer) = frames.next(MAX_GREETING).map_err(|_| Refused::Garbled)? else {
                    return Ok((Stage::AwaitNode { noise, shared }, false));
                };
                greeting::read(&mut noise, &answer)?;
                let keys = Arc::new(TransferKeys::new(*noise, None)?);
                shared.set_transfer(Arc::clone(&keys));
                (Stage::Sealed(Sealed::new(&keys, CONTROL)?), true)
            }
            Stage::AwaitGateway { mut noise, sealed, begun } => {
                let Some(answer) = frames.next(MAX_GREETING).map_err(|_| Refused::Garbled)? else {
                    return Ok((Stage::AwaitGateway { noise, sealed, begun }, false));
                };
                // The gateway may send only the SETACK; everything after it comes from the node.
                let setack = greeting::read(&mut noise, &answer)?;
                if !is_setack(&setack) {
                    return Err(Refused::Garbled);
                }
                plain.extend_from_slice(&setack);
                (Stage::Sealed(sealed), true)
            }
            Stage::AwaitSender(door) => match take_greeting(frames)? {
                None => (Stage::AwaitSender(door), false),
                Some((Pattern::Shared, _)) => return Err(Refused::Stranger),
                Some((Pattern::Known, message)) => {
                    let (noise, member) = welcome(&door, &message, plain)?;
                    self.member = Some(member);
                    (Stage::AwaitSetAck(noise), true)
                }
            },
            Stage::AwaitCaller(shared) => match frames.peek().first() {
                None => (Stage::AwaitCaller(shared), false),
                Some(&octet) => match greeting::beginning(octet) {
                    Beginning::Other => match take_join(frames)? {
                        None => (Stage::AwaitCaller(shared), false),
                        Some(join) => {
                            // A JOIN comes from the gateway and proves nothing. The sender proves
                            // itself by the first record, which opens only with the keys of its
                            // transfer.
                            let keys = shared.of(join.transfer).ok_or(Refused::Unasked)?;
                            self.member = keys.member().cloned();
                            (Stage::AwaitProof { join, opener: keys.opener(join.session) }, true)
                        }
                    },
                    Beginning::Greeting(_) => match take_greeting(frames)? {
                        None => (Stage::AwaitCaller(shared), false),
                        Some((pattern, message)) => {
                            let (keys, answer) = answer(&shared, pattern, &message, None)?;
                            self.waiting += answer.len();
                            self.ready.push_back(answer);
                            self.member = keys.member().cloned();
                            let sealed = Sealed::new(&Arc::new(keys), CONTROL)?;
                            (Stage::AwaitRequest { shared, sealed }, true)
                        }
                    },
                },
            },
            Stage::AwaitRequest { shared, mut sealed } => {
                let opened = sealed.into.open(frames)?;
                if opened.is_empty() {
                    return Ok((Stage::AwaitRequest { shared, sealed }, false));
                }
                // A request with a manifest may continue in later records; the machine parses it.
                let transfer = transfer_of_request(&opened).ok_or(Refused::Garbled)?;
                if !shared.bind(transfer, sealed.into.keys()) {
                    return Err(Refused::Stranger);
                }
                append(plain, opened);
                (Stage::Sealed(sealed), true)
            }
            Stage::AwaitProof { join, mut opener } => {
                let opened = opener.open(frames)?;
                if opened.is_empty() {
                    return Ok((Stage::AwaitProof { join, opener }, false));
                }
                // The sender repeats the JOIN inside its first record, so the gateway cannot change
                // it.
                if !opened.starts_with(&join_octets(join)) {
                    return Err(Refused::Tampered);
                }
                // A second sealer for a session number would reuse nonces, so a replayed session
                // ends here.
                let out = opener.keys().sealer(join.session).ok_or(Refused::Replayed)?;
                append(plain, opened);
                (Stage::Sealed(Sealed { out, into: opener }), true)
            }
        })
    }
}

/// Appends `octets`; avoids a copy if `plain` is empty.
fn append(plain: &mut BytesMut, octets: Bytes) {
    match plain.is_empty() {
        true => *plain = octets.try_into_mut().unwrap_or_else(|octets| BytesMut::from(&octets[..])),
        false => plain.extend_from_slice(&octets),
    }
}

/// Returns a greeting once it is complete.
fn take_greeting(frames: &mut Frames) -> Result<Option<(Pattern, BytesMut)>, Refused> {
    let Some(&octet) = frames.peek().first() else { return Ok(None) };
    let Beginning::Greeting(pattern) = greeting::beginning(octet) else { return Err(Refused::Garbled) };
    // The type byte stays in the buffer until the message is complete.
    let length = frames.peek().get(1..3).map(|l| usize::from(u16::from_be_bytes([l[0], l[1]])));
    match length {
        None => Ok(None),
        Some(length) if length == 0 || length > MAX_GREETING => Err(Refused::Garbled),
        Some(length) if frames.peek().len() < 3 + length => Ok(None),
        Some(length) => {
            frames.skip(3);
            Ok(Some((pattern, frames.skip(length))))
        }
    }
}

/// Returns a JOIN once it is complete.
fn take_join(frames: &mut Frames) -> Result<Option<Join>, Refused> {
    if frames.peek().len() < JOIN {
        let first = frames.peek().first().map(|octet| octet >> 4);
        return if first.is_none_or(|kind| kind == 5) { Ok(None) } else { Err(Refused::Garbled) };
    }
    let mut decoder = Decoder::new();
    decoder.push(frames.skip(JOIN).freeze());
    match decoder.next_item() {
        Ok(Some(Item::Message(Message::Join(join)))) if join.session != CONTROL => Ok(Some(join)),
        _ => Err(Refused::Garbled),
    }
}

/// Processes a greeting at a gateway. The SETSYN in it is for the relay.
fn welcome(
    door: &Doorkeeper,
    message: &[u8],
    plain: &mut BytesMut,
) -> Result<(Box<HandshakeState>, Arc<Member>), Refused> {
    let mut noise = Box::new(greeting::respond(Purpose::Hop, Own::Known(&door.own), None)?);
    let payload = greeting::read(&mut noise, message)?;
    let sender = greeting::peer(noise.get_remote_static()).and_then(|sender| door.find(sender));
    let (Some(sender), Some((number, setsyn))) = (sender, payload.split_first_chunk()) else {
        return Err(Refused::Stranger);
    };
    if !is_setsyn(setsyn) {
        return Err(Refused::Garbled);
    }
    // Only after authentication: a stranger must not use up greeting numbers of a sender.
    if !door.admit(&sender, u64::from_be_bytes(*number)) {
        return Err(Refused::Replayed);
    }
    plain.extend_from_slice(setsyn);
    Ok((noise, sender))
}

/// Answers a greeting at a node.
fn answer(
    shared: &NodeKeys,
    pattern: Pattern,
    message: &[u8],
    ephemeral: Option<&[u8]>,
) -> Result<(TransferKeys, Bytes), Refused> {
    let read = |own| {
        let mut noise = greeting::respond(Purpose::Transfer, own, ephemeral)?;
        let number = greeting::read(&mut noise, message)?;
        Ok::<_, Failed>((noise, number))
    };
    let (peer, (mut noise, number)) = match pattern {
        Pattern::Known => {
            let (noise, number) = read(Own::Known(shared.own().ok_or(Refused::Stranger)?))?;
            let peer = greeting::peer(noise.get_remote_static()).ok_or(Refused::Stranger)?;
            (Peer::Known(peer), (noise, number))
        }
        Pattern::Shared => {
            let keys = shared.shared();
            let mut held = keys.iter().filter_map(|(name, key)| {
                Some((Peer::Shared(Arc::clone(name)), read(Own::Shared(key)).ok()?))
            });
            held.next().ok_or(Refused::Stranger)?
        }
    };
    let member = shared.find(&peer).ok_or(Refused::Stranger)?;
    // Senders of older versions do not number their greetings to a node. The node answers such a
    // greeting each time it is seen, and does nothing else.
    if let Ok(number) = number[..].try_into()
        && !shared.admit(&member, u64::from_be_bytes(number))
    {
        return Err(Refused::Replayed);
    }
    let answer = greeting::message(&mut noise, &[])?;
    Ok((TransferKeys::new(noise, Some(member))?, answer))
}

fn is_setack(octets: &[u8]) -> bool {
    octets.len() == 2 && octets[0] >> 4 == 6
}

fn is_setsyn(octets: &[u8]) -> bool {
    octets.first().is_some_and(|octet| octet >> 4 == 4)
}

fn join_octets(join: Join) -> Bytes {
    let mut octets = Vec::with_capacity(JOIN);
    encode(&Message::Join(join), &mut octets);
    octets.into()
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stage = match &self.stage {
            Stage::Passing => "Passing",
            Stage::Sealed(_) => "Sealed",
            Stage::AwaitNode { .. } => "AwaitNode",
            Stage::BeforeSetSyn { .. } => "BeforeSetSyn",
            Stage::AwaitGateway { .. } => "AwaitGateway",
            Stage::AwaitSender(_) => "AwaitSender",
            Stage::AwaitSetAck(_) => "AwaitSetAck",
            Stage::AwaitCaller(_) => "AwaitCaller",
            Stage::AwaitRequest { .. } => "AwaitRequest",
            Stage::AwaitProof { .. } => "AwaitProof",
            Stage::Over => "Over",
        };
        f.debug_struct("Guard").field("stage", &stage).field("waiting", &self.waiting()).finish()
    }
}
