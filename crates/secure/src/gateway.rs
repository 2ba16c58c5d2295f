//! The gateway's side: whom it serves, and that it serves a greeting once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::keys::{PublicKey, SecretKey};

/// Greetings of one sender that are remembered one by one; older ones are refused all together.
const REMEMBERED: usize = 16 << 10;

/// What all streams of a gateway share.
#[derive(Debug)]
pub struct Doorkeeper {
    pub(crate) own: SecretKey,
    senders: BTreeMap<PublicKey, Mutex<Seen>>,
}

/// The greetings of one sender: each has a number of its own, which only grows.
#[derive(Debug, Default)]
struct Seen {
    /// Up to here all are refused.
    floor: u64,
    numbers: BTreeSet<u64>,
}

/// What a greeting is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Welcome {
    /// It is new.
    Yes,
    /// It has been here before, or is so old that nobody remembers.
    Again,
    /// Nobody knows the sender.
    Stranger,
}

impl Doorkeeper {
    /// A gateway with this key that serves those who have one of those.
    pub fn new(own: SecretKey, senders: impl IntoIterator<Item = PublicKey>) -> Arc<Self> {
        let senders = senders.into_iter().map(|key| (key, Mutex::default())).collect();
        Arc::new(Self { own, senders })
    }

    pub(crate) fn admit(&self, sender: PublicKey, number: u64) -> Welcome {
        let Some(seen) = self.senders.get(&sender) else { return Welcome::Stranger };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if number <= seen.floor || !seen.numbers.insert(number) {
            return Welcome::Again;
        }
        if seen.numbers.len() > REMEMBERED
            && let Some(oldest) = seen.numbers.pop_first()
        {
            seen.floor = oldest;
        }
        Welcome::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_good_once_however_many_there_are_and_in_whatever_order() {
        let (own, sender) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap().public());
        let stranger = SecretKey::generate().unwrap().public();
        let door = Doorkeeper::new(own, [sender]);
        assert_eq!(door.admit(stranger, 1), Welcome::Stranger);
        for number in [5, 3, 4, 9] {
            assert_eq!(door.admit(sender, number), Welcome::Yes);
            assert_eq!(door.admit(sender, number), Welcome::Again);
        }
        for number in 10..40_000 {
            assert_eq!(door.admit(sender, number), Welcome::Yes);
        }
        for number in 0..40_000 {
            assert_eq!(door.admit(sender, number), Welcome::Again);
        }
    }
}
