//! What `anabranch tune` reports, and the page of its log.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anabranch_testkit::executable;
use anabranch_testkit::netns::text;
use anabranch_testkit::python::Program;
use anabranch_view::replay::{Part, Replay};
use assert_cmd::prelude::*;

#[test]
fn a_log_has_the_sizes_of_the_buffers_and_makes_a_page() {
    if !executable::is_built("anabranch-tune") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut program = Program::start(&listener);
    for mut far in program.far.drain(..) {
        thread::spawn(move || while far.read(&mut [0; 1 << 16]).is_ok_and(|len| len > 0) {});
    }
    ["a", "b"].iter().for_each(|name| program.flood(name));
    let (folder, pid) = (tempfile::tempdir().expect("a folder"), program.id().to_string());
    let anabranch = |arguments: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        command.current_dir(folder.path()).args(arguments).stdin(Stdio::null());
        command
    };
    let tune = ["tune", "--pid", &pid, "--record", "tune.ablog", "--json", "--state", "state"];
    let piped = || Stdio::piped();
    let child = anabranch(&tune).stdout(piped()).stderr(piped()).spawn().expect("it starts");
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(Duration::from_millis(1500));
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.expect("a program").success());
    let output = child.wait_with_output().expect("it is ours");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let reports = text(&output.stdout);
    let last = reports.lines().last().expect("a report");
    let last: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!((&last["active"], &last["idle"]), (&2.into(), &2.into()), "{last}");
    assert!(last["limit_bytes"].as_u64() <= last["budget_bytes"].as_u64(), "{last}");
    let octets = std::fs::read(folder.path().join("tune.ablog")).expect("a log");
    let replay = Replay::read(octets.as_slice(), Part::default()).expect("a log");
    assert_eq!((replay.cut, replay.flows.len(), replay.nodes.len()), (None, 2, 3));
    assert!(replay.subflows.iter().all(Option::is_some), "they are striped");
    assert!(replay.states.iter().any(|(_, _, state)| state.send_buffer > 4608 && state.cwnd > 0));
    anabranch(&["view", "tune.ablog"]).assert().success();
}
