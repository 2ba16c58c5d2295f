//! `anabranch node`, `gateway` and `push --to` as processes of their own, through the loop device.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).args(arguments).args(keys_for(arguments)).stdin(Stdio::null());
    command
}

/// Everybody has keys where nothing else is said.
fn keys_for(arguments: &[&str]) -> &'static [&'static str] {
    let said = |flag: &str| arguments.contains(&flag);
    match arguments[0] {
        _ if said("--insecure") || said("--key") || said("--psk") => &[],
        "node" => &["--key", "node.key", "--senders", "sender.pub"],
        "gateway" => &["--key", "gateway.key", "--senders", "sender.pub"],
        "push" if said("--to") => &["--key", "sender.key", "--node-key", "node.pub"],
        _ => &[],
    }
}

fn push(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, &[&["push"], arguments].concat()).output().expect("the program starts")
}

/// A daemon that is killed when the test is over.
struct Daemon {
    child: Child,
    address: String,
    /// Lines of its standard error.
    lines: Receiver<String>,
}

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = command(folder, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (tell, lines) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut daemon = Self { child, address: String::new(), lines };
        let line = daemon.says("listening on ");
        daemon.address = line.split("listening on ").nth(1).expect("it says where").to_owned();
        daemon
    }

    /// A gateway with its key, as it is named to others.
    fn known(&self) -> String {
        format!("{}=gateway.pub", self.address)
    }

    /// Waits for a line that contains `text`.
    #[track_caller]
    fn says(&self, text: &str) -> String {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => said.push(line),
                Err(_) => panic!("never said `{text}`: {said:?}"),
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let done = Command::new("kill").args([name, &id]).status().expect("a shell's kill");
        assert!(done.success());
    }

    /// Its exit code, and what it printed.
    fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it is ours").code();
        let mut out = String::new();
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut out).expect("the program writes text");
        (code, out)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gateway(folder: &Path) -> Daemon {
    Daemon::start(folder, &["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"])
}

/// Octets without a short period, so that a chunk in the wrong place shows.
fn contents(octets: usize) -> Vec<u8> {
    (0..octets as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn folder(octets: usize) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("file"), contents(octets)).expect("it can be written");
    let made = command(folder.path(), &["key", "new", "sender", "gateway", "node"]).output();
    assert!(made.expect("the program starts").status.success());
    folder
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).expect("the program writes text")
}

fn sha256(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|o| format!("{o:02x}")).collect()
}

fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
    keys.sort();
    keys
}

#[test]
fn a_file_goes_through_three_gateways_into_a_file() {
    let folder = folder(3_000_000);
    let gateways = [gateway(folder.path()), gateway(folder.path()), gateway(folder.path())];
    let table = gateways.each_ref().map(Daemon::known).join(",");
    let out = ["node", "--listen", "127.0.0.1:0", "--out", "got", "--once", "--json", "--gateways", &table];
    let mut node = Daemon::start(folder.path(), &out);
    let run = push(folder.path(), &["file", "--to", &node.address, "--json", "--quiet"]);
    assert_eq!((run.status.code(), text(&run.stderr)), (Some(0), ""));
    assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(3_000_000));

    let report: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    assert_eq!((&report["bytes"], &report["delivered_bytes"]), (&3_000_000.into(), &3_000_000.into()));
    assert_eq!(report["sha256"], sha256(&contents(3_000_000)));
    assert_eq!(report["gateways"].as_array().map(Vec::len), Some(3));
    // Issue 7, point 7: the simulated push prints the same keys.
    let simulated = push(folder.path(), &["file", "--json", "--quiet"]);
    let simulated: Value = serde_json::from_slice(&simulated.stdout).expect("one JSON object");
    assert_eq!(keys(&report), keys(&simulated));
    assert_eq!(keys(&report["gateways"][0]), keys(&simulated["gateways"][0]));

    let (code, said) = node.ended();
    assert_eq!(code, Some(0), "--once has ended it");
    let received: Value = serde_json::from_str(&said).expect("one JSON object");
    assert_eq!((&received["bytes"], &received["sha256"]), (&report["bytes"], &report["sha256"]));
}

#[test]
fn a_command_gets_the_octets_and_has_the_last_word() {
    let folder = folder(200_000);
    let gateway = gateway(folder.path());
    let listen = ["node", "--listen", "127.0.0.1:0", "--once", "--pipe"];
    let mut node = Daemon::start(folder.path(), &[&listen[..], &["cat > got; echo done > end"]].concat());
    let run = push(folder.path(), &["file", "--to", &node.address, "--via", &gateway.known(), "--quiet"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    // What the sender was told is true by now.
    assert_eq!(fs::read_to_string(folder.path().join("end")).expect("the command has ended"), "done\n");
    assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(200_000));
    assert_eq!(node.ended().0, Some(0));

    let mut node = Daemon::start(folder.path(), &[&listen[..], &["cat > got; exit 3"]].concat());
    let run = push(folder.path(), &["file", "--to", &node.address, "--via", &gateway.known(), "--quiet"]);
    assert_eq!(run.status.code(), Some(1), "the command has not taken it");
    assert_eq!(node.ended().0, Some(1));
    node.says("it ended with exit status: 3");
}

#[test]
fn an_interrupt_ends_each_of_them() {
    let folder = folder(1_000_000);
    let mut gateway = gateway(folder.path());
    let slow =
        ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--pipe", "sleep 60; cat > got"];
    let mut node = Daemon::start(folder.path(), &slow);
    let push =
        command(folder.path(), &["push", "file", "--to", &node.address]).stderr(Stdio::piped()).spawn();
    let mut push = push.expect("the program starts");
    node.says("has begun");
    let id = push.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().expect("a shell's kill");
    assert_eq!(push.wait().expect("it is ours").code(), Some(130));
    let mut said = String::new();
    push.stderr.take().expect("it is piped").read_to_string(&mut said).expect("the program writes text");
    assert!(said.contains("interrupted: ") && said.contains(" of 1000000 octets were delivered"), "{said}");
    node.signal("-INT");
    // The command goes with the node: it would take the end of its input for the end of the file.
    gateway.signal("-INT");
    assert_eq!((node.ended().0, gateway.ended().0), (Some(130), Some(130)));
    assert!(!folder.path().join("got").exists());
    let mut node = Daemon::start(folder.path(), &["node", "--listen", "127.0.0.1:0", "--out", "got"]);
    node.signal("-TERM");
    assert_eq!(node.ended().0, Some(0), "this is how a service is stopped");
    assert!(!folder.path().join("got").exists());
}

#[test]
fn a_gateway_without_a_rule_says_so_and_relays_nowhere() {
    let folder = folder(1_000);
    let gateway = Daemon::start(folder.path(), &["gateway", "--listen", "127.0.0.1:0"]);
    gateway.says("relays nowhere");
    let out = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    let node = Daemon::start(folder.path(), &out);
    let run = push(folder.path(), &["file", "--to", &node.address, "--quiet"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stdout).contains("forbidden"), "{}", text(&run.stdout));
    assert!(text(&run.stderr).contains("--allow"), "{}", text(&run.stderr));
    gateway.says("no --allow names");
    assert!(!folder.path().join("got").exists());
}

#[test]
fn what_cannot_be_is_said_with_a_hint() {
    let folder = folder(10);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    for (arguments, code, hint) in [
        (&["push", "file", "--to", "127.0.0.1:1", "--quiet"][..], 1, "is `anabranch node` running there"),
        (&["push", "file", "--to", "no.such.host.invalid"], 2, "give an address"),
        (&["push", "file", "--to", "127.0.0.1", "--seed", "1"], 2, "cannot be used with"),
        (&["push", "file", "--via", "127.0.0.1"], 2, "--to"),
        (&["push", "absent", "--to", "127.0.0.1"], 2, "name a file"),
        (&["node", "--listen", "127.0.0.1:0"], 2, "--out"),
        (&["node", "--out", ".", "--listen", "127.0.0.1:0"], 2, "name a file in it"),
        (&["node", "--out", "got", "--listen", &taken], 2, "another program listens there"),
        (&["node", "--out", "got", "--listen", "192.0.2.1:0"], 2, "take an address of this host"),
        (&["gateway", "--allow", "10.0.0.1/8"], 2, "bits past its prefix"),
        (&["gateway", "--listen", "127.0.0.1:0", "--memory", "1 kB"], 2, "fewer --connections"),
    ] {
        let run = command(folder.path(), arguments).output().expect("the program starts");
        assert_eq!(run.status.code(), Some(code), "{arguments:?}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains(hint), "{arguments:?}: {}", text(&run.stderr));
    }
}
