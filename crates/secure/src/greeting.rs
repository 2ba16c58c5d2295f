//! One-round-trip handshakes: who the peers are, and the purpose of the stream.

#[cfg(feature = "std")]
use bytes::{BufMut, Bytes, BytesMut};
#[cfg(feature = "std")]
use snow::{Builder, HandshakeState};

use crate::keys::{PublicKey, SecretKey, SharedKey};
#[cfg(feature = "std")]
use crate::layout::LENGTH;

/// First byte of a stream that begins with a handshake: a message type that SET does not use,
/// combined with the pattern.
const GREETING: u8 = 0xb0;
/// Length limit of a handshake message in bytes: two keys, two tags and a payload.
pub(crate) const MAX_GREETING: usize = 256;

const KNOWN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const SHARED: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// How the peers authenticate each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// Each knows the public key of the other (Noise IK).
    Known,
    /// Both have a pre-shared key (Noise NNpsk0).
    Shared,
}

/// Purpose of a handshake, used as the Noise prologue: a handshake for another purpose fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose<'a> {
    /// A transfer, end to end between sender and node.
    Transfer,
    /// Service by a gateway.
    #[cfg(feature = "std")]
    Hop,
    /// RDCA over UDP, end to end between sender and sink. The prologue also has the part of HELLO
    /// before the first message.
    Sense(&'a [u8]),
}

impl<'a> Purpose<'a> {
    /// The two parts of the prologue.
    pub(crate) const fn prologue(self) -> [&'a [u8]; 2] {
        match self {
            Self::Transfer => [b"anabranch 1 transfer", &[]],
            #[cfg(feature = "std")]
            Self::Hop => [b"anabranch 1 hop", &[]],
            Self::Sense(head) => [b"anabranch 1 sense", head],
        }
    }
}

/// The keys with which the initiator authenticates the peers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proof<'a> {
    /// Our secret key and the public key of the peer.
    Known { own: &'a SecretKey, peer: &'a PublicKey },
    /// The pre-shared key.
    Shared(&'a SharedKey),
}

impl<'a> Proof<'a> {
    /// Our key, and the public key of the peer unless the key is shared.
    pub(crate) const fn parts(self) -> (Own<'a>, Option<&'a PublicKey>) {
        match self {
            Self::Known { own, peer } => (Own::Known(own), Some(peer)),
            Self::Shared(key) => (Own::Shared(key), None),
        }
    }
}

#[cfg(feature = "std")]
/// A handshake that failed.
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
fn builder(pattern: Pattern, prologue: &[u8]) -> Result<Builder<'_>, Failed> {
    Ok(Builder::new(name(pattern).parse()?).prologue(prologue)?)
}

#[cfg(feature = "std")]
/// Begins a handshake. `ephemeral` is fixed only by test vectors; otherwise it is random.
pub(crate) fn begin(
    purpose: Purpose<'_>,
    proof: Proof<'_>,
    ephemeral: Option<&[u8]>,
) -> Result<HandshakeState, Failed> {
    let prologue = purpose.prologue().concat();
    let mut builder = match proof {
        Proof::Known { own, peer } => {
            builder(Pattern::Known, &prologue)?.local_private_key(own.octets())?.remote_public_key(&peer.0)?
        }
        Proof::Shared(key) => builder(Pattern::Shared, &prologue)?.psk(0, key.octets())?,
    };
    if let Some(ephemeral) = ephemeral {
        builder = builder.fixed_ephemeral_key_for_testing_only(ephemeral);
    }
    Ok(builder.build_initiator()?)
}

#[cfg(feature = "std")]
/// Responds to a handshake that the peer has begun.
pub(crate) fn respond(
    purpose: Purpose<'_>,
    own: Own<'_>,
    ephemeral: Option<&[u8]>,
) -> Result<HandshakeState, Failed> {
    let prologue = purpose.prologue().concat();
    let mut builder = match own {
        Own::Known(own) => builder(Pattern::Known, &prologue)?.local_private_key(own.octets())?,
        Own::Shared(key) => builder(Pattern::Shared, &prologue)?.psk(0, key.octets())?,
    };
    if let Some(ephemeral) = ephemeral {
        builder = builder.fixed_ephemeral_key_for_testing_only(ephemeral);
    }
    Ok(builder.build_responder()?)
}

/// The own key of either side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Own<'a> {
    /// The secret key. The peer knows or learns its public key.
    Known(&'a SecretKey),
    /// The pre-shared key.
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
/// The first message, preceded by its type byte.
pub(crate) fn first(pattern: Pattern, noise: &mut HandshakeState, payload: &[u8]) -> Result<Bytes, Failed> {
    let mut octets = BytesMut::with_capacity(1 + LENGTH + MAX_GREETING);
    octets.put_u8(GREETING | pattern as u8);
    octets.extend_from_slice(&message(noise, payload)?);
    Ok(octets.freeze())
}

#[cfg(feature = "std")]
/// A further handshake message, framed.
pub(crate) fn message(noise: &mut HandshakeState, payload: &[u8]) -> Result<Bytes, Failed> {
    let mut octets = [0; MAX_GREETING];
    let n = noise.write_message(payload, &mut octets)?;
    Ok(crate::frames::frame(&octets[..n]))
}

#[cfg(feature = "std")]
/// Returns the payload of a message.
pub(crate) fn read(noise: &mut HandshakeState, message: &[u8]) -> Result<Bytes, Failed> {
    let mut payload = [0; MAX_GREETING];
    let n = noise.read_message(message, &mut payload)?;
    Ok(Bytes::copy_from_slice(&payload[..n]))
}

#[cfg(feature = "std")]
/// Public key of the peer; `None` with a pre-shared key.
pub(crate) fn peer(remote_static: Option<&[u8]>) -> Option<PublicKey> {
    remote_static.and_then(|key| key.try_into().ok()).map(PublicKey)
}

/// Content at the beginning of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// A handshake.
    Greeting(Pattern),
    /// No handshake.
    Other,
}

/// Classifies a stream by its first byte.
pub(crate) const fn beginning(octet: u8) -> Beginning {
    match octet ^ GREETING {
        0 => Beginning::Greeting(Pattern::Known),
        1 => Beginning::Greeting(Pattern::Shared),
        _ => Beginning::Other,
    }
}
