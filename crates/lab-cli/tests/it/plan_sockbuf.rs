//! Tests of `anabranch plan sockbuf` on the command line, with the numbers of the tables in
//! `docs/reference/sockbuf.md`.

use std::process::Command;

use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;

fn plan(line: &str) -> Command {
    let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
    command.args(["plan", "sockbuf"]).args(line.split_whitespace());
    command
}

fn object(line: &str) -> Value {
    let assert = plan(line).arg("--json").assert().success().stderr("");
    serde_json::from_slice(&assert.get_output().stdout).expect("one object")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[track_caller]
fn close(value: &Value, expected: f64, within: f64) {
    assert!((number(value) - expected).abs() < within, "{value}, not {expected}");
}

/// Erratum B8.
#[test]
fn the_papers_constants_overshoot_and_ours_do_not() {
    let paper = object("--gains paper --controller new");
    close(&paper["overshoot"], 0.519, 5e-4);
    assert_eq!((&paper["rise_cycles"], &paper["settling_cycles"]), (&12.into(), &159.into()));
    close(&paper["settling_s"], 79.5, 1e-9);
    close(&paper["roots"][0]["re"], 0.971, 5e-4);
    close(&paper["roots"][0]["im"], 0.0936, 5e-5);
    close(&paper["stable_up_to_times"], 14.8, 0.05);
    assert_eq!((&paper["model"], &paper["stable"]), (&"sockbuf".into(), &true.into()));
    let ours = object("");
    close(&ours["overshoot"], 0.0046, 5e-5);
    assert_eq!((&ours["rise_cycles"], &ours["settling_cycles"]), (&8.into(), &12.into()));
    // HSUPA returns: the table's column "ours, up".
    for (cycle, kilobytes) in [(0, 175.0), (1, 236.0), (8, 396.0), (64, 421.0)] {
        close(&ours["sizes_bytes"][cycle], kilobytes * 1e3, 500.0);
    }
    assert_eq!(ours["sizes_bytes"].as_array().map(Vec::len), Some(2001));
}

#[test]
fn gains_lag_range_and_period_can_be_chosen() {
    let lagging = object("--gains paper --lag 10");
    close(&lagging["overshoot"], 0.315, 5e-4);
    assert_eq!((&lagging["rise_cycles"], &lagging["settling_cycles"]), (&21.into(), &142.into()));
    let own = object("--kp 0.05 --ki 0.01 --kd 0.04 --controller new --period 100ms");
    close(&own["settling_s"], 15.9, 1e-9);
    // The pool limits the overshoot.
    let cut = object("--gains paper --controller new --pool 420kB");
    close(&cut["overshoot"], 0.0, 1e-12);
    let wild = object("--times 9");
    assert_eq!((&wild["stable"], &wild["settling_cycles"]), (&false.into(), &Value::Null));
    close(&wild["params"]["kp"], 2.25, 1e-12);
}

#[test]
fn a_table_for_a_person() {
    let assert = plan("").assert().success().stderr("");
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    for line in [
        "       1       0.5      236324",
        "gains                     kp 0.25, ki 0.0003, kd 0",
        "roots                     0.9988, 0.7509, 0.0000",
        "stable                    yes; up to 8.0 times these gains",
        "overshoot                 0.5 % of the step",
        "off by more than 2 % for  12 cycles, 6.0 s",
    ] {
        assert!(text.lines().any(|said| said == line), "no line `{line}` in\n{text}");
    }
}

#[test]
fn nonsense_is_refused() {
    for (line, said) in [
        ("--kp -1", "gains must be finite and not negative, not -1"),
        ("--times nan", "gains must be finite and not negative, not NaN"),
        ("--lag -1", "the lag must be finite and not negative"),
        ("--to 3MB", "does not lie in a range"),
        ("--from 420kB", "a step from 420000 to 420000"),
        ("--cycles 0", "0 is not in 1..=1000000"),
        ("--gains best", "invalid value 'best'"),
    ] {
        let assert = plan(line).assert().code(2).stdout("");
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(stderr.contains(said), "{line}: {stderr}");
    }
}
