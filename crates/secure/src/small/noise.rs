//! Responder side of the two handshakes that a node answers, after the Noise protocol framework,
//! revision 34: sections 5.1 to 5.3 for the objects, 7.5 and 9 for the patterns IK and NNpsk0.
//! Hosts use `snow`, and tests compare the two. `snow`, with its parser, its table of patterns and
//! its boxes, needs 20 kB more code and 4 kB more stack.

use alloc::vec::Vec;

use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;

use super::Refused;
use crate::greeting::{Own, Pattern, Purpose, name};
use crate::keys::{PublicKey, SecretKey};
use crate::layout::TAG;
use crate::octets::KEY;

/// Block size of BLAKE2s in bytes.
const BLOCK: usize = 64;

type Octets = [u8; KEY];

fn hash(parts: &[&[u8]]) -> Octets {
    let mut blake = Blake2s256::new();
    parts.iter().for_each(|part| blake.update(part));
    blake.finalize().into()
}

/// HMAC (RFC 2104) with BLAKE2s.
fn hmac(key: &Octets, parts: [&[u8]; 2]) -> Octets {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(octet, key)| *octet ^= key);
        block
    };
    let inner = hash(&[&pad(0x36), parts[0], parts[1]]);
    hash(&[&pad(0x5c), &inner])
}

/// HKDF of section 4.3 with three outputs; a caller that needs two ignores the third.
fn hkdf(chaining: &Octets, input: &[u8]) -> [Octets; 3] {
    let temporary = hmac(chaining, [input, &[]]);
    let first = hmac(&temporary, [&[], &[1]]);
    let second = hmac(&temporary, [&first, &[2]]);
    let third = hmac(&temporary, [&second, &[3]]);
    [first, second, third]
}

/// The cipher of one direction of a transport: see section 5.1.
#[derive(Clone)]
pub(super) struct Cipher(Octets);

impl Cipher {
    fn nonce(n: u64) -> chacha20poly1305::Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&n.to_le_bytes());
        nonce.into()
    }

    /// Decrypts `sealed` and appends the plaintext to `plain`. If authentication fails, `plain` is
    /// unchanged.
    pub(super) fn open(
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
    pub(super) fn seal(&self, n: u64, with: &[u8], octets: &mut [u8]) -> Result<[u8; TAG], Refused> {
        let cipher = ChaCha20Poly1305::new(&self.0.into());
        let tag = cipher.encrypt_in_place_detached(&Self::nonce(n), with, octets);
        tag.map(Into::into).map_err(|_| Refused)
    }
}

/// Result of a handshake.
pub(super) struct Agreed {
    /// From the sender, and to the sender.
    pub(super) ciphers: [Cipher; 2],
    /// The sender's key; `None` with a pre-shared key.
    pub(super) peer: Option<PublicKey>,
}

impl Agreed {
    /// A placeholder that is never used for traffic.
    pub(super) fn none() -> Self {
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

    fn open(&mut self, sealed: &[u8], plain: &mut Vec<u8>) -> Result<(), Refused> {
        self.cipher.open(self.n, &self.hash, sealed, plain)?;
        self.n += 1;
        self.mix_hash(sealed);
        Ok(())
    }
}

fn dh(secret: &SecretKey, public: &Octets) -> Octets {
    MontgomeryPoint(*public).mul_clamped(*secret.octets()).to_bytes()
}

fn take<'a>(message: &mut &'a [u8], n: usize) -> Result<&'a [u8], Refused> {
    let (head, rest) = message.split_at_checked(n).ok_or(Refused)?;
    *message = rest;
    Ok(head)
}

/// Processes the first message of a handshake for a transfer, checks that the sender is known, and
/// answers. `ephemeral` must be random and new for each call.
#[inline(never)]
pub(super) fn respond(
    own: Own<'_>,
    mut message: &[u8],
    ephemeral: &SecretKey,
    is_known: impl FnOnce(&PublicKey) -> bool,
) -> Result<(Agreed, [u8; KEY + TAG]), Refused> {
    let initial = hash(&[name(own.pattern()).as_bytes()]);
    let mut state = Symmetric { hash: initial, chaining: initial, cipher: Cipher([0; KEY]), n: 0 };
    state.mix_hash(Purpose::Transfer.prologue());
    let is_shared = own.pattern() == Pattern::Shared;
    match own {
        Own::Known(own) => state.mix_hash(&dh(own, &X25519_BASEPOINT.to_bytes())),
        Own::Shared(key) => state.mix_key_and_hash(key.octets()),
    }

    // IK: e, es, s, ss. NNpsk0: psk, e.
    let theirs: Octets = take(&mut message, KEY)?.try_into().map_err(|_| Refused)?;
    state.mix_hash(&theirs);
    let mut plain = Vec::with_capacity(message.len());
    let mut peer = None;
    match own {
        Own::Known(own) => {
            state.mix_key(&dh(own, &theirs));
            state.open(take(&mut message, KEY + TAG)?, &mut plain)?;
            let key = PublicKey(plain[..].try_into().map_err(|_| Refused)?);
            if !is_known(&key) {
                return Err(Refused);
            }
            state.mix_key(&dh(own, &key.0));
            peer = Some(key);
        }
        Own::Shared(_) => state.mix_key(&theirs),
    }
    plain.clear();
    state.open(message, &mut plain)?;

    // IK: e, ee, se. NNpsk0: e, ee. The payload is empty.
    let public = dh(ephemeral, &X25519_BASEPOINT.to_bytes());
    state.mix_hash(&public);
    if is_shared {
        state.mix_key(&public);
    }
    state.mix_key(&dh(ephemeral, &theirs));
    if let Some(peer) = &peer {
        state.mix_key(&dh(ephemeral, &peer.0));
    }
    let tag = state.cipher.seal(0, &state.hash, &mut [])?;
    let mut answer = [0; KEY + TAG];
    answer[..KEY].copy_from_slice(&public);
    answer[KEY..].copy_from_slice(&tag);

    let [from, to, _] = hkdf(&state.chaining, &[]);
    Ok((Agreed { ciphers: [Cipher(from), Cipher(to)], peer }, answer))
}
