//! Random networks: SET is never slower than the best single gateway.

use anabranch_sim::random::Stream;

use super::star::*;

/// 2 to 5 gateways, 20 to 1000 kbit/s, 5 to 500 ms, loss 0 to 5 %.
pub(crate) fn network(seed: u64) -> Vec<Path> {
    let mut random = Stream::new(seed, 0, "random networks", "paths");
    let n = random.range(2..=5);
    (0..n)
        .map(|_| {
            let rate = (20e3 * (50f64).powf(random.uniform())) as u64;
            path(rate, random.range(5..=500), random.uniform() * 0.05)
        })
        .collect()
}

fn mean_latency(paths: &[Path], seed: u64) -> f64 {
    let total: f64 = (0..RUNS).map(|run| Star { seed, run, ..Star::new(paths, 100_000) }.latency()).sum();
    total / RUNS as f64
}

/// Latency of SET through all gateways, as a multiple of its latency through the best one alone.
fn against_the_best(seed: u64) -> f64 {
    let paths = network(seed);
    let best = paths.iter().map(|p| mean_latency(&[*p], seed)).fold(f64::MAX, f64::min);
    mean_latency(&paths, seed) / best
}

/// A short form: the campaign `set-random-networks` tests the full statement, with more networks,
/// more runs of each and closer bounds. With so few runs a mean is imprecise, hence the margin.
#[test]
fn several_gateways_are_no_slower_than_the_best_of_them() {
    let ratios: Vec<(u64, f64)> = (0..NETWORKS).map(|seed| (seed, against_the_best(seed))).collect();
    let above = |bound: f64| ratios.iter().filter(|(_, r)| *r > bound).collect::<Vec<_>>();
    assert!(above(1.05).len() <= 1, "(seed, ratio) above 1.05: {:.3?}", above(1.05));
    assert!(above(1.10).is_empty(), "(seed, ratio) above 1.10: {:.3?}", above(1.10));
}

const NETWORKS: u64 = 40;
const RUNS: u64 = 5;
