//! A C program with the static library receives what `push` sends through three gateways, all as processes of their own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use anabranch_testkit::contents;
use anabranch_testkit::embedded::{file, program, sections};
use anabranch_testkit::paths::{self, Paths};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The bound: all memory beside that of the TCP stack.
const RAM: u64 = 16_000;

/// A process that says where it listens, and is killed when the test is over.
struct Process {
    child: Child,
    address: String,
    errors: BufReader<ChildStderr>,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).expect("it writes text"), 0, "it only said: {said}");
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.trim().to_owned();
            }
            said += &line;
        };
        Self { child, address, errors }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = crate::programs::command(arguments[0]);
    command.args(&arguments[1..]);
    command
}

/// The number behind `name` on a line of its own.
#[track_caller]
fn figure(said: &[String], name: &str) -> u64 {
    let found = said.iter().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    found.unwrap_or_else(|| panic!("no {name} in {said:?}"))
}

/// Pushes a file of so many octets into the C program, and returns how many gateways carried some of it, and what it said.
/// With paths, each gateway is behind one of them, and the node behind all; without, all are on the loop device.
fn receive(folder: &Path, receiver: &Path, octets: usize, paths: Option<&Paths>) -> (usize, Vec<String>) {
    fs::write(folder.join("file"), contents(octets)).expect("it can be written");
    let far = |command: &mut Command| match paths {
        Some(paths) => paths.far(|| Process::start(command)),
        None => Process::start(command),
    };
    let addresses = paths.map_or(vec![Ipv4Addr::LOCALHOST; 3], |paths| paths.addresses().collect());
    let gateways: Vec<Process> = addresses
        .iter()
        .map(|ip| {
            let allow =
                ["gateway", "--listen", &format!("{ip}:0"), "--allow", "0.0.0.0/0:1-65535", "--insecure"];
            far(anabranch(&allow).stdout(Stdio::null()))
        })
        .collect();
    let got = File::create(folder.join("got")).expect("it can be written");
    let mut node = Command::new(receiver);
    node.arg(format!("{}:0", addresses[0])).args(gateways.iter().map(|gateway| &gateway.address)).stdout(got);
    let mut node = far(&mut node);

    let to = ["push", "file", "--to", &node.address, "--json", "--quiet", "--insecure", "--no-resume"];
    let push = || anabranch(&to).current_dir(folder).output().expect("it starts");
    let push = paths.map_or_else(push, |paths| paths.near(push));
    assert!(push.status.success(), "{}", String::from_utf8_lossy(&push.stderr));
    let report: Value = serde_json::from_slice(&push.stdout).expect("one JSON object");
    let gateways = report["gateways"].as_array().expect("a list");
    let carriers = gateways.iter().filter(|gateway| gateway["bytes"].as_u64() > Some(0)).count();

    let said: Vec<String> = node.errors.by_ref().lines().map_while(Result::ok).collect();
    assert!(node.child.wait().expect("it is ours").success(), "{said:?}");
    let got = fs::read(folder.join("got")).expect("it is there");
    assert_eq!(Sha256::digest(&got), Sha256::digest(contents(octets)), "{} octets came: {said:?}", got.len());
    (carriers, said)
}

/// What the program took, against the bound.
fn weigh(what: &str, receiver: &Path, said: &[String]) {
    assert_eq!((figure(said, "rejected "), figure(said, "restarts ")), (0, 0), "{said:?}");
    let Some(sizes) = sections(receiver) else { return };
    let stack = figure(said, "stack ");
    let ram = sizes.data + sizes.bss + stack;
    println!(
        "{what}: text {} data {} bss {} stack {stack}: {ram} octets of RAM, of which memory {}, heap at most {}, held at most {}",
        sizes.text,
        sizes.data,
        sizes.bss,
        figure(said, "memory "),
        figure(said, "heap_peak "),
        figure(said, "held_peak "),
    );
    assert!(ram < RAM, "{ram} octets");
}

#[test]
fn a_c_program_receives_a_file_in_sixteen_kilobytes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let receiver = folder.path().join("receive");
    let Some(()) = program(&file("examples/receive.c"), &receiver) else { return };
    for octets in [0, 1, 300_000] {
        let (_, said) = receive(folder.path(), &receiver, octets, None);
        assert_eq!(figure(&said, "octets "), octets as u64);
        weigh(&format!("{octets} octets"), &receiver, &said);
    }
}

/// On the loop device a segment is larger than the node's buffer, and nothing takes time: one session may do for all. Here are
/// three paths, and each is too slow alone.
#[test]
fn a_c_program_receives_from_three_gateways_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let receiver = folder.path().join("receive");
    let path = paths::Path { kbit_per_s: 1_000, delay: Duration::from_millis(5), queue: 12_500, loss: 0 };
    let Some(paths) = Paths::open("embed", &[path; 3]) else { return };
    let Some(()) = program(&file("examples/receive.c"), &receiver) else { return };
    let (carriers, said) = receive(folder.path(), &receiver, 300_000, Some(&paths));
    assert_eq!(carriers, 3, "{said:?}");
    assert!(figure(&said, "held_peak ") > 0, "something came out of order: {said:?}");
    weigh("300000 octets on three paths", &receiver, &said);
}
