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
