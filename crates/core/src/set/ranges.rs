//! Sets of bytes of a file, stored as disjoint ascending ranges.

use alloc::vec::Vec;

use anabranch_wire::set::Range;

/// A set of bytes. An operation costs a binary search plus the number of ranges that it touches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeSet {
    // Ascending, not empty, not touching.
    ranges: Vec<Range>,
    octets: u64,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new(), octets: 0 }
    }

    /// The empty set, with capacity for this many ranges.
    pub fn with_capacity(ranges: usize) -> Self {
        Self { ranges: Vec::with_capacity(ranges), octets: 0 }
    }

    /// Number of bytes in the set.
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.octets == 0
    }

    /// The ranges, ascending.
    pub fn as_slice(&self) -> &[Range] {
        &self.ranges
    }

    /// Adds `start..end`; returns the number of new bytes.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let from = self.ranges.partition_point(|r| r.end < start);
        let to = self.ranges.partition_point(|r| r.start <= end);
        let mut merged = Range { start, end };
        let mut known = 0;
        for range in &self.ranges[from..to] {
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
            known += range.end - range.start;
        }
        if from == to {
            self.ranges.insert(from, merged);
        } else {
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
        }
        let new = merged.end - merged.start - known;
        self.octets += new;
        new
    }

    /// Removes `start..end`; returns the number of removed bytes.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let from = self.ranges.partition_point(|r| r.end <= start);
        let to = self.ranges.partition_point(|r| r.start < end);
        if from >= to {
            return 0;
        }
        let (first, last) = (self.ranges[from], self.ranges[to - 1]);
        let touched: u64 = self.ranges[from..to].iter().map(|r| r.end - r.start).sum();
        let head = Range { start: first.start, end: start.max(first.start) };
        let tail = Range { start: end.min(last.end), end: last.end };
        let kept = [head, tail].into_iter().filter(|r| r.start < r.end);
        let kept_octets: u64 = kept.clone().map(|r| r.end - r.start).sum();
        self.ranges.splice(from..to, kept);
        self.octets -= touched - kept_octets;
        touched - kept_octets
    }

    /// Whether all of `start..end` is in the set.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        start >= end || self.range_at(start).is_some_and(|r| end <= r.end)
    }

    /// Whether `start..end` overlaps or adjoins a range: inserting it would not add a range.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let i = self.ranges.partition_point(|r| r.end < start);
        self.ranges.get(i).is_some_and(|r| r.start <= end)
    }

    /// The range that contains `at`.
    pub fn range_at(&self, at: u64) -> Option<Range> {
        let i = self.ranges.partition_point(|r| r.end <= at);
        self.ranges.get(i).copied().filter(|r| r.start <= at)
    }

    /// The first range at or after `at`, cut to begin no earlier than `at`.
    pub fn next_from(&self, at: u64) -> Option<Range> {
        let i = self.ranges.partition_point(|r| r.end <= at);
        self.ranges.get(i).map(|r| Range { start: r.start.max(at), end: r.end })
    }

    /// Number of bytes that extend from 0 without a gap.
    pub fn prefix(&self) -> u64 {
        self.ranges.first().filter(|r| r.start == 0).map_or(0, |r| r.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64, u64),
        Remove(u64, u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        (any::<bool>(), 0u64..64, 0u64..20).prop_map(|(insert, start, n)| {
            if insert { Op::Insert(start, start + n) } else { Op::Remove(start, start + n) }
        })
    }

    proptest! {
        /// The oracle is a bitmap.
        #[test]
        fn any_operations_agree_with_a_bitmap(ops in proptest::collection::vec(op(), 0..60)) {
            let mut set = RangeSet::new();
            let mut bitmap = [false; 100];
            for op in ops {
                let (changed, expected) = match op {
                    Op::Insert(a, b) => {
                        let new = (a..b).filter(|i| !bitmap[*i as usize]).count();
                        (a..b).for_each(|i| bitmap[i as usize] = true);
                        (set.insert(a, b), new)
                    }
                    Op::Remove(a, b) => {
                        let gone = (a..b).filter(|i| bitmap[*i as usize]).count();
                        (a..b).for_each(|i| bitmap[i as usize] = false);
                        (set.remove(a, b), gone)
                    }
                };
                prop_assert_eq!(changed, expected as u64);
                prop_assert_eq!(set.octets(), bitmap.iter().filter(|b| **b).count() as u64);
                for i in 1..99 {
                    let near = bitmap[i as usize - 1..=i as usize + 1].contains(&true);
                    prop_assert_eq!(set.touches(i, i + 1), near);
                }
                for i in 0..100 {
                    prop_assert_eq!(set.covers(i, i + 1), bitmap[i as usize]);
                    let next = (i..100).find(|j| bitmap[*j as usize]);
                    prop_assert_eq!(set.next_from(i).map(|r| r.start), next);
                }
                prop_assert!(set.as_slice().windows(2).all(|w| w[0].end < w[1].start));
                prop_assert_eq!(set.prefix(), bitmap.iter().take_while(|b| **b).count() as u64);
            }
        }
    }
}
