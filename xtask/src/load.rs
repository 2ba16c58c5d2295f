//! `cargo xtask campaign suite-under-load`: the whole suite, again and again, beside threads that do nothing but compute.

use crate::cargo;
use crate::failure::{Failure, number, numbers};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs, and busy threads beside them.
const RUNS: u64 = 20;
const LOOPS: u64 = 6;

/// `campaign suite-under-load [--runs N] [--loops N]`.
pub(crate) fn campaign(options: &[String]) -> Result<(), Failure> {
    let (runs, loops) = runs_and_loops(options)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::Job(format!("cannot find this program's own file: {error}")))?;
    // What is to be tested under load is the tests, not their build.
    cargo::build_tests()?;
    let over = AtomicBool::new(false);
    let bad = thread::scope(|scope| {
        // However this ends, the threads do too.
        let _end = End(&over);
        for _ in 0..loops {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut bad = 0;
        for run in 1..=runs {
            let mut suite = Command::new(&program);
            suite.arg("test").current_dir(cargo::root());
            let good = cargo::run(suite).is_ok();
            bad += u64::from(!good);
            println!("=== run {run} of {runs}: {}", if good { "passed" } else { "FAILED" });
        }
        bad
    });
    println!("{} of {runs} runs passed beside {loops} busy threads", runs - bad);
    if bad > 0 { Err(Failure::Job(format!("{bad} of {runs} runs failed"))) } else { Ok(()) }
}

/// Ends the busy threads when it goes.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The numbers of runs and of busy threads.
fn runs_and_loops(options: &[String]) -> Result<(u64, u64), Failure> {
    let usage = "suite-under-load takes `--runs N`, with N above zero, and `--loops N`";
    let said = numbers(options, &[("--runs", "runs"), ("--loops", "loops")], usage)?;
    match (number(&said, "runs", RUNS), number(&said, "loops", LOOPS)) {
        (0, _) => Err(Failure::Usage(usage.into())),
        numbers => Ok(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers_by_name() {
        let read =
            |words: &[&str]| runs_and_loops(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()).ok();
        assert_eq!(read(&[]), Some((20, 6)));
        assert_eq!(read(&["--loops", "3", "--runs", "2"]), Some((2, 3)));
        for bad in [&["--run", "3"][..], &["--runs"], &["--runs", "x"], &["--runs", "0"]] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
