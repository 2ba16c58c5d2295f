//! `cargo xtask campaign suite-under-load`: repeats the whole suite beside threads that keep the
//! processors busy.

use crate::cargo;
use crate::failure::{Failure, number, numbers};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Parsed command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Options {
    runs: u64,
    /// Number of busy threads beside the runs.
    loops: u64,
    /// Number of suites that run at the same time. More than one is a harder test, since suites
    /// meet each other's files, ports and namespaces.
    at_once: u64,
}

/// Runs `campaign suite-under-load [--runs N] [--loops N] [--at-once N]`.
pub(crate) fn campaign(options: &[String]) -> Result<(), Failure> {
    let Options { runs, loops, at_once } = Options::parse(options)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::Job(format!("cannot find this program's own file: {error}")))?;
    // Build first: the tests are to run under load, not their build.
    cargo::build_tests()?;
    let over = AtomicBool::new(false);
    let bad = thread::scope(|scope| {
        // The busy threads end whichever way this function ends.
        let _end = End(&over);
        for _ in 0..loops {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let (next, bad) = (AtomicU64::new(1), AtomicU64::new(0));
        thread::scope(|suites| {
            for _ in 0..at_once.min(runs) {
                suites.spawn(|| {
                    loop {
                        let run = next.fetch_add(1, Ordering::Relaxed);
                        if run > runs {
                            break;
                        }
                        let mut suite = Command::new(&program);
                        suite.arg("test").current_dir(cargo::root());
                        let good = cargo::run(suite).is_ok();
                        bad.fetch_add(u64::from(!good), Ordering::Relaxed);
                        println!("=== run {run} of {runs}: {}", if good { "passed" } else { "FAILED" });
                    }
                });
            }
        });
        bad.into_inner()
    });
    println!("{} of {runs} runs passed, {at_once} at once, beside {loops} busy threads", runs - bad);
    if bad > 0 { Err(Failure::Job(format!("{bad} of {runs} runs failed"))) } else { Ok(()) }
}

/// Ends the busy threads on drop.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Options {
    fn parse(options: &[String]) -> Result<Self, Failure> {
        let usage = "suite-under-load takes `--runs N` and `--at-once N`, with N above zero, and `--loops N`";
        let names = [("--runs", "runs"), ("--loops", "loops"), ("--at-once", "at_once")];
        let said = numbers(options, &names, usage)?;
        let runs = number(&said, "runs", 20);
        let (loops, at_once) = (number(&said, "loops", 6), number(&said, "at_once", 1));
        if runs == 0 || at_once == 0 {
            return Err(Failure::Usage(usage.into()));
        }
        Ok(Self { runs, loops, at_once })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers_by_name() {
        let read =
            |words: &[&str]| Options::parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()).ok();
        let of = |runs, loops, at_once| Some(Options { runs, loops, at_once });
        assert_eq!(read(&[]), of(20, 6, 1));
        assert_eq!(read(&["--loops", "3", "--runs", "2"]), of(2, 3, 1));
        assert_eq!(read(&["--at-once", "4"]), of(20, 6, 4));
        for bad in [&["--run", "3"][..], &["--runs"], &["--runs", "x"], &["--runs", "0"], &["--at-once", "0"]]
        {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
