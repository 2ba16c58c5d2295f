//! Who waits for a node that is busy: first come, first served.

use alloc::collections::VecDeque;

use anabranch_wire::set::TransferId;

use crate::time::{Duration, Instant};

/// Who has not asked for so long does not wait any more.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// A free node waits so long for the first in the queue: longer than the longest pause between two of its requests.
const GRACE: Duration = Duration::from_secs(10);

/// Transfers that were told to come again.
#[derive(Debug)]
pub(super) struct Queue {
    /// Those who wait, at most; whoever comes then is not remembered.
    most: usize,
    waiting: VecDeque<Waiting>,
    /// The turn of the first began then, or when the node became free.
    turn: Instant,
}

#[derive(Debug)]
struct Waiting {
    transfer: TransferId,
    /// When it last asked.
    asked: Instant,
    /// It has asked again: who asks only once does not wait, and keeps nobody out.
    again: bool,
}

impl Queue {
    /// Octets for each who waits.
    pub(super) const ENTRY: usize = size_of::<Waiting>();

    /// For so many.
    pub(super) fn new(most: usize) -> Self {
        Self { most, waiting: VecDeque::new(), turn: Instant::ZERO }
    }

    /// Somebody asks a node that is busy.
    pub(super) fn wait(&mut self, now: Instant, transfer: TransferId) {
        self.forget(now);
        if let Some(known) = self.waiting.iter_mut().find(|w| w.transfer == transfer) {
            known.asked = now;
            known.again = true;
        } else if self.waiting.len() < self.most {
            self.waiting.push_back(Waiting { transfer, asked: now, again: false });
        }
    }

    /// Somebody asks a node that is free since `free`. True, and it waits no more, if it is its turn; otherwise it waits.
    pub(super) fn admit(&mut self, now: Instant, free: Instant, transfer: TransferId) -> bool {
        self.forget(now);
        while let Some(first) = self.waiting.iter().position(|w| w.again) {
            if self.waiting[first].transfer == transfer {
                break;
            }
            if now < self.turn.max(free) + GRACE {
                self.wait(now, transfer);
                return false;
            }
            // It has missed its turn; that of the next begins.
            self.waiting.remove(first);
            self.turn = now;
        }
        self.waiting.retain(|w| w.transfer != transfer);
        true
    }

    fn forget(&mut self, now: Instant) {
        self.waiting.retain(|w| now < w.asked + FORGOTTEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TransferId = TransferId(1);
    const B: TransferId = TransferId(2);
    const C: TransferId = TransferId(3);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A and then B have asked twice each while the node was busy.
    fn two_wait() -> Queue {
        let mut queue = Queue::new(16);
        for second in [0, 1] {
            queue.wait(at(second), A);
            queue.wait(at(second), B);
        }
        queue
    }

    #[test]
    fn they_are_served_in_the_order_in_which_they_came() {
        let mut queue = two_wait();
        assert!(!queue.admit(at(5), at(5), B));
        assert!(!queue.admit(at(5), at(5), C));
        assert!(queue.admit(at(6), at(5), A));
        // A took until 20.
        queue.wait(at(18), B);
        assert!(!queue.admit(at(21), at(20), C), "B was there before");
        assert!(queue.admit(at(22), at(20), B));
        assert!(queue.admit(at(23), at(23), C));
    }

    #[test]
    fn who_asks_once_keeps_nobody_out() {
        let mut queue = Queue::new(16);
        queue.wait(at(0), A);
        assert!(queue.admit(at(1), at(1), B));
    }

    #[test]
    fn who_misses_its_turn_makes_way_for_the_next() {
        let mut queue = two_wait();
        assert!(!queue.admit(at(14), at(5), B), "it is the turn of A");
        assert!(queue.admit(at(15), at(5), B), "it was the turn of A");
        assert!(queue.admit(at(15), at(5), C));
    }

    #[test]
    fn who_does_not_ask_again_is_forgotten() {
        let mut queue = two_wait();
        queue.wait(at(25), B);
        assert!(queue.admit(at(31), at(31), B));
    }

    #[test]
    fn those_who_wait_are_no_more_than_can_be_remembered() {
        let mut queue = Queue::new(16);
        for second in [0, 1] {
            (0..100).for_each(|id| queue.wait(at(second), TransferId(id)));
        }
        assert_eq!(queue.waiting.len(), 16);
    }
}
