//! The replay window (RFC 6479).

/// Remembers which of the last `64 * (W - 1)` packet numbers were received. The bits form a ring,
/// so that the window moves without a shift.
#[derive(Debug)]
pub(super) struct Window<const W: usize> {
    /// One past the highest number received.
    end: u64,
    seen: [u64; W],
}

impl<const W: usize> Window<W> {
    pub(super) const fn new() -> Self {
        Self { end: 0, seen: [0; W] }
    }

    /// Whether the number is neither received nor too old.
    pub(super) fn is_fresh(&self, number: u32) -> bool {
        let number = u64::from(number);
        let (word, bit) = Self::place(number);
        number >= self.end || self.end - number <= 64 * (W as u64 - 1) && self.seen[word] & bit == 0
    }

    /// Marks a fresh number as received. Returns whether it is the highest.
    pub(super) fn mark(&mut self, number: u32) -> bool {
        let number = u64::from(number);
        let is_highest = number >= self.end;
        if is_highest {
            // Words between the last highest number and this one hold bits of a previous round.
            let last = self.end.saturating_sub(1) / 64;
            for word in (last + 1..=number / 64).take(W) {
                self.seen[(word % W as u64) as usize] = 0;
            }
            if number / 64 - last >= W as u64 {
                self.seen = [0; W];
            }
            self.end = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
        is_highest
    }

    fn place(number: u64) -> (usize, u64) {
        ((number / 64 % W as u64) as usize, 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The oracle is a set of all received numbers.
        #[test]
        fn a_number_is_fresh_once_and_only_within_the_window(
            steps in proptest::collection::vec((-300_i64..300, prop::bool::weighted(0.05)), 1..400),
        ) {
            let mut window = Window::<5>::new();
            let mut all = BTreeSet::new();
            let mut at = 0_i64;
            for (step, leaps) in steps {
                at = (at + if leaps { step * 1000 } else { step }).clamp(0, i64::from(u32::MAX));
                let number = at as u32;
                let highest = all.last().copied();
                let is_old = highest.is_some_and(|highest: u32| highest.saturating_sub(number) >= 256);
                prop_assert_eq!(window.is_fresh(number), !is_old && !all.contains(&number));
                if window.is_fresh(number) {
                    prop_assert_eq!(window.mark(number), highest.is_none_or(|highest| number > highest));
                    all.insert(number);
                }
            }
        }
    }
}
