//! Node side: the senders that it accepts, and the keys of their transfers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use anabranch_wire::set::TransferId;

use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::record::TransferKeys;
use crate::roster::{Ledger, Member, Peer, Roster};

/// Number of transfers per sender whose keys are kept: live transfers, and the last ones requested.
const KEPT: usize = 8;

/// The senders that a node accepts.
#[derive(Clone, Debug, Default)]
pub struct WhoMay {
    /// The node's own key; without it only senders with a pre-shared key can connect.
    pub own: Option<SecretKey>,
    /// Public keys of accepted senders.
    pub senders: Vec<PublicKey>,
    /// Pre-shared keys of accepted senders. Each has its own name, which distinguishes their
    /// holders.
    pub shared: Vec<(Arc<str>, SharedKey)>,
}

impl WhoMay {
    fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        let shared = self.shared.iter().map(|(name, _)| Peer::Shared(Arc::clone(name)));
        self.senders.iter().copied().map(Peer::Known).chain(shared)
    }
}

/// State shared by all streams of a node.
#[derive(Debug)]
pub struct NodeKeys {
    own: Option<SecretKey>,
    shared: RwLock<Vec<(Arc<str>, SharedKey)>>,
    senders: Roster,
    transfers: Mutex<Transfers>,
}

/// Keys of the transfers of one sender.
#[derive(Debug, Default)]
struct Transfers {
    /// In the order of the last request, the newest last.
    kept: VecDeque<(TransferId, Arc<TransferKeys>)>,
    /// See [`NodeKeys::set_live`].
    live: [Option<TransferId>; 2],
}

impl NodeKeys {
    /// Creates the state of a node that accepts these senders.
    pub fn new(who: WhoMay) -> Arc<Self> {
        let senders = Roster::new(who.peers());
        let WhoMay { own, shared, .. } = who;
        Arc::new(Self { own, shared: RwLock::new(shared), senders, transfers: Mutex::default() })
    }

    /// Replaces the list of senders; the node's own key stays. Streams of senders that are no
    /// longer listed are reset on their next byte, and the keys of their transfers are dropped.
    pub fn reload(&self, who: WhoMay) {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        // A changed key under a known name means another holder.
        let is_other = |(name, key): &(Arc<str>, SharedKey)| {
            shared.iter().any(|(known, old)| known == name && old.octets() != key.octets())
        };
        let others: Vec<Peer> = who
            .shared
            .iter()
            .filter(|entry| is_other(entry))
            .map(|(name, _)| Peer::Shared(Arc::clone(name)))
            .collect();
        // Reloading without these peers revokes their old members, so that the next call creates
        // new ones.
        self.senders.reload(who.peers().filter(|peer| !others.contains(peer)));
        self.senders.reload(who.peers());
        *shared = who.shared;
        drop(shared);
        let mut transfers = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        transfers.kept.retain(|(_, keys)| !keys.is_revoked());
    }

    /// Sets the machine's current transfer, and the transfer that its owner is deciding about. No
    /// request evicts the keys of these, not even a request of the same sender.
    pub fn set_live(&self, live: [Option<TransferId>; 2]) {
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner).live = live;
    }

    /// Refuses greetings up to these numbers, which were stored before a restart. `ledger` is
    /// called with each higher number and must have stored it when it returns. Without a ledger, a
    /// restarted node answers each recorded greeting once more.
    pub fn remember(&self, floors: impl IntoIterator<Item = (PublicKey, u64)>, ledger: Ledger) {
        self.senders.remember(floors, ledger);
    }

    /// The node's public key, if it has one.
    pub fn public(&self) -> Option<PublicKey> {
        self.own.as_ref().map(SecretKey::public)
    }

    pub(crate) fn own(&self) -> Option<&SecretKey> {
        self.own.as_ref()
    }

    /// All pre-shared keys with their names.
    pub(crate) fn shared(&self) -> Vec<(Arc<str>, SharedKey)> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the peer, if it is accepted.
    pub(crate) fn find(&self, peer: &Peer) -> Option<Arc<Member>> {
        self.senders.find(peer)
    }

    /// True if no greeting of this sender with this number was seen before.
    pub(crate) fn admit(&self, sender: &Member, number: u64) -> bool {
        self.senders.admit(sender, number)
    }

    /// The keys of a requested transfer.
    pub fn of(&self, transfer: TransferId) -> Option<Arc<TransferKeys>> {
        let transfers = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        transfers.kept.iter().find(|(id, _)| *id == transfer).map(|(_, keys)| Arc::clone(keys))
    }

    /// Stores the keys of a transfer that a sender requests; its sessions use them from now on.
    /// Returns false if the transfer belongs to another sender. A request evicts only keys of the
    /// same sender.
    pub(crate) fn bind(&self, transfer: TransferId, keys: &Arc<TransferKeys>) -> bool {
        let mut transfers = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        let Transfers { kept, live } = &mut *transfers;
        if let Some(index) = kept.iter().position(|(id, _)| *id == transfer) {
            if kept[index].1.sender() != keys.sender() {
                return false;
            }
            kept.remove(index);
        }
        kept.push_back((transfer, Arc::clone(keys)));
        let of_the_same = |(_, other): &(TransferId, Arc<TransferKeys>)| other.sender() == keys.sender();
        if kept.iter().filter(|entry| of_the_same(entry)).count() > KEPT {
            // Only keys of the same sender: no sender can evict the keys of another.
            let oldest = kept.iter().position(|entry| of_the_same(entry) && !live.contains(&Some(entry.0)));
            oldest.map(|index| kept.remove(index));
        }
        true
    }
}
