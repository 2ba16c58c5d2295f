//! Runs every target briefly with a fixed seed, so that `cargo test` includes the fuzz targets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use anabranch_fuzz::crash;
use anabranch_fuzz::probe::Probe;
use anabranch_fuzz::runner::{self, Budget, Report};
use anabranch_fuzz::targets::{self, Target};

fn short_run(name: &str, executions: u64) -> Report {
    let target = targets::find(name).unwrap();
    let corpus = runner::corpus(target).unwrap();
    let probe = Probe::looking_inside();
    let report = runner::run_with(target, &corpus, 1, Budget::Executions(executions), probe);
    if let Some(crash) = &report.crash {
        let file = crash::store(&crash::directory(), name, &crash.input).unwrap();
        panic!("{:?}\nreplay: -- {name} --replay {}", crash.failure, file.display());
    }
    assert_eq!(report.executions, executions);
    assert!(report.features > 0);
    report
}

#[test]
fn ip_tcp() {
    short_run("ip_tcp", 20_000);
}

#[test]
fn mac_frame() {
    short_run("mac_frame", 20_000);
}

#[test]
fn wifi_frame() {
    short_run("wifi_frame", 20_000);
}

#[test]
fn lowpan() {
    short_run("lowpan", 20_000);
}

#[test]
fn rpl() {
    short_run("rpl", 20_000);
}

#[test]
fn aodv() {
    short_run("aodv", 20_000);
}

#[test]
fn datagram() {
    short_run("datagram", 2_000);
}

#[test]
fn collector() {
    let report = short_run("collector", 2_000);
    for what in ["a record", "a loss", "a restart of the sink", "complete", "restarted", "silent"] {
        assert!(report.landmarks.contains_key(what), "{what}: {:?}", report.landmarks);
    }
}

#[test]
fn proxy() {
    short_run("proxy", 20_000);
}

#[test]
fn embed_cache() {
    let landmarks = short_run("embed_cache", 3_000).landmarks;
    for landmark in ["a packet held back", "a segment repeated", "an acknowledgement repeated"] {
        assert!(landmarks.contains_key(landmark), "never reached: {landmark}");
    }
}

#[test]
fn embed_sense() {
    let landmarks = short_run("embed_sense", 2_000).landmarks;
    for landmark in ["connected", "confirmed", "writable", "ended", "a record repeated"] {
        assert!(landmarks.contains_key(landmark), "never reached: {landmark}");
    }
}

#[test]
fn cache() {
    let landmarks = short_run("cache", 4_000).landmarks;
    for name in
        ["data repeated", "acknowledgement repeated", "part repeated", "held", "given up", "GSO", "full"]
    {
        assert!(landmarks.contains_key(name), "{name}: {landmarks:#?}");
    }
}

#[test]
fn mptcp_machines() {
    let landmarks = short_run("mptcp_machines", 2_000).landmarks;
    for landmark in [
        "a second subflow",
        "a subflow between both",
        "all data arrived",
        "an address announced",
        "an attacker's subflow",
        "fallback",
        "the end of the peer's data",
        "too many pieces without a mapping",
    ] {
        assert!(landmarks.contains_key(landmark), "never reached: {landmark}; {landmarks:#?}");
    }
}

#[test]
fn tcp_input() {
    let landmarks = short_run("tcp_input", 4_000).landmarks;
    let missing: Vec<_> = TCP_LANDMARKS.iter().filter(|name| !landmarks.contains_key(*name)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}; reached: {landmarks:#?}");
}

/// Effects of the options of `tcp::Config` and of a connection's commands. An option without an
/// effect is not tested.
const TCP_LANDMARKS: &[&str] = &[
    "CE received",
    "D-SACK sent",
    "FIN-WAIT-2 ends after a release",
    "PRR recovery",
    "ProbeRTT",
    "SACK beside data",
    "SACK report",
    "TIME-WAIT reuse",
    "end of slow start by HyStart++",
    "fast retransmit",
    "keep-alive gives up",
    "keep-alive probe",
    "peer's window shrinks",
    "receive buffer grows",
    "reduction for a mark",
    "release",
    "reordering timer",
    "retries are exhausted",
    "send buffer grows",
    "simultaneous open",
    "stand-by without a route",
    "tail probe",
    "undo by F-RTO",
    "undo by timestamps or D-SACK",
    "user timeout",
    "wait for pacing",
    "window probe",
];

#[test]
fn set_guard() {
    short_run("set_guard", 2_000);
}

#[test]
fn set_nonces() {
    let landmarks = short_run("set_nonces", 40).landmarks;
    for landmark in ["a copy behind a request", "a number that was given before", "a session at the node"] {
        assert!(landmarks.contains_key(landmark), "never reached: {landmark}");
    }
}

#[test]
fn set_header() {
    short_run("set_header", 20_000);
}

#[test]
fn suit_manifest() {
    short_run("suit_manifest", 10_000);
}

#[test]
fn set_machines() {
    short_run("set_machines", 2_000);
}

#[test]
fn rdca_wire() {
    short_run("rdca_wire", 20_000);
}

#[test]
fn rdca_machines() {
    short_run("rdca_machines", 4_000);
}

#[test]
fn sockbuf() {
    short_run("sockbuf", 10_000);
}

#[test]
fn scenario() {
    short_run("scenario", 2_000);
}

/// Panics only if the input contains `?` before `!`.
const FAULTY: Target = Target {
    name: "faulty",
    run: |input, probe| {
        probe.feature(input.contains(&b'?'));
        let question = input.iter().position(|octet| *octet == b'?');
        if let Some(at) = question {
            assert!(!input[at..].contains(&b'!'), "found");
        }
    },
    max_len: 64,
};

#[test]
fn the_runner_finds_a_fault_and_makes_it_small() {
    let run = || runner::run(&FAULTY, &[], 7, Budget::Executions(100_000));
    let report: Report = run();
    assert_eq!(report, run(), "the same seed, the same run");
    let crash = report.crash.unwrap();
    assert_eq!((&crash.input[..], crash.failure.message.as_str()), (&b"?!"[..], "found"));
    assert!(crash.failure.place.contains("short_runs.rs"), "{}", crash.failure.place);
    assert!(crash::execute(&FAULTY, b"!?", &mut Probe::quiet()).is_ok());
}

#[test]
fn event_log() {
    short_run("event_log", 2_000);
}
