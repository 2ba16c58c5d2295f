//! Requests and responses beside a transfer that fills all paths.

use serde_json::{Value, json};

use super::{Links, Means, chosen, given, mean, outcome, path, percentile};

/// Prints the times of requests.
#[test]
fn requests_beside_a_transfer() {
    let (runs, seconds) = (given("RUNS", 0), given("SECONDS", 15));
    let Some(links) = (runs > 0).then(|| Links::open(&[path(20, 10, 0), path(20, 100, 0)])).flatten() else {
        return;
    };
    let means = [
        ("kernel cubic", Means::Kernel("cubic")),
        ("kernel bbr", Means::Kernel("bbr")),
        ("fastest", Means::Ours(&["--scheduler", "fastest"])),
        ("predictive", Means::Ours(&["--scheduler", "predictive"])),
        ("redundant", Means::Ours(&["--scheduler", "redundant"])),
        ("predictive bbr", Means::Ours(&["--scheduler", "predictive", "--congestion", "bbr"])),
        ("redundant bbr", Means::Ours(&["--scheduler", "redundant", "--congestion", "bbr"])),
    ];
    for (name, means) in chosen(&means) {
        let (mut times, mut tails) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let carrier = links.carrier(means);
            let mut bulk = links.begin(&carrier, json!({"kind": "put", "seconds": seconds}));
            let job = json!({"kind": "echo", "seconds": seconds - 1, "pause": 20});
            let mut each = latencies(&links.ask(&carrier, job));
            outcome(&mut bulk.0);
            tails.push(percentile(&mut each, 0.99));
            times.extend(each);
        }
        println!(
            "{name}: median {:.1}, 99 % {:.1} ms (of each run {tails:.1?}), mean {:.1}; {} requests",
            percentile(&mut times, 0.5),
            percentile(&mut times, 0.99),
            mean(&times),
            times.len()
        );
    }
}

/// Times in ms, without those of the first two seconds.
fn latencies(outcome: &Value) -> Vec<f64> {
    let times: Vec<f64> =
        outcome["times"].as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    let mut begun = 0.0;
    let late = times.iter().filter(|time| {
        begun += **time + 20.0;
        begun > 2000.0
    });
    late.copied().collect()
}
