//! Tests the cost at gateway and node of thousands of callers who do not identify themselves,
//! beside a valid push.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anabranch_testkit::netns::{Broom, done, ip, name, skipped, within};
use tokio::time::Instant;

use crate::deployed::world::*;

/// Number of calls to each.
const CALLERS: usize = 10_000;
/// Number of sockets that the test keeps open; gateway and node permit 64 half-open connections.
const HELD: usize = 400;
/// Limit on the growth of a process in bytes, including a push and 64 half-open connections.
const MOST: u64 = 8 << 20;

/// Private memory of a process in bytes.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("every kernel says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

/// Opens connections that send nothing, the start of a greeting, or endless nonsense. `pause` is
/// called after each.
fn flood(address: &str, callers: usize, pause: impl Fn(usize)) {
    let mut held = VecDeque::new();
    let garbage = [0x5a; 64 << 10];
    for i in 0..callers {
        pause(i);
        // A refused connection is fine.
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
                flood(&address, CALLERS, |_| ());
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
    node.says("connections refused so far: ");
}

/// Refused callers cause a bounded number of log lines, and suppressed lines are reported.
#[test]
fn a_flood_of_callers_writes_less_than_a_kilobyte_a_second() {
    let folder = folder(1);
    let gateway = Daemon::spawn(command(
        folder.path(),
        &["gateway", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535"],
    ));
    for _ in 0..2_000 {
        let Ok(mut socket) = TcpStream::connect(&gateway.address) else { continue };
        let _ = socket.write(&[0x5a; 8]);
    }
    let lines: Vec<String> = std::iter::from_fn(|| gateway.line_within(Duration::from_millis(500))).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert!(!lines.is_empty() && bytes < 2_000, "{bytes} bytes: {lines:?}");
}

/// A sender, a gateway with a node, and strangers, each with a link of its own. The sender's has 20
/// Mbit/s.
struct Links {
    sender: String,
    strangers: String,
    served: String,
    _broom: Broom,
}

impl Links {
    fn new() -> Self {
        let [sender, strangers, served] = ["s", "x", "g"].map(|who| name(&format!("h{who}")));
        let _broom = Broom::new([&sender, &strangers, &served]);
        for netns in [&sender, &strangers, &served] {
            ip(&["netns", "add", netns]);
            ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
        }
        for (subnet, netns) in [(1, &sender), (2, &strangers)] {
            let device = format!("v{subnet}");
            let peer = ["peer", "name", &device, "netns", &served];
            ip(&[&["-n", netns, "link", "add", &device, "type", "veth"], &peer[..]].concat());
            for (netns, host) in [(netns, 1), (&served, 2)] {
                let address = format!("10.77.{subnet}.{host}/24");
                ip(&["-n", netns, "address", "add", &address, "dev", &device]);
                ip(&["-n", netns, "link", "set", "dev", &device, "up"]);
            }
        }
        let shape = [
            "qdisc", "add", "dev", "v1", "root", "tbf", "rate", "20mbit", "burst", "16kb", "limit", "131072",
        ];
        done("tc", &[&["-n", &sender[..]], &shape[..]].concat());
        Self { sender, strangers, served, _broom }
    }
}

/// A push succeeds while 10,000 strangers call its gateway and its node, up to 4,000 per second,
/// and the log stays short. Its speed is only printed, since the strangers and other programs use
/// the processors of this machine.
#[test]
fn a_push_arrives_while_strangers_on_another_link_call() {
    if skipped() {
        return;
    }
    let links = Links::new();
    let folder = folder(5_000_000);
    let allow = ["--allow", "10.77.0.0/16:1-65535"];
    let (gateway, node) = within(&links.served, || {
        let gateway = start(folder.path(), &[&["gateway", "--listen", "0.0.0.0:47201"], &allow[..]].concat());
        let gateways = "10.77.1.2:47201=gateway.pub";
        let node =
            ["node", "--listen", "0.0.0.0:47200", "--gateways", gateways, "--out", "got", "--idle", "60s"];
        (gateway, start(folder.path(), &node))
    });
    let push = || {
        let begin = Instant::now();
        let to = ["push", "file", "--to", "10.77.1.2", "--quiet", "--no-resume", "--restart"];
        let run = within(&links.sender, || command(folder.path(), &to).output().expect("the program starts"));
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        begin.elapsed()
    };
    let alone = push();
    let besieged = thread::scope(|scope| {
        for port in [47_201, 47_200] {
            let strangers = &links.strangers;
            let (_never, wait) = channel::<()>();
            let pause = move |call| {
                if call % 20 == 19 {
                    let _ = wait.recv_timeout(Duration::from_millis(10));
                }
            };
            scope.spawn(move || {
                let _never = _never;
                within(strangers, || flood(&format!("10.77.2.2:{port}"), CALLERS / 2, pause));
            });
        }
        push()
    });
    println!("alone {alone:?}, besieged {besieged:?}: {:.2} of the speed", alone.div_duration_f64(besieged));
    let said: usize = std::iter::from_fn(|| gateway.line_within(Duration::ZERO)).map(|line| line.len()).sum();
    assert!(said < 2_000 + 1_000 * besieged.as_secs() as usize, "{said} bytes of log");
    drop(node);
}
