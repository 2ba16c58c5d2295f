//! The patterns of the handshake.

#[cfg(feature = "std")]
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::session::Keys;
use super::{HEAD, is_equal, number, pattern};
use crate::greeting::{self, Purpose};
use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::layout::TAG;
use crate::noise::{Begun, Cipher, hkdf, hmac};
use crate::octets::{KEY, NoEntropy};
use crate::small::Entropy;

/// Length of the id of a pre-shared key.
pub(super) const ID: usize = 8;
/// Length of the nonces of pattern 2.
const NONCE: usize = 16;
/// Length of a session number.
const NUMBER: usize = 4;

/// How a sender proves who it is: one of the patterns of HELLO. A program that uses one of them
/// contains only the code of that one.
pub trait Proof {
    /// State between HELLO and WELCOME.
    type Begun;

    /// Length of the body of HELLO in bytes, without the greeting.
    const BODY: usize;

    /// Number of the pattern in HELLO.
    fn pattern(&self) -> u8;

    /// Appends the body to `hello`, whose first 24 bytes are complete. The body authenticates them,
    /// so that a HELLO with another cookie is another one.
    ///
    /// # Errors
    /// There is no entropy.
    fn begin(&self, greeting: &[u8], entropy: Entropy, hello: &mut Vec<u8>)
    -> Result<Self::Begun, NoEntropy>;

    /// Verifies a WELCOME. Returns the sink's session number, and the keys unless the pattern has
    /// none.
    fn finish(&self, begun: &Self::Begun, welcome: &[u8]) -> Option<(u32, Option<Keys>)>;
}

/// Pattern 0: no keys, for `--insecure`.
#[derive(Clone, Copy, Debug)]
pub struct Clear;

impl Proof for Clear {
    type Begun = ();

    const BODY: usize = 0;

    fn pattern(&self) -> u8 {
        pattern::CLEAR
    }

    fn begin(&self, greeting: &[u8], _: Entropy, hello: &mut Vec<u8>) -> Result<(), NoEntropy> {
        hello.extend_from_slice(greeting);
        Ok(())
    }

    fn finish(&self, (): &(), welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        let number = number(welcome, HEAD).filter(|_| welcome.len() == HEAD + NUMBER)?;
        Some((number, None))
    }
}

/// Id of a pre-shared key, by which the sink finds the key.
pub(super) fn id(key: &SharedKey) -> [u8; ID] {
    let [id, _, _] = hkdf(key.octets(), b"anabranch 1 sense id");
    let mut octets = [0; ID];
    octets.copy_from_slice(&id[..ID]);
    octets
}

/// The three keys that pattern 2 derives from the pre-shared key: for HELLO, for WELCOME, and the
/// base of the session's keys.
fn derived(key: &SharedKey) -> [[u8; KEY]; 3] {
    hkdf(key.octets(), b"anabranch 1 sense shared")
}

/// Keys of a session of pattern 2: to the sink, and to the sender. `welcome` is without its tag.
fn split(base: &[u8; KEY], digest: &[u8; KEY], welcome: &[u8]) -> [Cipher; 2] {
    let mut input = [0; KEY + HEAD + NONCE + NUMBER];
    input[..KEY].copy_from_slice(digest);
    input[KEY..].copy_from_slice(welcome);
    let [to_sink, to_sender, _] = hkdf(base, &input);
    [Cipher::new(to_sink), Cipher::new(to_sender)]
}

/// Pattern 2: a pre-shared key, without X25519 and without forward secrecy. It is the least code
/// and the least work for a small node.
#[derive(Clone, Debug)]
pub struct Shared(pub SharedKey);

/// Length of a WELCOME of pattern 2 without its tag.
const SHARED_WELCOME: usize = HEAD + NONCE + NUMBER;

impl Proof for Shared {
    /// The digest of HELLO.
    type Begun = [u8; KEY];

    const BODY: usize = ID + NONCE + TAG;

    fn pattern(&self) -> u8 {
        pattern::SHARED
    }

    fn begin(
        &self,
        greeting: &[u8],
        entropy: Entropy,
        hello: &mut Vec<u8>,
    ) -> Result<Self::Begun, NoEntropy> {
        let mut nonce = [0; NONCE];
        entropy(&mut nonce)?;
        hello.extend_from_slice(&id(&self.0));
        hello.extend_from_slice(&nonce);
        hello.extend_from_slice(greeting);
        let [key, _, _] = derived(&self.0);
        let digest = hmac(&key, [hello, &[]]);
        hello.extend_from_slice(&digest[..TAG]);
        Ok(digest)
    }

    fn finish(&self, digest: &[u8; KEY], welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        let (claims, tag) = welcome.split_at_checked(SHARED_WELCOME)?;
        let [_, key, base] = derived(&self.0);
        if !is_equal(&hmac(&key, [digest, claims])[..TAG], tag) {
            return None;
        }
        let [seal, open] = split(&base, digest, claims);
        Some((number(claims, HEAD + NONCE)?, Some(Keys { seal, open })))
    }
}

/// The sink's half of pattern 2. Returns the greeting of an authentic HELLO and its digest.
#[cfg(feature = "std")]
pub(super) fn check_shared<'a>(key: &SharedKey, hello: &'a [u8]) -> Option<(&'a [u8], [u8; KEY])> {
    let (claims, tag) = hello.split_at_checked(hello.len().checked_sub(TAG)?)?;
    let [key, _, _] = derived(key);
    let digest = hmac(&key, [claims, &[]]);
    let greeting = claims.get(super::HELLO_BODY + ID + NONCE..)?;
    is_equal(&digest[..TAG], tag).then_some((greeting, digest))
}

/// Completes a WELCOME of pattern 2, whose head is in `welcome`, and returns the session's keys.
#[cfg(feature = "std")]
pub(super) fn welcome_shared(
    key: &SharedKey,
    digest: &[u8; KEY],
    number: u32,
    entropy: Entropy,
    welcome: &mut Vec<u8>,
) -> Result<Keys, NoEntropy> {
    let mut nonce = [0; NONCE];
    entropy(&mut nonce)?;
    welcome.extend_from_slice(&nonce);
    welcome.extend_from_slice(&number.to_be_bytes());
    let [_, key, base] = derived(key);
    let [open, seal] = split(&base, digest, welcome);
    let tag = hmac(&key, [digest, welcome]);
    welcome.extend_from_slice(&tag[..TAG]);
    Ok(Keys { seal, open })
}

/// Pattern 3: a pre-shared key with forward secrecy (Noise NNpsk0).
#[derive(Clone, Debug)]
pub struct Forward(pub SharedKey);

impl Proof for Forward {
    type Begun = Handshake;

    const BODY: usize = ID + KEY + TAG;

    fn pattern(&self) -> u8 {
        pattern::FORWARD
    }

    fn begin(
        &self,
        greeting: &[u8],
        entropy: Entropy,
        hello: &mut Vec<u8>,
    ) -> Result<Self::Begun, NoEntropy> {
        hello.extend_from_slice(&id(&self.0));
        Handshake::begin(greeting::Proof::Shared(&self.0), greeting, entropy, hello)
    }

    fn finish(&self, begun: &Handshake, welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        begun.finish(greeting::Proof::Shared(&self.0), welcome)
    }
}

/// Pattern 1: public keys (Noise IK).
#[derive(Clone, Debug)]
pub struct Known {
    /// The sender's key.
    pub own: SecretKey,
    /// The sink's public key.
    pub sink: PublicKey,
}

impl Known {
    fn proof(&self) -> greeting::Proof<'_> {
        greeting::Proof::Known { own: &self.own, peer: &self.sink }
    }
}

impl Proof for Known {
    type Begun = Handshake;

    const BODY: usize = KEY + (KEY + TAG) + TAG;

    fn pattern(&self) -> u8 {
        pattern::KNOWN
    }

    fn begin(
        &self,
        greeting: &[u8],
        entropy: Entropy,
        hello: &mut Vec<u8>,
    ) -> Result<Self::Begun, NoEntropy> {
        Handshake::begin(self.proof(), greeting, entropy, hello)
    }

    fn finish(&self, begun: &Handshake, welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        begun.finish(self.proof(), welcome)
    }
}

/// A Noise handshake between HELLO and WELCOME.
pub struct Handshake(Begun);

impl Handshake {
    fn begin(
        proof: greeting::Proof<'_>,
        greeting: &[u8],
        entropy: Entropy,
        hello: &mut Vec<u8>,
    ) -> Result<Self, NoEntropy> {
        let ephemeral = ephemeral(entropy)?;
        let head = hello.clone();
        // A greeting is far shorter than what the cipher can encrypt, its only error.
        let begun = Begun::new(Purpose::Sense(&head), proof, ephemeral, greeting, hello);
        begun.map(Self).map_err(|_| NoEntropy)
    }

    fn finish(&self, proof: greeting::Proof<'_>, welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        let mut payload = Vec::with_capacity(NUMBER + TAG);
        let [seal, open] = self.0.finish(proof, welcome.get(HEAD..)?, &mut payload).ok()?;
        let number = number(&payload, 0).filter(|_| payload.len() == NUMBER)?;
        Some((number, Some(Keys { seal, open })))
    }
}

impl core::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Handshake")
    }
}

/// The pattern that an operator has chosen, known at run time only.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub enum AnyProof {
    /// Pattern 0.
    Clear,
    /// Pattern 1.
    Known(Known),
    /// Pattern 2.
    Shared(Shared),
    /// Pattern 3.
    Forward(Forward),
}

/// State of [`AnyProof`] between HELLO and WELCOME.
#[cfg(feature = "std")]
#[derive(Debug)]
pub enum AnyBegun {
    /// Of pattern 0.
    Clear,
    /// Of pattern 2.
    Shared([u8; KEY]),
    /// Of the patterns 1 and 3.
    Noise(Box<Handshake>),
}

#[cfg(feature = "std")]
impl Proof for AnyProof {
    type Begun = AnyBegun;

    const BODY: usize = Known::BODY;

    fn pattern(&self) -> u8 {
        match self {
            Self::Clear => pattern::CLEAR,
            Self::Known(proof) => proof.pattern(),
            Self::Shared(proof) => proof.pattern(),
            Self::Forward(proof) => proof.pattern(),
        }
    }

    fn begin(&self, greeting: &[u8], entropy: Entropy, hello: &mut Vec<u8>) -> Result<AnyBegun, NoEntropy> {
        let noise = |begun| AnyBegun::Noise(Box::new(begun));
        match self {
            Self::Clear => Clear.begin(greeting, entropy, hello).map(|()| AnyBegun::Clear),
            Self::Known(proof) => proof.begin(greeting, entropy, hello).map(noise),
            Self::Shared(proof) => proof.begin(greeting, entropy, hello).map(AnyBegun::Shared),
            Self::Forward(proof) => proof.begin(greeting, entropy, hello).map(noise),
        }
    }

    fn finish(&self, begun: &AnyBegun, welcome: &[u8]) -> Option<(u32, Option<Keys>)> {
        match (self, begun) {
            (Self::Clear, AnyBegun::Clear) => Clear.finish(&(), welcome),
            (Self::Known(proof), AnyBegun::Noise(begun)) => proof.finish(begun, welcome),
            (Self::Shared(proof), AnyBegun::Shared(digest)) => proof.finish(digest, welcome),
            (Self::Forward(proof), AnyBegun::Noise(begun)) => proof.finish(begun, welcome),
            _ => None,
        }
    }
}

/// A new ephemeral key.
pub(super) fn ephemeral(entropy: Entropy) -> Result<SecretKey, NoEntropy> {
    let mut octets = [0; KEY];
    entropy(&mut octets)?;
    Ok(SecretKey::from_octets(octets))
}
