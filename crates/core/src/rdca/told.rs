//! The packets that were reported to the application as lost, so that each is reported once.

use alloc::vec::Vec;

use anabranch_wire::rdca::{MAX_RANGES, Range, Seq};

/// Disjoint ranges in ascending order from the first unconfirmed packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Vec<Range>);

impl Told {
    /// Adds `range` and calls `fresh` for each part that was not yet in the set. Returns `false`
    /// and adds nothing if the set is full. The set holds as many ranges as a sink can need
    /// answered at once, and the sink repeats its request.
    pub(super) fn insert(&mut self, range: Range, mut fresh: impl FnMut(Range)) -> bool {
        if self.0.len() >= 2 * MAX_RANGES {
            return false;
        }
        let mut merged = range;
        let mut at = range.start;
        for told in &self.0 {
            if told.end.lt(range.start) || range.end.lt(told.start) {
                continue;
            }
            let before = Range { start: at, end: told.start };
            if !before.is_empty() {
                fresh(before);
            }
            at = at.max(told.end);
            merged = Range { start: merged.start.min(told.start), end: merged.end.max(told.end) };
        }
        let rest = Range { start: at, end: range.end };
        if !rest.is_empty() {
            fresh(rest);
        }
        self.0.retain(|told| told.end.lt(range.start) || range.end.lt(told.start));
        let place = self.0.iter().take_while(|told| told.start.lt(merged.start)).count();
        self.0.insert(place, merged);
        true
    }

    /// Removes all packets before `next`, which the sink has passed.
    pub(super) fn forget_before(&mut self, next: Seq) {
        self.0.retain(|told| next.lt(told.end));
    }

    /// Removes all ranges.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_not_told_again() {
        let mut told = Told::default();
        let tell = |told: &mut Told, start: u32, end: u32| {
            let mut fresh = Vec::new();
            assert!(
                told.insert(Range { start: Seq(start), end: Seq(end) }, |r| fresh.push((r.start.0, r.end.0)))
            );
            fresh
        };
        let last = u32::MAX;
        assert_eq!(tell(&mut told, last - 4, last - 2), [(last - 4, last - 2)]);
        assert_eq!(tell(&mut told, 2, 5), [(2, 5)]);
        assert_eq!(tell(&mut told, last - 6, 8), [(last - 6, last - 4), (last - 2, 2), (5, 8)]);
        assert_eq!(tell(&mut told, last - 6, 8), []);
        told.forget_before(Seq(7));
        assert_eq!(told.0.len(), 1);
        told.forget_before(Seq(8));
        assert!(told.0.is_empty());
    }
}
