//! Tests of the commands of deployed SET in the complete program. The tests of `anabranch-deploy`
//! cover the small programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anabranch_testkit::daemon::Daemon;
use serde_json::Value;

use crate::push::phases;

fn anabranch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).args(arguments).env("XDG_STATE_HOME", folder.join("state"));
    command.stdin(Stdio::null());
    command
}

#[test]
fn a_file_goes_through_a_gateway_to_a_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("file"), vec![7; 300_000]).expect("room");
    let made = anabranch(path, &["key", "new", "sender", "gateway", "node"]).output().expect("it starts");
    assert!(made.status.success());
    let allow = ["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"];
    let keys = ["--key", "gateway.key", "--senders", "sender.pub"];
    let gateway = Daemon::spawn(anabranch(path, &[&allow[..], &keys].concat()));
    let table = format!("{}=gateway.pub", gateway.address);
    let out = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--gateways", &table];
    let node = Daemon::spawn(anabranch(
        path,
        &[&out[..], &["--key", "node.key", "--senders", "sender.pub"]].concat(),
    ));
    let to =
        ["push", "file", "--to", &node.address, "--key", "sender.key", "--node-key", "node.pub", "--json"];
    let run = anabranch(path, &to).output().expect("it starts");
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(fs::read(path.join("got")).expect("it is there") == vec![7; 300_000]);
    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    let phases = phases(&report);
    assert_eq!(report["latency_s"].as_f64(), Some(phases[5].1), "{report}");
    assert_eq!(report["establishment_s"].as_f64(), Some(phases[1].1), "{report}");
    // The node stores the file before it confirms it.
    assert!(phases[0].2 > 0.0 && phases[1].2 > 0.0 && phases[5].2 > 0.0, "{report}");

    // The page of a simulated push shows this one below.
    fs::write(path.join("push.json"), &run.stdout).expect("room");
    let simulated = ["push", "file", "--json", "--quiet", "--events", "push.ablog"];
    assert!(anabranch(path, &simulated).status().expect("it starts").success());
    let view = |push| anabranch(path, &["view", "push.ablog", "--push", push]).output().expect("it starts");
    let run = view("push.json");
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let page = fs::read_to_string(path.join("push.html")).expect("a page");
    assert!(page.contains("[\"cn → sn, simulated\",0,["), "the simulated one");
    assert!(page.contains(&format!("[\"push.json: {}\",null,[", node.address)), "the deployed one");
    fs::write(path.join("old.json"), "{\"network\": \"n\", \"latency_s\": 1}").expect("room");
    for (push, why) in [
        ("absent.json", "error: cannot read absent.json: No such file or directory (os error 2)\n"),
        ("file", "error: file: not a report of a push: expected value at line 1 column 1\n  hint: "),
        ("old.json", "error: old.json: not a report of a push: missing field `phases` at line 1 column 32\n"),
    ] {
        let run = view(push);
        let error = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{error}");
        assert!(error.starts_with(why), "{error}");
    }
}
