//! Goodput of SET through three gateways, compared with three simultaneous plain TCP connections
//! over the same paths, with the best of them alone, and with Linux's MPTCP. All are measured one
//! after the other in one run.
//!
//! `cargo xtask campaign deployed-goodput` enforces the full limits on an otherwise idle machine,
//! since other load slows programs more than the kernel's own TCP. As a test the comparison is
//! shorter, and requires half of the limits.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anabranch_core::set::Outcome;
use anabranch_net::set::Push;
use anabranch_testkit::paths::{Path, Paths};
use anabranch_testkit::processors::{Busy, Processors};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::world::*;

/// Duration of the plain connections, similar to that of a transfer. In the campaign it is some
/// fifty times as long as opening and closing a transfer.
fn span() -> Duration {
    Duration::from_secs(if is_campaign() { 6 } else { 2 })
}

/// True if the full limits apply.
fn is_campaign() -> bool {
    std::env::var_os("ANABRANCH_GOODPUT").is_some()
}

/// Debian's default, regardless of the host's.
const CUBIC: &str = "cubic";

/// A path with a queue of 100 ms.
const fn path(kbit_per_s: u32, delay_ms: u64, loss: u32) -> Path {
    Path { kbit_per_s, delay: Duration::from_millis(delay_ms), queue: kbit_per_s / 8 * 100, loss }
}

/// Lower limits of SET's goodput, as fractions of the others.
struct Limits {
    /// Of the sum of the plain connections.
    sum: f64,
    /// Of the plain connection on the first path, which is the best, alone; `None` if not compared.
    best: Option<f64>,
    /// Of MPTCP; `None` if not compared.
    mptcp: Option<f64>,
}

#[test]
fn three_equal_gateways_carry_what_three_connections_carry() {
    compare("equal", &[path(50_000, 10, 0); 3], &Limits { sum: 0.97, best: None, mptcp: Some(1.0) });
}

#[test]
fn three_unequal_gateways_carry_what_three_connections_carry() {
    let paths = [path(50_000, 5, 0), path(20_000, 50, 0), path(5_000, 200, 0)];
    compare("unequal", &paths, &Limits { sum: 0.90, best: Some(0.98), mptcp: None });
}

#[test]
fn three_unequal_gateways_carry_what_three_connections_carry_where_packets_are_lost() {
    let paths = [path(50_000, 5, 0), path(20_000, 50, 10), path(5_000, 200, 30)];
    compare("with loss", &paths, &Limits { sum: 0.90, best: Some(0.98), mptcp: None });
}

/// 1 Gbit/s next to 1 Mbit/s: the slow gateway may add at most a twentieth of the time that the
/// fast one needs alone.
#[test]
fn a_slow_gateway_takes_no_time_from_a_fast_one() {
    let _guard = alone();
    let slow = Path { kbit_per_s: 1_000, delay: Duration::from_millis(40), queue: 12_500, loss: 0 };
    let Some(paths) = Paths::open(&[path(1_000_000, 2, 0), slow]) else { return };
    let octets = if is_campaign() { 200 << 20 } else { 20 << 20 };
    let limit = if is_campaign() { 1.05 } else { 2.0 };
    let (mut attempts, mut busy) = (Vec::new(), Busy::default());
    while attempts.len() < 4 {
        let since = Processors::since_now();
        let (fast, _) = set(&paths, 1, octets);
        let (both, shares) = set(&paths, 2, octets);
        println!(
            "{octets} bytes: {fast:.2} s through the fast gateway, {both:.2} s through both, {shares:?}"
        );
        if both <= fast * limit {
            return;
        }
        attempts.push((fast, both));
        busy.note(&since);
    }
    if !is_campaign() && busy.says_nothing_of("a comparison of rates") {
        return;
    }
    panic!("seconds through the fast gateway and through both, limit {limit}: {attempts:?}");
}

/// Blocks other goodput tests until the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Other load on the machine can only reduce goodput, so the best of several attempts counts.
fn compare(name: &str, paths: &[Path], limits: &Limits) {
    let _guard = alone();
    let Some(paths) = Paths::open(paths) else { return };
    let mptcp = limits.mptcp.filter(|_| paths.announce());
    let mbit = |octets: u64, seconds: f64| octets as f64 * 8e-6 / seconds;
    let (mut attempts, mut busy) = (Vec::new(), Busy::default());
    while attempts.len() < 4 {
        let since = Processors::since_now();
        let each = plain(&paths, 3);
        let octets = each.iter().sum();
        let sum = mbit(octets, span().as_secs_f64());
        let best = limits.best.map(|least| (least, mbit(plain(&paths, 1)[0], span().as_secs_f64())));
        let mptcp = mptcp.map(|least| (least, mbit(octets, multipath(&paths, octets))));
        let (seconds, shares) = set(&paths, paths.addresses().count(), octets as usize);
        let ours = mbit(octets, seconds);
        let others = [Some((limits.sum, sum)), best, mptcp];
        let parts = others.map(|other| other.map(|(least, rate)| (least, rate, ours / rate)));
        println!(
            "{name}: SET {ours:.1} Mbit/s, {shares:?}; {each:?} octets in {:?} by plain connections",
            span()
        );
        for (whose, part) in ["sum", "best", "mptcp"].iter().zip(parts) {
            if let Some((_, rate, ratio)) = part {
                println!("{name}: {whose} {rate:.1} Mbit/s, {ratio:.3}");
            }
        }
        let whole = if is_campaign() { 1.0 } else { 0.5 };
        if parts.iter().flatten().all(|(least, _, ratio)| *ratio >= least * whole) {
            return;
        }
        attempts.push(parts);
        busy.note(&since);
    }
    if !is_campaign() && busy.says_nothing_of("a comparison of rates") {
        return;
    }
    panic!(
        "less than the others (limit, Mbit/s of the sum, the best, MPTCP, ours as part of it): {attempts:?}"
    );
}

/// Bytes delivered within [`span`] by one connection on each of the first paths, all at the same
/// time.
fn plain(paths: &Paths, number: usize) -> Vec<u64> {
    let listeners: Vec<TcpListener> = paths.far(|| {
        paths.addresses().take(number).map(|ip| TcpListener::bind((ip, 0)).expect("a port")).collect()
    });
    let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().expect("it is bound")).collect();
    let over = AtomicBool::new(false);
    let arrived: Vec<AtomicU64> = listeners.iter().map(|_| AtomicU64::new(0)).collect();
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
        for (mut socket, arrived) in receivers.into_iter().zip(&arrived) {
            let over = &over;
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
        on_one_thread(async { tokio::time::sleep(span()).await });
        let octets = arrived.iter().map(|arrived| arrived.load(Ordering::Relaxed)).collect();
        over.store(true, Ordering::Relaxed);
        octets
    })
}

/// Time in seconds to transfer `octets` bytes with MPTCP, from connecting to the final
/// confirmation.
fn multipath(paths: &Paths, octets: u64) -> f64 {
    let socket = || {
        let kind = (AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC);
        socket_with(kind.0, kind.1, kind.2, Some(ipproto::MPTCP)).expect("this kernel has it")
    };
    // Listens on all addresses, because the subflows on the other paths arrive at the same socket.
    let listener = paths.far(|| {
        let listener = socket();
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        listen(&listener, 1).expect("a socket");
        TcpListener::from(listener)
    });
    let port = listener.local_addr().expect("it is bound").port();
    let to = SocketAddrV4::new(paths.addresses().next().expect("a path"), port);
    let sender = paths.near(socket);
    set_tcp_congestion(&sender, CUBIC).expect("every kernel has it");
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = listener.accept().expect("somebody");
            let mut arrived = 0;
            let mut buffer = vec![0; 64 << 10];
            while arrived < octets {
                match socket.read(&mut buffer).expect("it comes to its end") {
                    0 => panic!("{arrived} octets of {octets}"),
                    n => arrived += n as u64,
                }
            }
            socket.write_all(&[1]).expect("somebody waits");
        });
        let started = Instant::now();
        connect(&sender, &to).expect("a way there");
        let mut sender = TcpStream::from(sender);
        let buffer = vec![7; 64 << 10];
        let mut left = octets;
        while left > 0 {
            let n = left.min(buffer.len() as u64);
            sender.write_all(&buffer[..n as usize]).expect("somebody reads");
            left -= n;
        }
        sender.shutdown(Shutdown::Write).expect("it is open");
        sender.read_exact(&mut [0]).expect("an answer");
        started.elapsed().as_secs_f64()
    })
}

/// Time in seconds to transfer a file of `octets` bytes through the gateways of the first
/// `gateways` paths, and the share of each gateway.
fn set(paths: &Paths, gateways: usize, octets: usize) -> (f64, Vec<(u64, u32)>) {
    let (tell, told) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            paths.far(|| {
                let addresses: Vec<IpAddr> = paths.addresses().take(gateways).map(IpAddr::V4).collect();
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
                assert_eq!(outcome, Outcome::Delivered, "{:?}", push.errors());
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
