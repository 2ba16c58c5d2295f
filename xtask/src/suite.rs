//! `cargo xtask test`: everything that tests, with one plain closing line.
//!
//! [`build`] builds all test binaries and examples with one call of cargo, [`run`] runs them,
//! [`tally`] counts results, [`times`] keeps how long each took.

mod build;
mod run;
mod tally;
mod times;

use crate::cargo;
use crate::failure::Failure;
use crate::parallel;
use build::{Executable, Kind, Package};
use run::{Done, Job, Judge};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tally::{Echo, Tally};
use times::{Slowest, Times};

/// Examples that run long or need arguments: the suite builds but does not run them.
const BUILT_ONLY: [&str; 3] = ["campaign", "own-protocol", "page"];
/// Default length of the list of slowest tests.
const SLOWEST: usize = 20;
/// The documentation tests of all packages: cargo builds and runs them in one job.
const DOCUMENTATION: &str = "documentation tests";

/// Parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Number of slowest tests to list.
    slowest: Option<usize>,
    /// The only package to test.
    only: Option<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, Failure> {
        let usage = || Failure::Usage("test takes `--slowest [N]` and `--only PACKAGE`".into());
        let mut options = Self::default();
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--slowest" => {
                    let number = args.next_if(|next| !next.starts_with('-'));
                    let n = number.map_or(Ok(SLOWEST), |n| n.parse()).map_err(|_| usage())?;
                    options.slowest = Some(n);
                }
                "--only" => options.only = Some(args.next().ok_or_else(usage)?.clone()),
                _ => return Err(usage()),
            }
        }
        Ok(options)
    }
}

/// `test [--slowest [N]] [--only PACKAGE]`: runs all tests and examples, makes the book, and runs
/// the Python package's tests. With `--only`, the tests and examples of one package. The last line
/// on stdout is `N passed, N failed, N skipped`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let options = Options::parse(args)?;
    let mut suite = Suite { slowest: options.slowest.map(|_| Slowest::default()), ..Suite::default() };
    suite.run(options.only.as_deref())?;
    if let (Some(slowest), Some(n)) = (suite.slowest.take(), options.slowest) {
        print!("\nslowest tests:\n{}", slowest.table(n));
    }
    if !suite.failures.is_empty() {
        println!("\nfailed:\n    {}", suite.failures.join("\n    "));
    }
    println!("\n{}", suite.tally.closing_line());
    verdict(&suite.tally)
}

/// Success or failure of the whole run.
fn verdict(tally: &Tally) -> Result<(), Failure> {
    if tally.failed > 0 {
        Err(Failure::Job("tests failed".into()))
    } else if tally.ran() == 0 {
        Err(Failure::Job("no test ran".into()))
    } else {
        Ok(())
    }
}

/// A run of the suite.
#[derive(Debug, Default)]
struct Suite {
    tally: Tally,
    /// Names of the tests and jobs that failed.
    failures: Vec<String>,
    times: Times,
    slowest: Option<Slowest>,
}

impl Suite {
    /// Runs the tests and examples of `package`; or those of the workspace, the book and the Python
    /// package.
    fn run(&mut self, package: Option<&str>) -> Result<(), Failure> {
        let packages = build::packages()?;
        let package = package.map(|name| named(&packages, name)).transpose()?;
        let executables = build::executables(package)?;
        let folder = cargo::target().join("suite");
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|error| Failure::Job(format!("cannot create {}: {error}", folder.display())))?;
        let mut jobs = jobs(&executables, &packages, self.slowest.is_some());
        if packages.values().any(|of| of.documentation_tests && package.is_none_or(|name| name == of.name)) {
            jobs.push(documentation(package));
        }
        if package.is_none() {
            jobs.push(own("the book of docs", &["book"], Judge::Status)?);
            jobs.push(own("the Python package", &["python", "--built"], Judge::Pytest)?);
        }
        let kept = folder.join("times.json");
        self.times = Times::read(&kept);
        self.times.sort(&mut jobs);
        let number = jobs.len();
        let mut ended = 0;
        run::all(jobs, &folder, |done| {
            ended += 1;
            println!("\n=== {}: {:.1} s ({ended} of {number})", done.name, done.took.as_secs_f64());
            self.take(&done, &mut std::io::stdout());
        });
        self.times.write(&kept);
        Ok(())
    }

    /// Counts a job's results and passes its output on; stdout goes to `out`.
    fn take(&mut self, done: &Done, out: &mut impl Write) {
        self.tally.begin();
        let before = (self.tally.results, self.tally.failed);
        for line in done.stdout.lines() {
            if let Some(slowest) = &mut self.slowest {
                slowest.read(&done.name, line);
            }
            if let Some(test) = failed(line) {
                self.failures.push(format!("{}: {test}", done.name));
            }
            let echo = match done.judge {
                Judge::Results => self.tally.read(line),
                Judge::Pytest => {
                    self.tally.read_pytest(line);
                    Echo::Yes
                }
                Judge::Status => Echo::Yes,
            };
            if echo == Echo::Yes {
                // A reader that has gone does not stop the tests.
                let _ = writeln!(out, "{line}");
            }
        }
        let _ = out.flush();
        let _ = std::io::stderr().write_all(done.stderr.as_bytes());
        let good = done.status.as_ref().is_ok_and(std::process::ExitStatus::success);
        let why = match (&done.status, done.judge) {
            (Err(error), _) => Some(format!("cannot be started: {error}")),
            (Ok(status), Judge::Status) if !good => Some(format!("ended with {status}")),
            // A binary that crashed printed no result, or only some.
            (Ok(status), _) if !good && self.tally.failed == before.1 => {
                Some(format!("ended with {status}, and no test has failed"))
            }
            (Ok(_), Judge::Results | Judge::Pytest) if self.tally.results == before.0 => {
                Some("printed no result".to_owned())
            }
            _ => None,
        };
        match why {
            Some(why) => self.fail(format!("{}: {why}", done.name)),
            None if done.judge == Judge::Status => {
                let mut lines = done.stdout.lines().chain(done.stderr.lines());
                self.tally.job(lines.any(|line| line.starts_with("SKIPPED:")));
            }
            None => {}
        }
        // The duration of a failed binary does not predict the next run.
        if good {
            self.times.note(&done.name, done.took);
        }
    }

    fn fail(&mut self, what: String) {
        println!("{what}");
        self.tally.failed += 1;
        self.failures.push(what);
    }
}

/// The name of the failed test, if this line of libtest or pytest reports one.
fn failed(line: &str) -> Option<&str> {
    if let Some(test) = line.strip_prefix("FAILED ") {
        return Some(test);
    }
    let (test, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    outcome.starts_with("FAILED").then_some(test)
}

/// The full name of a package, which may be given without `anabranch-`.
fn named<'a>(packages: &'a BTreeMap<PathBuf, Package>, name: &str) -> Result<&'a str, Failure> {
    let is =
        |package: &&Package| package.name == name || package.name.strip_prefix("anabranch-") == Some(name);
    let found = packages.values().find(is).map(|package| package.name.as_str());
    found.ok_or_else(|| Failure::Usage(format!("there is no package `{name}`")))
}

/// Number of tests that a binary runs in parallel. Tests with sockets mostly wait, so twice the
/// number of processors keeps these busy; simulating tests are not slowed down.
fn threads() -> String {
    (2 * parallel::cores()).to_string()
}

/// A job for each test binary and for each example that the suite runs.
fn jobs(executables: &[Executable], packages: &BTreeMap<PathBuf, Package>, timed: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for executable in executables {
        let Some(package) = packages.get(&executable.manifest) else { continue };
        let mut command = Command::new(&executable.file);
        command.envs(package.environment.iter().map(|(name, value)| (name, value)));
        let folder = executable.manifest.parent().unwrap_or(Path::new("."));
        match executable.kind {
            Kind::Test => {
                // With --show-output, libtest also prints the output of passed tests, which says
                // why they were skipped.
                command.arg("--show-output").current_dir(folder);
                if std::env::var_os("RUST_TEST_THREADS").is_none() {
                    command.env("RUST_TEST_THREADS", threads());
                }
                if timed {
                    // libtest prints durations only with unstable options, which this variable
                    // permits. With -1, a rustc that a test starts still behaves as stable.
                    command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "-1");
                }
                let programs = executables.iter().filter(|other| other.kind == Kind::Program);
                for program in programs.filter(|program| program.manifest == executable.manifest) {
                    command.env(format!("CARGO_BIN_EXE_{}", program.name), &program.file);
                }
                let source = executable.source.strip_prefix(folder).unwrap_or(&executable.source);
                let name = format!("{} ({})", package.name, source.display());
                jobs.push(Job { name, command, judge: Judge::Results });
            }
            Kind::Example if !BUILT_ONLY.contains(&executable.name.as_str()) => {
                command.current_dir(cargo::root());
                let name = format!("example {} of {}", executable.name, package.name);
                jobs.push(Job { name, command, judge: Judge::Status });
            }
            Kind::Example | Kind::Program => {}
        }
    }
    jobs
}

/// A job that runs a command of xtask.
fn own(name: &str, args: &[&str], judge: Judge) -> Result<Job, Failure> {
    let this = std::env::current_exe();
    let this = this.map_err(|error| Failure::Job(format!("cannot find this program: {error}")))?;
    let mut command = Command::new(this);
    command.args(args).current_dir(cargo::root());
    Ok(Job { name: name.to_owned(), command, judge })
}

/// A job for documentation tests. They use the libraries that the test binaries were built with.
fn documentation(package: Option<&str>) -> Job {
    let mut command = cargo::command(&["test", "--doc", "--locked", "--no-fail-fast"]);
    command.args(build::selection(package)).args(["--", "--show-output"]);
    Job { name: DOCUMENTATION.to_owned(), command, judge: Judge::Results }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;
    use std::time::Duration;

    fn args(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn options_are_read() {
        let parsed = |words: &[&str]| Options::parse(&args(words)).ok();
        assert_eq!(parsed(&[]), Some(Options::default()));
        assert_eq!(parsed(&["--slowest"]), Some(Options { slowest: Some(20), only: None }));
        let both = Options { slowest: Some(5), only: Some("core".into()) };
        assert_eq!(parsed(&["--slowest", "5", "--only", "core"]), Some(both));
        let only = Options { slowest: Some(20), only: Some("sim".into()) };
        assert_eq!(parsed(&["--slowest", "--only", "sim"]), Some(only));
        for bad in [&["core"][..], &["--only"], &["--slowest", "x"], &["--fast"]] {
            assert!(matches!(Options::parse(&args(bad)), Err(Failure::Usage(_))), "{bad:?}");
        }
    }

    /// A suite after one job that printed `stdout` and ended as this shell script does. The output
    /// is not printed: the suite that runs this test would count it.
    fn after(judge: Judge, stdout: &str, end: &str) -> Suite {
        let status: std::io::Result<ExitStatus> = Command::new("sh").args(["-c", end]).status();
        let mut suite = Suite::default();
        let (name, stderr) = ("core (tests/it/main.rs)".to_owned(), String::new());
        let took = Duration::from_secs(1);
        suite.take(
            &Done { name, judge, took, status, stdout: stdout.to_owned(), stderr },
            &mut std::io::sink(),
        );
        suite
    }

    const GOOD: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
    const BAD: &str = "test a::b ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured";

    #[test]
    fn a_binary_without_a_result_is_a_failure_and_is_named() {
        let outcome = |stdout, end| {
            let suite = after(Judge::Results, stdout, end);
            (suite.tally.closing_line(), suite.failures)
        };
        assert_eq!(outcome(GOOD, "exit 0"), ("2 passed, 0 failed, 0 skipped".to_owned(), Vec::new()));
        let (line, failures) = outcome(BAD, "exit 101");
        assert_eq!(line, "1 passed, 1 failed, 0 skipped");
        assert_eq!(failures, ["core (tests/it/main.rs): a::b"]);
        for (stdout, end, why) in [
            ("running 2 tests", "kill -9 $$", "ended with signal: 9 (SIGKILL), and no test has failed"),
            (GOOD, "exit 3", "ended with exit status: 3, and no test has failed"),
            ("", "exit 0", "printed no result"),
        ] {
            let (line, failures) = outcome(stdout, end);
            assert!(line.contains(" 1 failed"), "{end}: {line}");
            assert_eq!(failures, [format!("core (tests/it/main.rs): {why}")]);
        }
    }

    #[test]
    fn pytest_is_judged_by_its_last_line() {
        let outcome = |stdout, end| {
            let suite = after(Judge::Pytest, stdout, end);
            (suite.tally.closing_line(), suite.failures.concat())
        };
        let good = "== 3 passed, 1 skipped in 1.20s ==";
        assert_eq!(outcome(good, "exit 0"), ("3 passed, 0 failed, 1 skipped".to_owned(), String::new()));
        let bad = "FAILED tests/a.py::b - assert 1\n== 1 failed, 2 passed in 1.20s ==";
        let (line, failures) = outcome(bad, "exit 1");
        assert_eq!(line, "2 passed, 1 failed, 0 skipped");
        assert!(failures.ends_with("tests/a.py::b - assert 1"), "{failures}");
        assert_eq!(outcome("SKIPPED: no network", "exit 0").0, "0 passed, 0 failed, 1 skipped");
        for (stdout, end) in [("", "exit 0"), (good, "exit 4"), ("", "exit 4")] {
            assert!(outcome(stdout, end).0.contains(" 1 failed"), "{stdout:?}, {end}");
        }
    }

    #[test]
    fn an_example_is_judged_by_its_exit_status() {
        assert_eq!(
            after(Judge::Status, "SKIPPED: no network", "exit 0").tally.closing_line(),
            "0 passed, 0 failed, 1 skipped"
        );
        assert_eq!(after(Judge::Status, "", "exit 0").tally.closing_line(), "1 passed, 0 failed, 0 skipped");
        assert_eq!(after(Judge::Status, "", "exit 1").tally.closing_line(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_package_may_be_named_without_its_prefix() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            environment: Vec::new(),
            documentation_tests: true,
        };
        let packages = [("1", "anabranch-core"), ("2", "xtask")];
        let packages: BTreeMap<_, _> =
            packages.into_iter().map(|(manifest, name)| (PathBuf::from(manifest), package(name))).collect();
        assert_eq!(named(&packages, "core"), Ok("anabranch-core"));
        assert_eq!(named(&packages, "anabranch-core"), Ok("anabranch-core"));
        assert_eq!(named(&packages, "xtask"), Ok("xtask"));
        assert!(named(&packages, "cor").is_err());
    }

    #[test]
    fn jobs_carry_what_cargo_would_give() {
        let executable = |kind, name: &str| Executable {
            kind,
            name: name.to_owned(),
            manifest: "/w/crates/a/Cargo.toml".into(),
            source: "/w/crates/a/tests/it/main.rs".into(),
            file: format!("/t/{name}").into(),
        };
        let all = [
            executable(Kind::Test, "it"),
            executable(Kind::Example, "small"),
            executable(Kind::Example, "campaign"),
            executable(Kind::Program, "prog"),
        ];
        let environment = vec![("CARGO_PKG_NAME".into(), "a".into())];
        let package = Package { name: "a".into(), environment, documentation_tests: true };
        let packages = BTreeMap::from([(PathBuf::from("/w/crates/a/Cargo.toml"), package)]);
        let jobs = jobs(&all, &packages, true);
        let names: Vec<_> = jobs.iter().map(|job| &*job.name).collect();
        assert_eq!(names, ["a (tests/it/main.rs)", "example small of a"]);
        let test = &jobs[0].command;
        assert_eq!(test.get_current_dir(), Some(Path::new("/w/crates/a")));
        // The number of test threads is set only if it was not set before.
        let set = test.get_envs().map(|(name, _)| name.to_string_lossy().into_owned());
        let set: Vec<_> = set.filter(|name| name != "RUST_TEST_THREADS").collect();
        assert_eq!(set, ["CARGO_BIN_EXE_prog", "CARGO_PKG_NAME", "RUSTC_BOOTSTRAP"]);
    }

    #[test]
    fn the_verdict_is_bad_for_failures_and_for_nothing() {
        let tally = |passed, failed| {
            let mut tally = Tally::default();
            tally.read(&format!("test result: {passed} passed; {failed} failed"));
            tally
        };
        assert!(verdict(&tally(5, 0)).is_ok());
        assert!(verdict(&tally(5, 1)).is_err());
        assert!(verdict(&tally(0, 0)).is_err());
    }
}
