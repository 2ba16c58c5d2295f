//! Thousands who call and do not say who they are, beside a good push: what that costs gateway and node.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::deployed::world::*;

/// Calls to each.
const CALLERS: usize = 10_000;
/// Sockets of ours that are open at once; the gateway and the node let 64 be half open.
const HELD: usize = 400;
/// Octets by which a process may grow, with all that a push needs and 64 half-open connections may hold.
const MOST: u64 = 8 << 20;

/// Octets of memory that a process has to itself.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("every kernel says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

/// Some say nothing, some the beginning of a greeting, some nonsense without end.
fn flood(address: &str) {
    let mut held = VecDeque::new();
    let garbage = [0x5a; 64 << 10];
    for i in 0..CALLERS {
        // Whoever is not let in has nothing to complain of.
        let Ok(mut socket) = TcpStream::connect(address) else { continue };
        socket.set_nonblocking(true).expect("a socket");
        let _ = match i % 3 {
            0 => Ok(0),
            1 => socket.write(&[0xb0, 0, 96, 1, 2, 3]),
            _ => socket.write(&garbage),
        };
        held.push_back(socket);
        if held.len() > HELD {
            held.pop_front();
        }
    }
}

#[test]
fn ten_thousand_callers_each_cost_gateway_and_node_no_memory_and_the_push_nothing() {
    let octets = 30_000_000;
    let folder = folder(octets);
    let gateway = gateway(folder.path());
    let listen = ["node", "--listen", "127.0.0.1:0", "--gateways", &gateway.known(), "--out", "got"];
    let node = start(folder.path(), &listen);
    let push = || {
        let run =
            push(folder.path(), &["file", "--to", &node.address, "--quiet", "--no-resume", "--restart"]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        assert!(fs::read(folder.path().join("got")).expect("it is there") == contents(octets));
        fs::remove_file(folder.path().join("got")).expect("it is there");
    };
    let processes = [gateway.child.id(), node.child.id()];
    let before = processes.map(resident);
    let (done, over) = channel::<()>();
    let most = thread::scope(|scope| {
        let look = scope.spawn(move || {
            let mut most = before;
            while over.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                let now = processes.map(resident);
                most = [most[0].max(now[0]), most[1].max(now[1])];
            }
            most
        });
        for daemon in [&gateway, &node] {
            let (address, done) = (daemon.address.clone(), done.clone());
            scope.spawn(move || {
                flood(&address);
                drop(done);
            });
        }
        push();
        drop(done);
        look.join().expect("both are there")
    });
    push();
    println!("gateway and node: {before:?} octets before, {most:?} at most");
    for (before, most) in before.into_iter().zip(most) {
        assert!(most < before + MOST, "{before} octets before, {most} at most");
    }
    node.says("connections refused until now: ");
}
