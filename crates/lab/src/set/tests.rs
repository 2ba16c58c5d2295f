use super::*;
use crate::experiment::{grid, run_all};
#[test]
fn probe() {
    for file in ["5kB", "42kB", "129kB"] {
        for rate in ["56kbit/s", "128kbit/s", "256kbit/s", "1.2Mbit/s"] {
            for delay in ["5ms", "25ms", "100ms"] {
                let args = [
                    format!("file={file}"),
                    format!("wireless_rate={rate}"),
                    format!("wireless_delay={delay}"),
                    "gateways=1,2,3".to_owned(),
                ];
                let points = grid(&Set, &args).unwrap();
                let out = run_all(&Set, &points, 1, 1).unwrap();
                let l: Vec<_> = out
                    .iter()
                    .map(|o| {
                        (
                            o.mean("latency_s").unwrap_or(-1.0),
                            o.mean("establishment_s").unwrap_or(-1.0),
                            o.mean("model_latency_s").unwrap(),
                        )
                    })
                    .collect();
                let s: Vec<String> = l
                    .iter()
                    .map(|(a, e, m)| {
                        format!("{a:.3} est {e:.3} model {m:.3} ({:+.1}%)", (m / a - 1.0) * 100.0)
                    })
                    .collect();
                eprintln!("{file} {rate} {delay}: {}", s.join(" | "));
            }
        }
    }
}

#[test]
fn probe2() {
    let args = ["file=42kB,129kB", "node_buffer=0.25kB,1kB,2kB,4kB,16kB", "gateways=1", "scheme=split,set"];
    let points = grid(&Set, &args).unwrap();
    for o in run_all(&Set, &points, 1, 1).unwrap() {
        eprintln!(
            "{:?} {:?} {:?} {:?}",
            o.parameter("file"),
            o.parameter("node_buffer"),
            o.parameter("scheme"),
            (o.mean("latency_s"), o.mean("model_latency_s"), o.mean("retransmissions"))
        );
    }
}

#[test]
fn probe3() {
    for (f, r, d, n) in [
        ("5kB", "56kbit/s", "5ms", "2"),
        ("5kB", "56kbit/s", "5ms", "3"),
        ("5kB", "56kbit/s", "25ms", "3"),
        ("5kB", "128kbit/s", "5ms", "3"),
        ("5kB", "256kbit/s", "5ms", "2"),
        ("5kB", "256kbit/s", "5ms", "3"),
        ("42kB", "1.2Mbit/s", "5ms", "3"),
    ] {
        let mut st = Settings::defaults(&Set);
        st.set("file", f).unwrap();
        st.set("wireless_rate", r).unwrap();
        st.set("wireless_delay", d).unwrap();
        st.set("gateways", n).unwrap();
        let c = Config::understand(&st).unwrap();
        let scenario = c.scenario().unwrap();
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new());
        let mut sim = builder.build();
        let first = planned.sets[0];
        while sim.app::<SetSender>(first.sender).outcome().is_none() && sim.step() {}
        let fig = SetFigures::of(&first, &planned, &sim);
        let m = anabranch_model::set::latency(&c.model(Equations::Protocol), c.gateways).unwrap();
        eprintln!(
            "{f} {r} {d} {n}: sim {:.3} model {:.3} shares {:?} sim {:?}",
            fig.latency.unwrap().as_secs_f64(),
            m.total,
            m.paths.iter().map(|p| (p.wireless_segments * 81, p.finish)).collect::<Vec<_>>(),
            sim.app::<SetSender>(first.sender)
                .sessions()
                .iter()
                .map(|s| format!("{:?}", s.0))
                .collect::<Vec<_>>()
        );
    }
}
