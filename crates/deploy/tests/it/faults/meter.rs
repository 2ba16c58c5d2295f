//! Measures when a returned gateway carries its share again.

#![expect(clippy::disallowed_types, reason = "processes live in real time")]

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anabranch_testkit::netns::within;

/// Time limit until a returned gateway has its share.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// The share: this part of its wire's capacity during one second.
const SHARE: f64 = 0.5;
const WINDOW: Duration = Duration::from_secs(1);
/// Interval between samples.
const EVERY: Duration = Duration::from_millis(50);

/// A gateway that has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returned {
    pub(crate) gateway: usize,
    at: Instant,
    /// Time until it had its share again.
    pub(crate) used: Option<Duration>,
}

/// Measures the bytes that arrive at the gateways from the wires.
pub(crate) struct Meter {
    /// The kernel's counters in the gateways' namespace.
    counters: File,
    /// Capacity of each wire in bytes per second.
    rates: Vec<f64>,
    /// Number of bytes by wire at each time.
    seen: VecDeque<(Instant, Vec<u64>)>,
    pub(crate) returned: Vec<Returned>,
}

impl Meter {
    /// Creates a meter for wires with these rates in kbit/s.
    pub(crate) fn new(gateways: &str, rates: &[u64]) -> Self {
        // The file shows the namespace of the thread that opened it.
        let counters =
            within(gateways, || File::open("/proc/thread-self/net/dev")).expect("every kernel has it");
        let rates = rates.iter().map(|rate| *rate as f64 * 125.0).collect();
        Self { counters, rates, seen: VecDeque::new(), returned: Vec::new() }
    }

    pub(crate) fn returns(&mut self, gateway: usize) {
        self.leaves(gateway);
        self.returned.push(Returned { gateway, at: Instant::now(), used: None });
    }

    /// The gateway fails again before its share could be measured.
    pub(crate) fn leaves(&mut self, gateway: usize) {
        self.returned.retain(|r| r.gateway != gateway || r.used.is_some() || r.at.elapsed() >= SOON);
    }

    /// Number of bytes received so far on all wires.
    pub(crate) fn total(&self) -> u64 {
        self.read().iter().sum()
    }

    pub(crate) fn look(&mut self) {
        let now = Instant::now();
        if self.seen.back().is_some_and(|(at, _)| *at + EVERY > now) {
            return;
        }
        let octets = self.read();
        for returned in self.returned.iter_mut().filter(|returned| returned.used.is_none()) {
            let since = self.seen.iter().find(|(at, _)| *at >= returned.at && *at + WINDOW + EVERY > now);
            let Some((since, before)) = since.filter(|(at, _)| *at + WINDOW <= now) else { continue };
            let octets = (octets[returned.gateway] - before[returned.gateway]) as f64;
            if octets >= SHARE * self.rates[returned.gateway] * (now - *since).as_secs_f64() {
                returned.used = Some(now - returned.at);
            }
        }
        self.seen.push_back((now, octets));
        while self.seen.front().is_some_and(|(at, _)| *at + WINDOW * 2 < now) {
            self.seen.pop_front();
        }
    }

    /// The push has ended: gateways that returned shortly before cannot be judged.
    pub(crate) fn end(&mut self) {
        self.returned.retain(|returned| returned.used.is_some() || returned.at.elapsed() >= SOON);
    }

    /// Reads the number of bytes of each wire.
    fn read(&self) -> Vec<u64> {
        let mut text = vec![0; 8 << 10];
        let n = self.counters.read_at(&mut text, 0).expect("it can be read");
        let text = String::from_utf8_lossy(&text[..n]);
        let of = |i: usize| {
            let name = format!("wire{i}:");
            let line = text.lines().find_map(|line| line.trim().strip_prefix(&name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        (0..self.rates.len()).map(|i| of(i).expect("the device is there")).collect()
    }
}
