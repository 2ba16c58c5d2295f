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
    for t in 0..200 {
        sim.run_until(Instant::ZERO + Duration::from_millis(100 * t));
        let a: &anabranch_sim::apps::set::SetSender = sim.app(r.sender);
        let n: &anabranch_sim::apps::set::SetNode = sim.app(r.node);
        let v: Vec<_> = a
            .sessions()
            .iter()
            .map(|(s, _)| {
                format!(
                    "[{} {:?} out {} w {} d {} rate {:?} lat {:?}]",
                    s.gateway,
                    s.state,
                    s.outstanding,
                    s.written,
                    s.delivered,
                    s.rate,
                    s.latency.map(|l| l.as_millis())
                )
            })
            .collect();
        let net = &sim.world().network;
        let tcp: Vec<_> = r
            .gateways
            .iter()
            .map(|g| {
                sim.world()
                    .connections(*g)
                    .map(|c| {
                        let i = sim.world().info(*g, c).unwrap();
                        format!(
                            "{}/{}/s{}/f{}/u{}/r{}/t{}/w{}",
                            i.cwnd,
                            i.mss,
                            i.ssthresh.min(99999),
                            i.in_flight,
                            i.unsent,
                            i.retransmissions,
                            i.timeouts,
                            i.peer_window
                        )
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        let drops: Vec<_> =
            net.links().iter().map(|l| (l.metrics().dropped_full, l.metrics().dropped_loss)).collect();
        eprintln!("{:.1} TCP {tcp:?} {drops:?}", t as f64 / 10.0);
        eprintln!("{:.1} {} true {} {}", t as f64 / 10.0, a.delivered(), n.delivered.len(), v.join(" "));
        if a.finished.is_some() {
            break;
        }
    }
}
