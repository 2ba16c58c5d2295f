//! `cargo xtask test`: everything that tests, with one plain closing line.

use crate::book::{self, Made};
use crate::cargo;
use crate::failure::Failure;
use crate::python::{self, Outcome};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

/// Examples that measure for long or want arguments: they are built, not run.
const BUILT_ONLY: [&str; 2] = ["campaign", "page"];

/// Runs all tests, then all examples, makes the book, and runs the Python package's tests. The last line on stdout is
/// `N passed, N failed, N skipped`.
pub(crate) fn run() -> Result<(), Failure> {
    let mut tally = Tally::default();
    // --show-output: a passing test's output is otherwise swallowed, and with it why it was skipped.
    let args = ["test", "--workspace", "--locked", "--no-fail-fast", "--", "--show-output"];
    let mut complete = counted(&args, &mut tally)?;
    for (package, example) in examples(&cargo::root()) {
        println!("example {example} of {package}");
        // As the tests have built it.
        let args =
            ["run", "--quiet", "--profile", "test", "--locked", "--package", &package, "--example", &example];
        match cargo::run(cargo::command(&args)) {
            Ok(()) => tally.passed += 1,
            Err(Failure::Job(message) | Failure::Usage(message)) => {
                eprintln!("{message}");
                tally.failed += 1;
            }
        }
    }
    println!("the book of docs");
    match book::make() {
        Ok(Made::Book(_)) => tally.passed += 1,
        Ok(Made::Skipped) => tally.ignored += 1,
        Err(Failure::Job(message) | Failure::Usage(message)) => {
            eprintln!("{message}");
            tally.failed += 1;
        }
    }
    match python::run(&[]) {
        Ok(outcome) => {
            // Not where it is counted: a test of that would print a line that is counted again.
            if let Outcome::Skipped(why) = &outcome {
                println!("SKIPPED: {why}");
            }
            complete &= tally.add(&outcome);
        }
        Err(Failure::Job(message) | Failure::Usage(message)) => {
            eprintln!("{message}");
            tally.failed += 1;
        }
    }
    // A test binary that could not be built or died left no line to count.
    complete |= tally.failed > 0;
    println!("{}", tally.closing_line());
    verdict(&tally, complete)
}

/// What the whole run is worth. `complete`: every failure of cargo and pytest shows in the tally.
fn verdict(tally: &Tally, complete: bool) -> Result<(), Failure> {
    if tally.failed > 0 {
        Err(Failure::Job("tests failed".into()))
    } else if !complete {
        Err(Failure::Job("a test runner failed without a test's failure: see above".into()))
    } else if tally.ran() == 0 {
        Err(Failure::Job("no test ran".into()))
    } else {
        Ok(())
    }
}

/// Runs cargo with `args`, passes its stdout on and counts. True if cargo succeeded.
fn counted(args: &[&str], tally: &mut Tally) -> Result<bool, Failure> {
    let mut command = cargo::command(args);
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| cargo::cannot_start(&command, &error))?;
    if let Some(stdout) = child.stdout.take() {
        let mut own = std::io::stdout().lock();
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| Failure::Job(format!("cannot read cargo's output: {error}")))?;
            if tally.read(&String::from_utf8_lossy(&line)) == Echo::Yes {
                // A reader that went away is no reason to stop testing.
                let _ = own.write_all(&line).and_then(|()| own.write_all(b"\n"));
            }
        }
    }
    let status = child.wait().map_err(|error| cargo::cannot_start(&command, &error))?;
    Ok(status.success())
}

/// The packages' examples, `(package, example)`, in alphabetical order.
fn examples(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for krate in entries(&root.join("crates")) {
        for file in entries(&root.join("crates").join(&krate).join("examples")) {
            let Some(name) = file.strip_suffix(".rs") else { continue };
            if !BUILT_ONLY.contains(&name) {
                found.push((format!("anabranch-{krate}"), name.to_owned()));
            }
        }
    }
    found
}

/// The sorted names in a directory; none if it cannot be read.
fn entries(directory: &Path) -> Vec<String> {
    let listing = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = listing.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Whether a line of cargo's output is passed on.
#[derive(Debug, PartialEq, Eq)]
enum Echo {
    Yes,
    No,
}

/// The sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// As libtest counts them: those that said `SKIPPED:` included.
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Tests that said that they were skipped.
    notices: u64,
    /// Between `successes:` and the next result: the output of tests that passed, which is not passed on.
    in_successes: bool,
}

impl Tally {
    /// Takes one line of libtest's output. A test that lacks a privilege prints a line that begins with
    /// `SKIPPED:` and returns; libtest counts it as passed, we do not.
    fn read(&mut self, line: &str) -> Echo {
        let line = line.trim_end();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.in_successes = false;
            self.passed += number_before(result, " passed");
            self.failed += number_before(result, " failed");
            self.ignored += number_before(result, " ignored");
        } else if line.starts_with("SKIPPED:") {
            self.notices += 1;
            return Echo::Yes;
        } else if line == "successes:" {
            self.in_successes = true;
        } else if line == "failures:" {
            self.in_successes = false;
        }
        if self.in_successes { Echo::No } else { Echo::Yes }
    }

    /// Takes what the Python package's tests have brought; false if a failure does not show in it.
    fn add(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Counted { counts, complete } => {
                self.passed += counts.passed;
                self.failed += counts.failed;
                self.ignored += counts.skipped;
                *complete
            }
            Outcome::Skipped(_) => {
                self.ignored += 1;
                true
            }
        }
    }

    /// Tests that ran to their end and passed.
    fn ran(&self) -> u64 {
        self.passed.saturating_sub(self.notices)
    }

    fn closing_line(&self) -> String {
        let (passed, skipped) = (self.ran(), self.ignored + self.notices);
        format!("{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

/// The number that stands directly before `word`; 0 if there is none.
fn number_before(text: &str, word: &str) -> u64 {
    let Some((before, _)) = text.split_once(word) else { return 0 };
    before.rsplit([' ', ';']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::Counts;

    fn tally(output: &str) -> (Tally, Vec<&str>) {
        let mut tally = Tally::default();
        let shown = output.lines().filter(|line| tally.read(line) == Echo::Yes).collect();
        (tally, shown)
    }

    #[test]
    fn results_are_summed_over_binaries() {
        let (tally, shown) = tally(
            "running 2 tests\n\
             test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test result: FAILED. 10 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out\n",
        );
        assert_eq!(tally.closing_line(), "12 passed, 3 failed, 1 skipped");
        assert_eq!(shown.len(), 3);
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let (tally, shown) = tally(
            "test tun ... ok\n\nsuccesses:\n\n---- tun stdout ----\nnoise\nSKIPPED: no TUN device\n\n\n\
             successes:\n    tun\n\n\
             test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        );
        assert_eq!(tally.closing_line(), "1 passed, 0 failed, 1 skipped");
        assert!(shown.contains(&"SKIPPED: no TUN device"));
        assert!(!shown.contains(&"noise"));
    }

    #[test]
    fn python_s_tests_are_counted_with_the_others() {
        let mut tally = Tally { passed: 4, ..Tally::default() };
        let counts = Counts { passed: 3, failed: 1, skipped: 2 };
        assert!(tally.add(&Outcome::Counted { counts, complete: true }));
        assert!(tally.add(&Outcome::Skipped("no network".to_owned())));
        assert_eq!(tally.closing_line(), "7 passed, 1 failed, 3 skipped");
        assert!(!tally.add(&Outcome::Counted { counts: Counts::default(), complete: false }));
    }

    #[test]
    fn a_failure_s_output_is_shown_although_successes_come_first() {
        let (_, shown) = tally("successes:\nnoise\nfailures:\n\n---- bad stdout ----\nreason\n");
        assert_eq!(shown, ["failures:", "", "---- bad stdout ----", "reason"]);
    }

    #[test]
    fn the_verdict_is_bad_for_failures_for_nothing_and_for_a_broken_build() {
        let tally = |passed, failed| Tally { passed, failed, ..Tally::default() };
        assert!(verdict(&tally(5, 0), true).is_ok());
        assert!(verdict(&tally(5, 1), true).is_err());
        assert!(verdict(&tally(0, 0), true).is_err());
        assert!(verdict(&tally(5, 0), false).is_err());
    }
}
