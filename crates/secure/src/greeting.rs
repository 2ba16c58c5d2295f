//! Handshakes of one round trip: who speaks, with whom, and for what.

#[cfg(feature = "std")]
use bytes::{BufMut, Bytes, BytesMut};
#[cfg(feature = "std")]
use snow::{Builder, HandshakeState};

#[cfg(feature = "std")]
use crate::keys::PublicKey;
use crate::keys::{SecretKey, SharedKey};
#[cfg(feature = "std")]
use crate::layout::LENGTH;

/// The first byte of a stream that begins with a handshake: a message type that SET itself does
/// not have, and the pattern.
const GREETING: u8 = 0xb0;
/// The longest message of a handshake: two keys, two tags and a payload.
pub(crate) const MAX_GREETING: usize = 256;

const KNOWN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const SHARED: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// How two know each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// Each by the other's public key.
    Known,
    /// By a key that both have.
    Shared,
}

/// For what a handshake is good; one for another purpose does not hold (the prologue of Noise).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A transfer, from end to end.
    Transfer,
    /// To be served by a gateway.
    #[cfg(feature = "std")]
    Hop,
}

impl Purpose {
    pub(crate) const fn prologue(self) -> &'static [u8] {
        match self {
            Self::Transfer => b"anabranch 1 transfer",
            #[cfg(feature = "std")]
            Self::Hop => b"anabranch 1 hop",
        }
    }
}

#[cfg(feature = "std")]
/// Whom one has to convince, and with what.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proof<'a> {
    /// We have this secret, they the one that belongs to this key.
    Known { own: &'a SecretKey, peer: &'a PublicKey },
    /// Both have this one.
    Shared(&'a SharedKey),
}

#[cfg(feature = "std")]
/// A handshake that did not hold.
#[derive(Debug)]
pub(crate) struct Failed;

#[cfg(feature = "std")]
impl From<snow::Error> for Failed {
    fn from(_: snow::Error) -> Self {
        Self
    }
}

pub(crate) const fn name(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Known => KNOWN,
        Pattern::Shared => SHARED,
    }
}

#[cfg(feature = "std")]
fn builder(pattern: Pattern, purpose: Purpose) -> Result<Builder<'static>, Failed> {
    Ok(Builder::new(name(pattern).parse()?).prologue(purpose.prologue())?)
}

#[cfg(feature = "std")]
/// Begins a handshake. `ephemeral` is for test vectors; otherwise it is drawn.
pub(crate) fn begin(
    purpose: Purpose,
    proof: Proof<'_>,
    ephemeral: Option<&[u8]>,
) -> Result<HandshakeState, Failed> {
    let mut builder = match proof {
        Proof::Known { own, peer } => {
            builder(Pattern::Known, purpose)?.local_private_key(own.octets())?.remote_public_key(&peer.0)?
        }
        Proof::Shared(key) => builder(Pattern::Shared, purpose)?.psk(0, key.octets())?,
    };
    if let Some(ephemeral) = ephemeral {
        builder = builder.fixed_ephemeral_key_for_testing_only(ephemeral);
    }
    Ok(builder.build_initiator()?)
}

#[cfg(feature = "std")]
/// Answers one that somebody else has begun.
pub(crate) fn respond(
    purpose: Purpose,
    own: Own<'_>,
    ephemeral: Option<&[u8]>,
) -> Result<HandshakeState, Failed> {
    let mut builder = match own {
        Own::Known(own) => builder(Pattern::Known, purpose)?.local_private_key(own.octets())?,
        Own::Shared(key) => builder(Pattern::Shared, purpose)?.psk(0, key.octets())?,
    };
    if let Some(ephemeral) = ephemeral {
        builder = builder.fixed_ephemeral_key_for_testing_only(ephemeral);
    }
    Ok(builder.build_responder()?)
}

/// With what one answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Own<'a> {
    /// The secret whose public part the caller knows.
    Known(&'a SecretKey),
    /// What both have.
    Shared(&'a SharedKey),
}

impl Own<'_> {
    pub(crate) const fn pattern(&self) -> Pattern {
        match self {
            Self::Known(_) => Pattern::Known,
            Self::Shared(_) => Pattern::Shared,
        }
    }
}

#[cfg(feature = "std")]
/// The first message, with the byte before it that says what it is.
pub(crate) fn first(pattern: Pattern, noise: &mut HandshakeState, payload: &[u8]) -> Result<Bytes, Failed> {
    let mut octets = BytesMut::with_capacity(1 + LENGTH + MAX_GREETING);
    octets.put_u8(GREETING | pattern as u8);
    octets.extend_from_slice(&message(noise, payload)?);
    Ok(octets.freeze())
}

#[cfg(feature = "std")]
/// A message of a handshake, framed.
pub(crate) fn message(noise: &mut HandshakeState, payload: &[u8]) -> Result<Bytes, Failed> {
    let mut octets = [0; MAX_GREETING];
    let n = noise.write_message(payload, &mut octets)?;
    Ok(crate::frames::frame(&octets[..n]))
}

#[cfg(feature = "std")]
/// The payload of a message.
pub(crate) fn read(noise: &mut HandshakeState, message: &[u8]) -> Result<Bytes, Failed> {
    let mut payload = [0; MAX_GREETING];
    let n = noise.read_message(message, &mut payload)?;
    Ok(Bytes::copy_from_slice(&payload[..n]))
}

#[cfg(feature = "std")]
/// Whose key the other end has shown; `None` where it has a shared one.
pub(crate) fn peer(remote_static: Option<&[u8]>) -> Option<PublicKey> {
    remote_static.and_then(|key| key.try_into().ok()).map(PublicKey)
}

/// What a stream begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// A handshake.
    Greeting(Pattern),
    /// Something else.
    Other,
}

/// What the first byte of a stream says.
pub(crate) const fn beginning(octet: u8) -> Beginning {
    match octet ^ GREETING {
        0 => Beginning::Greeting(Pattern::Known),
        1 => Beginning::Greeting(Pattern::Shared),
        _ => Beginning::Other,
    }
}
