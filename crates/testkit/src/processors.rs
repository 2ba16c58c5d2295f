//! How much of the machine other programs leave: what a measured rate or time is worth beside them.

#![expect(clippy::disallowed_types, reason = "what is measured is real time")]

use std::fs;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::debian::skipped;

/// Processor time since a moment: of this process, and idle.
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    began: Instant,
    own: Duration,
    idle: Duration,
}

impl Processors {
    /// From now on.
    pub fn since_now() -> Self {
        Self { began: Instant::now(), own: own(), idle: idle() }
    }

    /// Processors that this process had or could have had until now, on average: all but what other programs took.
    pub fn left(&self) -> f64 {
        let left = own().saturating_sub(self.own) + idle().saturating_sub(self.idle);
        left.as_secs_f64() / self.began.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Processors that other programs have left to the attempts of a test that compares times or rates.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    most: f64,
}

impl Busy {
    /// An attempt that began then has failed.
    pub fn note(&mut self, since: &Processors) {
        self.most = self.most.max(since.left());
    }

    /// None of the attempts had as much as one processor: they say nothing of `what`, which counts as skipped. To be asked when all have
    /// failed; on a quieter machine they have failed.
    pub fn says_nothing_of(&self, what: &str) -> bool {
        let is_busy = self.most < 1.0;
        if is_busy {
            skipped(&format!("{what}: other programs left {:.2} processors at most", self.most));
        }
        is_busy
    }
}

/// Processor time of this process, with threads that have ended.
fn own() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time in which a processor had nothing to do, summed over all (proc_stat(5): the fourth and fifth figure).
fn idle() -> Duration {
    let stat = fs::read_to_string("/proc/stat").expect("every kernel has it");
    let figures = stat.lines().next().expect("a line for all processors").split_whitespace();
    let ticks: u64 = figures.skip(4).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use std::hint;
    use std::process::Command;

    use super::*;

    /// Beside busy programs of others, one for each processor and one more, this one has less than it would have alone: what it
    /// uses itself is not counted as theirs.
    #[test]
    fn what_others_take_is_not_left() {
        let compute = |since: &Processors| {
            while since.began.elapsed() < Duration::from_millis(600) {
                hint::spin_loop();
            }
            since.left()
        };
        let alone = compute(&Processors::since_now());
        assert!(alone > 0.0, "{alone}");
        let all = std::thread::available_parallelism().expect("a number").get();
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let mut others: Vec<_> = (0..=all).map(|_| busy()).collect();
        let beside = compute(&Processors::since_now());
        for other in &mut others {
            let _ = other.kill();
            other.wait().expect("it was ours");
        }
        assert!(beside < all as f64 - 0.5, "{beside} of {all}");
    }
}
