//! Finding a stored item by the hash of its key.

use alloc::vec::Vec;

/// Numbers of items by the tags of their keys, with linear probing. Keys with equal tags only cost
/// time, at most one comparison per stored item.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Tag and number; a power of two of them, at most three quarters in use.
    entries: Vec<(u32, u32)>,
    len: usize,
}

impl Index {
    /// The number of the item with this tag for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, tag: u32, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        let mask = self.entries.len().checked_sub(1)?;
        let mut at = tag as usize & mask;
        loop {
            let (other, number) = self.entries[at];
            if number == NONE {
                return None;
            }
            if other == tag && is_it(number as usize) {
                return Some(number as usize);
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn insert(&mut self, tag: u32, number: usize) {
        if (self.len + 1) * 4 > self.entries.len() * 3 {
            let larger = (self.entries.len() * 2).max(4);
            let old = core::mem::replace(&mut self.entries, alloc::vec![(0, NONE); larger]);
            old.into_iter().filter(|(_, number)| *number != NONE).for_each(|entry| self.put(entry));
        }
        self.put((tag, number as u32));
        self.len += 1;
    }

    fn put(&mut self, entry: (u32, u32)) {
        let mask = self.entries.len() - 1;
        let mut at = entry.0 as usize & mask;
        while self.entries[at].1 != NONE {
            at = (at + 1) & mask;
        }
        self.entries[at] = entry;
    }

    /// The item got another number.
    pub(super) fn renumber(&mut self, tag: u32, from: usize, to: usize) {
        if let Some(at) = self.place(tag, from) {
            self.entries[at].1 = to as u32;
        }
    }

    pub(super) fn remove(&mut self, tag: u32, number: usize) {
        let Some(mut hole) = self.place(tag, number) else { return };
        let mask = self.entries.len() - 1;
        let mut at = hole;
        // Entries behind the hole move up, unless they would leave their probing sequence.
        loop {
            at = (at + 1) & mask;
            let (other, number) = self.entries[at];
            if number == NONE {
                break;
            }
            let home = other as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = self.entries[at];
                hole = at;
            }
        }
        self.entries[hole].1 = NONE;
        self.len -= 1;
    }

    fn place(&self, tag: u32, number: usize) -> Option<usize> {
        let mask = self.entries.len().checked_sub(1)?;
        let mut at = tag as usize & mask;
        while self.entries[at].1 != NONE {
            if self.entries[at] == (tag, number as u32) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }
}

/// No item.
pub(super) const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use anabranch_testkit::prng::Prng;

    use super::*;

    /// Items come and go, with few tags so that probing sequences meet and wrap.
    #[test]
    fn what_was_inserted_is_found() {
        let mut prng = Prng::new(1);
        let mut index = Index::default();
        let mut items: Vec<(u32, usize)> = Vec::new();
        for round in 0..20_000 {
            if prng.below(2) == 0 && items.len() < 40 {
                let tag = prng.below(24) as u32;
                index.insert(tag, round);
                items.push((tag, round));
            } else if !items.is_empty() {
                let at = prng.below(items.len() as u64) as usize;
                if prng.below(4) == 0 {
                    let (tag, number) = items[at];
                    index.renumber(tag, number, round);
                    items[at].1 = round;
                } else {
                    let (tag, number) = items.swap_remove(at);
                    index.remove(tag, number);
                    assert_eq!(index.find(tag, |other| other == number), None);
                }
            }
            for (tag, number) in &items {
                assert_eq!(index.find(*tag, |other| other == *number), Some(*number), "round {round}");
            }
        }
        assert!(index.entries.len() <= 64, "{}", index.entries.len());
    }
}
