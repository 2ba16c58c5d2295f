//! The sender of a body with Q-Block1 or Q-Block2: which non-confirmable block goes next, and when
//! (RFC 9177 section 7.2).
//!
//! MAX_PAYLOADS blocks go at once: a set. The next set follows when the receiver permits it, or
//! after NON_TIMEOUT_RANDOM. Blocks that the receiver requests again go first, at most a set of
//! them at a time.

use alloc::collections::BTreeSet;

use crate::time::{Duration, Instant};

/// The blocks of a body that are still to be sent.
#[derive(Debug)]
pub(super) struct Burst {
    /// Number of blocks.
    blocks: u32,
    /// Number of blocks in a set.
    set: u32,
    /// NON_TIMEOUT_RANDOM, the same for the whole body.
    pause: Duration,
    /// First block that was never sent.
    next: u32,
    /// Blocks to send again.
    again: BTreeSet<u32>,
    /// Number of blocks that may go before the next pause.
    left: u32,
    /// End of the pause, if blocks wait for it.
    resume: Option<Instant>,
}

impl Burst {
    pub(super) fn new(blocks: u32, set: u32, pause: Duration) -> Self {
        Self { blocks, set, pause, next: 0, again: BTreeSet::new(), left: set, resume: None }
    }

    /// Only these blocks, which are sent for the first time.
    pub(super) fn only(total: u32, set: u32, pause: Duration, blocks: impl IntoIterator<Item = u32>) -> Self {
        let mut burst = Self { next: total, ..Self::new(total, set, pause) };
        burst.repeat(blocks);
        burst
    }

    /// The block to send now, and whether it was sent before.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(u32, bool)> {
        if self.left == 0 {
            return None;
        }
        let (block, is_again) = match self.again.pop_first() {
            Some(block) => (block, true),
            None if self.next < self.blocks => {
                self.next += 1;
                (self.next - 1, false)
            }
            None => return None,
        };
        self.left -= 1;
        // A set ends at its last block, however the blocks before it were sent: a pause follows
        // both the set and the blocks that were sent again.
        let is_set_over = self.again.is_empty() && self.next.is_multiple_of(self.set);
        if self.left == 0 || is_set_over {
            self.left = 0;
            self.resume = (!self.is_sent()).then_some(now + self.pause);
        }
        Some((block, is_again))
    }

    /// Whether all blocks were sent and none is requested again.
    pub(super) fn is_sent(&self) -> bool {
        self.next == self.blocks && self.again.is_empty()
    }

    /// End of the pause.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.resume
    }

    /// Ends the pause at its time; returns whether it did.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let is_over = self.resume.is_some_and(|at| at <= now);
        if is_over {
            self.go();
        }
        is_over
    }

    /// The receiver has all blocks below this one. The next set may go if that is all that was
    /// sent.
    pub(super) fn proceed(&mut self, received: u32) {
        if received >= self.next {
            self.go();
        }
    }

    /// The receiver requests these blocks. They go at once (RFC 9177 section 7.2). A request for
    /// blocks that were never sent permits the next set.
    pub(super) fn repeat(&mut self, blocks: impl IntoIterator<Item = u32>) {
        let mut is_any = false;
        for block in blocks.into_iter().filter(|block| *block < self.blocks) {
            is_any = true;
            if block < self.next {
                self.again.insert(block);
            }
        }
        if is_any {
            self.go();
        }
    }

    fn go(&mut self) {
        (self.left, self.resume) = (self.set, None);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(2);

    fn sent(burst: &mut Burst, now: Instant) -> Vec<u32> {
        core::iter::from_fn(|| burst.poll(now)).map(|(block, _)| block).collect()
    }

    #[test]
    fn a_set_waits_for_the_receiver_or_for_the_pause() {
        let (mut burst, now) = (Burst::new(25, 10, PAUSE), Instant::ZERO);
        assert_eq!(sent(&mut burst, now), (0..10).collect::<Vec<_>>());
        assert_eq!(burst.next_timeout(), Some(now + PAUSE));
        // The permission for an older set is none for this one.
        burst.proceed(9);
        assert!(sent(&mut burst, now).is_empty());
        burst.proceed(10);
        assert_eq!(sent(&mut burst, now), (10..20).collect::<Vec<_>>());
        assert!(burst.handle_timeout(now + PAUSE));
        assert_eq!(sent(&mut burst, now + PAUSE), (20..25).collect::<Vec<_>>());
        assert!(burst.is_sent());
        assert_eq!(burst.next_timeout(), None);
    }

    /// RFC 9177 figure 6: blocks 1 and 9 are requested after the first set, and go before the
    /// second, which waits for another pause.
    #[test]
    fn requested_blocks_go_first_and_another_pause_follows() {
        let (mut burst, now) = (Burst::new(13, 10, PAUSE), Instant::ZERO);
        sent(&mut burst, now);
        burst.repeat([1, 9, 99]);
        assert_eq!(sent(&mut burst, now), [1, 9]);
        assert_eq!(burst.next_timeout(), Some(now + PAUSE));
        assert!(burst.handle_timeout(now + PAUSE));
        assert_eq!(sent(&mut burst, now + PAUSE), [10, 11, 12]);
        // With everything sent, requested blocks go without a pause.
        burst.repeat([10]);
        assert_eq!((burst.poll(now), burst.poll(now)), (Some((10, true)), None));
        // At most a set goes at a time.
        burst.repeat(0..13);
        assert_eq!(sent(&mut burst, now).len(), 10);
        assert_eq!(burst.next_timeout(), Some(now + PAUSE));
        burst.handle_timeout(now + PAUSE);
        assert_eq!(sent(&mut burst, now), vec![10, 11, 12]);
    }
}
