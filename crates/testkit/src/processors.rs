//! Measures how much processor time other programs leave, to judge whether a measured rate or time
//! is meaningful.

#![expect(clippy::disallowed_types, reason = "what is measured is real time")]

use std::collections::BTreeMap;
use std::fs;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;

use crate::debian::skipped;

/// Processor time since a moment: that of this process with its descendants, and idle time.
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    began: Instant,
    own: Duration,
    idle: Duration,
}

impl Processors {
    /// Starts measuring now.
    pub fn since_now() -> Self {
        Self { began: Instant::now(), own: own(), idle: idle() }
    }

    /// Average number of processors that were available to this process and its descendants since
    /// then: all but those that other programs used.
    pub fn left(&self) -> f64 {
        let left = own().saturating_sub(self.own) + idle().saturating_sub(self.idle);
        left.as_secs_f64() / self.began.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Minimum number of available processors for a meaningful measurement: one, or three quarters on a
/// machine with one processor.
pub fn enough() -> f64 {
    let all = available_parallelism().map_or(1, |number| number.get());
    f64::min(1.0, 0.75 * all as f64)
}

/// Processors available during the attempts of a test that compares times or rates.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    most: f64,
}

impl Busy {
    /// Records a failed attempt that began at `since`.
    pub fn note(&mut self, since: &Processors) {
        self.most = self.most.max(since.left());
    }

    /// Whether no failed attempt had [`enough`] processors, so that they prove nothing about `what`
    /// and the test counts as skipped. Call it when all attempts have failed; if it returns false,
    /// the test has failed.
    pub fn says_nothing_of(&self, what: &str) -> bool {
        let is_busy = self.most < enough();
        if is_busy {
            skipped(&format!("{what}: other programs left {:.2} processors at most", self.most));
        }
        is_busy
    }
}

/// Processor time of this process and its descendants, including those that ended and were waited
/// for.
fn own() -> Duration {
    ticks(family().values().sum())
}

/// Processor time of this process and each of its descendants.
fn family() -> BTreeMap<u32, u64> {
    let entries = fs::read_dir("/proc").expect("every kernel has it").flatten();
    let mut others: Vec<Process> = entries.filter_map(Process::of).collect();
    let mut family = BTreeMap::new();
    loop {
        let known = family.len();
        let is_ours =
            |process: &Process| process.id == std::process::id() || family.contains_key(&process.parent);
        let (ours, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(is_ours);
        family.extend(ours.into_iter().map(|process| (process.id, process.ticks)));
        others = rest;
        if family.len() == known {
            return family;
        }
    }
}

/// A process, as described by proc_pid_stat(5).
struct Process {
    id: u32,
    parent: u32,
    /// Processor time in ticks, including children that ended.
    ticks: u64,
}

impl Process {
    /// `None` if the entry is no process, or the process has ended.
    fn of(entry: fs::DirEntry) -> Option<Self> {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in parentheses may contain any character, also spaces and parentheses.
        let figures: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = figures.get(11..15)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Some(Self { id, parent: figures[1].parse().ok()?, ticks })
    }
}

/// Idle time of all processors together (proc_stat(5), fourth and fifth field).
fn idle() -> Duration {
    let stat = fs::read_to_string("/proc/stat").expect("every kernel has it");
    let figures = stat.lines().next().expect("a line for all processors").split_whitespace();
    ticks(figures.skip(4).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum())
}

fn ticks(number: u64) -> Duration {
    Duration::from_secs_f64(number as f64 / clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Waits until a process of this test has used a fifth of a second of processor time.
    fn has_worked(id: u32) {
        while family()[&id] * 5 < clock_ticks_per_second() {
            // A busy loop would use processor time itself.
            let waited = Command::new("sleep").arg("0.02").status();
            assert!(waited.expect("every system has it").success());
        }
    }

    fn speaking(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("a shell")
    }

    fn first_number(child: &mut Child) -> u32 {
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it speaks");
        line.trim().parse().expect("a number")
    }

    fn kill(id: u32) {
        let done = Command::new("kill").arg(id.to_string()).status();
        assert!(done.expect("every system has it").success());
    }

    /// Programs started by a test count as its own, and so do their children, while they run and
    /// afterwards. An orphaned process does not.
    #[test]
    fn what_a_test_has_started_is_its_own() {
        const BUSY: &str = "while :; do :; done";
        let half = Duration::from_millis(100);
        let before = own();
        let mut child = speaking(&format!("{BUSY} & echo $!; wait"));
        let grandchild = first_number(&mut child);
        has_worked(grandchild);
        assert!(own() - before >= half, "it runs");
        kill(grandchild);
        child.wait().expect("it was ours");
        assert!(own() - before >= half, "it has ended");

        let mut child = speaking(&format!("{BUSY} & echo $!"));
        let orphan = first_number(&mut child);
        child.wait().expect("it was ours");
        let is_ours = family().contains_key(&orphan);
        kill(orphan);
        assert!(!is_ours);
    }
}
