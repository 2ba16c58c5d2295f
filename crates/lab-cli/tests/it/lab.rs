//! Tests of `anabranch lab` on the command line.

use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;

fn anabranch(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("anabranch-lab").expect("the program is built");
    command.args(args);
    command
}

/// Standard output of a successful run.
#[track_caller]
fn out(args: &[&str]) -> String {
    let assert = anabranch(args).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

/// Standard error of a run that is refused with exit code 2 and without standard output.
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

/// Options of a reproduction that takes a second, with an output folder.
fn quick<'a>(papers: &[&'a str], folder: &'a Path) -> Vec<&'a str> {
    let folder = folder.to_str().expect("a path of text");
    [&["lab", "reproduce"], papers, &["--quick", "--runs", "1", "--out", folder]].concat()
}

#[test]
fn a_report_lies_beside_a_folder_for_each_paper() {
    let folder = tempfile::tempdir().expect("a folder");
    // Papers may be named in any order and repeatedly.
    let said = out(&quick(&["dtc", "set", "dtc", "--quiet"], folder.path()));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("set ") && lines[1].starts_with("dtc "), "{said}");
    assert!(lines[1].contains("72 claims") && lines[2].ends_with("report.html"), "{said}");
    let panels = "10a 10b 10c 11a 11b 11c 12a 12b 12c 13a 13b 13c 14a 14b 15"
        .split(' ')
        .map(|id| format!("set/figure-{id}"));
    let figures = panels.chain((5..=9).map(|n| format!("dtc/figure-{n}")));
    let figures = figures.flat_map(|name| ["csv", "svg"].map(|kind| format!("{name}.{kind}")));
    let tables = (1..=4).map(|n| format!("dtc/table-{n}.csv"));
    for name in figures.chain(tables).chain(["set", "dtc"].map(|paper| format!("{paper}/verdicts.csv"))) {
        let file = folder.path().join(name);
        assert!(file.metadata().is_ok_and(|m| m.len() > 50), "{}", file.display());
    }
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("the report");
    assert_eq!(page.matches("<tr id=\"dtc.").count(), 72);
    assert!(page.ends_with("</html>\n") && !page.contains(folder.path().to_str().expect("text")));
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["dtc", "report.html", "set"], "nothing is left beside");
}

#[test]
fn verdicts_are_objects_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = out(&[&quick(&["dtc"], folder.path())[..], &["--json", "--seed", "3"]].concat());
    let objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(objects.len(), 72);
    let cell = objects.iter().find(|o| o["id"] == "dtc.nodtc_data_tx.n6.p00").expect("a cell of Table I");
    assert_eq!(
        (&cell["paper"], &cell["printed"], &cell["found"]),
        (&"dtc".into(), &3010.0.into(), &3010.0.into())
    );
    // A single run proves nothing; a formula needs no run.
    assert_eq!((&cell["verdict"], &cell["ratio"]), (&"cannot be judged".into(), &1.0.into()));
    let bound = objects.iter().find(|o| o["id"] == "dtc.omniscient.n6").expect("a bound");
    assert_eq!((&bound["verdict"], &bound["runs"]), (&"reproduced".into(), &0.into()));
    let suspect = objects.iter().find(|o| o["id"] == "dtc.e2e_factor_best").expect("a claim");
    assert_eq!((&suspect["contradicted"], &suspect["erratum"]), (&true.into(), &"D5".into()));
}

#[test]
fn the_same_seed_is_the_same_report_on_any_number_of_threads() {
    let on = |threads: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let done = anabranch(&quick(&["set", "dtc"], folder.path()))
            .env("RAYON_NUM_THREADS", threads)
            .assert()
            .success();
        drop(done);
        std::fs::read(folder.path().join("report.html")).expect("the report")
    };
    assert!(on("1") == on("3"));
}

#[test]
fn progress_is_sparse_lines_and_none_if_it_is_to_be_quiet() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |quiet: &[&str]| {
        let assert = anabranch(&[&quick(&["dtc"], folder.path())[..], quiet].concat()).assert().success();
        String::from_utf8(assert.get_output().stderr.clone()).expect("text")
    };
    let lines = told(&[]);
    assert!((1..=10).contains(&lines.lines().count()) && lines.ends_with("100 %\n"), "{lines}");
    assert_eq!(told(&["--quiet"]), "");
}

/// Interrupted long before its end: new results are dropped, and existing files stay.
#[test]
fn a_report_that_is_interrupted_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, is_there) in [("new", false), ("old", true)] {
        let out = folder.path().join(name);
        if is_there {
            std::fs::create_dir(&out).expect("a folder");
            std::fs::write(out.join("report.html"), "of yesterday").expect("a file");
        }
        let path = out.to_str().expect("a path of text");
        let mut child = anabranch(&["lab", "reproduce", "sockbuf", "rdca", "--out", path, "--quiet"])
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        // The temporary folder is created before the first run, and signals are caught a moment
        // later.
        let begun = || {
            std::fs::read_dir(&out).is_ok_and(|all| {
                all.flatten().any(|e| e.file_name().to_string_lossy().starts_with(".reproduce-"))
            })
        };
        while !begun() {
            // Wait without using a core, which the program needs.
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        let code = loop {
            let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
            // Repeat the signal, as a user would: one that arrives between the installation of the
            // handler and its registration is lost.
            if catches_interrupts(child.id()) {
                rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
            if let Some(status) = child.try_wait().expect("a child") {
                break status.code();
            }
        };
        assert_eq!(code, Some(130));
        if is_there {
            let left: Vec<_> =
                std::fs::read_dir(&out).expect("a folder").flatten().map(|e| e.file_name()).collect();
            assert_eq!(left, ["report.html"]);
            assert_eq!(std::fs::read_to_string(out.join("report.html")).expect("a file"), "of yesterday");
        } else {
            assert!(!out.exists());
        }
    }
}

/// Whether a process has a handler for SIGINT (proc(5), SigCgt).
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << 1) != 0)
}

#[test]
fn too_little_memory_is_refused_with_what_is_needed() {
    let said = refused(&["lab", "run", "sockbuf", "--set", "memory=1000B"]);
    assert!(said.contains("one segment for each connection"), "{said}");
    let said = refused(&["lab", "run", "sockbuf", "--set", "tuner=pdi"]);
    assert!(said.contains("did you mean `pid`"), "{said}");
}

/// Values that follow from an axis are printed at each point, not above all points.
#[test]
fn what_follows_from_an_axis_is_said_at_each_point() {
    let axes = ["scheme=conventional,ours", "conventional_acks=window,rfc", "nodes=4", "packets=1"];
    let set = axes.iter().flat_map(|axis| ["--set", axis]);
    let text = out(&["lab", "run", "mptcp", "--runs", "1"].into_iter().chain(set).collect::<Vec<_>>());
    let (head, points) = text.split_once('\n').expect("lines");
    assert!(
        head.contains(" nodes=4 ") && !head.contains("ack_every=") && !head.contains("rto_min="),
        "{head}"
    );
    let place = |start: &str| points.lines().find(|line| line.starts_with(start)).expect("a point");
    let conventional = |acks: &str| place(&format!("scheme=conventional conventional_acks={acks} "));
    assert!(conventional("window").contains(" ack_every=20 "), "{points}");
    assert!(conventional("rfc").contains(" ack_every=2 "), "{points}");
    assert!(place("scheme=ours conventional_acks=rfc ").contains(" rto_min=5s "), "{points}");
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
    assert!(said.contains("is connected with a range of 1 m") && said.contains("hint: "), "{said}");
    // No single parameter causes the error.
    assert!(!said.contains("--set"), "{said}");
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
