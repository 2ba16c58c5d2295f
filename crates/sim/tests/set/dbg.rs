use super::star::*;
use anabranch_core::time::{Duration, Instant};
#[test]
fn dbg() {
    let seed: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let run: u64 = std::env::var("RUN").unwrap().parse().unwrap();
    let paths = super::random::network(seed);
    eprintln!("{paths:?}");
    for p in &paths {
        eprintln!("single {}", Star { seed, run, ..Star::new(&[*p], 100_000) }.latency());
    }
    let s = Star { seed, run, ..Star::new(&paths, 100_000) };
    let mut r = s.build();
    let mut sim = r.builder.take().unwrap().build();
    for t in 0..100 {
        sim.run_until(Instant::ZERO + Duration::from_millis(500 * t));
        let a: &anabranch_sim::apps::set::SetSender = sim.app(r.sender);
        let n: &anabranch_sim::apps::set::SetNode = sim.app(r.node);
        eprintln!("{} {} true {} {}", t as f64 / 2.0, a.delivered(), n.delivered.len(), a.debug());
        if a.finished.is_some() {
            break;
        }
    }
}
