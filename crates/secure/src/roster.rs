//! The peers that a node or a gateway accepts, and replay protection for their greetings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::keys::PublicKey;

/// Number of greetings of one peer that are remembered individually; older numbers are all refused.
const REMEMBERED: usize = 16 << 10;

/// A peer, identified by its key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Peer {
    /// The owner of this public key.
    Known(PublicKey),
    /// A holder of the pre-shared key with this name.
    Shared(Arc<str>),
}

/// Stores the highest greeting number of a sender before the greeting is processed.
pub type Ledger = Box<dyn Fn(PublicKey, u64) + Send + Sync>;

/// A peer that is or was accepted. Connections hold it to learn whether its key was revoked.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) peer: Peer,
    revoked: AtomicBool,
    seen: Mutex<Seen>,
}

impl Member {
    fn new(peer: Peer, seen: Seen) -> Arc<Self> {
        Arc::new(Self { peer, revoked: AtomicBool::new(false), seen: Mutex::new(seen) })
    }

    /// True if the key is no longer accepted.
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }
}

/// The greetings seen from one peer, whose numbers rise.
#[derive(Debug, Default)]
struct Seen {
    /// Numbers up to this one are refused.
    floor: u64,
    numbers: BTreeSet<u64>,
}

impl Seen {
    /// Records a new number. Returns true if it is the highest so far, `None` if it was seen
    /// before.
    fn admit(&mut self, number: u64) -> Option<bool> {
        let highest = self.numbers.last().copied().unwrap_or(self.floor);
        if number <= self.floor || !self.numbers.insert(number) {
            return None;
        }
        // Bounds the memory: every number up to the smallest remembered one is refused.
        if self.numbers.len() > REMEMBERED
            && let Some(oldest) = self.numbers.pop_first()
        {
            self.floor = oldest;
        }
        Some(number > highest)
    }
}

/// All accepted peers.
#[derive(Default)]
pub(crate) struct Roster {
    /// Revoked peers stay here, so that their old greetings are still refused if the key is
    /// accepted again.
    members: RwLock<BTreeMap<Peer, Arc<Member>>>,
    ledger: OnceLock<Ledger>,
}

impl Roster {
    pub(crate) fn new(peers: impl IntoIterator<Item = Peer>) -> Self {
        let roster = Self::default();
        roster.reload(peers);
        roster
    }

    /// Replaces the accepted peers.
    pub(crate) fn reload(&self, peers: impl IntoIterator<Item = Peer>) {
        let peers: BTreeSet<Peer> = peers.into_iter().collect();
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        for member in members.values().filter(|member| !peers.contains(&member.peer)) {
            member.revoked.store(true, Ordering::Relaxed);
        }
        for peer in peers {
            let known = members.get(&peer);
            // A new member, since streams that hold the old one must stay revoked. It takes over
            // the numbers seen.
            if known.is_none_or(|member| member.is_revoked()) {
                let seen = known.map(|known| {
                    std::mem::take(&mut *known.seen.lock().unwrap_or_else(PoisonError::into_inner))
                });
                members.insert(peer.clone(), Member::new(peer, seen.unwrap_or_default()));
            }
        }
    }

    /// Refuses greetings of these senders up to these numbers, and reports every higher number to
    /// `ledger`.
    pub(crate) fn remember(&self, floors: impl IntoIterator<Item = (PublicKey, u64)>, ledger: Ledger) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        for (sender, floor) in floors {
            let peer = Peer::Known(sender);
            let member = members.entry(peer.clone()).or_insert_with(|| {
                // Not accepted yet. If it is accepted later, its stored greetings must stay
                // refused.
                let member = Member::new(peer, Seen::default());
                member.revoked.store(true, Ordering::Relaxed);
                member
            });
            let mut seen = member.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.floor = seen.floor.max(floor);
        }
        // A second ledger would miss what the first has stored.
        let _ = self.ledger.set(ledger);
    }

    /// Returns the peer with this key, if it is accepted.
    pub(crate) fn find(&self, peer: &Peer) -> Option<Arc<Member>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.get(peer).filter(|member| !member.is_revoked()).cloned()
    }

    /// True if a greeting with this number is new. The ledger has stored it when this returns.
    pub(crate) fn admit(&self, member: &Member, number: u64) -> bool {
        let mut seen = member.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = seen.admit(number);
        // Holders of one pre-shared key may have different clocks, so the highest number of one
        // says nothing about the others.
        if let (Some(true), Peer::Known(sender), Some(ledger)) = (admitted, &member.peer, self.ledger.get()) {
            ledger(*sender, number);
        }
        admitted.is_some()
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster").field("members", &self.members).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(octet: u8) -> Peer {
        Peer::Known(PublicKey([octet; 32]))
    }

    #[test]
    fn a_greeting_is_good_once_however_many_there_are_and_in_whatever_order() {
        let roster = Roster::new([peer(1)]);
        assert!(roster.find(&peer(2)).is_none());
        let member = roster.find(&peer(1)).unwrap();
        for number in [5, 3, 4, 9] {
            assert!(roster.admit(&member, number));
            assert!(!roster.admit(&member, number));
        }
        for number in 10..40_000 {
            assert!(roster.admit(&member, number));
        }
        for number in 0..40_000 {
            assert!(!roster.admit(&member, number));
        }
        assert!(member.seen.lock().unwrap().numbers.len() <= REMEMBERED);
    }

    /// The ledger stores one number for each sender, regardless of the number of greetings.
    #[test]
    fn after_a_restart_what_the_ledger_has_is_refused_and_what_is_higher_is_not() {
        let stored = Arc::new(Mutex::new(BTreeMap::new()));
        let start = || {
            let roster = Roster::new([peer(1), peer(2)]);
            let (floors, store) = (stored.lock().unwrap().clone(), Arc::clone(&stored));
            let keep = move |sender, number| {
                store.lock().unwrap().insert(sender, number);
            };
            roster.remember(floors, Box::new(keep));
            roster
        };
        let roster = start();
        let member = roster.find(&peer(1)).unwrap();
        for number in [7, 100, 50, 99, 101] {
            assert!(roster.admit(&member, number));
        }
        assert_eq!(*stored.lock().unwrap(), BTreeMap::from([(PublicKey([1; 32]), 101)]));
        for _ in 0..3 {
            let roster = start();
            let member = roster.find(&peer(1)).unwrap();
            for number in 0..=101 {
                assert!(!roster.admit(&member, number), "{number}");
            }
            assert!(roster.admit(&roster.find(&peer(2)).unwrap(), 1), "another sender has its own numbers");
            stored.lock().unwrap().remove(&PublicKey([2; 32]));
        }
        assert!(start().admit(&member, 102));
    }

    #[test]
    fn a_key_that_is_revoked_and_comes_back_cannot_repeat_itself() {
        let roster = Roster::new([peer(1), peer(2)]);
        let before = roster.find(&peer(1)).unwrap();
        assert!(roster.admit(&before, 5));
        roster.reload([peer(2)]);
        assert!(before.is_revoked() && roster.find(&peer(1)).is_none());
        assert!(!roster.find(&peer(2)).unwrap().is_revoked());
        roster.reload([peer(1), peer(2), peer(3)]);
        let after = roster.find(&peer(1)).unwrap();
        assert!(before.is_revoked(), "its old connections stay over");
        assert!(!roster.admit(&after, 5) && roster.admit(&after, 6));
        assert!(roster.find(&peer(3)).is_some());
    }
}
