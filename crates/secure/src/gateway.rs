//! The gateway's side: whom it serves, and that it serves a greeting once.

use std::sync::Arc;

use crate::keys::{PublicKey, SecretKey};
use crate::roster::{Ledger, Member, Peer, Roster};

/// What all streams of a gateway share.
#[derive(Debug)]
pub struct Doorkeeper {
    pub(crate) own: SecretKey,
    senders: Roster,
}

impl Doorkeeper {
    /// A gateway with this key that serves the owners of those keys.
    pub fn new(own: SecretKey, senders: impl IntoIterator<Item = PublicKey>) -> Arc<Self> {
        Arc::new(Self { own, senders: Roster::new(senders.into_iter().map(Peer::Known)) })
    }

    /// The gateway's public key.
    pub fn public(&self) -> PublicKey {
        self.own.public()
    }

    /// From now on serves only the owners of these keys. Streams of other
    /// keys are reset on their next byte.
    pub fn reload(&self, senders: impl IntoIterator<Item = PublicKey>) {
        self.senders.reload(senders.into_iter().map(Peer::Known));
    }

    /// Refuses greetings up to these numbers, which were stored before a restart. `ledger` is
    /// called with each higher number, and has stored it when it returns: without a ledger a
    /// restarted gateway answers each recorded greeting once more.
    pub fn remember(&self, floors: impl IntoIterator<Item = (PublicKey, u64)>, ledger: Ledger) {
        self.senders.remember(floors, ledger);
    }

    /// The sender with this key, if it is served.
    pub(crate) fn find(&self, sender: PublicKey) -> Option<Arc<Member>> {
        self.senders.find(&Peer::Known(sender))
    }

    /// A greeting of this sender with this number has not been here before.
    pub(crate) fn admit(&self, sender: &Member, number: u64) -> bool {
        self.senders.admit(sender, number)
    }
}
