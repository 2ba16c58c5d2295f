//! Two network namespaces, and paths of a rate and a delay between them, for tests with the kernel's sockets.
//!
//! Each path is a pair of veth devices. What the near end sends goes through `tc tbf`. What comes back goes over a pair of TUN
//! devices and waits between them: few kernels that tests run on have `netem`, and acknowledgements alone are few enough
//! to be held by us. So all of a path's delay is on its way back.

#![expect(clippy::disallowed_types, reason = "real packets wait in real time")]

use std::collections::VecDeque;
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::debian::find_or_install;
use crate::netns::{self, Broom, name, run, text, within};

/// One path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Octets of Ethernet, of what the near end sends, as kbit/s.
    pub kbit_per_s: u32,
    /// The least round trip.
    pub delay: Duration,
    /// Octets that wait at most for the rate.
    pub queue: u32,
}

/// Namespaces and paths. They go when this is dropped, or this process is gone.
#[derive(Debug)]
pub struct Paths {
    near: String,
    far: String,
    number: usize,
    line: Option<(JoinHandle<()>, PipeWriter)>,
    _broom: Broom,
}

impl Paths {
    /// Sets them up; `what` tells those of one process apart. `None`, and said, if that is not possible here.
    ///
    /// # Panics
    /// If the kernel refuses what it usually allows.
    pub fn open(what: &str, paths: &[Path]) -> Option<Self> {
        if netns::skipped() || find_or_install("tc", "iproute2").is_none() {
            return None;
        }
        let (near, far) = (name(&format!("{what}n")), name(&format!("{what}f")));
        let broom = Broom::new([&near, &far]);
        for netns in [&near, &far] {
            ip(&["netns", "add", netns]);
            ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
            within(netns, || {
                // What comes back comes by another device than what goes there.
                for file in ["conf/all/rp_filter", "conf/default/rp_filter"] {
                    sysctl(file, "0");
                }
                // No connection learns from the last.
                sysctl("tcp_no_metrics_save", "1");
            });
        }
        let mut held = Vec::new();
        for (i, path) in paths.iter().enumerate() {
            held.push(open(&near, &far, i, path));
        }
        let (stopped, stop) = io::pipe().expect("a pipe");
        let line = thread::spawn(move || delay(held, &stopped));
        Some(Self { near, far, number: paths.len(), line: Some((line, stop)), _broom: broom })
    }

    /// Does something where data is sent from.
    pub fn near<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> T {
        within(&self.near, deed)
    }

    /// Does something where data is sent to.
    pub fn far<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> T {
        within(&self.far, deed)
    }

    /// The far end's address on each path.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        (0..self.number).map(|i| address(i, 2))
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        if let Some((line, stop)) = self.line.take() {
            drop(stop);
            let _ = line.join();
        }
    }
}

/// What waits on one path.
struct Held {
    from: SyncDevice,
    to: SyncDevice,
    delay: Duration,
    packets: VecDeque<(Instant, Vec<u8>)>,
}

fn address(path: usize, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(path).expect("few paths"), end)
}

fn open(near: &str, far: &str, i: usize, path: &Path) -> Held {
    let (veth, tun) = (format!("p{i}"), format!("d{i}"));
    ip(&["-n", near, "link", "add", &veth, "type", "veth", "peer", "name", &veth, "netns", far]);
    for (netns, end) in [(near, 1), (far, 2)] {
        ip(&["-n", netns, "address", "add", &format!("{}/24", address(i, end)), "dev", &veth]);
        ip(&["-n", netns, "link", "set", "dev", &veth, "up"]);
    }
    let (rate, queue) = (format!("{}kbit", path.kbit_per_s), path.queue.to_string());
    let shape = ["-n", near, "qdisc", "add", "dev", &veth, "root", "tbf", "rate", &rate];
    done("tc", &[&shape[..], &["burst", "16kb", "limit", &queue]].concat());
    let [to, from] = [near, far].map(|netns| {
        let device = within(netns, || DeviceBuilder::new().name(&tun).build_sync());
        let device = device.expect("root may make devices");
        device.set_nonblocking(true).expect("a device can be asked without waiting");
        ip(&["-n", netns, "link", "set", "dev", &tun, "up"]);
        within(netns, || sysctl(&format!("conf/{tun}/rp_filter"), "0"));
        device
    });
    ip(&["-n", far, "route", "add", &format!("{}/32", address(i, 1)), "dev", &tun]);
    Held { from, to, delay: path.delay, packets: VecDeque::new() }
}

/// Holds packets until their time has come; until `stopped` is closed.
fn delay(mut paths: Vec<Held>, stopped: &PipeReader) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let now = Instant::now();
        for Held { from, to, delay, packets } in &mut paths {
            while packets.front().is_some_and(|(due, _)| *due <= now) {
                // What the kernel does not take is lost, as on any path.
                let _ = packets.pop_front().map(|(_, packet)| to.send(&packet));
            }
            while let Ok(len) = from.recv(&mut buffer) {
                packets.push_back((Instant::now() + *delay, buffer[..len].to_vec()));
            }
        }
        let due = paths.iter().filter_map(|path| Some(path.packets.front()?.0)).min();
        let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
        let wait = wait.map(|wait| Timespec::try_from(wait).expect("a short time"));
        let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
        fds.extend(paths.iter().map(|path| PollFd::from_borrowed_fd(path.from.as_fd(), PollFlags::IN)));
        let _ = poll(&mut fds, wait.as_ref());
        if !fds[0].revents().is_empty() {
            return;
        }
    }
}

fn sysctl(file: &str, value: &str) {
    fs::write(format!("/proc/sys/net/ipv4/{file}"), value).expect("root may set this");
}

fn ip(arguments: &[&str]) {
    done("ip", arguments);
}

#[track_caller]
fn done(program: &str, arguments: &[&str]) {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
}
