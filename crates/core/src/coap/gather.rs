//! The receiver of a body with Q-Block1 or Q-Block2: which blocks are here, and what the sender is
//! told (RFC 9177 section 7.2).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use anabranch_wire::coap::Block;
use bytes::Bytes;

use super::config::{Config, doubled};
use super::messages::blocks;
use crate::time::Instant;

/// What the sender is told after a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Nothing.
    Nothing,
    /// All blocks are here.
    Complete,
    /// All blocks below this one are here, and it begins a set.
    Continue(u32),
    /// These blocks are missing.
    Missing(Vec<u32>),
}

/// The received blocks of a body.
#[derive(Debug)]
pub(super) struct Gather {
    len: usize,
    szx: u8,
    blocks: BTreeMap<u32, Bytes>,
    octets: usize,
    /// All blocks below this one are here.
    prefix: u32,
    /// No block from this one on is here.
    end: u32,
    /// Blocks of the last request that have not arrived.
    asked: BTreeSet<u32>,
    /// First block of the set whose first arrival has already caused a request for earlier sets.
    asked_below: u32,
    /// Number of requests since the last block.
    requests: u8,
    deadline: Instant,
}

impl Gather {
    /// A body of this length.
    pub(super) fn new(now: Instant, len: usize, szx: u8, config: &Config) -> Self {
        Self {
            len,
            szx,
            blocks: BTreeMap::new(),
            octets: 0,
            prefix: 0,
            end: 0,
            asked: BTreeSet::new(),
            asked_below: 0,
            requests: 0,
            deadline: now + config.non_receive_timeout,
        }
    }

    /// Whether a block with this payload belongs to a body of this length.
    pub(super) fn fits(&self, len: usize, block: Block, payload: &Bytes) -> bool {
        let size = self.len.saturating_sub(block.offset()).min(block.size());
        let more = block.offset() + size < self.len;
        let is_in = block.num < blocks(self.len, self.szx);
        (len, block.szx, block.more, payload.len()) == (self.len, self.szx, more, size) && is_in
    }

    /// Number of bytes that have arrived.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// A block has arrived; it fits. A block that is already here changes nothing, but gets the
    /// same answer (section 4.3).
    pub(super) fn insert(&mut self, now: Instant, num: u32, payload: Bytes, config: &Config) -> Answer {
        let had_asked = !self.asked.is_empty();
        if !self.blocks.contains_key(&num) {
            self.octets += payload.len();
            self.blocks.insert(num, payload);
            while self.blocks.contains_key(&self.prefix) {
                self.prefix += 1;
            }
            self.end = self.end.max(num + 1);
            self.asked.remove(&num);
            self.requests = 0;
            self.deadline = now + config.non_receive_timeout;
        }
        if self.prefix == blocks(self.len, self.szx) {
            return Answer::Complete;
        }
        let set = config.set();
        if self.prefix == self.end && self.prefix.is_multiple_of(set) {
            return Answer::Continue(self.prefix);
        }
        // The first block of a later set, and the last of those that were requested, are the
        // occasions to request the missing blocks of earlier sets without a wait.
        let latest = (self.end - 1) / set * set;
        let is_due = latest > self.asked_below || had_asked && self.asked.is_empty();
        if self.prefix < latest && is_due {
            self.asked_below = latest;
            self.deadline = now + config.non_receive_timeout;
            return Answer::Missing(self.ask(latest, set));
        }
        Answer::Nothing
    }

    /// The time at which missing blocks are requested, or given up.
    pub(super) fn next_timeout(&self) -> Instant {
        self.deadline
    }

    /// The wait for a block has ended: the missing blocks up to the end of the latest set, or of
    /// the next one if that is complete. `None` after NON_MAX_RETRANSMIT requests: the body is
    /// stale.
    pub(super) fn expire(&mut self, now: Instant, config: &Config) -> Option<Vec<u32>> {
        if self.requests >= config.non_max_retransmit {
            return None;
        }
        self.requests += 1;
        self.deadline = now + doubled(config.non_receive_timeout, self.requests);
        let set = config.set();
        let sets = if self.prefix < self.end { self.end.div_ceil(set) } else { self.prefix / set + 1 };
        Some(self.ask(sets.saturating_mul(set), set))
    }

    /// The missing blocks below a block, at most a set of them (section 5, implementation note).
    fn ask(&mut self, below: u32, set: u32) -> Vec<u32> {
        let all = self.prefix..below.min(blocks(self.len, self.szx));
        let missing = all.filter(|num| !self.blocks.contains_key(num)).take(set as usize);
        self.asked = missing.collect();
        self.asked.iter().copied().collect()
    }

    /// The whole body.
    pub(super) fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.octets);
        self.blocks.values().for_each(|block| body.extend_from_slice(block));
        body.into()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::time::Duration;

    const SZX: u8 = 0;

    fn gather(blocks: usize) -> Gather {
        Gather::new(Instant::ZERO, blocks * 16, SZX, &Config::default())
    }

    fn give(gather: &mut Gather, seconds: u64, num: u32) -> Answer {
        let at = Instant::ZERO + Duration::from_secs(seconds);
        gather.insert(at, num, Bytes::from_static(&[0; 16]), &Config::default())
    }

    /// RFC 9177 figures 5 and 6: 1, 9 and 10 are lost; 11 reveals 1 and 9.
    #[test]
    fn the_first_block_of_the_next_set_reveals_missing_ones() {
        let (mut gather, config) = (gather(13), Config::default());
        for num in [0, 2, 3, 4, 5, 6, 7, 8] {
            assert_eq!(give(&mut gather, 0, num), Answer::Nothing);
        }
        assert_eq!(give(&mut gather, 2, 11), Answer::Missing(vec![1, 9]));
        assert_eq!(give(&mut gather, 2, 1), Answer::Nothing);
        assert_eq!(give(&mut gather, 2, 9), Answer::Nothing);
        assert_eq!(give(&mut gather, 2, 12), Answer::Nothing);
        assert_eq!(gather.next_timeout(), Instant::ZERO + Duration::from_secs(6));
        assert_eq!(gather.expire(gather.next_timeout(), &config), Some(vec![10]));
        assert_eq!(give(&mut gather, 6, 10), Answer::Complete);
    }

    /// RFC 9177 figure 7: waits of 4, 8, 16, 32 and 64 s.
    #[test]
    fn requests_are_repeated_with_doubled_waits_and_then_given_up() {
        let (mut gather, config) = (gather(3), Config::default());
        give(&mut gather, 0, 0);
        give(&mut gather, 0, 2);
        let mut times = vec![];
        while gather.expire(gather.next_timeout(), &config).is_some() {
            times.push(gather.next_timeout().as_nanos() / 1_000_000_000);
        }
        assert_eq!(times, [12, 28, 60, 124]);
    }

    /// A complete set permits the next; a silent sender is asked for that next one.
    #[test]
    fn a_complete_set_permits_the_next() {
        let (mut gather, config) = (gather(25), Config::default());
        let answers: Vec<Answer> = (0..10).map(|num| give(&mut gather, 0, num)).collect();
        assert_eq!(answers[..9], vec![Answer::Nothing; 9]);
        assert_eq!(answers[9], Answer::Continue(10));
        // A duplicate gets the same answer.
        assert_eq!(give(&mut gather, 1, 4), Answer::Continue(10));
        assert_eq!(gather.expire(gather.next_timeout(), &config), Some((10..20).collect()));
    }

    #[test]
    fn more_missing_blocks_than_a_set_are_requested_in_parts() {
        let mut gather = gather(40);
        assert_eq!(give(&mut gather, 0, 30), Answer::Missing((0..10).collect()));
        for num in 0..9 {
            assert_eq!(give(&mut gather, 0, num), Answer::Nothing);
        }
        assert_eq!(give(&mut gather, 0, 9), Answer::Missing((10..20).collect()));
    }
}
