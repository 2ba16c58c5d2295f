//! Rates of one connection over several paths.

use anabranch_testkit::paths::Path;
use serde_json::{Value, json};

use super::{Carrier, Links, Means, bins, chosen, compared, given, mean, outcome, path};

struct Case {
    name: &'static str,
    paths: &'static [Path],
    /// `put` or `get`: from the client, or to it.
    kind: &'static str,
    /// Least part of the sum of plain connections with `fastest`, the default; 0 is not judged.
    least: f64,
}

const CASES: [Case; 7] = [
    Case { name: "3 x 50 Mbit/s, 10 ms", paths: &[path(50, 10, 0); 3], kind: "put", least: 0.97 },
    Case { name: "3 x 50 Mbit/s, 10 ms", paths: &[path(50, 10, 0); 3], kind: "get", least: 0.97 },
    Case {
        name: "50/20/5 Mbit/s, 0 ms",
        paths: &[path(50, 0, 0), path(20, 0, 0), path(5, 0, 0)],
        kind: "put",
        least: 0.95,
    },
    Case {
        name: "50/20/5 Mbit/s, 5/50/200 ms",
        paths: &[path(50, 5, 0), path(20, 50, 0), path(5, 200, 0)],
        kind: "put",
        least: 0.95,
    },
    Case {
        name: "50/20/5 Mbit/s, 5/50/200 ms",
        paths: &[path(50, 5, 0), path(20, 50, 0), path(5, 200, 0)],
        kind: "get",
        least: 0.0,
    },
    Case {
        name: "3 x 20 Mbit/s, 20 ms, 1 % loss on one",
        paths: &[path(20, 20, 10), path(20, 20, 0), path(20, 20, 0)],
        kind: "put",
        least: 0.0,
    },
    Case {
        name: "20/20 Mbit/s, 20 ms, 1 % loss on one",
        paths: &[path(20, 20, 10), path(20, 20, 0)],
        kind: "put",
        least: 0.0,
    },
];

/// Mbit/s of payload between the first second and the end of the client's data.
fn rate(links: &Links, carrier: &Carrier, kind: &str, seconds: f64) -> f64 {
    steady(&links.ask(carrier, json!({"kind": kind, "seconds": seconds})), seconds)
}

/// The slow start is left out, and what arrives after the client has written all.
fn steady(outcome: &Value, seconds: f64) -> f64 {
    let bins = bins(outcome);
    // A connection that stops has no rate.
    let Some((&begin, _)) = bins.first_key_value() else { return 0.0 };
    let warm = if seconds > 5.0 { 2000 } else { 500 };
    let end = begin + (seconds * 1e3) as u64;
    let octets: u64 = bins.range(begin + warm..end).map(|(_, octets)| octets).sum();
    octets as f64 * 8e-3 / (end - begin - warm) as f64
}

/// The sum of plain connections at the same time, one over each path, and the rate of the best.
fn plain(links: &Links, number: usize, kind: &str, seconds: f64) -> (f64, f64) {
    let carriers: Vec<_> = (0..number).map(|i| links.carrier(Means::Plain(i))).collect();
    let job = json!({"kind": kind, "seconds": seconds});
    let mut clients: Vec<_> = carriers.iter().map(|carrier| links.begin(carrier, job.clone())).collect();
    let rates = clients.iter_mut().map(|client| steady(&outcome(&mut client.0), seconds));
    let rates: Vec<f64> = rates.collect();
    (rates.iter().sum(), rates.iter().copied().fold(0.0, f64::max))
}

#[test]
fn a_connection_uses_all_paths() {
    let specs = [path(20, 10, 0), path(10, 10, 0)];
    let Some(links) = Links::open(&specs) else { return };
    let carrier = links.carrier(Means::Ours(&[]));
    for kind in ["put", "get"] {
        if kind == "get" {
            links.limit_both(&specs);
        }
        let rate = rate(&links, &carrier, kind, 1.5);
        println!("{kind}: {rate:.1} Mbit/s");
        // More than either path has.
        assert!(rate > 21.0, "{kind}: {rate} Mbit/s");
    }
}

/// Prints a table of rates.
#[test]
fn all_paths_together_carry_their_sum() {
    let (runs, only) = (given("RUNS", 0), given("CASE", CASES.len() as u64) as usize);
    let last = ("fastest bbr", Means::Ours(&["--scheduler", "fastest", "--congestion", "bbr"]));
    let (compared, seconds) = (chosen(&compared(last)), given("SECONDS", 8) as f64);
    for (_, case) in CASES.iter().enumerate().filter(|(i, _)| only == CASES.len() || only == *i) {
        let Some(links) = (runs > 0).then(|| Links::open(case.paths)).flatten() else { return };
        if case.kind == "get" {
            links.limit_both(case.paths);
        }
        let mut rates = vec![Vec::new(); compared.len()];
        let (mut sums, mut bests) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let (sum, best) = plain(&links, case.paths.len(), case.kind, seconds);
            sums.push(sum);
            bests.push(best);
            for ((_, means), rates) in compared.iter().zip(&mut rates) {
                rates.push(rate(&links, &links.carrier(*means), case.kind, seconds));
                println!("{means:?}: {:.1}", rates[rates.len() - 1]);
            }
        }
        println!("{} ({}): plain sum {:.1}, best {:.1}", case.name, case.kind, mean(&sums), mean(&bests));
        let first = (compared[0].0, mean(&rates[0]));
        for ((name, _), rates) in compared.iter().zip(&rates) {
            let mean = mean(rates);
            let (part, times) = (mean / self::mean(&sums), mean / first.1);
            println!(
                "  {name}: {mean:.1} Mbit/s, {part:.3} of the sum, {times:.2} of {}; {rates:.1?}",
                first.0
            );
            let judged = *name == "fastest";
            assert!(!judged || part >= case.least, "{}: {part:.3} of the sum", case.name);
        }
    }
}
