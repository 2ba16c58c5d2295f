//! The sender's side: who it is, whom it sends to, and the keys that both have come to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::greeting::{Pattern, Proof};
use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::record::TransferKeys;

/// How sender and node know each other.
#[derive(Clone, Debug)]
pub enum Acquaintance {
    /// By their public keys: this is the node's.
    Known(PublicKey),
    /// By a key that both have.
    Shared(SharedKey),
}

/// What all streams of one transfer share at its sender.
#[derive(Debug)]
pub struct SenderKeys {
    own: SecretKey,
    node: Acquaintance,
    /// The least number of the next greeting.
    number: AtomicU64,
    clock: fn() -> u64,
    /// Of the last handshake with the node that held.
    transfer: Mutex<Option<Arc<TransferKeys>>>,
}

impl SenderKeys {
    /// For a transfer from `own` to `node`. Each greeting has a higher number than the last, and at
    /// least that of `clock`, which has to be more than any that this key has used before:
    /// microseconds since 1970 are. Who asks the clock each time is also ahead of another process
    /// with the same key that began later.
    pub fn new(own: SecretKey, node: Acquaintance, clock: fn() -> u64) -> Arc<Self> {
        Arc::new(Self { own, node, number: AtomicU64::new(0), clock, transfer: Mutex::default() })
    }

    pub(crate) fn own(&self) -> &SecretKey {
        &self.own
    }

    pub(crate) fn pattern(&self) -> Pattern {
        match self.node {
            Acquaintance::Known(_) => Pattern::Known,
            Acquaintance::Shared(_) => Pattern::Shared,
        }
    }

    pub(crate) fn proof(&self) -> Proof<'_> {
        match &self.node {
            Acquaintance::Known(peer) => Proof::Known { own: &self.own, peer },
            Acquaintance::Shared(key) => Proof::Shared(key),
        }
    }

    pub(crate) fn next_number(&self) -> u64 {
        let now = (self.clock)();
        let next = |least: u64| Some(least.max(now).saturating_add(1));
        // It is never `None`.
        let last = self.number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.unwrap_or_default().max(now)
    }

    pub(crate) fn set_transfer(&self, keys: Arc<TransferKeys>) {
        *self.transfer.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys);
    }

    pub(crate) fn transfer(&self) -> Option<Arc<TransferKeys>> {
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
