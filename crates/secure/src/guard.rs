//! One stream: what stands between its socket and the machine.

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

/// Why a stream is over. Its owner resets it without a word: whoever is refused learns nothing from
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Refused {
    /// The greeting does not hold, or comes from somebody unknown.
    #[error("the peer has not shown a known key")]
    Stranger,
    /// The key was known when the stream began, and was revoked since.
    #[error("the peer's key is revoked")]
    Revoked,
    /// It has been here before.
    #[error("the peer repeats an earlier greeting")]
    Replayed,
    /// Its number was given to another stream under the same keys: sealing it would use a nonce
    /// twice.
    #[error("the session number was used before with the same keys")]
    Repeated,
    /// A record does not open: it was changed, or is out of its place.
    #[error("a record was changed or is out of order")]
    Tampered,
    /// No greeting, no record: somebody who speaks something else, or without encryption.
    #[error("unexpected data: the peer uses another protocol or no encryption")]
    Garbled,
    /// It ends within a record.
    #[error("the stream ends within a record")]
    Truncated,
    /// A session of a transfer that nobody has asked for.
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

/// A handshake failed because of what the peer sent.
impl From<Failed> for Refused {
    fn from(_: Failed) -> Self {
        Self::Stranger
    }
}

#[cfg(test)]
mod tests;

/// Both directions of a stream whose keys are known.
#[derive(Debug)]
struct Sealed {
    out: Sealer,
    into: Opener,
}

impl Sealed {
    /// Of the stream with this number.
    fn new(keys: &Arc<TransferKeys>, stream: u8) -> Result<Self, Refused> {
        let out = keys.sealer(stream).ok_or(Refused::Repeated)?;
        Ok(Self { out, into: keys.opener(stream) })
    }
}

/// How far a stream is.
enum Stage {
    /// Nothing is encrypted, or not by us.
    Passing,
    /// Records both ways.
    Sealed(Sealed),
    /// Sender, control stream: the node has not answered the greeting.
    AwaitNode { noise: Box<HandshakeState>, shared: Arc<SenderKeys> },
    /// Sender, session: nothing is written yet.
    BeforeSetSyn { shared: Arc<SenderKeys>, gateway: PublicKey, keys: Arc<TransferKeys> },
    /// Sender, session: the gateway has not answered. What the machine writes is sealed for the
    /// node and follows the greeting.
    AwaitGateway { noise: Box<HandshakeState>, sealed: Sealed, begun: bool },
    /// Gateway: the sender has not said who it is.
    AwaitSender(Arc<Doorkeeper>),
    /// Gateway: SETACK will be the answer to the greeting.
    AwaitSetAck(Box<HandshakeState>),
    /// Node: somebody has called.
    AwaitCaller(Arc<NodeKeys>),
    /// Node, control stream: the greeting is answered, REQUEST has not come.
    AwaitRequest { shared: Arc<NodeKeys>, sealed: Sealed },
    /// Node, session: the gateway has introduced it, the sender has not.
    AwaitProof { join: Join, opener: Opener },
    /// It is over.
    Over,
}

/// What stands between one stream's socket and its machine.
pub struct Guard {
    stage: Stage,
    /// What the machine has written and nobody has sealed.
    plain: VecDeque<Bytes>,
    /// What is ready for the socket.
    ready: VecDeque<Bytes>,
    /// Octets in both.
    waiting: usize,
    frames: Frames,
    /// At a gateway or a node: who is at the other end, once that is known.
    member: Option<Arc<Member>>,
    /// Octets of plaintext in a record that we seal, at most.
    most: usize,
    /// The same, once the peer has answered.
    later: usize,
}

impl Guard {
    /// Of a stream without encryption, or one that others have encrypted.
    pub fn passing() -> Self {
        Self::at(Stage::Passing)
    }

    /// Of a sender's control stream.
    ///
    /// # Errors
    /// There is no entropy, or the node's key is none.
    pub fn control(shared: &Arc<SenderKeys>) -> Result<Self, Refused> {
        Self::control_with(shared, None)
    }

    fn control_with(shared: &Arc<SenderKeys>, ephemeral: Option<&[u8]>) -> Result<Self, Refused> {
        let mut noise = Box::new(greeting::begin(Purpose::Transfer, shared.proof(), ephemeral)?);
        let number = shared.next_number().to_be_bytes();
        let first = greeting::first(shared.pattern(), &mut noise, &number)?;
        // How much the node has room for is in its answer: until then, what every node has.
        let most = small::record(0);
        let mut guard = Self { most, ..Self::at(Stage::AwaitNode { noise, shared: Arc::clone(shared) }) };
        guard.hand_out(first);
        Ok(guard)
    }

    /// Of a sender's session through the gateway whose key is `gateway`.
    ///
    /// # Errors
    /// The node has not been greeted yet.
    pub fn session(shared: &Arc<SenderKeys>, gateway: PublicKey) -> Result<Self, Refused> {
        let keys = shared.transfer().ok_or(Refused::Unasked)?;
        Ok(Self::at(Stage::BeforeSetSyn { shared: Arc::clone(shared), gateway, keys }))
    }

    /// Of a stream on which a sender calls a gateway.
    pub fn gateway(door: &Arc<Doorkeeper>) -> Self {
        Self::at(Stage::AwaitSender(Arc::clone(door)))
    }

    /// Of a stream on which somebody calls a node.
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

    /// Seals at most this many octets in a record, and never more than [`MAX_PLAIN`]: the peer's
    /// memory limit.
    pub fn sealing_at_most(self, most: usize) -> Self {
        let most = most.min(MAX_PLAIN);
        Self { most, later: most, ..self }
    }

    /// Nothing is added, and nothing taken away.
    pub fn is_passing(&self) -> bool {
        matches!(self.stage, Stage::Passing)
    }

    /// Whoever is at the other end has shown who it is.
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

    /// The peer has begun as a known peer does: with a greeting of a key that is known here, or, on
    /// a session, with the JOIN of a transfer that was asked for. Both may be replayed, so this is
    /// less than [`Guard::is_proven`].
    pub fn is_introduced(&self) -> bool {
        matches!(self.stage, Stage::AwaitRequest { .. } | Stage::AwaitProof { .. }) || self.is_proven()
    }

    /// Octets that the machine has written and [`Guard::poll_transmit`] has not handed out.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The machine writes.
    ///
    /// # Errors
    /// It does not write what its place demands, or a handshake fails on our side.
    pub fn write(&mut self, octets: Bytes) -> Result<(), Refused> {
        match &mut self.stage {
            Stage::Passing => self.hand_out(octets),
            Stage::Over => {}
            Stage::AwaitSetAck(noise) => {
                let answer = greeting::message(noise, &octets)?;
                self.hand_out(answer);
                self.stage = Stage::Passing;
            }
            Stage::BeforeSetSyn { .. } => self.greet(&octets)?,
            // TCP brings the SETSYN. One that is repeated has no place any more.
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

    /// The SETSYN goes to the gateway in the greeting, and to the node as the JOIN that it has to
    /// be.
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
        // Before anything is said: a number that was given before is no reason to call a gateway.
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

    /// What the socket shall be given next. Hand it over whole before asking again, and ask only
    /// when the socket takes it: what waits here longer shares a record.
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
        // Sealing fails for no length that can be here, only for want of nonces.
        let record = sealed.out.seal(&gathered[..n]).ok();
        if record.is_none() {
            self.stage = Stage::Over;
        }
        record
    }

    /// The socket has brought something; what of it is for the machine comes back.
    ///
    /// # Errors
    /// The stream is to be reset.
    pub fn read(&mut self, octets: Bytes) -> Result<Option<Bytes>, Refused> {
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
            let stage = std::mem::replace(&mut self.stage, Stage::Over);
            let (stage, more) = self.advance(stage, &mut plain)?;
            self.stage = stage;
            if !more {
                break;
            }
        }
        Ok(if plain.is_empty() { None } else { Some(plain.freeze()) })
    }

    /// The peer will send no more.
    ///
    /// # Errors
    /// It has stopped in the middle of something.
    pub fn end(&self) -> Result<(), Refused> {
        if self.frames.peek().is_empty() { Ok(()) } else { Err(Refused::Truncated) }
    }

    /// One step; true if another may be possible.
    fn advance(&mut self, stage: Stage, plain: &mut BytesMut) -> Result<(Stage, bool), Refused> {
        let frames = &mut self.frames;
        Ok(match stage {
            // Nobody may speak now.
            Stage::Over | Stage::BeforeSetSyn { .. } => return Err(Refused::Garbled),
            // What follows the greeting is the relay's business.
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
                // The gateway says this, and nothing else: what follows comes from the node.
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
                // The rest of a request with a manifest may be in later records; the machine reads
                // it.
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
                // The sender repeats what the gateway says for it: the gateway can change nothing.
                if !opened.starts_with(&join_octets(join)) {
                    return Err(Refused::Tampered);
                }
                let out = opener.keys().sealer(join.session).ok_or(Refused::Replayed)?;
                append(plain, opened);
                (Stage::Sealed(Sealed { out, into: opener }), true)
            }
        })
    }
}

/// Without a copy where there was nothing.
fn append(plain: &mut BytesMut, octets: Bytes) {
    match plain.is_empty() {
        true => *plain = octets.try_into_mut().unwrap_or_else(|octets| BytesMut::from(&octets[..])),
        false => plain.extend_from_slice(&octets),
    }
}

/// A greeting, once it is whole.
fn take_greeting(frames: &mut Frames) -> Result<Option<(Pattern, BytesMut)>, Refused> {
    let Some(&octet) = frames.peek().first() else { return Ok(None) };
    let Beginning::Greeting(pattern) = greeting::beginning(octet) else { return Err(Refused::Garbled) };
    // The octet stays until the rest is there.
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

/// A JOIN, once it is whole.
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

/// A gateway reads a greeting: the SETSYN in it is for the relay.
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
    if !door.admit(&sender, u64::from_be_bytes(*number)) {
        return Err(Refused::Replayed);
    }
    plain.extend_from_slice(setsyn);
    Ok((noise, sender))
}

/// A node answers a greeting.
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
    // Senders of older versions do not number what they say to a node: theirs is answered each
    // time, and no more than that.
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
