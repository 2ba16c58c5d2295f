//! Tests of `anabranch plan` on the command line.

use std::process::Command;

use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;

fn plan(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
    command.args(["plan", "set"]).args(args);
    command
}

fn object(args: &[&str]) -> Value {
    let assert = plan(args).assert().success();
    serde_json::from_slice(&assert.get_output().stdout).expect("one object")
}

#[test]
fn the_parts_of_each_number_of_gateways_add_up() {
    let planned = object(&["--set", "gateways=4", "--json"]);
    assert_eq!((&planned["best_gateways"], &planned["equations"]), (&4.into(), &"protocol".into()));
    let options = planned["options"].as_array().expect("options");
    assert_eq!(options.len(), 4);
    for option in options {
        let span = |name: &str| option[name].as_f64().expect("a span");
        let set_up = span("request_s") + span("establishment_s");
        let sending = span("first_segment_s") + span("transmission_s") + span("last_segment_s");
        let waiting = span("stall_s") + span("wired_limit_s");
        assert!((set_up + sending + waiting - span("latency_s")).abs() < 1e-9, "{option}");
    }
}

/// Errata S3: equation (4) as printed has no open-wait state; no equation counts a request.
#[test]
fn the_printed_equations_can_be_chosen() {
    let printed = object(&["--set", "gateways=1", "--printed", "--json"]);
    assert_eq!(printed["equations"], "printed");
    assert_eq!(printed["options"][0]["request_s"], 0.0);
    let set_up = printed["options"][0]["establishment_s"].as_f64().expect("a span");
    assert!((set_up - (2.0 * 0.02 + 1.5 * 0.05)).abs() < 1e-9, "{set_up}");
}

#[test]
fn a_person_gets_a_table_with_the_best_number() {
    let assert = plan(&[]).assert().success();
    let out = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(out.contains("best: 3 gateways"), "{out}");
}

#[test]
fn bad_input_is_refused() {
    for (args, expected) in [
        (["--set", "gateways=0"], "1..=15"),
        (["--set", "wirless_rate=1Mbit/s"], "did you mean `wireless_rate`?"),
        (["--set", "scheme=split"], "the model is of SET"),
    ] {
        let assert = plan(&args).assert().code(2).stdout("");
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
