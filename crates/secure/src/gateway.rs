//! Gateway side: the senders that it serves, and replay protection for their greetings.

use std::sync::Arc;

use crate::keys::{PublicKey, SecretKey};
use crate::roster::{Ledger, Member, Peer, Roster};

/// State shared by all streams of a gateway.
#[derive(Debug)]
pub struct Doorkeeper {
    pub(crate) own: SecretKey,
    senders: Roster,
}

impl Doorkeeper {
    /// Creates the state of a gateway with the key `own` that serves these senders.
    pub fn new(own: SecretKey, senders: impl IntoIterator<Item = PublicKey>) -> Arc<Self> {
        Arc::new(Self { own, senders: Roster::new(senders.into_iter().map(Peer::Known)) })
    }

    /// The gateway's public key.
    pub fn public(&self) -> PublicKey {
        self.own.public()
    }

    /// Replaces the list of senders. A stream of a sender that is no longer listed is reset on its
    /// next byte.
    pub fn reload(&self, senders: impl IntoIterator<Item = PublicKey>) {
        self.senders.reload(senders.into_iter().map(Peer::Known));
    }

    /// Refuses greetings up to these numbers, which were stored before a restart. `ledger` is
    /// called with each higher number and must have stored it when it returns. Without a ledger, a
    /// restarted gateway answers each recorded greeting once more.
    pub fn remember(&self, floors: impl IntoIterator<Item = (PublicKey, u64)>, ledger: Ledger) {
        self.senders.remember(floors, ledger);
    }

    /// Returns the sender with this key, if it is served.
    pub(crate) fn find(&self, sender: PublicKey) -> Option<Arc<Member>> {
        self.senders.find(&Peer::Known(sender))
    }

    /// True if no greeting of this sender with this number was seen before.
    pub(crate) fn admit(&self, sender: &Member, number: u64) -> bool {
        self.senders.admit(sender, number)
    }
}
