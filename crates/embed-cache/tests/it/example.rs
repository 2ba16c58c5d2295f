//! The example forwards between two endpoints, in a chain over UDP.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration as Span, Instant as Clock};

use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::embedded::{Kind, program};

use crate::ends::{End, addresses, file};

/// A running forwarder. It ends when its standard input is closed.
struct Forwarder {
    child: Child,
    errors: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Forwarder {
    fn start(program: &Path, options: &[&str], right: SocketAddr) -> Self {
        let mut command = Command::new(program);
        command.args(options).args(["127.0.0.1:0", &right.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("it writes text");
        let port = line.trim().strip_prefix("listening on port ").expect("a port").parse().expect("a port");
        Self { child, errors, address: ([127, 0, 0, 1], port).into() }
    }

    /// Ends the forwarder and returns its figures.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.errors.read_to_string(&mut said).expect("it writes text");
        assert!(self.child.wait().expect("it is ours").success(), "{said}");
        said
    }
}

fn figure(said: &str, name: &str) -> u64 {
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("it prints all figures").parse().expect("a number")
}

/// Sends a file through three forwarders. Returns the number of segments that the sender repeated,
/// and the figures of the forwarders.
fn transfer(program: &Path, options: [&str; 4], version: u8, octets: usize) -> (u32, Vec<String>) {
    let sockets = [0, 1].map(|_| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(Span::from_millis(1))).expect("a socket");
        socket
    });
    let mut right = sockets[1].local_addr().expect("it is bound");
    let mut forwarders = Vec::new();
    for seed in ["1", "2", "3"] {
        let forwarder = Forwarder::start(program, &[&options[..], &["-s", seed]].concat(), right);
        right = forwarder.address;
        forwarders.push(forwarder);
    }
    let next = [right, forwarders[0].address];
    let [sender, receiver] = addresses(version);
    let mut ends = [End::sender([sender, receiver], file(octets)), End::receiver([receiver, sender])];
    let start = Clock::now();
    let mut buffer = [0; 2000];
    while !(ends[0].is_done() && ends[1].inbox.len() == octets) {
        assert!(start.elapsed().as_secs() < 60, "no end: {ends:?}");
        let now = Instant::ZERO + Duration::from_nanos(start.elapsed().as_nanos() as u64);
        for ((end, socket), next) in ends.iter_mut().zip(&sockets).zip(next) {
            while let Ok((n, _)) = socket.recv_from(&mut buffer) {
                end.receive(now, &buffer[..n]);
            }
            end.timeout(now);
            while let Some(packet) = end.poll(now) {
                socket.send_to(&packet, next).expect("the loopback device");
            }
        }
    }
    assert_eq!(ends[1].inbox, file(octets));
    (ends[0].repeated, forwarders.into_iter().map(Forwarder::end).collect())
}

#[test]
fn a_chain_of_c_programs_carries_a_file_over_lossy_links() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let forward = folder.path().join("forward");
    let Some(()) = program(Kind::Cache, &[&Kind::Cache.file("examples/forward.c")], &forward) else { return };
    for version in [4, 6] {
        let (repeated, figures) = transfer(&forward, ["-c", "1", "-l", "10"], version, 12_000);
        let repaired: Vec<u64> = figures.iter().map(|said| figure(said, "repeated")).collect();
        println!("IPv{version}: {repeated} segments repeated by the sender, {repaired:?} by the caches");
        // RAM of the library: it has no variables but a pointer.
        let (memory, stack) = (figure(&figures[0], "memory"), figure(&figures[0], "stack"));
        println!("memory {memory}, stack {stack}");
        assert!(memory <= 1500 && stack < 3000, "{figures:#?}");
        // 120 segments on three links, a tenth of them lost.
        assert!(repaired.iter().all(|repaired| *repaired >= 4) && repeated < 20, "{figures:#?}");
    }
    // Without a cache the example only forwards.
    let (_, figures) = transfer(&forward, ["-c", "0", "-l", "0"], 6, 4_000);
    assert!(figures.iter().all(|said| !said.contains("repeated")), "{figures:#?}");
}
