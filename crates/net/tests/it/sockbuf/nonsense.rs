//! Tests of invalid input: it yields a clear error, or is ignored and counted, and nothing hangs.

use std::fs::File;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_core::sockbuf::{ConfigError, ConnectionId, Gains, PidConfig, PolicyConfig};
use anabranch_core::time;
use anabranch_net::buffers::{LEAST_SEND_BUFFER, send_buffer};
use anabranch_net::clock::Clock;
use anabranch_net::sockbuf::{AddError, Config, Tuner, run};
use anabranch_net::tcp_info::TcpInfo;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketType, socket};

use super::{OVERRUN, connected, tuner};

/// Memory of a socket outside the pool: the smallest buffer and the overrun.
const OWN: u64 = LEAST_SEND_BUFFER + OVERRUN;
const ALL: PolicyConfig = PolicyConfig::Fixed(u64::MAX);

fn at(ms: u64) -> time::Instant {
    time::Instant::ZERO + time::Duration::from_millis(ms)
}

#[test]
fn a_budget_of_nothing_and_gains_that_are_no_numbers() {
    let refused = |threshold, policy| {
        let pool = anabranch_core::sockbuf::Config { threshold, policy, ..Default::default() };
        Tuner::new(at(0), Config::new(pool)).unwrap_err()
    };
    assert_eq!(refused(0, ALL), ConfigError::Threshold(0));
    let gains = Gains { kp: f64::NAN, ..Gains::DAMPED };
    let error = refused(2_000_000, PolicyConfig::Pid(PidConfig { gains, ..PidConfig::paper() }));
    assert_eq!(error.to_string(), "the gain kp must be 0 to 1000, not NaN");
}

#[test]
fn a_budget_smaller_than_the_least_for_each() {
    let ((first, _a), (second, _b), (third, _c)) = (connected(), connected(), connected());
    let segment = 2 * u64::from(TcpInfo::read(&first).unwrap().snd_mss);
    let least = OWN + segment;
    let mut tuner = tuner(2 * least, ALL);
    let before = send_buffer(&third).unwrap();
    // Together they do not fit, so none of them is added.
    let sockets = [Arc::clone(&first), Arc::clone(&second), Arc::clone(&third)];
    let error = tuner.add_striped(&sockets).unwrap_err();
    let said =
        format!("the sockets need at least {} bytes, more than the budget of {} bytes", 3 * least, 2 * least);
    assert_eq!(error.to_string(), said);
    assert_eq!((send_buffer(&first).unwrap(), tuner.totals().sockets), (before, 0));
    // Two fit and use the whole budget; the third one is refused in both calls.
    let id = tuner.add(&first).unwrap();
    tuner.add(&second).unwrap();
    assert!(matches!(tuner.add(&third), Err(AddError::Full { needed, .. }) if needed == 3 * least));
    assert!(matches!(tuner.attach(id, &third), Err(AddError::Full { needed, .. }) if needed == 3 * least));
    assert_eq!(send_buffer(&third).unwrap(), before);
    assert_eq!(tuner.totals().limits, 2 * least);
    tuner.remove(id);
    tuner.add(&third).unwrap();
    tuner.step(at(0));
    assert_eq!((tuner.totals().sockets, tuner.totals().limits), (2, 2 * least));
}

#[test]
fn what_is_no_connection() {
    let mut tuner = tuner(2_000_000, ALL);
    let none: [Arc<TcpStream>; 0] = [];
    assert!(matches!(tuner.add_striped(&none), Err(AddError::NoSocket)));
    let file = Arc::new(File::open("/dev/null").unwrap());
    let udp = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let idle = Arc::new(socket(AddressFamily::INET, SocketType::STREAM, None).unwrap());
    for error in [tuner.add(&file), tuner.add(&udp), tuner.add(&idle)] {
        assert!(matches!(error, Err(AddError::Socket(_))), "{error:?}");
    }
    let (here, _there) = connected();
    assert!(matches!(tuner.attach(ConnectionId(9), &here), Err(AddError::Unknown(ConnectionId(9)))));
    assert_eq!((tuner.totals().sockets, tuner.next_timeout(at(0))), (0, None));
    tuner.step(at(0));
    tuner.remove(ConnectionId(9));
    assert_eq!(tuner.counters().pool.unknown, 1);
    // The whole budget is still available.
    let id = tuner.add(&here).unwrap();
    let (other, _peer) = connected();
    let twice = [Arc::clone(&other), Arc::clone(&other)];
    assert!(matches!(tuner.add(&here), Err(AddError::Held)));
    assert!(matches!(tuner.attach(id, &here), Err(AddError::Held)));
    assert!(matches!(tuner.add_striped(&twice), Err(AddError::Held)));
    tuner.step(at(1));
    assert_eq!(tuner.totals().limits, 2_000_000);
}

#[test]
fn reports_that_are_no_bandwidth() {
    let ((first, _a), (second, _b)) = (connected(), connected());
    let mut tuner = tuner(2_000_000, PolicyConfig::Pid(PidConfig::paper()));
    let sockets = [first, second];
    let id = tuner.add_striped(&sockets).unwrap();
    tuner.report(id, 0, 5e6);
    for nonsense in [f64::NAN, -1.0, f64::INFINITY, f64::NEG_INFINITY, 1e16] {
        tuner.report(id, 0, nonsense);
    }
    tuner.report(id, 2, 5e6);
    tuner.report(ConnectionId(id.0 + 1), 0, 5e6);
    assert_eq!(tuner.counters().bad_reports, 7);
    let bandwidths: Vec<_> = tuner.flows().map(|flow| flow.bandwidth).collect();
    assert_eq!((bandwidths.len(), bandwidths[0]), (2, Some(5e6)));
    for ms in 0..50 {
        tuner.step(at(100 * ms));
    }
    assert_eq!(tuner.counters().pool.bad_bandwidths, 0);
    assert!(tuner.counters().pool.decisions > 5 && tuner.totals().sockets == 2);
}

#[test]
fn a_socket_that_its_owner_drops() {
    let ((first, _a), (second, mut peer)) = (connected(), connected());
    let mut tuner = tuner(1_000_000, ALL);
    tuner.add(&first).unwrap();
    tuner.add(&second).unwrap();
    tuner.step(at(0));
    let half = send_buffer(&first).unwrap();
    assert!(half < 600_000, "{half}");
    drop(second);
    // The tuner holds no descriptor of the socket: the peer sees the end of the stream.
    assert_eq!(std::io::Read::read(&mut peer, &mut [0]).unwrap(), 0);
    tuner.step(at(500));
    assert_eq!((tuner.counters().dropped, tuner.totals().sockets), (1, 1));
    tuner.step(at(1000));
    assert_eq!(send_buffer(&first).unwrap(), 1_000_000 - OVERRUN, "what it had is free");
}

#[test]
fn a_connection_that_the_peer_resets() {
    let ((first, _a), (second, peer)) = (connected(), connected());
    let mut tuner = tuner(1_000_000, PolicyConfig::Atbt);
    let id = tuner.add_striped(&[Arc::clone(&first), Arc::clone(&second)]).unwrap();
    (&*second).write_all(&[1; 10_000]).unwrap();
    set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
    tuner.step(at(0));
    assert_eq!((tuner.counters().closed, tuner.totals().sockets), (1, 1));
    tuner.report(id, 1, 5e6);
    assert_eq!(tuner.counters().bad_reports, 1);
    // An interface that returns gets a new number.
    let (third, _c) = connected();
    assert_eq!(tuner.attach(id, &third).unwrap(), 2);
    drop((first, third));
    tuner.step(at(1));
    assert!(matches!(tuner.attach(id, &second), Err(AddError::Unknown(_))), "nothing is left of it");
    assert_eq!(
        (tuner.counters().dropped, tuner.connections().len(), tuner.next_timeout(at(1))),
        (2, 0, None)
    );
}

/// A descriptor that is closed although it is borrowed.
struct Torn(RawFd);

impl AsFd for Torn {
    #[expect(unsafe_code, reason = "what must not happen is what is tried")]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: none. The number is so high that no other descriptor gets it meanwhile, so the
        // kernel returns EBADF.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

#[test]
fn a_descriptor_that_is_closed_under_the_tuner() {
    let (socket, _peer) = connected();
    let (other, _other_peer) = connected();
    let duplicate = fcntl_dupfd_cloexec(&*socket, 900).unwrap();
    let torn = Arc::new(Torn(duplicate.as_raw_fd()));
    let mut tuner = tuner(1_000_000, ALL);
    tuner.add(&torn).unwrap();
    tuner.add(&other).unwrap();
    drop(duplicate);
    // A size for a removed socket, and a reading of it.
    tuner.step(at(0));
    assert_eq!((tuner.counters().unreadable, tuner.totals().sockets), (1, 1));
    tuner.step(at(500));
    assert_eq!(send_buffer(&other).unwrap(), 1_000_000 - OVERRUN);
}

#[test]
fn the_driver_goes_on_whatever_becomes_of_its_sockets() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tuner = Arc::new(Mutex::new(tuner(1_000_000, ALL)));
        let driver = tokio::spawn({
            let tuner = Arc::clone(&tuner);
            async move { run(&tuner, Clock::start()).await }
        });
        let (first, _a) = connected();
        let (second, _b) = connected();
        tuner.lock().unwrap().add(&first).unwrap();
        tuner.lock().unwrap().add(&second).unwrap();
        drop(second);
        let free = 1_000_000 - OVERRUN;
        let grown = async {
            while send_buffer(&first).unwrap() != free {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), grown).await.expect("it goes on");
        assert_eq!(tuner.lock().unwrap().counters().dropped, 1);
        driver.abort();
        assert!(driver.await.unwrap_err().is_cancelled());
    });
}
