//! Records: the encrypted messages of a stream after the handshake.
//!
//! The nonce of a record is not sent. It consists of the number of the stream within its transfer
//! and the number of the record within its stream. A record that is replayed, omitted, or moved to
//! another stream therefore does not open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, Bytes, BytesMut};
use snow::{HandshakeState, StatelessTransportState};

use crate::frames::{BadLength, Frames};
use crate::greeting::{self, Failed};
use crate::keys::PublicKey;
use crate::layout::{LENGTH, OVERHEAD, TAG, nonce};
use crate::roster::{Member, Peer};

/// Length limit of the plaintext of one record in bytes.
pub const MAX_PLAIN: usize = 16 << 10;

/// The keys of one transfer, which all of its streams use.
pub struct TransferKeys {
    noise: StatelessTransportState,
    /// At a node: the sender that requested the transfer.
    member: Option<Arc<Member>>,
    /// Bitmap of the stream numbers for which a sealer was created.
    used: [AtomicU64; 4],
}

impl TransferKeys {
    /// The keys that result from a handshake.
    pub(crate) fn new(noise: HandshakeState, member: Option<Arc<Member>>) -> Result<Self, Failed> {
        Ok(Self { noise: noise.into_stateless_transport_mode()?, member, used: Default::default() })
    }

    pub(crate) fn member(&self) -> Option<&Arc<Member>> {
        self.member.as_ref()
    }

    /// At a node: the sender that requested the transfer.
    pub(crate) fn sender(&self) -> Option<&Peer> {
        self.member.as_ref().map(|member| &member.peer)
    }

    /// At a node: true if the sender's key was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.is_revoked())
    }

    /// The peer's public key; `None` with a pre-shared key.
    pub fn peer(&self) -> Option<PublicKey> {
        greeting::peer(self.noise.get_remote_static())
    }

    /// Creates the sealer of the stream with this number; `None` if one was created before. The
    /// sealer counts nonces from the start, so a second one would reuse them.
    pub(crate) fn sealer(self: &Arc<Self>, stream: u8) -> Option<Sealer> {
        let bit = 1 << (stream % 64);
        let was = self.used[usize::from(stream / 64)].fetch_or(bit, Ordering::Relaxed);
        (was & bit == 0).then(|| Sealer { keys: Arc::clone(self), count: Count::new(stream) })
    }

    /// Creates an opener of the stream with this number. Opening a record twice is harmless.
    pub(crate) fn opener(self: &Arc<Self>, stream: u8) -> Opener {
        Opener { keys: Arc::clone(self), count: Count::new(stream) }
    }
}

impl fmt::Debug for TransferKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransferKeys with {:?}", self.peer())
    }
}

/// Number of records in one direction of a stream: the nonce has 56 bits for it, and Noise reserves
/// 2^64 - 1.
const RECORDS: u64 = (1 << 56) - 1;

/// Counts the records in one direction of a stream. The type is not `Clone`, since a copy would
/// reuse nonces.
#[derive(Debug)]
struct Count {
    stream: u8,
    records: u64,
}

impl Count {
    const fn new(stream: u8) -> Self {
        Self { stream, records: 0 }
    }

    /// The next nonce; `None` when all are used.
    fn next(&mut self) -> Option<u64> {
        let record = self.records;
        self.records = record + u64::from(record < RECORDS);
        (record < RECORDS).then(|| nonce(self.stream, record))
    }
}

/// Seals the records of one stream. [`TransferKeys::sealer`] creates one per number.
#[derive(Debug)]
pub(crate) struct Sealer {
    keys: Arc<TransferKeys>,
    count: Count,
}

impl Sealer {
    /// Seals one record of at most [`MAX_PLAIN`] bytes.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> Result<Bytes, Failed> {
        let nonce = self.count.next().ok_or(Failed)?;
        let mut octets = BytesMut::zeroed(plain.len() + OVERHEAD);
        let (length, sealed) = octets.split_at_mut(LENGTH);
        let n = self.keys.noise.write_message(nonce, plain, sealed)?;
        { length }.put_u16(n as u16);
        Ok(octets.freeze())
    }
}

/// Opens the records of one stream.
#[derive(Debug)]
pub(crate) struct Opener {
    keys: Arc<TransferKeys>,
    count: Count,
}

impl Opener {
    /// The keys of the transfer.
    pub(crate) fn keys(&self) -> &Arc<TransferKeys> {
        &self.keys
    }

    /// Opens all complete records and concatenates their plaintext.
    pub(crate) fn open(&mut self, frames: &mut Frames) -> Result<Bytes, Bad> {
        let mut plain = BytesMut::new();
        while let Some(sealed) = frames.next(MAX_PLAIN + TAG)? {
            let most = sealed.len().checked_sub(TAG).ok_or(Bad::Length)?;
            let at = plain.len();
            plain.resize(at + most, 0);
            let nonce = self.count.next().ok_or(Bad::Length)?;
            let opened = self.keys.noise.read_message(nonce, &sealed, &mut plain[at..]);
            plain.truncate(at + opened.map_err(|_| Bad::Tag)?);
        }
        frames.release();
        Ok(plain.freeze())
    }
}

/// Why a record cannot be opened.
#[derive(Debug)]
pub(crate) enum Bad {
    /// Its length is invalid.
    Length,
    /// Its tag is wrong: the record was changed, or is at another position.
    Tag,
}

impl From<BadLength> for Bad {
    fn from(_: BadLength) -> Self {
        Self::Length
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::greeting::{Own, Proof, Purpose, begin, message, respond};
    use crate::keys::SharedKey;
    use crate::layout::CONTROL;

    /// The same keys at a sender and at a node.
    fn pair() -> [Arc<TransferKeys>; 2] {
        let shared = SharedKey::from_octets([9; 32]);
        let mut near = begin(Purpose::Transfer, Proof::Shared(&shared), None).unwrap();
        let mut far = respond(Purpose::Transfer, Own::Shared(&shared), None).unwrap();
        greeting::read(&mut far, &message(&mut near, &[]).unwrap()[LENGTH..]).unwrap();
        greeting::read(&mut near, &message(&mut far, &[]).unwrap()[LENGTH..]).unwrap();
        [near, far].map(|noise| Arc::new(TransferKeys::new(noise, None).unwrap()))
    }

    /// The key schedule for 65,535 sessions. One handshake has numbers for 255 sessions; the next
    /// handshake has other keys. The plaintext is constant, so the same key and nonce would give
    /// the same record.
    #[test]
    fn no_key_and_nonce_seal_twice_in_65535_sessions() {
        const SESSIONS: usize = 65_535;
        const RECORDS: usize = 3;
        let mut records = HashSet::new();
        let mut handshakes = 0;
        // A sender that counts its sessions in one byte and lets the counter wrap.
        let mut number = u8::MAX;
        let mut keys = pair();
        keys.iter().for_each(|keys| drop(keys.sealer(number)));
        for session in 0..SESSIONS {
            let sealers = match keys.each_ref().map(|keys| keys.sealer(number)) {
                [Some(near), Some(far)] => [near, far],
                [None, None] => {
                    keys = pair();
                    handshakes += 1;
                    for keys in &keys {
                        let mut control = keys.sealer(CONTROL).expect("nothing was sealed yet");
                        assert!(records.insert(control.seal(&[0; 8]).unwrap()), "handshake {handshakes}");
                    }
                    number = 0;
                    keys.each_ref().map(|keys| keys.sealer(number).expect("nothing was sealed yet"))
                }
                _ => panic!("both count the same"),
            };
            number = number.wrapping_add(1);
            for mut sealer in sealers {
                for _ in 0..RECORDS {
                    assert!(records.insert(sealer.seal(&[0; 8]).unwrap()), "session {session}");
                }
            }
        }
        assert_eq!(handshakes, SESSIONS / 255);
        assert_eq!(records.len(), (SESSIONS * RECORDS + handshakes) * 2);
        // All numbers of one handshake, each requested 257 times.
        let [near, _] = pair();
        let given = (0..=u16::MAX).filter(|number| near.sealer(*number as u8).is_some()).count();
        assert_eq!(given, 256);
    }

    #[test]
    fn the_last_nonce_of_a_stream_is_not_followed_by_another_stream_s_first() {
        let [near, far] = pair();
        for stream in [0, 254, CONTROL] {
            let mut sealer = near.sealer(stream).unwrap();
            sealer.count.records = RECORDS - 1;
            let record = sealer.seal(b"last").unwrap();
            assert!(sealer.seal(b"one more").is_err());
            assert!(sealer.seal(b"and again").is_err());
            let mut opener = far.opener(stream);
            opener.count.records = RECORDS - 1;
            let mut frames = Frames::default();
            frames.push(&record);
            assert_eq!(opener.open(&mut frames).unwrap(), &b"last"[..]);
            frames.push(&record);
            assert!(opener.open(&mut frames).is_err());
        }
    }
}
