//! The keys of one session, and its packet numbers.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::window::Window;
use super::{SEALED_HEADER, kind, number};
use crate::layout::TAG;
use crate::noise::Cipher;

/// Age after which a sender requests new keys.
pub(super) const REKEY_AFTER: Duration = Duration::from_secs(3600);
/// Age from which keys are not used.
pub(super) const KEYS_END: Duration = Duration::from_secs(3 * 3600);
/// Number of packets after which a sender requests new keys.
pub(super) const REKEY_PACKETS: u32 = 1 << 30;
/// Limit on packet numbers. With an honest clock rekeying comes much earlier.
const MOST_PACKETS: u32 = 1 << 31;

/// There is no session whose keys may be used; a handshake has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no session yet")]
pub struct NotOpen;

/// The keys of both directions, of which a session has one each.
pub struct Keys {
    pub(super) seal: Cipher,
    pub(super) open: Cipher,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// Why a SEALED is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dropped {
    /// Its number was received, or is too old.
    Replayed,
    /// Its tag is wrong, or it is too short.
    Forged,
    /// The session's keys are too old.
    Expired,
}

/// A session with a replay window of `64 * (W - 1)` packets.
#[derive(Debug)]
pub(super) struct Session<const W: usize> {
    /// `None` without encryption.
    keys: Option<Keys>,
    /// The number that the peer chose.
    pub(super) remote: u32,
    /// Number of packets sealed, and the next packet number. Nothing sets it back, and a session is
    /// neither cloned nor stored: no nonce is used twice.
    sealed: u32,
    window: Window<W>,
    born: Duration,
}

impl<const W: usize> Session<W> {
    pub(super) const fn new(now: Duration, remote: u32, keys: Option<Keys>) -> Self {
        Self { keys, remote, sealed: 0, window: Window::new(), born: now }
    }

    pub(super) const fn sealed(&self) -> u32 {
        self.sealed
    }

    pub(super) const fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.born)
    }

    /// Whether the keys may be used.
    pub(super) fn is_usable(&self, now: Duration) -> bool {
        self.sealed < MOST_PACKETS && self.age(now) < KEYS_END
    }

    /// Replaces `out` with the SEALED that carries `message`.
    pub(super) fn seal(&mut self, now: Duration, message: &[u8], out: &mut Vec<u8>) -> Result<(), NotOpen> {
        if !self.is_usable(now) {
            return Err(NotOpen);
        }
        let number = self.sealed;
        self.sealed += 1;
        out.clear();
        out.reserve(SEALED_HEADER + message.len() + TAG);
        out.push(kind::SEALED);
        out.extend_from_slice(&self.remote.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(message);
        if let Some(keys) = &self.keys {
            let tag = keys.seal.seal(number.into(), &[], &mut out[SEALED_HEADER..]).map_err(|_| NotOpen)?;
            out.extend_from_slice(&tag);
        }
        Ok(())
    }

    /// Replaces `plain` with the message of a SEALED. Returns whether its number is the highest.
    pub(super) fn open(
        &mut self,
        now: Duration,
        datagram: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<bool, Dropped> {
        plain.clear();
        let number = number(datagram, SEALED_HEADER - 4).filter(|n| *n < MOST_PACKETS);
        let number = number.ok_or(Dropped::Forged)?;
        if self.age(now) >= KEYS_END {
            return Err(Dropped::Expired);
        }
        if !self.window.is_fresh(number) {
            return Err(Dropped::Replayed);
        }
        let sealed = &datagram[SEALED_HEADER..];
        match &self.keys {
            Some(keys) => {
                plain.reserve(sealed.len());
                keys.open.open(number.into(), &[], sealed, plain).map_err(|_| Dropped::Forged)?;
            }
            None => plain.extend_from_slice(sealed),
        }
        Ok(self.window.mark(number))
    }
}
