//! Cost of deployed SET: processor time per byte at the sender, compared with a plain TCP copy with
//! the same encryption, and at the gateway. The processes use the loopback device; the kernel
//! reports their times.
//!
//! Prints a table. With an argument, the program acts as one of its own helpers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use anabranch_secure::{Acquaintance, Guard, NodeKeys, SecretKey, SenderKeys, WhoMay};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Length of each transfer in bytes.
const OCTETS: usize = 1 << 30;
/// Options of a push that does not use a stored digest of the file.
const NEW: [&str; 1] = ["--no-resume"];
const KNOWN: [&str; 1] = ["--state=state"];
/// Number of measurements. The minimum counts, since other programs can only add time.
const RUNS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("copy") => copy(arguments[2].parse().expect("an address"), false),
        Some("copy-and-hash") => copy(arguments[2].parse().expect("an address"), true),
        _ => measure(),
    }
}

fn measure() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path();
    fs::write(path.join("file"), vec![7; OCTETS]).expect("room for a gigabyte");
    let made = program(path, &["key", "new", "sender", "gateway", "node"]).status();
    assert!(made.expect("the program starts").success());
    let copies: Vec<f64> = (0..RUNS).map(|_| copy_time(path, "copy")).collect();
    let hashing: Vec<f64> = (0..RUNS).map(|_| copy_time(path, "copy-and-hash")).collect();
    println!("TCP copy, same encryption        {:.3} s of processor time per GB", least(&copies));
    println!("the same, and SHA-256 before     {:.3} s", least(&hashing));
    // A new file, and one whose digest an earlier push has stored.
    push_times(path, 1, &KNOWN);
    for (gateways, what, remembers) in
        [(1, "unknown", NEW), (3, "unknown", NEW), (1, "known", KNOWN), (3, "known", KNOWN)]
    {
        let runs: Vec<[f64; 3]> = (0..RUNS).map(|_| push_times(path, gateways, &remembers)).collect();
        let each = |which: usize| least(&runs.iter().map(|run| run[which]).collect::<Vec<_>>());
        println!(
            "push through {gateways}, {what}: sender {:.3} s per GB ({:.2} and {:.2} of those), node {:.3}, gateways {:.3} ({:.2} GB/s per core)",
            each(0),
            each(0) / least(&copies),
            each(0) / least(&hashing),
            each(1),
            each(2),
            1.0 / each(2),
        );
    }
}

fn least(seconds: &[f64]) -> f64 {
    let gigabytes = OCTETS as f64 * 1e-9;
    seconds.iter().copied().fold(f64::INFINITY, f64::min) / gigabytes
}

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A process that is killed when this is dropped.
struct Daemon(Child, String);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn daemon(folder: &Path, arguments: &[&str]) -> Daemon {
    let mut child = program(folder, arguments).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.split("listening on ").nth(1).map(str::to_owned));
    thread::spawn(move || lines.count());
    Daemon(child, address.expect("it says where"))
}

/// Processor time in seconds: of a process, or of all its ended children.
fn processor_time(process: &str, children: bool) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    // The fields after the name, which is in parentheses; times are in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    let at = if children { 13 } else { 11 };
    (ticks(at) + ticks(at + 1)) / 100.0
}

/// Processor time of a child that ends by itself.
fn time_of(mut command: Command) -> f64 {
    let before = processor_time("self", true);
    let status = command.status().expect("it starts");
    assert!(status.success());
    processor_time("self", true) - before
}

/// Runs a process that writes the encrypted file to one socket, and returns its processor time.
fn copy_time(folder: &Path, how: &str) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("it is bound").to_string();
    let reader = thread::spawn(move || {
        let mut socket = listener.accept().expect("somebody").0;
        let mut octets = vec![0; 64 << 10];
        while socket.read(&mut octets).expect("octets") > 0 {}
    });
    let mut command = Command::new(std::env::current_exe().expect("it runs"));
    command.current_dir(folder).args([how, &to]);
    let seconds = time_of(command);
    reader.join().expect("it reads");
    seconds
}

/// The helper: reads the file in pieces, encrypts and writes them. With `hash` it reads the file
/// once before, as a push does to announce the digest.
fn copy(to: SocketAddr, hash: bool) {
    let (own, node) = (SecretKey::from_octets([1; 32]), SecretKey::from_octets([3; 32]));
    let who = WhoMay { own: Some(node.clone()), senders: vec![own.public()], shared: Vec::new() };
    let sender = SenderKeys::new(own, Acquaintance::Known(node.public()), || 1);
    let mut far = Guard::node(&NodeKeys::new(who));
    let mut guard = Guard::control(&sender).expect("keys");
    far.read(guard.poll_transmit().expect("a greeting")).expect("it holds");
    guard.read(far.poll_transmit().expect("an answer")).expect("it holds");
    let mut octets = vec![0; 64 << 10];
    if hash {
        let (mut file, mut sha256) = (fs::File::open("file").expect("it is there"), Sha256::new());
        while let n @ 1.. = file.read(&mut octets).expect("it can be read") {
            sha256.update(&octets[..n]);
        }
        std::hint::black_box(sha256.finalize());
    }
    let mut file = fs::File::open("file").expect("it is there");
    let mut socket = TcpStream::connect(to).expect("somebody listens");
    while let n @ 1.. = file.read(&mut octets).expect("it can be read") {
        guard.write(bytes::Bytes::copy_from_slice(&octets[..n])).expect("it may write");
        while let Some(record) = guard.poll_transmit() {
            socket.write_all(&record).expect("it is read");
        }
    }
}

/// Processor times of the sender, the node, and all gateways together.
fn push_times(folder: &Path, gateways: usize, remembers: &[&str]) -> [f64; 3] {
    let listen = ["--listen", "127.0.0.1:0", "--senders", "sender.pub", "--quiet"];
    let gateway =
        [&["gateway", "--key", "gateway.key", "--allow", "127.0.0.1:1-65535"][..], &listen].concat();
    let gateways: Vec<Daemon> = (0..gateways).map(|_| daemon(folder, &gateway)).collect();
    let node = daemon(folder, &[&["node", "--key", "node.key", "--out", "/dev/null"][..], &listen].concat());
    let via: Vec<String> = gateways.iter().map(|gateway| format!("{}=gateway.pub", gateway.1)).collect();
    let via = via.join(",");
    let push = [
        "push",
        "file",
        "--to",
        &node.1,
        "--via",
        &via,
        "--key",
        "sender.key",
        "--node-key",
        "node.pub",
        "--quiet",
    ];
    let sender = time_of(program(folder, &[&push[..], remembers].concat()));
    let of = |daemon: &Daemon| processor_time(&daemon.0.id().to_string(), false);
    [sender, of(&node), gateways.iter().map(of).sum()]
}
