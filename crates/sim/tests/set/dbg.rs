use super::star::*;
use anabranch_core::time::{Duration, Instant};
#[test]
fn dbg() {
    let s = Star::new(&vec![path(256_000, 25, 0.0); 2], 1_000_000);
    let mut r = s.build();
    let mut sim = r.builder.take().unwrap().build();
    for t in 0..36 {
        sim.run_until(Instant::ZERO + Duration::from_millis(1000 * t));
        let a: &anabranch_sim::apps::set::SetSender = sim.app(r.sender);
        let v: Vec<_> = a.sessions().iter().map(|(s, l)| format!("w {} d {} lat {:?} retx {}", s.written, s.delivered, s.latency, l.retransmissions)).collect();
        let links: Vec<_> = sim.world().network.links().iter().map(|l| l.metrics().dropped_full).collect();
        eprintln!("{t} {} {v:?} {links:?} {}", a.delivered(), a.debug());
    }
}
