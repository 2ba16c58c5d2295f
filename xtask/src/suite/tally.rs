//! Counts results of libtest, pytest and single jobs.

/// Whether a line of a test binary's output is passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Echo {
    Yes,
    No,
}

/// The sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// As libtest counts: including tests that printed `SKIPPED:`.
    pub(super) passed: u64,
    pub(super) failed: u64,
    ignored: u64,
    /// Tests that printed `SKIPPED:`.
    notices: u64,
    /// Number of result lines.
    pub(super) results: u64,
    /// Between `successes:` and the next result is the output of passed tests, which is not passed
    /// on.
    in_successes: bool,
}

impl Tally {
    /// Starts the output of another binary. The previous one may have crashed in the middle of its
    /// output.
    pub(super) fn begin(&mut self) {
        self.in_successes = false;
    }

    /// Reads a line of libtest's output. A test that lacks a privilege prints a line that begins
    /// with `SKIPPED:` and returns; libtest counts it as passed, this tally does not.
    pub(super) fn read(&mut self, line: &str) -> Echo {
        let line = line.trim_end();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.in_successes = false;
            self.results += 1;
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

    /// Reads a line of pytest's output, or of the job that could not start pytest.
    pub(super) fn read_pytest(&mut self, line: &str) {
        if line.starts_with("SKIPPED:") {
            self.results += 1;
            self.ignored += 1;
        } else if let Some(counts) = pytest(line) {
            self.results += 1;
            self.passed += counts.passed;
            self.failed += counts.failed;
            self.ignored += counts.skipped;
        }
    }

    /// Counts a job that succeeded.
    pub(super) fn job(&mut self, skipped: bool) {
        if skipped {
            self.ignored += 1;
        } else {
            self.passed += 1;
        }
    }

    /// Number of tests that ran to their end and passed.
    pub(super) fn ran(&self) -> u64 {
        self.passed.saturating_sub(self.notices)
    }

    /// The closing line: `N passed, N failed, N skipped`.
    pub(super) fn closing_line(&self) -> String {
        let (passed, skipped) = (self.ran(), self.ignored + self.notices);
        format!("{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

/// Counts of pytest's last line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Parses a line such as `== 1 failed, 70 passed, 2 skipped, 1 error in 12.30s ==`. Errors count as
/// failures.
fn pytest(line: &str) -> Option<Counts> {
    let line = line.trim_matches(['=', ' ']);
    let (list, time) = line.rsplit_once(" in ")?;
    if !time.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut counts = Counts::default();
    for part in list.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match what {
            "passed" => counts.passed += number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" => counts.skipped += number,
            "warning" | "warnings" | "deselected" => {}
            _ => return None,
        }
    }
    Some(counts)
}

/// The number directly before `word`; 0 if there is none.
fn number_before(text: &str, word: &str) -> u64 {
    let Some((before, _)) = text.split_once(word) else { return 0 };
    before.rsplit([' ', ';']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((shown.len(), tally.results), (3, 2));
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
    fn a_binary_that_died_hides_nothing_of_the_next() {
        let (mut tally, _) = tally("successes:\nnoise");
        tally.begin();
        assert_eq!(tally.read("running 1 test"), Echo::Yes);
    }

    #[test]
    fn python_s_tests_are_counted_with_the_others() {
        let mut tally = Tally { passed: 4, ..Tally::default() };
        tally.read_pytest("== 3 passed, 1 failed, 2 skipped in 3.20s ==");
        tally.read_pytest("SKIPPED: no network");
        assert_eq!((tally.closing_line().as_str(), tally.results), ("7 passed, 1 failed, 3 skipped", 2));
    }

    #[test]
    fn the_last_line_of_pytest_is_read() {
        let line = "======= 1 failed, 70 passed, 2 skipped, 3 warnings, 1 error in 12.30s (0:00:12) =======";
        assert_eq!(pytest(line), Some(Counts { passed: 70, failed: 2, skipped: 2 }));
        assert_eq!(pytest("5 passed in 0.1s"), Some(Counts { passed: 5, ..Counts::default() }));
        for other in
            ["", "tests/test_a.py ..F", "3 rows in 2s", "=== slowest 5 durations ===", "4.00s call in x"]
        {
            assert_eq!(pytest(other), None, "{other}");
        }
    }

    #[test]
    fn a_failure_s_output_is_shown_although_successes_come_first() {
        let (_, shown) = tally("successes:\nnoise\nfailures:\n\n---- bad stdout ----\nreason\n");
        assert_eq!(shown, ["failures:", "", "---- bad stdout ----", "reason"]);
    }
}
