//! `cargo xtask campaign suite-under-load`: the whole suite, again and again, beside threads that do nothing but compute.

use crate::cargo;
use crate::chores::numbers;
use crate::failure::Failure;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs, and busy threads beside them.
const RUNS: u64 = 20;
const LOOPS: u64 = 6;

/// `campaign suite-under-load [--runs N] [--loops N]`.
pub(crate) fn campaign(options: &[String]) -> Result<(), Failure> {
    let known = [("--runs", "runs"), ("--loops", "loops")];
    let said = numbers(options, &known, "suite-under-load takes `--runs N` and `--loops N`")?;
    let number = |name: &str, usual: u64| {
        let found = said.iter().find(|(known, _)| *known == name);
        found.map_or(usual, |(_, value)| value.parse().unwrap_or(usual))
    };
    let (runs, loops) = (number("runs", RUNS), number("loops", LOOPS));
    let program = std::env::current_exe()
        .map_err(|error| Failure::Job(format!("cannot find this program's own file: {error}")))?;
    // What is to be tested under load is the tests, not their build.
    cargo::run(cargo::command(&["test", "--workspace", "--locked", "--no-run", "--quiet"]))?;
    let over = AtomicBool::new(false);
    let bad = thread::scope(|scope| {
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
        over.store(true, Ordering::Relaxed);
        bad
    });
    println!("{} of {runs} runs passed beside {loops} busy threads", runs - bad);
    if bad > 0 { Err(Failure::Job(format!("{bad} of {runs} runs failed"))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_options_are_refused() {
        assert!(matches!(campaign(&["--run".to_owned(), "3".to_owned()]), Err(Failure::Usage(_))));
    }
}
