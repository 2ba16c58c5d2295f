//! Both sides of the two handshakes, after the Noise protocol framework, revision 34: sections 5.1
//! to 5.3 for the objects, 7.5 and 9 for the patterns IK and NNpsk0. Small nodes and datagrams use
//! this code; streams of hosts use `snow`, and tests compare the two. `snow`, with its parser, its
//! table of patterns and its boxes, needs 20 kB more code and 4 kB more stack.

use alloc::vec::Vec;

use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;

use crate::greeting::{Own, Pattern, Proof, Purpose, name};
use crate::keys::{PublicKey, SecretKey};
use crate::layout::TAG;
use crate::octets::KEY;

/// Block size of BLAKE2s in bytes.
const BLOCK: usize = 64;

type Octets = [u8; KEY];

/// The peer has not proved a known key, or its input was changed, reordered, or is too long. A
/// stream must be reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the peer is not known, or its data was changed or is too long")]
pub struct Refused;

fn hash(parts: &[&[u8]]) -> Octets {
    let mut blake = Blake2s256::new();
    parts.iter().for_each(|part| blake.update(part));
    blake.finalize().into()
}

/// HMAC (RFC 2104) with BLAKE2s.
pub(crate) fn hmac(key: &Octets, parts: [&[u8]; 2]) -> Octets {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(octet, key)| *octet ^= key);
        block
    };
    let inner = hash(&[&pad(0x36), parts[0], parts[1]]);
    hash(&[&pad(0x5c), &inner])
}

/// HKDF of section 4.3 with three outputs; a caller that needs two ignores the third.
pub(crate) fn hkdf(chaining: &Octets, input: &[u8]) -> [Octets; 3] {
    let temporary = hmac(chaining, [input, &[]]);
    let first = hmac(&temporary, [&[], &[1]]);
    let second = hmac(&temporary, [&first, &[2]]);
    let third = hmac(&temporary, [&second, &[3]]);
    [first, second, third]
}

/// The cipher of one direction of a transport: see section 5.1.
#[derive(Clone)]
pub(crate) struct Cipher(Octets);

impl Cipher {
    /// The cipher with this key.
    pub(crate) const fn new(key: Octets) -> Self {
        Self(key)
    }

    fn nonce(n: u64) -> chacha20poly1305::Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&n.to_le_bytes());
        nonce.into()
    }

    /// Decrypts `sealed` and appends the plaintext to `plain`. If authentication fails, `plain` is
    /// unchanged.
    pub(crate) fn open(
        &self,
        n: u64,
        with: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (octets, tag) = sealed.split_last_chunk::<TAG>().ok_or(Refused)?;
        let from = plain.len();
        plain.extend_from_slice(octets);
        let cipher = ChaCha20Poly1305::new(&self.0.into());
        let opened =
            cipher.decrypt_in_place_detached(&Self::nonce(n), with, &mut plain[from..], &(*tag).into());
        opened.map_err(|_| {
            plain.truncate(from);
            Refused
        })
    }

    /// Encrypts `octets` in place and returns the tag.
    pub(crate) fn seal(&self, n: u64, with: &[u8], octets: &mut [u8]) -> Result<[u8; TAG], Refused> {
        let cipher = ChaCha20Poly1305::new(&self.0.into());
        let tag = cipher.encrypt_in_place_detached(&Self::nonce(n), with, octets);
        tag.map(Into::into).map_err(|_| Refused)
    }
}

/// Result of a handshake.
pub(crate) struct Agreed {
    /// From the sender, and to the sender.
    pub(crate) ciphers: [Cipher; 2],
    /// The sender's key; `None` with a pre-shared key.
    pub(crate) peer: Option<PublicKey>,
}

impl Agreed {
    /// A placeholder that is never used for traffic.
    pub(crate) fn none() -> Self {
        Self { ciphers: [Cipher([0; KEY]), Cipher([0; KEY])], peer: None }
    }
}

/// SymmetricState of section 5.2.
struct Symmetric {
    hash: Octets,
    chaining: Octets,
    cipher: Cipher,
    n: u64,
}

impl Symmetric {
    /// The state before the first message; `responder` is the responder's public key, which the
    /// initiator knows in the pattern IK.
    fn new(purpose: Purpose<'_>, own: Own<'_>, responder: Option<&Octets>) -> Self {
        let initial = hash(&[name(own.pattern()).as_bytes()]);
        let mut state = Self { hash: initial, chaining: initial, cipher: Cipher([0; KEY]), n: 0 };
        let [fixed, more] = purpose.prologue();
        state.hash = hash(&[&state.hash, fixed, more]);
        match (own, responder) {
            (Own::Known(_), Some(responder)) => state.mix_hash(responder),
            (Own::Known(own), None) => state.mix_hash(&public(own)),
            (Own::Shared(key), _) => state.mix_key_and_hash(key.octets()),
        }
        state
    }

    fn mix_hash(&mut self, octets: &[u8]) {
        self.hash = hash(&[&self.hash, octets]);
    }

    fn mix_key(&mut self, input: &[u8]) {
        let [chaining, key, _] = hkdf(&self.chaining, input);
        (self.chaining, self.cipher, self.n) = (chaining, Cipher(key), 0);
    }

    fn mix_key_and_hash(&mut self, input: &[u8]) {
        let [chaining, hash, key] = hkdf(&self.chaining, input);
        self.mix_hash(&hash);
        (self.chaining, self.cipher, self.n) = (chaining, Cipher(key), 0);
    }

    /// The token `e`. With a pre-shared key, an ephemeral key also enters the chaining key (section
    /// 9.2).
    fn mix_ephemeral(&mut self, public: &Octets, is_shared: bool) {
        self.mix_hash(public);
        if is_shared {
            self.mix_key(public);
        }
    }

    fn open(&mut self, sealed: &[u8], plain: &mut Vec<u8>) -> Result<(), Refused> {
        self.cipher.open(self.n, &self.hash, sealed, plain)?;
        self.n += 1;
        self.mix_hash(sealed);
        Ok(())
    }

    /// Appends the encrypted `octets` and the tag to `out`.
    fn seal(&mut self, octets: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
        let from = out.len();
        out.extend_from_slice(octets);
        let tag = self.cipher.seal(self.n, &self.hash, &mut out[from..])?;
        out.extend_from_slice(&tag);
        self.n += 1;
        self.mix_hash(&out[from..]);
        Ok(())
    }

    /// From the initiator, and to the initiator.
    fn split(&self) -> [Cipher; 2] {
        let [from, to, _] = hkdf(&self.chaining, &[]);
        [Cipher(from), Cipher(to)]
    }
}

fn dh(secret: &SecretKey, public: &Octets) -> Octets {
    MontgomeryPoint(*public).mul_clamped(*secret.octets()).to_bytes()
}

fn public(secret: &SecretKey) -> Octets {
    dh(secret, &X25519_BASEPOINT.to_bytes())
}

fn take<'a>(message: &mut &'a [u8], n: usize) -> Result<&'a [u8], Refused> {
    let (head, rest) = message.split_at_checked(n).ok_or(Refused)?;
    *message = rest;
    Ok(head)
}

fn take_key(message: &mut &[u8]) -> Result<Octets, Refused> {
    take(message, KEY)?.try_into().map_err(|_| Refused)
}

/// The responder after the first message.
pub(crate) struct Received {
    state: Symmetric,
    theirs: Octets,
    /// The initiator's key; `None` with a pre-shared key.
    peer: Option<PublicKey>,
}

/// Processes the first message of a handshake, checks that the initiator is known, and appends the
/// payload to `plain`.
#[inline(never)]
pub(crate) fn receive(
    purpose: Purpose<'_>,
    own: Own<'_>,
    mut message: &[u8],
    plain: &mut Vec<u8>,
    is_known: impl FnOnce(&PublicKey) -> bool,
) -> Result<Received, Refused> {
    let mut state = Symmetric::new(purpose, own, None);
    // IK: e, es, s, ss. NNpsk0: psk, e.
    let theirs = take_key(&mut message)?;
    state.mix_ephemeral(&theirs, own.pattern() == Pattern::Shared);
    let mut peer = None;
    if let Own::Known(own) = own {
        state.mix_key(&dh(own, &theirs));
        let mut key = Vec::with_capacity(KEY);
        state.open(take(&mut message, KEY + TAG)?, &mut key)?;
        let key = PublicKey(key[..].try_into().map_err(|_| Refused)?);
        if !is_known(&key) {
            return Err(Refused);
        }
        state.mix_key(&dh(own, &key.0));
        peer = Some(key);
    }
    state.open(message, plain)?;
    Ok(Received { state, theirs, peer })
}

impl Received {
    /// The initiator's key; `None` with a pre-shared key.
    #[cfg(feature = "std")]
    pub(crate) fn peer(&self) -> Option<PublicKey> {
        self.peer
    }

    /// Appends the second message with this payload to `out`. `ephemeral` must be random and new
    /// for each call.
    pub(crate) fn answer(
        mut self,
        ephemeral: &SecretKey,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Agreed, Refused> {
        let Self { state, theirs, peer } = &mut self;
        // IK: e, ee, se. NNpsk0: e, ee.
        let own = public(ephemeral);
        out.extend_from_slice(&own);
        state.mix_ephemeral(&own, peer.is_none());
        state.mix_key(&dh(ephemeral, theirs));
        if let Some(peer) = peer {
            state.mix_key(&dh(ephemeral, &peer.0));
        }
        state.seal(payload, out)?;
        Ok(Agreed { ciphers: state.split(), peer: *peer })
    }
}

/// The initiator after the first message.
pub(crate) struct Begun {
    state: Symmetric,
    ephemeral: SecretKey,
}

impl Begun {
    /// Appends the first message with this payload to `out`. `ephemeral` must be random and new for
    /// each call.
    pub(crate) fn new(
        purpose: Purpose<'_>,
        proof: Proof<'_>,
        ephemeral: SecretKey,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Refused> {
        let (own, peer) = proof.parts();
        let mut state = Symmetric::new(purpose, own, peer.map(|peer| &peer.0));
        let key = public(&ephemeral);
        out.extend_from_slice(&key);
        state.mix_ephemeral(&key, peer.is_none());
        if let (Own::Known(own), Some(peer)) = (own, peer) {
            state.mix_key(&dh(&ephemeral, &peer.0));
            state.seal(&public(own), out)?;
            state.mix_key(&dh(own, &peer.0));
        }
        state.seal(payload, out)?;
        Ok(Self { state, ephemeral })
    }

    /// Processes the second message, appends its payload to `plain`, and returns the ciphers: to
    /// the responder, and from it. A message that does not verify leaves the state as it was.
    pub(crate) fn finish(
        &self,
        proof: Proof<'_>,
        mut message: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<[Cipher; 2], Refused> {
        let Symmetric { hash, chaining, cipher, n } = &self.state;
        let mut state = Symmetric { hash: *hash, chaining: *chaining, cipher: cipher.clone(), n: *n };
        let theirs = take_key(&mut message)?;
        let (own, peer) = proof.parts();
        state.mix_ephemeral(&theirs, peer.is_none());
        state.mix_key(&dh(&self.ephemeral, &theirs));
        if let (Own::Known(own), Some(_)) = (own, peer) {
            state.mix_key(&dh(own, &theirs));
        }
        state.open(message, plain)?;
        Ok(state.split())
    }
}
