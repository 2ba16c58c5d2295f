//! Named random streams.
//!
//! A [`Stream`] is derived from (seed, run, component, purpose) by SipHash-2-4, written out here,
//! and drawn with ChaCha8. A new component therefore shifts no other component's numbers, and two
//! runs that differ only in the protocol see the same channel. The samplers are ours too: those of
//! a library may change between its versions, and the mathematical functions of the platform differ
//! in the last bit.
//!
//! A draw of any kind takes a fixed number of 64-bit words (one), except [`Stream::range`], which
//! rejects.

mod siphash;

use std::ops::RangeInclusive;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::math::{exp, ln};

/// A source of pseudo-random numbers with a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Stream {
    cipher: ChaCha8Rng,
}

impl Stream {
    /// The stream of `purpose` in `component` for one run of one seed.
    pub fn new(seed: u64, run: u64, component: &str, purpose: &str) -> Self {
        // Lengths go in front, so that no two pairs of names make one text.
        let mut name = Vec::with_capacity(17 + component.len() + purpose.len());
        name.extend_from_slice(&(component.len() as u64).to_le_bytes());
        name.extend_from_slice(component.as_bytes());
        name.extend_from_slice(&(purpose.len() as u64).to_le_bytes());
        name.extend_from_slice(purpose.as_bytes());
        name.push(0);
        let mut key = [0; 32];
        for (lane, out) in key.chunks_exact_mut(8).enumerate() {
            *name.last_mut().expect("the lane's octet was pushed") = lane as u8;
            out.copy_from_slice(&siphash::siphash_2_4(seed, run, &name).to_le_bytes());
        }
        Self { cipher: ChaCha8Rng::from_seed(key) }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.cipher.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`; never for 0 or less, always for 1 or more.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        -ln(1.0 - self.uniform())
    }

    /// Pareto with the least value 1: `k` or more with the probability `k` to the minus shape.
    pub fn pareto(&mut self, shape: f64) -> f64 {
        // What is beyond has no number.
        exp((self.exponential() / shape).min(700.0))
    }

    /// Normal with mean 0 and deviation 1, by Marsaglia's polar method: square root and logarithm
    /// only.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                return u * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }

    /// Uniform over the integers of `range`.
    ///
    /// # Panics
    ///
    /// If the range is empty.
    #[inline]
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        assert!(first <= last, "an empty range has no element to draw");
        let Some(count) = (last - first).checked_add(1) else { return self.bits() };
        // Lemire, "Fast random integer generation in an interval" (2019): multiply, reject the
        // short ends.
        let mut wide = u128::from(self.bits()) * u128::from(count);
        if (wide as u64) < count {
            let reject_below = count.wrapping_neg() % count;
            while (wide as u64) < reject_below {
                wide = u128::from(self.bits()) * u128::from(count);
            }
        }
        first + (wide >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_name_never_change() {
        let mut stream = Stream::new(1, 2, "link a-b", "loss");
        let bits: Vec<_> = (0..3).map(|_| stream.bits()).collect();
        expect_test::expect!["[539c62f447b83617, e79323c7700d7ffc, e1a1540bf2b6979e]"]
            .assert_eq(&format!("{bits:x?}"));
        let uniform = stream.uniform();
        let exponential = stream.exponential();
        let die: Vec<_> = (0..10).map(|_| stream.range(1..=6)).collect();
        expect_test::expect!["0.7444306821641291 0.02435525975298513 [5, 3, 4, 6, 3, 2, 4, 6, 6, 6]"]
            .assert_eq(&format!("{uniform:?} {exponential:?} {die:?}"));
    }

    #[test]
    fn every_part_of_the_name_counts() {
        let first = |seed, run, component, purpose| Stream::new(seed, run, component, purpose).bits();
        let base = first(1, 1, "ab", "c");
        for other in
            [first(2, 1, "ab", "c"), first(1, 2, "ab", "c"), first(1, 1, "a", "bc"), first(1, 1, "ab", "d")]
        {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn means_are_what_they_should_be() {
        let mut stream = Stream::new(3, 0, "test", "means");
        let n = 200_000;
        let mean = |sum: f64| sum / f64::from(n);
        assert!((mean((0..n).map(|_| stream.uniform()).sum()) - 0.5).abs() < 0.003);
        assert!((mean((0..n).map(|_| stream.exponential()).sum()) - 1.0).abs() < 0.01);
        assert!((mean((0..n).map(|_| stream.pareto(4.0)).sum()) - 4.0 / 3.0).abs() < 0.01);
        assert!((mean((0..n).map(|_| f64::from(u8::from(stream.bernoulli(0.1)))).sum()) - 0.1).abs() < 0.003);
        assert!((mean((0..n).map(|_| stream.range(10..=20) as f64).sum()) - 15.0).abs() < 0.03);
    }

    #[test]
    fn deviates_are_normal() {
        let mut stream = Stream::new(5, 0, "test", "normal");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        let within = draws.iter().filter(|x| x.abs() < 1.0).count() as f64 / f64::from(n);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02 && (within - 0.6827).abs() < 0.005);
    }
}
