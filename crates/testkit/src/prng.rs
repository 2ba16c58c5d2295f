//! SplitMix64: a small seeded generator with the same results on all machines.

use std::ops::RangeInclusive;

/// A generator; equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Prng(u64);

impl Prng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the generator of one run of a seed. Equal pairs give equal numbers; neighbouring
    /// runs are unrelated.
    pub fn of_run(seed: u64, run: u64) -> Self {
        let mut mixed = Self::new(seed);
        Self(mixed.bits() ^ Self::new(run).bits().rotate_left(32))
    }

    /// A random 64-bit number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number in 0..`n`; 0 if `n` is 0. The bias is below 2^-32 for the sizes of tests.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A random number of the range, both ends included.
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// True with a probability of `percent` %.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A random element of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// `n` random bytes.
    pub fn octets(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}
