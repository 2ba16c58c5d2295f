//! Tests of `anabranch plan csma`, `rtt` and `schedule` on the command line.

use std::process::Command;

use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;

fn plan(line: &str) -> Command {
    let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
    command.arg("plan").args(line.split_whitespace());
    command
}

fn object(line: &str) -> Value {
    let assert = plan(line).arg("--json").assert().success().stderr("");
    serde_json::from_slice(&assert.get_output().stdout).expect("one object")
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {value}"))
}

#[track_caller]
fn close(value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() < within, "{value}, not {expected}");
}

fn text(line: &str) -> String {
    let assert = plan(line).assert().success().stderr("");
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

/// Errata M2 and M7.
#[test]
fn csma_has_the_chains_numbers_and_the_printed_ones() {
    let half = object("csma --busy 0.5");
    assert_eq!((&half["model"], &half["equations"]), (&"csma".into(), &"corrected".into()));
    close(number(&half, "n_bp"), 15.97, 0.005);
    close(number(&half, "p_won") + number(&half, "p_lost"), 1.0, 1e-12);
    close(number(&half, "delay_s"), number(&half, "n_bp") * 1.08e-3, 1e-12);
    close(number(&object("csma --busy 0.5 --printed"), "n_bp"), 11.09, 0.005);
    let busy = object("csma --busy 0.7 --phy oqpsk250");
    close(number(&busy, "n_bp_if_won"), 21.2, 0.05);
    close(number(&busy, "delay_s"), 28.156 * 0.32e-3, 1e-6);
    assert!(object("csma --busy 1")["n_bp_if_won"].is_null());
}

/// Errata M6.
#[test]
fn csma_takes_a_channel_that_calms_down() {
    close(number(&object("csma --busy-by-period 0.9x20,0.1"), "p_lost"), 0.0060, 5e-5);
    close(number(&object("csma --busy-by-period 0.9x20,0.1 --printed"), "p_lost"), 0.0022, 5e-5);
    let even = object("csma --busy-by-period 0.3");
    close(number(&even, "n_bp"), number(&object("csma --busy 0.3"), "n_bp"), 1e-9);
}

#[test]
fn csma_takes_other_parameters() {
    let once = object("csma --min-be 0 --max-be 3 --backoffs 0 --busy 0.4");
    assert_eq!((number(&once, "n_bp"), once["stages"].as_array().map(Vec::len)), (1.0, Some(1)));
    assert!(text("csma").contains("an attempt takes  15.97 periods, 17.25 ms with fsk100"));
}

#[test]
fn rtt_adds_up_hop_by_hop() {
    let planned = object("rtt --hops 3 --busy 0.3,0.2,0 --rate 2,4,6 --phy fsk100,oqpsk250,cellular");
    let hops = planned["forward"].as_array().expect("hops");
    let sum: f64 = hops.iter().map(|hop| number(hop, "total_s")).sum();
    close(number(&planned, "syn_s"), sum, 1e-12);
    close(number(&planned, "rtt_s"), 2.0 * sum, 1e-12);
    for hop in hops {
        let parts = ["queue_s", "backoff_s", "turnaround_s", "transmission_s", "mac_ack_s", "delay_s"];
        close(parts.map(|part| number(hop, part)).iter().sum(), number(hop, "total_s"), 1e-12);
    }
    let payload = 800.0 / 100e3 + 800.0 / 250e3 + 800.0 / 10e6;
    close(number(&planned, "first_packet_s"), sum + payload, 1e-12);
    assert_eq!(planned["params"]["busy"], serde_json::json!([0.3, 0.2, 0.0]));
}

#[test]
fn rtt_knows_another_way_back_and_other_readings() {
    let both = object("rtt --hops 2 --busy 0.1 --back-busy 0.5");
    assert!(number(&both, "ack_s") > number(&both, "syn_s"));
    let any = object("rtt --busy 0.7");
    assert!(number(&object("rtt --busy 0.7 --access won"), "rtt_s") < number(&any, "rtt_s"));
    let printed = object("rtt --busy 0.5 --rate 10 --printed");
    assert_eq!(printed["equations"], "printed");
    close(number(&printed["forward"][0], "service_per_s"), 100e3 / (8.0 * 140.0), 1e-9);
    assert!(object("rtt --rate 100 --queue 5")["forward"][0]["p_refused"].as_f64() > Some(0.1));
    let slow = object("rtt --phy cellular --cellular-delay 30ms --cellular-rate 1Mbit/s");
    close(number(&slow, "rtt_s"), 2.0 * (0.03 + 320e-6), 1e-5);
    assert!(text("rtt --hops 2 --back-busy 0.1").contains("back 2"));
}

/// Errata M16, and the order of the round-trip times.
#[test]
fn schedule_fills_half_the_next_paths_round_trip() {
    let fast = "--path rtt=0.5s,first=300ms,next=40ms,cwnd=4";
    let slow = "--path rtt=8s,first=4.1s,next=0.1s,cwnd=7";
    let planned = object(&format!("schedule {slow} {fast}"));
    let counts = |planned: &Value| -> Vec<(u64, u64)> {
        let paths = planned["paths"].as_array().expect("paths");
        let pair = |path: &Value| (path["path"].as_u64().expect("n"), path["packets"].as_u64().expect("n"));
        paths.iter().map(pair).collect()
    };
    assert_eq!(counts(&planned), [(2, 45), (1, 7)]);
    assert_eq!(planned["packets"], 52);
    close(number(&planned["paths"][0], "time_s"), 4.0, 1e-12);
    assert_eq!(counts(&object(&format!("schedule {slow} {fast} --printed"))), [(2, 63), (1, 7)]);
}

#[test]
fn schedule_computes_what_a_path_does_not_say() {
    let planned =
        object("schedule --path hops=1,busy=0.1,loss=0.01 --path hops=4,busy=0.4+0.3+0.2+0.1,rate=2");
    let [near, far] = [&planned["paths"][0], &planned["paths"][1]];
    assert_eq!((&near["rto_s"], &near["w_min"], &near["w_max"]), (&20.0.into(), &1.into(), &20.into()));
    assert_eq!((&far["rto_s"], &far["w_min"], &far["w_max"]), (&80.0.into(), &4.into(), &13.into()));
    let alone = object("rtt --hops 4 --busy 0.4,0.3,0.2,0.1 --rate 2");
    close(number(far, "rtt_s"), number(&alone, "rtt_s"), 1e-12);
    close(number(far, "next_packet_s"), number(&alone, "next_packet_s"), 1e-12);
    assert!(text("schedule --path hops=2").contains("expected"));
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    for (line, expected) in [
        ("csma --busy 1.5", "busy must lie between 0 and 1, not 1.5\n  hint: "),
        ("csma --busy -1", "busy must lie between 0 and 1, not -1\n  hint: "),
        ("csma --busy NaN", "busy must lie between 0 and 1, not NaN\n  hint: "),
        ("csma --min-be 6", "min_be must lie between 0 and 5, not 6\n  hint: "),
        ("csma --max-be 9", "max_be must lie between 3 and 8, not 9\n  hint: "),
        ("csma --backoffs 6", "max_backoffs must lie between 0 and 5, not 6\n  hint: "),
        ("csma --phy cellular", "no channel access of this kind\n  hint: "),
        ("csma --busy-by-period 0.5xk", "`k` is not a number of periods"),
        ("csma --busy-by-period 0.5x9999999", "more than 100000 periods"),
        ("csma --busy-by-period 0.5x0", "no period"),
        ("rtt --hops 0", "0 is not in 1..=64"),
        ("rtt --hops 2 --busy 0.1,0.2,0.3", "--busy: 3 values for 2 hops\n  hint: "),
        ("rtt --phy zigbee", "unknown PHY `zigbee`\n  hint: oqpsk250, fsk100 or cellular"),
        ("rtt --rate 100", "forward hop 1: utilisation must be below 1"),
        ("rtt --rate -1", "arrivals must lie between 0 and"),
        ("rtt --queue 0", "capacity must lie between 1 and"),
        ("rtt --busy 1 --access won", "never gained\n  hint: "),
        ("schedule --path hop=2", "did you mean `hops`?"),
        ("schedule --path hops=2,loss=1", "--path 1: loss must lie from 0 up to, not including, 1, not 1"),
        ("schedule --path hops=1 --path rtt=1s", "--path 2: rtt, first and next belong together\n  hint: "),
        ("schedule --path rtt=1,first=1s,next=1s", "`1` has no unit"),
        ("schedule --path rtt=1s,first=1s,next=1s,busy=0.1", "busy has no effect together with rtt"),
        ("schedule --path hops=65", "hops must lie between 1 and 64, not 65\n  hint: "),
        ("schedule --path hops=1,hops=2", "`hops` is given twice\n  hint: "),
        ("schedule --path hops=1.5", "hops=`1.5` is not a valid number\n  hint: "),
        ("schedule --path w_max=5000", "w_max must lie between 1 and 4096, not 5000\n  hint: "),
        ("schedule --printed --queue 9 --path hops=2", "rtt must lie between"),
        ("rtt --header 0", "header must lie between 1 and 65535, not 0\n  hint: "),
        ("rtt --phy cellular --cellular-delay 1h", "delay must lie between 0 and 1000, not 3600\n  hint: "),
        ("schedule --path w_min=30", "w_min must lie between 1 and 20, not 30\n  hint: "),
        ("schedule --path cwnd=0", "--path 1: cwnd must lie between 1 and 4096, not 0"),
        ("schedule --path hops=2,busy=2", "--path 1: forward hop 1: busy must lie between 0 and 1, not 2"),
        ("schedule", "--path <KEY=VALUE,...>"),
    ] {
        let assert = plan(line).assert().code(2).stdout("");
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.starts_with("error: ") && error.contains(expected), "{line}: {error}");
        assert_eq!(error.matches("error: ").count(), 1, "{error}");
    }
}
