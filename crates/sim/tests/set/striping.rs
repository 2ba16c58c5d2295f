//! How fast.

use anabranch_core::set::{Plan, SenderConfig};

use super::star::*;

#[test]
fn probe_cpu() {
    for _ in 0..20 {
        Star::new(&[path(256_000, 25, 0.0); 3], 129_000).latency();
    }
}

#[test]
fn probe() {
    for (name, make) in
        [("modern", Star::new as fn(&[Path], usize) -> Star), ("paper", Star::paper), ("lab", Star::lab)]
    {
        for length in [5_000, 42_000, 129_000, 1_000_000] {
            let l: Vec<f64> =
                (1..=4).map(|n| make(&vec![path(256_000, 25, 0.0); n], length).latency()).collect();
            let base = Star {
                set: SenderConfig { plan: Plan::Split, ..SenderConfig::default() },
                ..make(&[path(256_000, 25, 0.0)], length)
            }
            .latency();
            let e2e = Star {
                set: SenderConfig { plan: Plan::EndToEnd, ..SenderConfig::default() },
                ..make(&[path(256_000, 25, 0.0)], length)
            }
            .latency();
            eprintln!(
                "{name} {length}: e2e {e2e:.3} split {base:.3} set {l:.3?} speedup {:?}",
                l.iter().map(|x| (l[0] / x * 1000.0).round() / 1000.0).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn grid() {
    for length in [5_000, 42_000, 129_000] {
        for rate in [56_000, 128_000, 256_000, 1_200_000] {
            for ms in [5, 25, 50, 100, 200] {
                let l: Vec<f64> =
                    (1..=3).map(|n| Star::lab(&vec![path(rate, ms, 0.0); n], length).latency()).collect();
                eprintln!("grid {length} {rate} {ms} {l:.3?} {:.3} {:.3}", l[0] / l[1], l[0] / l[2]);
            }
        }
    }
}
