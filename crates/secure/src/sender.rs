//! Sender side: its own key, the node's key, and the keys agreed with the node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::greeting::{Pattern, Proof};
use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::record::TransferKeys;

/// How sender and node authenticate each other.
#[derive(Clone, Debug)]
pub enum Acquaintance {
    /// By public keys; this is the node's.
    Known(PublicKey),
    /// By a pre-shared key.
    Shared(SharedKey),
}

/// State shared by all streams of one transfer at its sender.
#[derive(Debug)]
pub struct SenderKeys {
    own: SecretKey,
    node: Acquaintance,
    /// Lower bound of the next greeting number.
    number: AtomicU64,
    clock: fn() -> u64,
    /// Keys of the last successful handshake with the node.
    transfer: Mutex<Option<Arc<TransferKeys>>>,
}

impl SenderKeys {
    /// Creates the state of a transfer from `own` to `node`. Each greeting has a higher number than
    /// the last and at least the value of `clock`, which must exceed every number used before with
    /// this key; microseconds since 1970 do. Because the clock is read for each greeting, a
    /// long-running process stays ahead of a process with the same key that began later.
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
        // `next` never returns `None`, so this is always `Ok`.
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
