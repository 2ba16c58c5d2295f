//! Tests that recorded messages are refused, also by a restarted gateway and node.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anabranch_testkit::tmpfs::Tmpfs;
use anabranch_testkit::{netns, uninterrupted};

use crate::deployed::world::*;

/// Records the first bytes that a push sends to a gateway or a node; the push is then killed.
/// `HERE` in `arguments` stands for the test's address.
fn recorded(folder: &std::path::Path, arguments: &[&str]) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = listener.local_addr().expect("it is bound").to_string();
    let arguments: Vec<String> = arguments.iter().map(|text| text.replace("HERE", &here)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut push = command(folder, &arguments).spawn().expect("the program starts");
    let (mut socket, _) = listener.accept().expect("it calls");
    let mut greeting = vec![0; 1 << 10];
    let n = socket.read(&mut greeting).expect("it speaks first");
    push.kill().expect("it is ours");
    push.wait().expect("it is ours");
    greeting.truncate(n);
    greeting
}

/// Sends recorded bytes and returns the length of the answer.
fn replay(address: &str, octets: &[u8]) -> usize {
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.write_all(octets).expect("the kernel takes it");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    // A reset counts as an answer of no bytes.
    uninterrupted(|| socket.read(&mut [0; 1 << 10])).unwrap_or_default()
}

/// A daemon with a fixed port, since its stored state belongs to the port.
fn fixed(folder: &std::path::Path, arguments: &[&str]) -> Daemon {
    let free = TcpListener::bind(home()).and_then(|free| free.local_addr()).expect("a port");
    let listen = free.to_string();
    start(folder, &[&[arguments[0], "--listen", &listen], &arguments[1..]].concat())
}

#[test]
fn a_recorded_greeting_is_served_once_across_restarts() {
    // Longer than a file that needs no gateway.
    let folder = folder(2_000);
    let allow = ["--allow", "127.0.0.0/8:1-65535"];
    let gateway = fixed(folder.path(), &["gateway", allow[0], allow[1]]);
    let node = fixed(folder.path(), &["node", "--out", "got"]);
    let to_node = recorded(folder.path(), &["push", "file", "--to", "HERE", "--quiet"]);
    let push = ["push", "file", "--to", &node.address, "--via", "HERE=gateway.pub", "--quiet"];
    let to_gateway = recorded(folder.path(), &push);
    assert!(replay(&node.address, &to_node) > 0, "the first time it may be the sender");
    assert!(replay(&gateway.address, &to_gateway) > 0, "the first time it may be the sender");
    let (at_gateway, at_node) = (gateway.address.clone(), node.address.clone());
    let again = || (replay(&at_gateway, &to_gateway), replay(&at_node, &to_node));
    assert_eq!(again(), (0, 0));
    drop((gateway, node));
    let _gateway = start(folder.path(), &["gateway", "--listen", &at_gateway, allow[0], allow[1]]);
    let node = start(folder.path(), &["node", "--listen", &at_node, "--out", "got"]);
    assert_eq!(again(), (0, 0));
    node.says("replayed");
    // The real sender is served at once.
    let via = format!("{at_gateway}=gateway.pub");
    let run = self::push(folder.path(), &["file", "--to", &at_node, "--via", &via, "--quiet", "--restart"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
}

/// Stored numbers count even while no further ones can be stored.
#[test]
fn a_recorded_greeting_is_not_served_after_a_restart_with_a_full_disk() {
    if netns::skipped() {
        return;
    }
    let folder = folder(1_000);
    let state = folder.path().join("numbers");
    std::fs::create_dir(&state).expect("a folder");
    let disk = Tmpfs::mount(&state, 32 << 10);
    let node = fixed(folder.path(), &["node", "--out", "got", "--state", "numbers"]);
    let greeting = recorded(folder.path(), &["push", "file", "--to", "HERE", "--quiet"]);
    assert!(replay(&node.address, &greeting) > 0, "the first time it may be the sender");
    let address = node.address.clone();
    drop(node);
    std::fs::write(state.join("full"), vec![0; 64 << 10]).expect_err("the disk is full");
    let node = start(folder.path(), &["node", "--listen", &address, "--out", "got", "--state", "numbers"]);
    assert!(node.preface.concat().contains("a folder that this user can write"), "{:?}", node.preface);
    assert_eq!(replay(&address, &greeting), 0);
    // A running node also refuses later numbers that were recorded.
    let later = recorded(folder.path(), &["push", "file", "--to", "HERE", "--quiet"]);
    assert!(replay(&address, &later) > 0);
    assert_eq!(replay(&address, &later), 0);
    drop((node, disk));
}
