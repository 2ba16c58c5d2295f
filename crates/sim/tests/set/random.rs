//! Random networks: SET is never slower than the best single gateway.

use anabranch_sim::random::Stream;

use anabranch_core::set::{Plan, SenderConfig};

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

fn mean_latency(paths: &[Path], seed: u64, runs: u64, plan: Plan) -> f64 {
    let total: f64 = (0..runs)
        .map(|run| {
            let star = Star::new(paths, 100_000);
            Star { seed, run, set: SenderConfig { plan, ..star.set }, ..star }.latency()
        })
        .sum();
    total / runs as f64
}

#[test]
fn explore() {
    let runs: u64 = std::env::var("RUNS").ok().and_then(|r| r.parse().ok()).unwrap_or(3);
    let networks: u64 = std::env::var("NETS").ok().and_then(|r| r.parse().ok()).unwrap_or(60);
    let mut ratios = Vec::new();
    for seed in 0..networks {
        let paths = network(seed);
        let singles: Vec<f64> = paths.iter().map(|p| mean_latency(&[*p], seed, runs, Plan::Stripe)).collect();
        let best = singles.iter().copied().fold(f64::MAX, f64::min);
        let together = mean_latency(&paths, seed, runs, Plan::Stripe);
        let splits: Vec<f64> = paths.iter().map(|p| mean_latency(&[*p], seed, runs, Plan::Split)).collect();
        ratios.push(together / best);
        if together > 1.0 * best {
            eprintln!(
                "bad {seed} {:.3} together {together:.2} singles {singles:.2?} splits {splits:.2?} {:?}",
                together / best,
                paths
                    .iter()
                    .map(|p| (p.rate / 1000, p.wireless_ms, (p.loss * 1000.0) as u32))
                    .collect::<Vec<_>>()
            );
        }
    }
    ratios.sort_by(f64::total_cmp);
    eprintln!(
        "ratios median {:.3} p90 {:.3} max {:.3} over1.02: {}",
        ratios[ratios.len() / 2],
        ratios[ratios.len() * 9 / 10],
        ratios[ratios.len() - 1],
        ratios.iter().filter(|r| **r > 1.02).count()
    );
}
