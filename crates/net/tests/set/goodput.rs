//! Issue 7, point 2: what SET brings through three gateways against what three plain TCP connections bring over the same
//! paths at once, one after the other in one run.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anabranch_core::set::Outcome;
use anabranch_net::set::Push;
use anabranch_testkit::paths::{Path, Paths};
use rustix::net::sockopt::set_tcp_congestion;
use tokio::sync::oneshot;

use crate::world::*;

/// How long the plain connections run, and about as long as a transfer takes: some fifty times its opening and its end.
const SPAN: Duration = Duration::from_secs(6);

/// Debian's default, whatever this host's is.
const CUBIC: &str = "cubic";

/// With a queue of 100 ms.
const fn path(kbit_per_s: u32, delay_ms: u64) -> Path {
    Path { kbit_per_s, delay: Duration::from_millis(delay_ms), queue: kbit_per_s / 8 * 100 }
}

#[test]
fn three_equal_gateways_carry_what_three_connections_carry() {
    compare("se", &[path(50_000, 10), path(50_000, 10), path(50_000, 10)], 0.97);
}

#[test]
fn three_unequal_gateways_carry_what_three_connections_carry() {
    compare("su", &[path(50_000, 5), path(20_000, 50), path(5_000, 200)], 0.90);
}

/// What else runs on this machine can only take from either: the best of some attempts counts.
fn compare(name: &str, paths: &[Path], least: f64) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(paths) = Paths::open(name, paths) else { return };
    let mut ratios = Vec::new();
    while ratios.len() < 4 && !ratios.iter().any(|ratio| *ratio >= least) {
        let octets = plain(&paths);
        let (seconds, shares) = set(&paths, octets as usize);
        let ratio = SPAN.as_secs_f64() / seconds;
        let plain = octets as f64 * 8e-6 / SPAN.as_secs_f64();
        let ours = octets as f64 * 8e-6 / seconds;
        println!("{name}: plain {plain:.1} Mbit/s, SET {ours:.1} ({ratio:.3}), {shares:?}");
        ratios.push(ratio);
    }
    assert!(ratios.iter().any(|ratio| *ratio >= least), "less than {least} of plain connections: {ratios:?}");
}

/// Octets that one connection on each path has brought within [`SPAN`], all at once.
fn plain(paths: &Paths) -> u64 {
    let listeners: Vec<TcpListener> =
        paths.far(|| paths.addresses().map(|ip| TcpListener::bind((ip, 0)).expect("a port")).collect());
    let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().expect("it is bound")).collect();
    let (arrived, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let senders: Vec<TcpStream> =
        paths.near(|| ports.iter().map(|to| TcpStream::connect(to).expect("a way there")).collect());
    senders.iter().for_each(|socket| set_tcp_congestion(socket, CUBIC).expect("every kernel has it"));
    let receivers: Vec<TcpStream> = listeners.iter().map(|l| l.accept().expect("somebody").0).collect();
    thread::scope(|scope| {
        for mut socket in senders {
            let over = &over;
            scope.spawn(move || {
                let octets = vec![7; 64 << 10];
                socket.set_write_timeout(Some(Duration::from_millis(100))).expect("a socket");
                while !over.load(Ordering::Relaxed) {
                    match socket.write(&octets) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(_) => return,
                    }
                }
            });
        }
        for mut socket in receivers {
            let (over, arrived) = (&over, &arrived);
            scope.spawn(move || {
                let mut octets = vec![0; 64 << 10];
                socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
                while !over.load(Ordering::Relaxed) {
                    if let Ok(n) = socket.read(&mut octets) {
                        arrived.fetch_add(n as u64, Ordering::Relaxed);
                    }
                }
            });
        }
        on_one_thread(async { tokio::time::sleep(SPAN).await });
        let octets = arrived.load(Ordering::Relaxed);
        over.store(true, Ordering::Relaxed);
        octets
    })
}

/// How long a file of so many octets takes, and what each gateway was given of it.
fn set(paths: &Paths, octets: usize) -> (f64, Vec<(u64, u32)>) {
    let (tell, told) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            paths.far(|| {
                let addresses: Vec<IpAddr> = paths.addresses().map(IpAddr::V4).collect();
                on_one_thread(async {
                    let start = |ip: &IpAddr| {
                        let rule = "10.77.0.0/16:1-65535".parse().expect("a rule");
                        gateway_with(*ip, |config| config.allow = vec![rule])
                    };
                    let gateways: Vec<Running> = addresses.iter().map(start).collect();
                    let node = node(addresses[0], &gateways.iter().collect::<Vec<_>>());
                    tell.send(node.address).expect("somebody waits");
                    let _ = stopped.await;
                    assert!(node.sink.look().octets == contents(octets), "that is not the file");
                });
            });
        });
        let result = paths.near(|| {
            let mut result = (0.0, Vec::new());
            on_one_thread(async {
                let node = told.await.expect("it is there");
                let mut config = config(node);
                config.sockets.congestion = Some(CUBIC);
                let (outcome, push) = run(Push::new(config, contents(octets)), |_| {}).await;
                assert_eq!(outcome, Outcome::Delivered, "{:?}", push.error());
                let seconds = push.latency().expect("it was delivered").as_secs_f64();
                let shares = push.sessions().map(|s| (s.written, push.retransmissions(s.stream)));
                result = (seconds, shares.collect());
            });
            result
        });
        stop.send(()).expect("it waits");
        far.join().expect("the file was the file");
        result
    })
}
