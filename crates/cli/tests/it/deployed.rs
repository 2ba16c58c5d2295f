//! The commands of deployed SET in the program that has all of them; the tests of `anabranch-deploy` are about the small programs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn anabranch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).args(arguments).env("XDG_STATE_HOME", folder.join("state"));
    command.stdin(Stdio::null());
    command
}

/// A daemon, killed at the end, and the address on which it listens.
struct Daemon(Child, String);

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = anabranch(folder, arguments).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines =
            BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("listening on ")).expect("it says where");
        let address = line.split("listening on ").nth(1).expect("an address").to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self(child, address)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
    let gateway = Daemon::start(path, &[&allow[..], &keys].concat());
    let table = format!("{}=gateway.pub", gateway.1);
    let out = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--gateways", &table];
    let node = Daemon::start(path, &[&out[..], &["--key", "node.key", "--senders", "sender.pub"]].concat());
    let to = ["push", "file", "--to", &node.1, "--key", "sender.key", "--node-key", "node.pub"];
    let run = anabranch(path, &to).output().expect("it starts");
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(fs::read(path.join("got")).expect("it is there") == vec![7; 300_000]);
}
