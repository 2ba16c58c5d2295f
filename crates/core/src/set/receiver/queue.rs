//! Queue of requests to a busy node: first come, first served, and senders take turns.

use alloc::collections::VecDeque;
use core::num::NonZeroU64;

use anabranch_wire::set::TransferId;

use crate::time::{Duration, Instant};

/// Time without a repeated request after which a transfer leaves the queue.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// Time for which a free node is reserved for the first transfer in the queue: longer than the
/// longest pause between its requests.
const GRACE: Duration = Duration::from_secs(10);

/// Identity of a sender, verified by the driver of the node. The number has no meaning in the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderId(NonZeroU64);

impl SenderId {
    /// The identity with this number. 0 and 1 are the same identity.
    pub fn new(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }
}

/// Transfers that were told to ask again.
#[derive(Debug)]
pub(super) struct Queue {
    /// Largest number of waiting transfers.
    most: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    transfer: TransferId,
    /// Sender of the transfer. A sender without an identity counts as a different one for each
    /// transfer.
    sender: Option<SenderId>,
    /// Time of its last request.
    asked: Instant,
    /// Whether it has asked again. A transfer that has asked once only does not reserve the node.
    again: bool,
}

impl Queue {
    /// Memory for each waiting transfer in bytes.
    pub(super) const ENTRY: usize = size_of::<Waiting>();

    /// A queue of at most `most` transfers. Its memory is allocated here and never grows.
    pub(super) fn new(most: usize) -> Self {
        Self { most, waiting: VecDeque::with_capacity(most) }
    }

    /// Handles a request of a transfer of `sender` while the node is busy.
    pub(super) fn wait(&mut self, now: Instant, transfer: TransferId, sender: Option<SenderId>) {
        self.forget(now);
        if let Some(known) = self.waiting.iter_mut().find(|w| w.transfer == transfer) {
            known.asked = now;
            known.again = true;
        } else if self.waiting.len() < self.most || self.make_room(sender) {
            self.waiting.push_back(Waiting { transfer, sender, asked: now, again: false });
        }
    }

    /// Handles a request of a transfer of `sender` to a node that has been free since `free`.
    /// Returns true and removes the transfer from the queue if it may begin; otherwise it waits.
    ///
    /// A free node is reserved for the first waiting transfer only once. After [`GRACE`] the next
    /// request may begin, whichever it is. Otherwise waiting senders that never return could block
    /// a free node.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        free: Instant,
        transfer: TransferId,
        sender: Option<SenderId>,
    ) -> bool {
        self.forget(now);
        let first = self.waiting.iter().find(|w| w.again).map(|w| (w.transfer, w.sender));
        if let Some((first, late)) = first.filter(|(first, _)| *first != transfer) {
            if now < free + GRACE {
                self.wait(now, transfer, sender);
                return false;
            }
            self.waiting.retain(|w| w.transfer != first);
            self.put_last(late);
        }
        self.waiting.retain(|w| w.transfer != transfer);
        self.put_last(sender);
        true
    }

    /// Moves the other transfers of a sender behind those of other senders, because it has had its
    /// turn.
    fn put_last(&mut self, sender: Option<SenderId>) {
        let is_own = |w: &Waiting| sender.is_some() && w.sender == sender;
        for _ in 0..self.waiting.iter().filter(|w| is_own(w)).count() {
            let own = self.waiting.iter().position(is_own).and_then(|index| self.waiting.remove(index));
            self.waiting.extend(own);
        }
    }

    /// Removes the last transfer of the sender with the most places, if `sender` has at least two
    /// fewer: one sender cannot take all places.
    fn make_room(&mut self, sender: Option<SenderId>) -> bool {
        let places = |of: Option<SenderId>| self.waiting.iter().filter(|w| w.sender == of).count();
        let own = sender.map_or(0, |_| places(sender));
        let known = self.waiting.iter().filter(|w| w.sender.is_some());
        let Some(crowd) = known.map(|w| w.sender).max_by_key(|of| places(*of)) else { return false };
        let last = self.waiting.iter().rposition(|w| w.sender == crowd);
        match last {
            Some(last) if places(crowd) > own + 1 => self.waiting.remove(last).is_some(),
            _ => false,
        }
    }

    fn forget(&mut self, now: Instant) {
        self.waiting.retain(|w| now < w.asked + FORGOTTEN);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const A: TransferId = TransferId(1);
    const B: TransferId = TransferId(2);
    const C: TransferId = TransferId(3);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A queue in which A and then B have asked twice each while the node was busy.
    fn two_wait() -> Queue {
        let mut queue = Queue::new(16);
        for second in [0, 1] {
            queue.wait(at(second), A, None);
            queue.wait(at(second), B, None);
        }
        queue
    }

    #[test]
    fn they_are_served_in_the_order_in_which_they_came() {
        let mut queue = two_wait();
        assert!(!queue.admit(at(5), at(5), B, None));
        assert!(!queue.admit(at(5), at(5), C, None));
        assert!(queue.admit(at(6), at(5), A, None));
        // A took until 20 s.
        queue.wait(at(18), B, None);
        assert!(!queue.admit(at(21), at(20), C, None), "B was there before");
        assert!(queue.admit(at(22), at(20), B, None));
        assert!(queue.admit(at(23), at(23), C, None));
    }

    #[test]
    fn who_asks_once_keeps_nobody_out() {
        let mut queue = Queue::new(16);
        queue.wait(at(0), A, None);
        assert!(queue.admit(at(1), at(1), B, None));
    }

    #[test]
    fn who_misses_its_turn_makes_way_for_the_next() {
        let mut queue = two_wait();
        assert!(!queue.admit(at(14), at(5), B, None), "it is the turn of A");
        assert!(queue.admit(at(15), at(5), B, None), "it was the turn of A");
        assert!(queue.admit(at(15), at(5), C, None));
    }

    /// Only once: waiting senders that never return do not block a free node.
    #[test]
    fn a_free_node_is_kept_for_those_who_wait_for_ten_seconds_at_most() {
        let mut queue = Queue::new(16);
        for second in [0, 1] {
            (10..26).for_each(|id| queue.wait(at(second), TransferId(id), None));
        }
        for second in 5..15 {
            (11..26).for_each(|id| assert!(!queue.admit(at(second), at(5), TransferId(id), None)));
        }
        assert!(queue.admit(at(15), at(5), C, None));
        assert!(queue.admit(at(15), at(5), A, None));
    }

    #[test]
    fn senders_take_turns_and_their_transfers_keep_their_order() {
        let [one, two] = [1, 2].map(|number| Some(SenderId::new(number)));
        let mut queue = Queue::new(16);
        let mut waiting = vec![(10, one), (11, one), (12, one), (20, two), (21, two), (30, None)];
        for second in [0, 1] {
            waiting.iter().for_each(|(id, sender)| queue.wait(at(second), TransferId(*id), *sender));
        }
        for expected in [10, 20, 30, 11, 21, 12] {
            // The last one asks first, so that the order of requests does not decide.
            let is_let_in =
                |(id, sender): &(u64, Option<SenderId>)| queue.admit(at(2), at(2), TransferId(*id), *sender);
            let let_in = waiting.iter().rposition(is_let_in).expect("one of them is next");
            assert_eq!(waiting.remove(let_in).0, expected);
        }
    }

    #[test]
    fn one_sender_does_not_take_all_places() {
        let [many, few] = [1, 2].map(|number| Some(SenderId::new(number)));
        let mut queue = Queue::new(4);
        for second in [0, 1] {
            (10..20).for_each(|id| queue.wait(at(second), TransferId(id), many));
        }
        let ids = |queue: &Queue| queue.waiting.iter().map(|w| w.transfer.0).collect::<Vec<_>>();
        assert_eq!(ids(&queue), [10, 11, 12, 13]);
        (20..30).for_each(|id| queue.wait(at(2), TransferId(id), few));
        assert_eq!(ids(&queue), [10, 11, 20, 21], "half each");
        (30..40).for_each(|id| queue.wait(at(2), TransferId(id), None));
        assert_eq!(ids(&queue), [10, 20, 30, 31], "one place is left to each");
        (10..40).for_each(|id| queue.wait(at(3), TransferId(id), many));
        assert_eq!(ids(&queue), [10, 20, 30, 31]);
    }

    #[test]
    fn who_does_not_ask_again_is_forgotten() {
        let mut queue = two_wait();
        queue.wait(at(25), B, None);
        assert!(queue.admit(at(31), at(31), B, None));
    }

    #[test]
    fn those_who_wait_are_no_more_than_can_be_remembered() {
        let mut queue = Queue::new(16);
        for second in [0, 1] {
            (0..100).for_each(|id| queue.wait(at(second), TransferId(id), None));
        }
        assert_eq!(queue.waiting.len(), 16);
    }
}
