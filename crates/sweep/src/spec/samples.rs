//! Samples of several parameters.

use std::collections::BTreeMap;

use anabranch_sim::random::Stream;
use serde_json::Value;

use super::distribution::Distribution;

/// Sampling method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// Independent samples. A larger count keeps the existing samples.
    Random,
    /// A Latin hypercube: each parameter has as many strata as there are samples, and one sample
    /// falls into each stratum. Another count yields other samples.
    #[default]
    LatinHypercube,
}

/// Samples of parameters that vary together.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// Sampling method.
    pub method: Method,
    /// Number of samples, at least 1.
    pub count: u32,
    /// The distributions of the parameters, by path.
    pub axes: BTreeMap<String, Distribution>,
}

impl Samples {
    /// The values of each parameter, one for every sample. They depend only on the seed, the index
    /// `which` of this group in the spec, and the path of the parameter. Adding another parameter
    /// does not change them.
    pub fn values(&self, seed: u64, which: u64) -> BTreeMap<String, Vec<Value>> {
        let drawn = self.axes.iter().map(|(path, distribution)| {
            let shares = match self.method {
                Method::Random => random(seed, which, path, self.count),
                Method::LatinHypercube => stratified(seed, which, path, self.count),
            };
            (path.clone(), shares.into_iter().map(|u| distribution.at(u)).collect())
        });
        drawn.collect()
    }
}

fn random(seed: u64, which: u64, path: &str, count: u32) -> Vec<f64> {
    let mut stream = Stream::new(seed, which, path, "sweep: random sample");
    (0..count).map(|_| stream.uniform()).collect()
}

/// One number in each of `count` equal parts of 0..1, in random order.
fn stratified(seed: u64, which: u64, path: &str, count: u32) -> Vec<f64> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut stream = Stream::new(seed, which, path, "sweep: order of strata");
    // Fisher-Yates shuffle.
    for i in (1..order.len()).rev() {
        order.swap(i, stream.range(0..=i as u64) as usize);
    }
    let mut stream = Stream::new(seed, which, path, "sweep: place in a stratum");
    let within = |stratum: u32| {
        let (low, high) = (f64::from(stratum) / f64::from(count), f64::from(stratum + 1) / f64::from(count));
        // Rounding must not move the number into the next part.
        (low + stream.uniform() * (high - low)).min(high.next_down())
    };
    order.into_iter().map(within).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_stratum_is_met_once(seed: u64, which in 0u64..4, count in 1u32..400, path in "[a-z.]{1,12}") {
            let mut strata: Vec<u32> = stratified(seed, which, &path, count)
                .into_iter()
                .map(|u| {
                    let guess = (u * f64::from(count)) as u32;
                    // The product may round across a boundary; comparing with the boundary decides.
                    if u < f64::from(guess) / f64::from(count) { guess - 1 } else { guess }
                })
                .collect();
            strata.sort_unstable();
            prop_assert_eq!(strata, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn more_random_samples_keep_the_first(seed: u64, count in 1u32..200, more in 0u32..200) {
            let (some, all) = (random(seed, 0, "a", count), random(seed, 0, "a", count + more));
            prop_assert_eq!(&some[..], &all[..some.len()]);
        }
    }

    #[test]
    fn a_parameter_s_samples_are_its_own() {
        let axis = |path: &str| (path.to_owned(), Distribution::Integer { low: 0, high: 1 << 40 });
        let samples = |paths: &[&str]| Samples {
            method: Method::LatinHypercube,
            count: 9,
            axes: paths.iter().map(|path| axis(path)).collect(),
        };
        let (one, two) = (samples(&["b"]).values(1, 0), samples(&["a", "b"]).values(1, 0));
        assert_eq!(one["b"], two["b"]);
        assert_ne!(two["a"], two["b"]);
        assert_ne!(one["b"], samples(&["b"]).values(2, 0)["b"]);
        assert_ne!(one["b"], samples(&["b"]).values(1, 1)["b"]);
    }
}
