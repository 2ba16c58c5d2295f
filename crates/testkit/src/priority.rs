//! Threads that run as soon as they have work, whatever else runs on this machine.

use std::process::Command;
use std::thread;

use rustix::thread::gettid;

use crate::debian::obtain;

/// Gives the calling thread, and the threads that it starts, real-time priority (SCHED_RR), ahead
/// of all threads of normal priority. The thread of an emulated link needs this, since a link does
/// not wait for a processor. The thread should mostly wait and end with its task: the kernel
/// reserves only 5 % of the time for other threads.
///
/// Returns false and changes nothing without the privilege or without `chrt`. On a quiet machine
/// that does no harm.
pub fn real_time() -> bool {
    let thread = gettid().as_raw_nonzero().to_string();
    let chrt = obtain("chrt", "util-linux");
    let set = chrt.map(|chrt| Command::new(chrt).args(["--rr", "--pid", "1", &thread]).output());
    set.is_some_and(|set| set.is_ok_and(|output| output.status.success()))
}

/// Whether [`real_time`] works here, so that a program can be started with `chrt --rr 1`. The test
/// runs on a temporary thread and changes nothing.
pub fn may_be_real_time() -> bool {
    thread::spawn(real_time).join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Scheduling policy of the calling thread (proc_pid_stat(5), field 41).
    fn policy() -> u32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("every kernel has it");
        let after_name = stat.rsplit(')').next().expect("a name in brackets");
        after_name.split_whitespace().nth(38).and_then(|policy| policy.parse().ok()).expect("a number")
    }

    #[test]
    fn a_thread_and_those_that_it_starts_are_real_time_or_nothing_changes() {
        const SCHED_RR: u32 = 2;
        let before = policy();
        let (is_real_time, own, started) = thread::spawn(|| {
            let is_real_time = real_time();
            (is_real_time, policy(), thread::spawn(policy).join().expect("no panic"))
        })
        .join()
        .expect("no panic");
        let expected = if is_real_time { SCHED_RR } else { before };
        assert_eq!((own, started), (expected, expected));
        assert_eq!(policy(), before, "other threads stay as they are");
    }
}
