//! Issue 8, point 5: a crate outside the workspace brings a congestion control, a scheduler and a striping policy along.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Builds the crate as its owner would, with what is built already, and runs it from the root.
fn own(arguments: &[&str]) -> Output {
    let (root, program) = (root(), assert_cmd::cargo::cargo_bin!("anabranch-lab"));
    let folder = root.join("examples/own-protocol");
    // The same versions of everything, without asking anybody.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("it may be written");
    let target = program.ancestors().nth(2).expect("target/PROFILE/anabranch");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--manifest-path"]).arg(folder.join("Cargo.toml")).arg("--");
    cargo.args(arguments).current_dir(&root).env("CARGO_TARGET_DIR", target).output().expect("cargo starts")
}

fn records(run: &Output) -> Vec<Value> {
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8_lossy(&run.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

fn metric(record: &Value, name: &str) -> f64 {
    record["metrics"][name]["value"].as_f64().expect("a number")
}

#[test]
fn a_protocol_of_a_users_own_is_compared_with_ours() {
    let queues = records(&own(&["run", "examples/own-protocol/compare.toml", "--json"]));
    let axes: Vec<&str> =
        queues.iter().map(|r| r["axes"]["tcp.default.congestion"].as_str().expect("a name")).collect();
    assert_eq!(axes, ["newreno", "cubic", "vegas"]);
    let [newreno, cubic, vegas] = &queues[..] else { panic!("{axes:?}") };
    assert!(queues.iter().all(|record| metric(record, "transfer.file.delivered") == 1.0));
    // What a controller by delay is for: the link stays full, and its queue nearly empty.
    for loss_based in [newreno, cubic] {
        let peak = |record| metric(record, "link.a>b.queue_peak_bytes");
        assert!(peak(vegas) * 3.0 < peak(loss_based));
        assert!(metric(vegas, "transfer.file.latency_s") < metric(loss_based, "transfer.file.latency_s"));
    }

    let striped = ["run", "scenarios/three-gateways.toml", "--json", "--set"];
    let ours = records(&own(&striped[..3]));
    let theirs = records(&own(&[&striped[..], &["transfer.0.set.striping=least-outstanding"]].concat()));
    assert_eq!(metric(&theirs[0], "transfer.update.delivered"), 1.0);
    assert_ne!(ours[0]["metrics"], theirs[0]["metrics"]);

    let scheduled = ["run", "scenarios/diamond-mptcp.toml", "--json", "--set", "transfer.log.bytes=50 kB"];
    let by = |scheduler: &str| {
        let scheduler = format!("transfer.log.mptcp.scheduler={scheduler}");
        records(&own(&[&scheduled[..], &["--set", &scheduler]].concat()))
    };
    let (ours, theirs) = (by("redundant"), by("soonest"));
    assert_eq!(metric(&theirs[0], "transfer.log.delivered"), 1.0);
    assert_ne!(ours[0]["metrics"], theirs[0]["metrics"]);
}

#[test]
fn whoever_has_not_brought_it_is_told_so() {
    let mut plain = Command::new(assert_cmd::cargo::cargo_bin!("anabranch-lab"));
    let run = plain.args(["run", "examples/own-protocol/compare.toml"]).current_dir(root()).output();
    let run = run.expect("the program starts");
    assert_eq!(run.status.code(), Some(2));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("this program has no congestion control `vegas`"), "{said}");
}
