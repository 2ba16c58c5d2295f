//! Tests of the commands of deployed SET in the complete program. The tests of `anabranch-deploy`
//! cover the small programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anabranch_testkit::daemon::Daemon;

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
    let to = ["push", "file", "--to", &node.address, "--key", "sender.key", "--node-key", "node.pub"];
    let run = anabranch(path, &to).output().expect("it starts");
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(fs::read(path.join("got")).expect("it is there") == vec![7; 300_000]);
}
