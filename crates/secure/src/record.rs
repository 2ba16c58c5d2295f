//! Records: what is written on a stream once two know each other.
//!
//! A record's nonce is not sent. It is the number of the stream within its transfer and the number of the record within its
//! stream, so that a record is good in one place only: one that is replayed, left out, or moved to another stream does not open.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, Bytes, BytesMut};
use snow::{HandshakeState, StatelessTransportState};

use crate::frames::{BadLength, Frames, LENGTH};
use crate::greeting::{self, Failed};
use crate::keys::PublicKey;

/// Octets of plaintext in one record, at most.
pub const MAX_PLAIN: usize = 16 << 10;
/// Octets that a record adds: its length and the authentication tag.
pub const OVERHEAD: usize = LENGTH + TAG;
/// Octets of an authentication tag.
const TAG: usize = 16;
/// The control stream's number; sessions have theirs from 0.
pub(crate) const CONTROL: u8 = 255;

/// The keys of one transfer, which all of its streams use.
pub struct TransferKeys {
    noise: StatelessTransportState,
    /// Which sessions have begun: each may do so once.
    used: [AtomicU64; 4],
}

impl TransferKeys {
    /// Those that a handshake has led to.
    pub(crate) fn new(noise: HandshakeState) -> Result<Self, Failed> {
        Ok(Self { noise: noise.into_stateless_transport_mode()?, used: Default::default() })
    }

    /// Who is at the other end; `None` if all that is known is that it has the shared key.
    pub fn peer(&self) -> Option<PublicKey> {
        greeting::peer(self.noise.get_remote_static())
    }

    /// Marks a session as begun; false if it already was.
    pub(crate) fn take(&self, session: u8) -> bool {
        let bit = 1 << (session % 64);
        self.used[usize::from(session / 64)].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

impl fmt::Debug for TransferKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransferKeys with {:?}", self.peer())
    }
}

/// The number that a record is sealed with.
fn nonce(stream: u8, record: u64) -> u64 {
    u64::from(stream) << 56 | record
}

/// Records of one direction of one stream, as they are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    stream: u8,
    records: u64,
}

impl Count {
    pub(crate) const fn new(stream: u8) -> Self {
        Self { stream, records: 0 }
    }

    fn next(&mut self) -> u64 {
        let nonce = nonce(self.stream, self.records);
        self.records += 1;
        nonce
    }
}

/// Seals one record of at most [`MAX_PLAIN`] octets.
pub(crate) fn seal(keys: &TransferKeys, count: &mut Count, plain: &[u8]) -> Result<Bytes, Failed> {
    let mut octets = BytesMut::zeroed(plain.len() + OVERHEAD);
    let (length, sealed) = octets.split_at_mut(LENGTH);
    let n = keys.noise.write_message(count.next(), plain, sealed)?;
    { length }.put_u16(n as u16);
    Ok(octets.freeze())
}

/// Why records cannot be opened.
#[derive(Debug)]
pub(crate) enum Bad {
    /// Its length cannot be.
    Length,
    /// It does not belong here, or was changed.
    Tag,
}

impl From<BadLength> for Bad {
    fn from(_: BadLength) -> Self {
        Self::Length
    }
}

/// Opens all records that are whole, into one piece.
pub(crate) fn open(keys: &TransferKeys, count: &mut Count, frames: &mut Frames) -> Result<Bytes, Bad> {
    let mut plain = BytesMut::new();
    while let Some(sealed) = frames.next(MAX_PLAIN + TAG)? {
        let most = sealed.len().checked_sub(TAG).ok_or(Bad::Length)?;
        let at = plain.len();
        plain.resize(at + most, 0);
        let n = keys.noise.read_message(count.next(), &sealed, &mut plain[at..]).map_err(|_| Bad::Tag)?;
        plain.truncate(at + n);
    }
    frames.release();
    Ok(plain.freeze())
}
