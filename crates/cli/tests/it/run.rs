//! Tests of `anabranch run` on the command line.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anabranch_testkit::broken_pipe;
use assert_cmd::cargo::CommandCargoExt;
use assert_cmd::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

const NETWORK: &str = r#"
name = "small"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "cable"
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "5 ms"
[[transfer]]
name = "file"
kind = "tcp"
from = "a"
to = "b"
bytes = "20 kB"
"#;

fn anabranch(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("anabranch").expect("the program is built");
    command.arg("run").args(args);
    command
}

/// A folder with a scenario of this text.
fn scenario(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.toml");
    std::fs::write(&path, text).expect("a file");
    (folder, path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

#[track_caller]
fn lines(args: &[&str]) -> Vec<Value> {
    let assert = anabranch(args).assert().success();
    let out = String::from_utf8(assert.get_output().stdout.clone()).expect("text");
    out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

#[track_caller]
fn refused(args: &[&str]) -> String {
    let assert = anabranch(args).assert().code(2).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).expect("text")
}

#[test]
fn a_record_has_all_that_is_needed_to_do_it_again() {
    let (_folder, path) = scenario(NETWORK);
    let records = lines(&[text(&path), "--runs", "2", "--seed", "9", "--json"]);
    assert_eq!(records.len(), 2);
    let record = &records[1];
    assert_eq!((&record["seed"], &record["run"]), (&9.into(), &1.into()));
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record["hash"].as_str().map(str::len), Some(64));
    assert_eq!(record["resolved"]["link"][0]["queue"], "100 packets");
    let metrics = &record["metrics"];
    assert_eq!(metrics["transfer.file.delivered_bytes"]["mean"], 20_000.0);
    assert_eq!(metrics["transfer.file.latency_s"]["unit"], "s");
}

#[test]
fn a_sweep_is_one_object_for_every_point_and_run() {
    let swept =
        format!("{NETWORK}\n[sweep]\n\"link.cable.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\", \"4 Mbit/s\"]\n");
    let (_folder, path) = scenario(&swept);
    let records = lines(&[text(&path), "--runs", "2", "--json"]);
    assert_eq!(records.len(), 6);
    assert_eq!(records[2]["params"]["link.cable.rate"], "2 Mbit/s");
    assert_ne!(records[0]["hash"], records[2]["hash"]);
}

#[test]
fn the_content_of_a_file_is_found_beside_the_scenario() {
    let (folder, path) = scenario(&NETWORK.replace("bytes = \"20 kB\"", "file = \"data\""));
    assert!(refused(&[text(&path)]).contains("data"));
    std::fs::write(folder.path().join("data"), [7; 1234]).expect("a file");
    let records = lines(&[text(&path), "--json"]);
    assert_eq!(records[0]["metrics"]["transfer.file.delivered_bytes"]["mean"], 1_234.0);
}

#[test]
fn the_same_seed_is_the_same_trace_and_capture() {
    let (folder, path) = scenario(&NETWORK.replace("delay = \"5 ms\"", "delay = \"5 ms\"\nloss = 0.02"));
    let written = |name: &str| {
        let trace = folder.path().join(format!("{name}.txt"));
        let pcap = folder.path().join(format!("{name}.pcapng"));
        anabranch(&[text(&path), "--trace", text(&trace), "--pcap", text(&pcap)]).assert().success();
        (std::fs::read(trace).expect("a trace"), std::fs::read(pcap).expect("a capture"))
    };
    let first = written("first");
    assert!(first.0.len() > 1000 && first.1.len() > 20_000);
    assert!(first == written("second"), "two runs of one seed differ");
}

#[test]
fn time_series_are_tables_in_a_folder() {
    let (folder, path) = scenario(NETWORK);
    let written = |name: &str, more: &[&str]| {
        let into = folder.path().join(name).join("deeper");
        anabranch(&[&[text(&path), "--series", text(&into)], more].concat()).assert().success();
        let read = |name: &str| std::fs::read_to_string(into.join(name)).expect("a table");
        assert_eq!(std::fs::read_dir(&into).expect("a folder").count(), 2, "there is no radio and no RDCA");
        [read("connections.csv"), read("queues.csv")]
    };
    let [connections, queues] = written("all", &["--series-every", "change"]);
    assert!(connections.starts_with("time_s,node,port,peer,peer_port,subflow,cwnd_bytes,ssthresh_bytes,"));
    assert!(queues.starts_with("time_s,link,packets,bytes,dropped,marked\n"));
    assert!(connections.lines().count() > 20 && queues.lines().count() > 5, "{connections}{queues}");
    let [few, _] = written("few", &[]);
    assert!((2..connections.lines().count()).contains(&few.lines().count()), "{few}");
    assert_eq!(few, written("again", &["--series-every", "100 ms"])[0], "two runs of one seed differ");
    // A probe of flows has a table of its own, which does not depend on `--series-every`.
    let (folder, probed) = scenario(&format!("{NETWORK}\n[probe.all]\nkind = \"flows\"\n"));
    let flows = ["100 ms", "change"].map(|every| {
        let into = folder.path().join(every);
        anabranch(&[text(&probed), "--series", text(&into), "--series-every", every]).assert().success();
        std::fs::read_to_string(into.join("flows.csv")).expect("a table")
    });
    assert!(flows[0].starts_with("time_s,probe,protocol,node,port,peer,peer_port,"), "{flows:?}");
    assert!(flows[0].lines().count() > 2 && flows[0] == flows[1], "{flows:?}");
    for (more, expected) in [
        (vec!["--series", "x", "--runs", "2"], "for one run"),
        (vec!["--series-every", "1 s"], "--series"),
        (vec!["--series", "x", "--series-every", "0 s"], "--series-every"),
        (vec!["--series", "x", "--series-every", "changes"], "or \"change\""),
        (vec!["--series", text(&path)], "cannot write"),
    ] {
        let error = refused(&[&[text(&path)], &more[..]].concat());
        assert!(error.contains(expected), "{more:?}: {error}");
    }
}

/// `--run N` gives the same result as run N of `--runs`.
#[test]
fn a_run_is_found_again_by_its_number() {
    let (folder, path) = scenario(&NETWORK.replace("[[transfer]]", "loss = \"10 %\"\n[[transfer]]"));
    let rows = |more: &[&str]| -> Vec<Value> {
        let assert = anabranch(&[&[text(&path), "--json"], more].concat()).assert().success();
        let out = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let all = rows(&["--runs", "4"]);
    assert_ne!(all[3]["metrics"], all[0]["metrics"]);
    assert_eq!(rows(&["--run", "3"]), all[3..]);
    let log = folder.path().join("log");
    assert_eq!(rows(&["--run", "3", "--events", text(&log)]), all[3..]);
    let other = folder.path().join("other");
    assert_eq!(rows(&["--run", "0", "--events", text(&other)]), all[..1]);
    assert_ne!(std::fs::read(&log).expect("a log"), std::fs::read(&other).expect("a log"));
    let error = refused(&[text(&path), "--run", "3", "--runs", "4"]);
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn a_person_gets_a_table() {
    let (_folder, path) = scenario(NETWORK);
    let assert = anabranch(&[text(&path), "--runs", "3"]).assert().success();
    let out = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(out.contains("transfer.file.latency_s") && out.contains("small, 3 runs"), "{out}");
}

#[test]
fn the_schema_is_printed_and_needs_no_scenario() {
    let assert = anabranch(&["--schema"]).assert().success();
    let schema: Value = serde_json::from_slice(&assert.get_output().stdout).expect("JSON");
    assert_eq!(schema["title"], "Anabranch scenario");
}

#[test]
fn bad_input_is_one_error_with_place_and_hint() {
    let wrong = |from: &str, to: &str| NETWORK.replace(from, to);
    for (file, expected) in [
        (wrong("delay =", "dealy ="), "small.toml:12"),
        (wrong("delay =", "dealy ="), "did you mean `delay`?"),
        (wrong("1 Mbit/s", "1 Mbps"), "did you mean `Mbit/s`?"),
        (wrong("1 Mbit/s", "-1 Mbit/s"), "is negative"),
        (wrong("[[transfer]]", "[[node]]\nname = \"c\"\n[[transfer]]"), "the network is not connected"),
        (wrong("[[transfer]]", "[[transfer"), "small.toml:13"),
        (wrong("\"5 ms\"", "10"), "`10` has no unit"),
        ("scenario = \"network.toml\"\nruns = 3\n".to_owned(), "run it with `anabranch sweep "),
    ] {
        let (_folder, path) = scenario(&file);
        let error = refused(&[text(&path), "--json"]);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let (folder, path) = scenario(NETWORK);
    for (args, expected) in [
        (vec![text(&path), "--set", "link.cabel.rate=1 Mbit/s"], "did you mean `cable`?"),
        (vec![text(&path), "--set", "link.cable.rate=fast"], "--set link.cable.rate=fast"),
        (vec![text(&path), "--runs", "2", "--trace", "x"], "for one run"),
        (vec![text(folder.path())], "cannot read"),
        (vec!["nowhere.toml"], "cannot read nowhere.toml"),
        (vec![], "SCENARIO"),
        (vec![text(&path), "--seeed", "1"], "--seed"),
    ] {
        let error = refused(&args);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    let inside = path.join("trace");
    assert!(refused(&[text(&path), "--trace", text(&inside)]).contains("cannot write"));
}

#[test]
fn an_output_never_overwrites_an_input_or_another_output() {
    let carrying = NETWORK.replace("bytes = \"20 kB\"", "file = \"content\"");
    let (folder, path) = scenario(&carrying);
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("content"), "what is carried").expect("a file");
    std::os::unix::fs::symlink("small.toml", at("soft")).expect("a link");
    std::fs::hard_link(&path, at("hard")).expect("a link");
    std::fs::create_dir(at("sub")).expect("a folder");
    let run = |command: &str, args: &[&str]| {
        let mut program = Command::cargo_bin("anabranch").expect("the program is built");
        let assert = program.arg(command).current_dir(&folder).args(args).assert().code(2).stdout("");
        let error = String::from_utf8(assert.get_output().stderr.clone()).expect("text");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), carrying, "{command} {args:?}");
        assert_eq!(std::fs::read_to_string(at("content")).expect("it is there"), "what is carried");
        error
    };
    for (command, option) in
        [("run", "--trace"), ("run", "--pcap"), ("run", "--events"), ("emulate", "--pcap"), ("view", "--out")]
    {
        for name in ["small.toml", "./small.toml", "sub/../small.toml", "soft", "hard", "content"] {
            let error = run(command, &["small.toml", option, name]);
            assert!(error.contains(&format!("{option} {name} would overwrite")), "{command}: {error}");
            assert!(error.contains("hint: name another file"), "{command}: {error}");
        }
    }
    for name in ["out", "./out", "sub/../out"] {
        for [a, b] in [["--trace", "--pcap"], ["--trace", "--events"], ["--pcap", "--events"]] {
            let error = run("run", &["small.toml", b, name, a, "out"]);
            assert!(error.contains(&format!("{a} and {b} name the same file")), "{error}");
            assert!(!at("out").exists());
        }
    }
    let network = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/three-gateways.toml"));
    std::fs::write(at("net.toml"), network.expect("it is there")).expect("a file");
    for option in ["--out", "--pcap", "--events"] {
        for name in ["net.toml", "content"] {
            let error = run("push", &["content", "--network", "net.toml", option, name]);
            assert!(error.contains(&format!("{option} {name} would overwrite")), "{error}");
        }
    }
    let error = run("push", &["content", "--out", "got", "--pcap", "./got"]);
    assert!(error.contains("--out and --pcap name the same file"), "{error}");
    // Devices are written in place.
    anabranch(&["--trace", "/dev/null", "--pcap", "/dev/null", text(&path)]).assert().success();
}

#[test]
fn a_profile_that_nothing_uses_is_an_error() {
    let profiles = "[tcp.x]\n[tcp.y]\nbase = \"paper\"\n[dtc.z]\n";
    let (_folder, path) = scenario(
        &NETWORK
            .replace("bytes =", "tcp = \"x\"\nbytes =")
            .replace("[[transfer]]", &format!("{profiles}[[transfer]]")),
    );
    let said = |text_of: &[&str]| {
        let assert = anabranch(&[&[text(&path)], text_of].concat()).assert().success();
        String::from_utf8(assert.get_output().stderr.clone()).expect("text")
    };
    let error = refused(&[text(&path)]);
    assert!(error.contains("no transfer or traffic uses the profile `tcp.y`"), "{error}");
    assert!(error.contains("did you mean `[tcp.x]`, which a transfer or traffic names?"), "{error}");
    // `--set` changes a profile but does not select it.
    refused(&[text(&path), "--set", "tcp.y.mss=500"]);
    // `--set` selects another profile, so the first one is unused.
    assert_eq!(said(&["--set", "transfer.file.tcp=y"]), "");
    // The axis of a sweep uses the profiles that it names.
    let swept = std::fs::read_to_string(&path).expect("it is there").replace("[dtc.z]\n", "")
        + "[sweep]\n\"transfer.file.tcp\" = [\"x\", \"y\"]\n";
    std::fs::write(&path, swept).expect("a file");
    assert_eq!(said(&[]), "");
    let error = refused(&[text(&path), "--set", "tcp.yy.congestion=bbr"]);
    assert!(error.contains("there is no profile `tcp.yy`") && error.contains("did you mean `y`?"), "{error}");
}

#[test]
fn a_run_says_its_identity() {
    let (_folder, path) = scenario(NETWORK);
    let runs = lines(&[text(&path), "--json", "--runs", "2"]);
    let again = lines(&[text(&path), "--json"]);
    assert_eq!(again[0]["id"], runs[0]["id"]);
    assert_ne!(runs[0]["id"], runs[1]["id"]);
    assert_eq!(runs[0]["build"].as_str().map(str::len), Some(64));
    // Text that is not part of the resolved scenario is not part of its identity.
    let (_other, renamed) = scenario(&format!("# a comment\n{NETWORK}"));
    assert_eq!(lines(&[text(&renamed), "--json"])[0]["id"], runs[0]["id"]);
    for other in ["--seed=2", "--set=link.cable.delay=6 ms"] {
        assert_ne!(lines(&[text(&path), "--json", other])[0]["id"], runs[0]["id"], "{other}");
    }
}

#[test]
fn zero_gateways_are_refused() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/three-gateways.toml");
    let error = refused(&[shipped, "--set", "transfer.update.gateways=0"]);
    assert!(error.contains("at least one gateway"), "{error}");
}

#[test]
fn a_transfer_that_is_not_delivered_is_a_job_that_failed() {
    // 20 kB take at least 160 ms; the whole network fails after 50 ms.
    let late = NETWORK.replace("name = \"small\"", "name = \"small\"\nstop = \"50 ms\"");
    let (folder, path) = scenario(&late);
    let trace = folder.path().join("trace");
    for more in [&["--runs", "2"][..], &["--trace", text(&trace)]] {
        let assert = anabranch(&[&[text(&path), "--json"][..], more].concat()).assert().code(1);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let out = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        let last = out.lines().last().expect("the results are printed all the same");
        let record: Value = serde_json::from_str(last).expect("an object a line");
        assert_eq!(record["metrics"]["transfer.file.delivered"]["mean"], 0.0);
        let run = &record["run"];
        let got = record["metrics"]["transfer.file.delivered_bytes"]["mean"].as_f64().expect("a figure");
        let expected = format!("not delivered: transfer `file` of run {run}: {got} of 20000 bytes");
        assert!(error.contains(&expected), "{expected}: {error}");
        assert!(
            error.contains("transfers were not delivered") && error.contains("hint: raise `stop`"),
            "{error}"
        );
    }
}

#[test]
fn an_undelivered_transfer_has_its_cause_and_a_hint_that_fits() {
    let few = "[tcp.default]\nsyn_retries = 2\ndata_retries = 2\n[[transfer]]";
    let network = NETWORK.replace("[[transfer]]", few).replace("20 kB", "20 MB").replacen(
        "name",
        "stop = \"100 s\"\nname",
        1,
    );
    let event = |action: &str| format!("[[event]]\nat = \"4 s\"\naction = {action}\n");
    let down = event("\"link-down\"\nfrom = \"a\"\nto = \"b\"");
    for (more, cause, hint) in [
        ("".to_owned(), "it was under way at the end of the run", "raise `stop`"),
        (
            event("\"fail-node\"\nnode = \"b\"\nhow = \"reset\""),
            "the receiver reset the connection at 4",
            "RST",
        ),
        (event("\"fail-node\"\nnode = \"b\""), "the connection timed out at", "`data_retries`"),
        (
            event("\"fail-node\"\nnode = \"b\""),
            "packets of the run reached a node that was down",
            "`node.*.dropped_down`",
        ),
        (down.replace("4 s", "1 ms"), "no SYN was answered, and the sender gave up at", "`syn_retries`"),
        (down, "packets of the run had no route", "`node.*.dropped_no_route`"),
    ] {
        let (_folder, path) = scenario(&format!("{network}{more}"));
        let assert = anabranch(&[text(&path)]).assert().code(1);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let (first, rest) = error.split_once('\n').expect("several lines");
        assert!(first.contains(cause), "{cause}: {error}");
        assert!(rest.contains(hint), "{hint}: {error}");
        assert_eq!(rest.contains("raise `stop`"), more.is_empty(), "{error}");
    }
}

#[test]
fn acknowledgements_of_a_link_that_no_node_hears_are_a_warning() {
    let said = |network: &str| {
        let (_folder, path) = scenario(network);
        let assert = anabranch(&[text(&path)]).assert().success();
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    let acked = NETWORK.replace("delay", "link_ack_timeout = \"3 ms\"\ndelay");
    let warning = said(&acked);
    assert!(
        warning.contains("warning: ") && warning.contains("`link_ack_timeout` has no effect"),
        "{warning}"
    );
    let caching = acked.replacen("[[node]]", "[dtc.cache]\n[[node]]", 1).replacen(
        "name = \"b\"",
        "name = \"b\"\nkind = \"router\"\ndtc = \"cache\"",
        1,
    );
    assert_eq!(said(&caching), "");
}

/// The exit code is that of the outcome, not that of a panic.
#[test]
fn what_nobody_reads_leaves_the_exit_code() {
    let warned = NETWORK.replacen("delay =", "link_ack_timeout = \"30 ms\"\ndelay =", 1);
    let (_folder, path) = scenario(&warned);
    let run = |arguments: &[&str], stdout: Stdio| {
        let mut command = anabranch(arguments);
        command.stdout(stdout).stderr(broken_pipe());
        command.status().expect("it starts").code()
    };
    for stdout in [broken_pipe, Stdio::null] {
        assert_eq!(run(&["nosuch.toml"], stdout()), Some(2));
        assert_eq!(run(&["--nonsense"], stdout()), Some(2));
        assert_eq!(run(&[text(&path)], stdout()), Some(0));
    }
    assert_eq!(run(&[text(&path), "--set", "stop=50 ms"], Stdio::null()), Some(1));
    let mut view = Command::cargo_bin("anabranch").expect("the program is built");
    view.args(["view", "nosuch.ablog"]).stderr(broken_pipe());
    assert_eq!(view.status().expect("it starts").code(), Some(2));
}

/// Progress at an interrupt is printed, with and without output files.
#[test]
fn an_interrupted_run_says_how_far_it_was() {
    let endless = NETWORK.replace("bytes = \"20 kB\"\n", "").replacen("name", "stop = \"1000 h\"\nname", 1);
    let (folder, path) = scenario(&endless);
    let into = folder.path().join("series");
    for more in [&["--json"][..], &["--runs", "3"], &["--quiet", "--series", text(&into)]] {
        let mut command = anabranch(&[&[text(&path)], more].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let id = child.id().to_string();
        let catches = || {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 2 > 0))
        };
        for _ in 0..3000 {
            if catches() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        // Wait: a signal before the handlers are installed would be lost, and a run must be in
        // progress.
        std::thread::park_timeout(Duration::from_millis(1500));
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("a shell's kill").success());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{more:?}: {said}");
        let runs = if more.contains(&"--runs") { 3 } else { 1 };
        let expected = format!("interrupted: 0 of {runs} runs were done; run 0 was at ");
        assert!(said.starts_with(&expected) && said.contains(" of 3600000 s"), "{more:?}: {said}");
        assert_eq!(said.lines().count(), 1, "no bar where there is no terminal: {said}");
        let reached = said[expected.len()..].split(' ').next().expect("a number");
        assert!(reached.parse::<f64>().is_ok_and(|reached| reached > 0.0), "{more:?}: {said}");
        assert_eq!(std::fs::read_dir(&into).map_or(0, Iterator::count), 0, "{more:?}");
    }
}

/// The slowest runs are those that are not delivered, so a mean without them is too low.
#[test]
fn a_latency_that_some_runs_lack_has_a_median_of_all() {
    let lossy = NETWORK.replace("[[transfer]]", "loss = \"20 %\"\n[[transfer]]");
    let (_folder, path) = scenario(&lossy);
    let table = |more: &[&str], code: i32| {
        let assert = anabranch(&[&[text(&path)], more].concat()).assert().code(code);
        String::from_utf8(assert.get_output().stdout.clone()).expect("text")
    };
    assert!(!table(&["--runs", "9"], 0).contains("Kaplan-Meier"));
    // All latencies by size. With an odd number, the median is the middle one if it was delivered.
    let mut latencies: Vec<f64> = lines(&[text(&path), "--json", "--runs", "9"])
        .iter()
        .map(|run| run["metrics"]["transfer.file.latency_s"]["mean"].as_f64().expect("it is delivered"))
        .collect();
    latencies.sort_by(f64::total_cmp);
    let stop = f64::midpoint(latencies[5], latencies[6]);
    let cut = table(&["--runs", "9", "--set", &format!("stop={stop} s")], 1);
    let line = cut.lines().find(|line| line.contains("Kaplan-Meier")).unwrap_or_else(|| panic!("{cut}"));
    let median: f64 = line
        .trim()
        .strip_prefix("Kaplan-Meier: median ")
        .and_then(|rest| rest.split(',').next())
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{line}"));
    assert!((median - latencies[4]).abs() < 1e-4, "{line} of {latencies:?}");
    assert!(line.ends_with("; 3 censored"), "{line}");
    // A single run has no median; the time until its end is printed.
    let one = table(&["--set", "stop=10 ms"], 1);
    assert!(!one.contains("Kaplan-Meier") && one.contains("transfer.file.latency_censored_s"), "{one}");
}

/// A signal leaves no incomplete file, and keeps existing files. A pipe receives events as they
/// happen.
#[test]
fn an_interrupted_run_leaves_its_files_as_they_were() {
    let endless = NETWORK.replace("bytes = \"20 kB\"\n", "").replacen("name", "stop = \"1000 h\"\nname", 1);
    let (folder, path) = scenario(&endless);
    let at = |name: &str| folder.path().join(name).to_str().expect("a path of text").to_owned();
    let (pipe, old) = (at("pipe"), at("old"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("coreutils").success());
    std::fs::write(&old, "old").expect("room");
    let names = || {
        let entries = std::fs::read_dir(folder.path()).expect("a folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for (signal, outputs) in [
        ("-INT", [("--trace", &pipe), ("--pcap", &old), ("--events", &at("new"))]),
        ("-TERM", [("--trace", &old), ("--pcap", &pipe), ("--events", &at("new"))]),
        ("-INT", [("--trace", &at("new")), ("--pcap", &at("new2")), ("--events", &pipe)]),
        ("-TERM", [("--trace", &at("new")), ("--pcap", &pipe), ("--events", &old)]),
    ] {
        let mut command = anabranch(&[text(&path)]);
        command.args(outputs.iter().flat_map(|(option, path)| [*option, path.as_str()]));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut pipe = std::fs::File::open(&pipe).expect("a pipe");
        let mut octets = vec![0; 100_000];
        pipe.read_exact(&mut octets).expect("the pipe gets what happens as it happens");
        assert!(names().len() > before.len(), "the others are on their way");
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("a shell's kill").success());
        std::io::copy(&mut pipe, &mut std::io::sink()).expect("until its end");
        assert_eq!(child.wait().expect("it is ours").code(), Some(130), "{outputs:?}");
        assert_eq!(names(), before, "{outputs:?}");
        assert_eq!(std::fs::read_to_string(&old).expect("it is there"), "old", "{outputs:?}");
    }
}

/// The names of the metrics of a table, in order.
fn metrics(table: &str) -> Vec<String> {
    let rows = table.lines().skip(2).filter(|line| !line.contains("--all prints them"));
    rows.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_table_begins_with_transfers_and_leaves_out_zeros() {
    let (_folder, path) = scenario(NETWORK);
    let printed = |more: &[&str]| {
        let arguments = [&[text(&path)], more].concat();
        let assert = anabranch(&arguments).assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).expect("text")
    };
    let (short, all) = (printed(&[]), printed(&["--all"]));
    assert!(short.starts_with("small, 1 run, seed 1\n"), "{short}");
    let (few, many) = (metrics(&short), metrics(&all));
    // All transfers come first, in both; zeros of transfers are headlines too.
    for names in [&few, &many] {
        let first = names.iter().take_while(|name| name.starts_with("transfer.")).count();
        assert!(first > 3 && !names[first..].iter().any(|name| name.starts_with("transfer.")), "{names:?}");
    }
    let record = &lines(&[text(&path), "--json"])[0]["metrics"];
    let known = record.as_object().expect("an object");
    let mut sorted = many.clone();
    sorted.sort();
    assert!(sorted.iter().eq(known.keys()), "{sorted:?}");
    let zero = |name: &String| known[name]["mean"].as_f64() == Some(0.0) && !name.starts_with("transfer.");
    assert!(few.iter().eq(many.iter().filter(|name| !zero(name))), "{few:?}");
    let left = many.len() - few.len();
    assert!(
        left > 0
            && short.contains(&format!("  {left} more metrics are zero in every run; --all prints them"))
    );
    assert!(!all.contains("--all prints them"));
}

#[test]
fn a_run_ends_at_the_time_that_is_asked_for() {
    let (_folder, path) = scenario(NETWORK);
    let until = |time: &str| {
        let output = anabranch(&[text(&path), "--json", "--until", time]).output().expect("it starts");
        let record: Value = serde_json::from_slice(&output.stdout).expect("an object");
        (
            output.status.code(),
            record["metrics"]["transfer.file.delivered"]["mean"].as_f64(),
            record["until"].clone(),
            record["id"].as_str().map(str::to_owned),
        )
    };
    // 20 kB take 0.16 s at 1 Mbit/s.
    let (cut, whole) = (until("0.1 s"), until("2 s"));
    assert_eq!((cut.0, cut.1, &cut.2), (Some(0), Some(0.0), &"100 ms".into()));
    assert_eq!((whole.0, whole.1, &whole.2), (Some(0), Some(1.0), &"2 s".into()));
    assert_ne!(cut.3, whole.3, "the identity of a run has the time");
    assert!(refused(&[text(&path), "--until", "2"]).contains("unit"));
    assert!(refused(&[text(&path), "--until", "0 s"]).contains("--until: expected more than 0 s"));
    // What begins later is cut too, and no reason to refuse the scenario.
    let (_folder, late) = scenario(&format!("{NETWORK}start = \"1 s\"\n"));
    anabranch(&[text(&late), "--until", "0.5 s"]).assert().success().stderr("");
    // A `stop` that is earlier remains.
    let (_folder, short) = scenario(&format!("stop = \"10 ms\"\n{NETWORK}"));
    anabranch(&[text(&short), "--until", "5 s"]).assert().code(1);
}

#[test]
fn standard_output_takes_a_trace_before_the_result() {
    let (folder, path) = scenario(NETWORK);
    let redirected = folder.path().join("all");
    for name in ["/dev/stdout", "/proc/self/fd/1"] {
        let out = std::fs::File::create(&redirected).expect("room");
        let status = anabranch(&["--trace", name, text(&path)]).stdout(out).status().expect("it starts");
        assert_eq!(status.code(), Some(0), "{name}");
        let all = std::fs::read_to_string(&redirected).expect("text");
        let table = all.find("small, 1 run, seed 1").expect("the table");
        assert!(table > 1000 && all.contains("transfer.file.latency_s"), "{name}: {table}");
        let piped = anabranch(&["--trace", name, text(&path)]).output().expect("it starts");
        assert!(piped.stdout == all.as_bytes(), "{name}");
        assert!(Path::new("/dev/stdout").is_symlink());
    }
}

#[test]
fn an_undelivered_transfer_of_a_sweep_is_named_with_its_point() {
    let swept = format!("{NETWORK}\n[sweep]\n\"link.cable.loss\" = [0, 1]\nstop = [\"5 s\"]\n");
    let (_folder, path) = scenario(&swept);
    let assert = anabranch(&[text(&path)]).assert().code(1);
    let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    let expected = "transfer `file` of run 0, link.cable.loss = 1, stop = \"5 s\": 0 of 20000 bytes";
    assert!(error.contains(expected) && error.contains("1 of 2 transfers"), "{error}");
}

#[test]
fn a_transfer_without_end_is_cut_at_stop_and_delivered_nothing_that_it_owed() {
    let background = NETWORK.replace("bytes = \"20 kB\"\n", "").replace("name = \"small\"", "stop = \"2 s\"");
    let (_folder, path) = scenario(&background);
    let records = lines(&[text(&path), "--json"]);
    assert!(records[0]["metrics"]["transfer.file.delivered_bytes"]["mean"].as_f64() > Some(100_000.0));
}

#[test]
fn a_scenario_can_ask_for_the_best_number_of_gateways() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/three-gateways.toml");
    let slow = ["--set", "link.radio3.rate=2 kbit/s", "--set", "link.radio3.delay=2 s", "--json"];
    let with = |gateways| lines(&[&[shipped, "--set", gateways][..], &slow].concat()).remove(0);
    let best = with("transfer.update.gateways=best");
    assert_eq!(best["resolved"]["transfer"][0]["gateways"], 2);
    assert_eq!(best["metrics"]["transfer.update.sessions"]["mean"], 2.0);
    let two = with("transfer.update.gateways=2");
    assert_eq!((&best["metrics"], &best["id"]), (&two["metrics"], &two["id"]));
    let error = refused(&[shipped, "--set", "transfer.update.gateways=most"]);
    assert!(error.contains("a number of gateways, a list of their names, or \"best\""), "{error}");
    let split = ["--set", "transfer.update.gateways=best", "--set", "transfer.update.kind=split"];
    let error = refused(&[&[shipped][..], &split].concat());
    assert!(error.contains("has no meaning for this kind"), "{error}");
}

#[test]
fn a_multipath_transfer_survives_the_loss_of_a_relay() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/diamond-mptcp.toml");
    // Neighbours notice a returned relay with its next beacon or DIO, which may be after the end of
    // the transfer: it was in time in a quarter of the runs.
    let mut returned = 0;
    for record in lines(&[shipped, "--json", "--runs", "16"]) {
        assert_eq!(record["resolved"]["transfer"][0]["mptcp"]["subflows"], 8);
        let figure = |name: &str| record["metrics"][format!("transfer.log.{name}")]["mean"].as_f64();
        assert_eq!((figure("delivered"), figure("delivered_bytes")), (Some(1.0), Some(1e6)));
        let paths = [0, 1, 2].map(|n| figure(&format!("subflow.{n}.path")));
        assert!(paths[0] != paths[1], "{paths:?}");
        returned += u32::from(paths[2].is_some() && (paths[2] == paths[0] || paths[2] == paths[1]));
        let sum = |name: &str| (0..3).filter_map(|n| figure(&format!("subflow.{n}.{name}"))).sum::<f64>();
        assert!(sum("assigned_bytes") > 1e6 && figure("reinjections") > Some(0.0));
        assert_eq!(Some(sum("retransmissions")), figure("retransmissions"));
    }
    assert!(returned > 0, "a path came back, and its subflow");

    let assert = anabranch(&[shipped, "--set", "transfer.log.bytes=20 kB", "--runs", "2"]).assert().success();
    let table = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(table.contains("transfer.log.subflow.1.assigned_bytes"), "{table}");
    let wrong = |assignment: &str, expected: &str| {
        let error = refused(&[shipped, "--set", assignment]);
        assert!(error.contains(expected), "{assignment}: {error}");
    };
    wrong("transfer.log.mptcp.scheduler=blets", "did you mean `blest`?");
    wrong("transfer.log.mptcp.subflow=2", "did you mean `subflows`?");
    wrong("transfer.log.mptcp.subflows=9", "expected 1 to 8, found 9");
    wrong("transfer.log.mptcp.dsn_width=6", "expected 4 or 8, found 6");
    wrong("paths.root=north", "paths lead to `north`");
    wrong("transfer.log.tcp=wide", "there is no TCP profile `wide`");
    wrong("radio.range=50 yards", "unknown unit `yards`");
}
