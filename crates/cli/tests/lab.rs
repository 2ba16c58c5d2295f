//! `anabranch lab`, as a shell sees it.

use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;

fn anabranch(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("anabranch").expect("the program is built");
    command.args(args);
    command
}

/// Standard output of a run that succeeds.
#[track_caller]
fn out(args: &[&str]) -> String {
    let assert = anabranch(args).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

/// Standard error of a run that is refused with exit code 2 and writes nothing to standard output.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let assert = anabranch(args).assert().code(2).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).expect("text")
}

#[test]
fn a_point_is_one_object_with_all_parameters_and_metrics() {
    let text = out(&["lab", "run", "set", "--set", "file=5kB", "--runs", "3", "--seed", "4", "--json"]);
    let object: Value = serde_json::from_str(text.trim_end()).expect("one object");
    assert_eq!(object["experiment"], "set");
    assert_eq!((&object["runs"], &object["seed"]), (&3.into(), &4.into()));
    assert_eq!(object["params"]["gateways"], 3);
    assert_eq!(object["params"]["file"], "5kB");
    assert_eq!(object["params"]["wireless_rate"], "256kbit/s");
    for (name, unit) in [
        ("latency_s", "s"),
        ("establishment_s", "s"),
        ("goodput_bit_per_s", "bit/s"),
        ("retransmissions", "1"),
        ("gateway_drops", "1"),
        ("gateway_queue_peak_bytes", "B"),
        ("model_latency_s", "s"),
    ] {
        let metric = &object["metrics"][name];
        assert_eq!(metric["unit"], unit, "{name}");
        for key in ["mean", "ci95", "min", "max"] {
            assert!(metric[key].is_number(), "{name}.{key}: {metric}");
        }
    }
}

#[test]
fn a_grid_is_one_object_a_line_the_last_axis_fastest() {
    let text = out(&["lab", "run", "set", "--set", "file=1kB,2kB", "--set", "gateways=1,2", "--json"]);
    let place = |line: &str| {
        let object: Value = serde_json::from_str(line).expect("an object a line");
        format!("{}/{}", object["params"]["file"].as_str().expect("a size"), object["params"]["gateways"])
    };
    assert_eq!(text.lines().map(place).collect::<Vec<_>>(), ["1kB/1", "1kB/2", "2kB/1", "2kB/2"]);
}

#[test]
fn the_same_seed_is_the_same_bytes_on_any_number_of_threads() {
    let args =
        ["lab", "run", "set", "--set", "file=3kB", "--set", "wireless_loss=0.05", "--runs", "4", "--json"];
    let on =
        |threads: &str| anabranch(&args).env("RAYON_NUM_THREADS", threads).output().expect("it runs").stdout;
    assert_eq!(on("1"), on("2"));
}

#[test]
fn a_person_gets_a_table_and_a_list() {
    let table = out(&["lab", "run", "set", "--set", "file=1kB", "--set", "gateways=1,2", "--runs", "2"]);
    assert!(table.contains("gateways=2") && table.contains("latency_s"), "{table}");
    assert!(out(&["lab", "list"]).contains("wireless_rate"));
    let described: Value = serde_json::from_str(&out(&["lab", "list", "set", "--json"])).expect("an object");
    assert_eq!(described["parameters"][0]["name"], "scheme");
}

#[test]
fn bad_input_is_one_error_with_place_and_hint() {
    for (args, expected) in [
        (&["lab", "run", "sett"][..], "there is no experiment `sett`"),
        (&["lab", "run", "set", "--set", "gatways=2"], "did you mean `gateways`?"),
        (&["lab", "run", "set", "--set", "wireless_rate=256kbps"], "did you mean `kbit/s`?"),
        (&["lab", "run", "set", "--set", "wireless_rate=-5kbit/s"], "is negative"),
        (&["lab", "run", "set", "--set", "gateways=0"], "1..=15"),
        (&["lab", "run", "set", "--set", "gateways=1,0"], "1..=15"),
        (&["lab", "run", "set", "--runs", "0"], "0 is not in"),
        (&["lab", "run", "set", "--jsno"], "--json"),
        (&["lab", "reproduce", "sett"], "sett"),
    ] {
        let error = refused(args);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = anabranch(&["lab", "run", "set", "--set", "file=1kB,2kB,3kB,4kB", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn every_panel_and_the_claims_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    out(&["lab", "reproduce", "set", "--quick", "--runs", "1", "--out", path]);
    for id in "10a 10b 10c 11a 11b 11c 12a 12b 12c 13a 13b 13c 14a 14b 15".split(' ') {
        for kind in ["csv", "svg"] {
            let file = folder.path().join(format!("figure-{id}.{kind}"));
            assert!(file.metadata().is_ok_and(|m| m.len() > 100), "{}", file.display());
        }
    }
    let claims = std::fs::read_to_string(folder.path().join("claims.md")).expect("the claims");
    assert_eq!(claims.matches("\n| `set.").count(), 18, "{claims}");
}

#[test]
fn every_table_and_figure_of_the_caching_nodes_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    out(&["lab", "reproduce", "dtc", "--quick", "--runs", "1", "--out", path]);
    let tables = (1..=4).map(|n| format!("table-{n}.csv"));
    let figures = (5..=9).flat_map(|n| ["csv", "svg"].map(|kind| format!("figure-{n}.{kind}")));
    for name in tables.chain(figures).chain(["tables.md".to_owned()]) {
        let file = folder.path().join(name);
        assert!(file.metadata().is_ok_and(|m| m.len() > 50), "{}", file.display());
    }
    let claims = std::fs::read_to_string(folder.path().join("claims.md")).expect("the claims");
    assert_eq!(claims.matches("\n| `dtc.").count(), 72, "{claims}");
}

#[test]
fn every_number_and_figure_of_multipath_tcp_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    let said = out(&["lab", "reproduce", "mptcp", "--quick", "--runs", "1", "--out", path]);
    assert!(said.contains("mptcp.n50.transmissions.P"), "{said}");
    let figures = (2..=11).flat_map(|n| ["csv", "svg"].map(|kind| format!("figure-{n}.{kind}")));
    for name in figures.chain(["numbers.csv".to_owned(), "numbers.md".to_owned()]) {
        let file = folder.path().join(name);
        assert!(file.metadata().is_ok_and(|m| m.len() > 500), "{}", file.display());
    }
    let claims = std::fs::read_to_string(folder.path().join("claims.md")).expect("the claims");
    assert_eq!(claims.matches("\n| `mptcp.").count(), 94, "{claims}");
}

#[test]
fn every_table_and_figure_of_rate_control_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    let said = out(&["lab", "reproduce", "rdca", "--quick", "--runs", "1", "--out", path]);
    assert!(said.contains("rdca.throughput.mean.proposed.s7"), "{said}");
    let panels = [4, 5].into_iter().flat_map(|n| "abcde".chars().map(move |panel| format!("{n}{panel}")));
    let figures = panels.flat_map(|id| ["csv", "svg"].map(|kind| format!("figure-{id}.{kind}")));
    for name in figures.chain(["table-2.csv", "table-3.csv", "numbers.md"].map(str::to_owned)) {
        let text = std::fs::read_to_string(folder.path().join(&name)).expect("a file of text");
        assert!(text.lines().count() > 10, "{name}: {text}");
    }
    let claims = std::fs::read_to_string(folder.path().join("claims.md")).expect("the claims");
    assert_eq!(claims.matches("\n| `rdca.").count(), 154, "{claims}");
}

#[test]
fn every_figure_of_the_send_buffers_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    let said = out(&["lab", "reproduce", "sockbuf", "--quick", "--runs", "1", "--out", path]);
    assert!(said.contains("sockbuf.trend.8"), "{said}");
    let ids = (8..=16).map(|n| n.to_string()).chain(["15-buffer", "loss", "step"].map(str::to_owned));
    let figures = ids.flat_map(|id| ["csv", "svg"].map(|kind| format!("figure-{id}.{kind}")));
    for name in figures.chain(["numbers.csv", "numbers.md", "loop.md"].map(str::to_owned)) {
        let text = std::fs::read_to_string(folder.path().join(&name)).expect("a file of text");
        assert!(text.lines().count() > 10, "{name}: {text}");
    }
    let claims = std::fs::read_to_string(folder.path().join("claims.md")).expect("the claims");
    assert_eq!(claims.matches("\n| `sockbuf.").count(), 12, "{claims}");
}

#[test]
fn too_little_memory_is_refused_with_what_is_needed() {
    let said = refused(&["lab", "run", "sockbuf", "--set", "memory=1000B"]);
    assert!(said.contains("one segment for each connection"), "{said}");
    let said = refused(&["lab", "run", "sockbuf", "--set", "tuner=pdi"]);
    assert!(said.contains("did you mean `pid`"), "{said}");
}

#[test]
fn a_metric_can_be_an_array() {
    let text = out(&["lab", "run", "dtc", "--set", "segments=20", "--runs", "2", "--json"]);
    let object: Value = serde_json::from_str(&text).expect("an object");
    let nodes = &object["metrics"]["transmissions_by_node"];
    for figure in ["mean", "ci95", "min", "max"] {
        assert_eq!(nodes[figure].as_array().map(Vec::len), Some(5), "{nodes}");
    }
    assert_eq!(object["params"]["cache_probability"], 1);
    assert!(out(&["lab", "run", "dtc", "--runs", "1"]).contains("transmissions_by_node"));
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let inside = file.path().join("folder");
    let error = refused(&["lab", "reproduce", "set", "--quick", "--out", inside.to_str().expect("text")]);
    assert!(error.contains("cannot write"), "{error}");
}

#[test]
fn nodes_that_do_not_hear_each_other_are_bad_input() {
    let said = refused(&["lab", "run", "mptcp", "--set", "range=1m", "--runs", "1"]);
    assert!(said.contains("none is connected") && said.contains("hint: "), "{said}");
    let object: Value = serde_json::from_str(&out(&[
        "lab",
        "run",
        "mptcp",
        "--set",
        "nodes=6",
        "--set",
        "packets=5",
        "--runs",
        "2",
        "--json",
    ]))
    .expect("an object");
    assert_eq!(object["metrics"]["complete"]["mean"], 1.0);
}
