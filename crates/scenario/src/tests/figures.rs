//! Metrics of transfers that stall, or deliver nothing.

use super::*;

/// One link of 1 Mbit/s and 50 ms between `a` and `b` with the keys `link`, followed by `rest`.
fn pair(link: &str, rest: &str) -> Source {
    let text = format!(
        "stop = \"40 s\"\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ from = \"a\", to = \"b\", rate = \"1 Mbit/s\", delay = \"50 ms\"{link} }}]\n{rest}"
    );
    Source::new("pair.toml", text)
}

fn transfer(kind: &str, more: &str) -> String {
    format!("[[transfer]]\nname = \"t\"\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\n{more}\n")
}

const DOWN: &str = "[[event]]\nat = \"3 s\"\naction = \"link-down\"\nfrom = \"a\"\nto = \"b\"\n";

fn run(source: &Source) -> record::Metrics {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn").1
}

#[track_caller]
fn figure(metrics: &record::Metrics, name: &str) -> f64 {
    metrics[&format!("transfer.t.{name}")].value.unwrap_or_else(|| panic!("{name} is none"))
}

#[test]
fn a_transfer_that_stalls_has_the_figures_of_the_whole_run() {
    for kind in ["tcp", "mptcp"] {
        for content in ["bytes = \"1 MB\"", ""] {
            let metrics = run(&pair("", &(transfer(kind, content) + DOWN)));
            let delivered = figure(&metrics, "delivered_bytes");
            assert!((200_000.0..375_000.0).contains(&delivered), "{kind}: {delivered}");
            assert_eq!(figure(&metrics, "goodput_bit_per_s"), delivered * 8.0 / 40.0, "{kind} {content}");
            let timeouts = figure(&metrics, "timeouts");
            assert!((4.0..=8.0).contains(&timeouts), "{kind}: {timeouts} time-outs in 37 s");
            assert!(figure(&metrics, "retransmissions") >= timeouts, "{kind}");
            assert_eq!(figure(&metrics, "delivered"), 0.0);
            assert_eq!(metrics["transfer.t.latency_s"].value, None);
            if kind == "mptcp" {
                assert_eq!(figure(&metrics, "subflow.0.timeouts"), timeouts);
            }
        }
    }
}

#[test]
fn a_transfer_without_any_delivery_has_a_goodput_of_zero_and_its_time_outs() {
    // SYNs are lost: time-outs after 1, 3, 7, 15 and 31 s.
    for kind in ["tcp", "mptcp"] {
        let metrics = run(&pair(", loss = 1", &transfer(kind, "bytes = \"1 MB\"")));
        assert_eq!(figure(&metrics, "goodput_bit_per_s"), 0.0);
        assert_eq!(figure(&metrics, "timeouts"), 5.0, "{kind}");
        assert_eq!(figure(&metrics, "retransmissions"), 5.0, "{kind}");
    }
    // The connection is established, but no full segment passes.
    let forbidden = "[network]\nfragmentation = \"forbidden\"\n".to_owned();
    let metrics = run(&pair(", mtu = 1200", &(transfer("tcp", "bytes = \"1 MB\"") + &forbidden)));
    assert_eq!(figure(&metrics, "goodput_bit_per_s"), 0.0);
    assert!(figure(&metrics, "timeouts") >= 5.0);
    // It gives up after two time-outs, and nothing is pending long before the end.
    let profile = "[tcp.default]\nsyn_retries = 1\n";
    let metrics = run(&pair(", loss = 1", &(transfer("tcp", "start = \"1 s\"") + profile)));
    assert_eq!(figure(&metrics, "goodput_bit_per_s"), 0.0);
    assert!(figure(&metrics, "timeouts") >= 1.0);
}

#[test]
fn a_transfer_that_is_delivered_counts_until_its_last_octet() {
    for kind in ["tcp", "mptcp", "end-to-end"] {
        let metrics = run(&pair("", &transfer(kind, "bytes = \"100 kB\"\nstart = \"2 s\"")));
        let took = figure(&metrics, "latency_s");
        assert_eq!(figure(&metrics, "goodput_bit_per_s"), 800_000.0 / took, "{kind}");
    }
}

#[test]
fn a_transfer_with_a_request_follows_the_same_rule() {
    let request = transfer("end-to-end", "bytes = \"1 MB\"");
    let metrics = run(&pair("", &(request.clone() + DOWN)));
    let delivered = figure(&metrics, "delivered_bytes");
    assert!(delivered > 0.0);
    assert_eq!(figure(&metrics, "goodput_bit_per_s"), delivered * 8.0 / 40.0);
    assert!(figure(&metrics, "retransmissions") >= 4.0);
    let metrics = run(&pair(", loss = 1", &request));
    assert_eq!(figure(&metrics, "goodput_bit_per_s"), 0.0);
    assert!(figure(&metrics, "retransmissions") >= 5.0);
}

/// A run in which nothing arrives counts in the mean over runs.
#[test]
fn every_run_has_a_goodput_and_counters() {
    let scenario = pair(", loss = 0.45", &transfer("tcp", "bytes = \"1 MB\"")).scenario().unwrap();
    for run in 0..20 {
        let metrics = scenario.run(1, run, &BTreeMap::new()).expect("nothing is drawn").1;
        for name in ["goodput_bit_per_s", "timeouts", "retransmissions", "fast_retransmits"] {
            figure(&metrics, name);
        }
    }
}
