//! Tests 10,000 concurrent sessions through one gateway, and the memory of an idle session there.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_secure::{Acquaintance, Guard, KeyText, NodeKeys, PublicKey, SecretKey, SenderKeys, WhoMay};
use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::uninterrupted;
use anabranch_wire::set::{Join, Message, Plan, SetSyn, TransferId, encode};
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::programs;

const SESSIONS: usize = 10_000;
/// Number of concurrent calls: less than the gateway's limit on half-open sessions.
const AT_ONCE: usize = 50;
/// Number of descriptors: two per session, and [`SPARE`].
const DESCRIPTORS: u64 = 2 * SESSIONS as u64 + SPARE;
/// Descriptors for the rest of this process: with plain `cargo test` the other tests of this crate
/// run in it too.
const SPARE: u64 = 1_000;
/// Limit on the memory of an idle session at the gateway, in bytes.
const MOST: usize = 8_000;

/// Number of sessions that this host's limit on descriptors permits. A privileged process raises
/// the limit.
fn sessions() -> usize {
    let now = getrlimit(Resource::Nofile);
    let raised =
        Rlimit { current: Some(DESCRIPTORS), maximum: now.maximum.map(|most| most.max(DESCRIPTORS)) };
    if now.current.is_some_and(|most| most < DESCRIPTORS) && setrlimit(Resource::Nofile, raised).is_err() {
        let hard = Rlimit { current: now.maximum, maximum: now.maximum };
        setrlimit(Resource::Nofile, hard).expect("up to the hard limit anybody may");
    }
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    SESSIONS.min(most.saturating_sub(SPARE) as usize / 2 / AT_ONCE * AT_ONCE)
}

/// Private memory of a process in bytes.
fn resident(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("every kernel says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") << 10
}

/// Slab memory of this host's kernel in bytes: sockets, files, and their watchers.
fn slabs() -> usize {
    let info = fs::read_to_string("/proc/meminfo").expect("every kernel has it");
    let line = info.lines().find(|line| line.starts_with("Slab:")).expect("every kernel says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") << 10
}

fn encoded(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    encode(message, &mut octets);
    octets.into()
}

fn key(folder: &Path, name: &str) -> SecretKey {
    let text = fs::read_to_string(folder.join(name)).expect("it is there");
    match &KeyText::all(&text).expect("keys")[..] {
        [KeyText::Secret(key)] => key.clone(),
        keys => panic!("{keys:?}"),
    }
}

/// A greeting number; the numbers of one sender grow.
fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Keys of the sender, after a greeting of the node in memory.
fn sender(own: SecretKey) -> Arc<SenderKeys> {
    let node = SecretKey::from_octets([3; 32]);
    let who = WhoMay { own: Some(node.clone()), senders: vec![own.public()], shared: Vec::new() };
    let sender = SenderKeys::new(own, Acquaintance::Known(node.public()), number);
    let (mut a, mut b) = (Guard::control(&sender).expect("keys"), Guard::node(&NodeKeys::new(who)));
    b.read(a.poll_transmit().expect("a greeting")).expect("it holds");
    a.read(b.poll_transmit().expect("an answer")).expect("it holds");
    sender
}

/// Opens a session and sends its greeting, without waiting for the answer.
fn call(
    sender: &Arc<SenderKeys>,
    gateway: (SocketAddr, PublicKey),
    node: SocketAddr,
    session: u8,
) -> (TcpStream, Guard) {
    let mut guard = Guard::session(sender, gateway.1).expect("the node was greeted");
    let join = Join { transfer: TransferId(7), session, sessions: 255, plan: Plan::Stripe };
    guard.write(encoded(&Message::SetSyn(SetSyn { join, destination: node }))).expect("it is one");
    let mut socket = TcpStream::connect(gateway.0).expect("the gateway listens");
    while let Some(octets) = guard.poll_transmit() {
        socket.write_all(&octets).expect("it is read");
    }
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    (socket, guard)
}

/// Waits for the SETACK.
fn answered((mut socket, mut guard): (TcpStream, Guard)) -> TcpStream {
    loop {
        let mut octets = [0; 256];
        let n = uninterrupted(|| socket.read(&mut octets)).expect("it is answered");
        assert!(n > 0, "the gateway has hung up");
        if let Some(answer) = guard.read(Bytes::copy_from_slice(&octets[..n])).expect("it holds") {
            assert_eq!(answer[0], 0x60, "the session is open");
            return socket;
        }
    }
}

#[test]
fn ten_thousand_sessions_through_one_gateway_hold() {
    let sessions = sessions();
    if sessions < SESSIONS {
        println!("SHORTENED: {sessions} sessions, as this host allows no {DESCRIPTORS} descriptors");
    }
    let folder = TempDir::new().expect("a temporary folder");
    let program = |name: &str| {
        let mut command = programs::command(name);
        command.current_dir(folder.path()).stdin(Stdio::null());
        command
    };
    let made = program("key").args(["new", "sender", "gateway"]).output().expect("the program starts");
    assert!(made.status.success());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let node = listener.local_addr().expect("it is bound");
    let arguments = ["--listen", "127.0.0.1:0", "--allow", "127.0.0.1:1-65535", "--key", "gateway.key"];
    let limits = [
        "--senders",
        "sender.pub",
        "--connections",
        "10000",
        "--per-node",
        "10000",
        "--memory",
        "320 MiB",
        // On a busy machine the last session opens late, and the first one waits for it.
        "--idle",
        "1 h",
        "--quiet",
    ];
    let mut gateway = program("gateway");
    gateway.args(arguments).args(limits);
    let gateway = Daemon::spawn(gateway);
    let address = gateway.address.parse().expect("it says where");

    let there = (address, key(folder.path(), "gateway.key").public());
    let own = key(folder.path(), "sender.key");
    let (before, slabs_before) = (resident(gateway.child.id()), slabs());
    let accepting = thread::spawn(move || -> Vec<TcpStream> {
        (0..sessions).map(|_| listener.accept().expect("the gateway calls").0).collect()
    });
    let mut near = Vec::new();
    while near.len() < sessions {
        // Session numbers must not repeat with the same keys.
        let sender = sender(own.clone());
        let calls: Vec<_> = (0..AT_ONCE as u8).map(|n| call(&sender, there, node, n)).collect();
        near.extend(calls.into_iter().map(answered));
    }
    let mut far = accepting.join().expect("all have come");
    let each = (resident(gateway.child.id()) - before) / sessions;
    // Half of the sockets are not the gateway's. The kernel's memory is only printed: other
    // programs have slabs too.
    let kernel = slabs().saturating_sub(slabs_before) / sessions / 2;
    println!(
        "{sessions} sessions: {each} octets each at the gateway, and about {kernel} of the kernel's for its two sockets"
    );

    // Identifies each session by JOIN, the first record, and a number.
    for (i, socket) in near.iter_mut().enumerate() {
        socket.write_all(&(i as u32).to_be_bytes()).expect("it holds");
    }
    let mut seen = vec![false; sessions];
    for socket in &mut far {
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let mut octets = [0; JOIN + JOIN + 18 + 4];
        socket.read_exact(&mut octets).expect("it holds");
        let (_, number) = octets.split_last_chunk().expect("four octets");
        seen[u32::from_be_bytes(*number) as usize] = true;
        socket.write_all(number).expect("it holds");
    }
    assert!(seen.iter().all(|seen| *seen), "some session is not there");
    for (i, socket) in near.iter_mut().enumerate() {
        let mut number = [0; 4];
        socket.read_exact(&mut number).expect("it holds");
        assert_eq!(u32::from_be_bytes(number) as usize, i, "a session has another's octets");
    }
    assert!(each <= MOST, "{each} octets for an idle session");
}

/// Length of a JOIN in bytes.
const JOIN: usize = 11;
