//! Two network namespaces, connected by paths with a rate, a delay and a loss, for tests with the
//! kernel's sockets.
//!
//! Each path is a pair of veth devices. Packets of the near end pass `tc tbf`. Packets of the far
//! end go over a pair of TUN devices, between which this process delays them: `netem` is missing in
//! many kernels that run tests, and acknowledgements are few enough to be handled here. So the
//! whole delay of a path is on its way back.
//!
//! A path with loss has no veth devices: both directions use TUN devices, and each packet is lost
//! with the same probability, after the queue. Such a path must be slow enough for this process to
//! forward its packets one by one.

#![expect(clippy::disallowed_types, reason = "real packets wait in real time")]

use std::collections::VecDeque;
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::debian::{find_or_install, skipped};
use crate::netns::{self, Broom, done, ip, name, run, within};
use crate::priority;
use crate::prng::Prng;

/// One path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Rate from the near end, in kbit/s of Ethernet frames.
    pub kbit_per_s: u32,
    /// Minimum round-trip time.
    pub delay: Duration,
    /// Length of the rate limiter's queue in bytes.
    pub queue: u32,
    /// Loss probability of each direction, per mille.
    pub loss: u32,
}

/// The namespaces with their paths. They are removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Paths {
    near: String,
    far: String,
    number: usize,
    line: Option<(JoinHandle<()>, PipeWriter)>,
    _broom: Broom,
}

impl Paths {
    /// Creates namespaces and paths. Prints that the test is skipped and returns `None` if that is
    /// not possible here.
    ///
    /// # Panics
    /// The kernel refuses an operation that it usually permits.
    pub fn open(paths: &[Path]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if netns::skipped() || find_or_install("tc", "iproute2").is_none() {
            return None;
        }
        let number = NEXT.fetch_add(1, Relaxed);
        let (near, far) = (name(&format!("p{number}n")), name(&format!("p{number}f")));
        let broom = Broom::new([&near, &far]);
        for netns in [&near, &far] {
            ip(&["netns", "add", netns]);
            ip(&["-n", netns, "link", "set", "dev", "lo", "up"]);
            within(netns, || {
                // The return packets arrive on a different device than the one packets leave on,
                // which the reverse path filter would drop.
                for file in ["conf/all/rp_filter", "conf/default/rp_filter"] {
                    sysctl(file, "0");
                }
                // Connections must not use metrics cached from earlier ones.
                sysctl("tcp_no_metrics_save", "1");
            });
        }
        let ways = paths.iter().enumerate().flat_map(|(i, path)| open(&near, &far, i, path)).collect();
        let (stopped, stop) = io::pipe().expect("a pipe");
        let line = thread::spawn(move || {
            // Packets that wait for a processor would have a longer round trip than configured.
            priority::real_time();
            delay(ways, &stopped);
        });
        Some(Self { near, far, number: paths.len(), line: Some((line, stop)), _broom: broom })
    }

    /// Runs `deed` in the namespace that sends.
    pub fn near<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> T {
        within(&self.near, deed)
    }

    /// Names of the namespaces that send and receive.
    pub fn names(&self) -> [&str; 2] {
        [&self.near, &self.far]
    }

    /// Runs `deed` in the namespace that receives.
    pub fn far<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> T {
        within(&self.far, deed)
    }

    /// Lets MPTCP connections from the near end to the first path's address use all paths: the far
    /// end announces its other addresses. Prints a message and returns false if the kernel or its
    /// `ip` has no MPTCP.
    pub fn announce(&self) -> bool {
        let subflows = self.number.saturating_sub(1).to_string();
        let limits = ["mptcp", "limits", "set", "subflows", &subflows, "add_addr_accepted", &subflows];
        let limited = [&self.near, &self.far]
            .map(|netns| run("ip", &[&["-n", netns], &limits[..]].concat()).status.success());
        if limited != [true; 2] {
            skipped("this kernel has no MPTCP, or `ip` does not know it: nothing is compared with it");
            return false;
        }
        for to in self.addresses().skip(1) {
            ip(&["-n", &self.far, "mptcp", "endpoint", "add", &to.to_string(), "signal"]);
        }
        true
    }

    /// Address of the far end on each path.
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

/// One direction of packets that this process forwards.
struct Way {
    from: Arc<SyncDevice>,
    to: Arc<SyncDevice>,
    delay: Duration,
    loss: u32,
    luck: Prng,
    packets: VecDeque<(Instant, Vec<u8>)>,
}

impl Way {
    fn new(from: &Arc<SyncDevice>, to: &Arc<SyncDevice>, delay: Duration, loss: u32, seed: u64) -> Self {
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        Self { from, to, delay, loss, luck: Prng::new(seed), packets: VecDeque::new() }
    }

    fn carry(&mut self, buffer: &mut [u8]) {
        while let Ok(len) = self.from.recv(buffer) {
            if self.luck.below(1000) >= u64::from(self.loss) {
                self.packets.push_back((Instant::now() + self.delay, buffer[..len].to_vec()));
            }
        }
        let now = Instant::now();
        while let Some((_, packet)) = self.packets.pop_front_if(|(due, _)| *due <= now) {
            // A packet that the kernel refuses is lost, as on any path.
            let _ = self.to.send(&packet);
        }
    }
}

fn address(path: usize, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(path).expect("few paths"), end)
}

/// Length of an Ethernet header, which `tc` does not see on a TUN device.
const ETHERNET: &str = "14";

fn open(near: &str, far: &str, i: usize, path: &Path) -> Vec<Way> {
    let tun = format!("d{i}");
    let [to, from] = [near, far].map(|netns| {
        let device = within(netns, || DeviceBuilder::new().name(&tun).build_sync());
        let device = device.expect("root may make devices");
        device.set_nonblocking(true).expect("a device can be asked without waiting");
        ip(&["-n", netns, "link", "set", "dev", &tun, "up"]);
        within(netns, || sysctl(&format!("conf/{tun}/rp_filter"), "0"));
        Arc::new(device)
    });
    let there = if path.loss == 0 { format!("p{i}") } else { tun.clone() };
    if path.loss == 0 {
        ip(&["-n", near, "link", "add", &there, "type", "veth", "peer", "name", &there, "netns", far]);
    }
    for (netns, end) in [(near, 1), (far, 2)] {
        ip(&["-n", netns, "address", "add", &format!("{}/24", address(i, end)), "dev", &there]);
        ip(&["-n", netns, "link", "set", "dev", &there, "up"]);
    }
    let (rate, queue) = (format!("{}kbit", path.kbit_per_s), path.queue.to_string());
    let mut shape = vec!["-n", near, "qdisc", "add", "dev", &there, "root", "tbf", "rate", &rate];
    shape.extend(["burst", "16kb", "limit", &queue]);
    // The losses of each path come from a seed of its own.
    let seed = 2 * i as u64;
    let back = Way::new(&from, &to, path.delay, path.loss, seed);
    if path.loss == 0 {
        done("tc", &shape);
        ip(&["-n", far, "route", "add", &format!("{}/32", address(i, 1)), "dev", &tun]);
        return vec![back];
    }
    shape.extend(["overhead", ETHERNET]);
    done("tc", &shape);
    vec![back, Way::new(&to, &from, Duration::ZERO, path.loss, seed + 1)]
}

/// Holds packets until they are due. Ends when `stopped` is closed.
fn delay(mut ways: Vec<Way>, stopped: &PipeReader) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        ways.iter_mut().for_each(|way| way.carry(&mut buffer));
        let due = ways.iter().filter_map(|way| Some(way.packets.front()?.0)).min();
        let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
        let wait = wait.map(|wait| Timespec::try_from(wait).expect("a short time"));
        let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
        fds.extend(ways.iter().map(|way| PollFd::from_borrowed_fd(way.from.as_fd(), PollFlags::IN)));
        let _ = poll(&mut fds, wait.as_ref());
        if !fds[0].revents().is_empty() {
            return;
        }
    }
}

fn sysctl(file: &str, value: &str) {
    fs::write(format!("/proc/sys/net/ipv4/{file}"), value).expect("root may set this");
}
