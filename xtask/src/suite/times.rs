//! Durations of jobs and tests: they determine the order of jobs and the list of slowest tests.

use super::run::{Job, Judge};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Seconds of the longest jobs, for the first run in a new clone. They start first, so that none
/// runs alone at the end.
const FIRST: [(&str, f64); 11] = [
    ("anabranch-lab (src/lib.rs)", 110.0),
    ("anabranch-deploy (tests/it/main.rs)", 115.0),
    ("the Python package", 104.0),
    ("anabranch-net (tests/it/main.rs)", 70.0),
    ("anabranch-lab-cli (tests/it/main.rs)", 59.0),
    ("the book of docs", 54.0),
    ("anabranch-embed (tests/it/main.rs)", 42.0),
    ("anabranch-campaign (src/lib.rs)", 40.0),
    ("anabranch-sim (tests/it/main.rs)", 38.0),
    ("anabranch-cli (tests/it/main.rs)", 29.0),
    ("anabranch-core (tests/it/main.rs)", 22.0),
];

/// Seconds of each job in earlier runs, by name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Times(BTreeMap<String, f64>);

impl Times {
    /// Reads what [`Self::write`] wrote, with defaults for a new clone. The times only determine
    /// the order, so an unreadable file counts as empty.
    pub(super) fn read(file: &Path) -> Self {
        let value: Value =
            fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let pairs = value.as_object().into_iter().flatten();
        let pairs = pairs.filter_map(|(name, seconds)| Some((name.clone(), seconds.as_f64()?)));
        Self(FIRST.map(|(name, seconds)| (name.to_owned(), seconds)).into_iter().chain(pairs).collect())
    }

    /// Writes the times for the next run. A failure only affects the order of that run.
    pub(super) fn write(&self, file: &Path) {
        let pairs = self.0.iter().map(|(name, seconds)| (name.clone(), Value::from(*seconds)));
        let _ = fs::write(file, Value::Object(pairs.collect()).to_string());
    }

    pub(super) fn note(&mut self, name: &str, took: Duration) {
        self.0.insert(name.to_owned(), took.as_secs_f64());
    }

    /// Sorts jobs so that the longest start first and none runs alone at the end. Jobs without a
    /// known time come before all others: first those that are no test binaries, which may have to
    /// install something, then the largest files.
    pub(super) fn sort(&self, jobs: &mut [Job]) {
        let size = |job: &Job| fs::metadata(job.command.get_program()).map_or(0, |file| file.len());
        jobs.sort_by_cached_key(|job| {
            let known = self.0.get(&job.name).map(|seconds| (seconds * 1e3) as u64);
            let binary = job.judge == Judge::Results;
            (
                std::cmp::Reverse(known.unwrap_or(u64::MAX)),
                binary,
                std::cmp::Reverse(size(job)),
                job.name.clone(),
            )
        });
    }
}

/// The tests that took longest.
#[derive(Debug, Default)]
pub(super) struct Slowest(Vec<(f64, String)>);

impl Slowest {
    /// Reads a line such as `test tcp::closes ... ok <1.234s>` of this job.
    pub(super) fn read(&mut self, job: &str, line: &str) {
        let timed = || {
            let (test, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
            let (_, seconds) = outcome.strip_suffix("s>")?.rsplit_once('<')?;
            Some((seconds.parse().ok()?, format!("{job}: {test}")))
        };
        self.0.extend(timed());
    }

    /// The `n` slowest tests, one per line, slowest first.
    pub(super) fn table(mut self, n: usize) -> String {
        self.0.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.0.iter().take(n).map(|(seconds, test)| format!("{seconds:8.2} s  {test}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn jobs_without_a_time_come_first_and_then_the_longest() {
        let mut times = Times::default();
        times.note("short", Duration::from_secs(1));
        times.note("long", Duration::from_secs(60));
        let job = |name: &str, program: &str| Job {
            name: name.to_owned(),
            command: Command::new(program),
            judge: Judge::Results,
        };
        let this = std::env::current_exe().expect("a test binary");
        let this = this.to_str().expect("a path that is text");
        let mut jobs = vec![job("short", this), job("small", "/nowhere"), job("long", ""), job("big", this)];
        jobs.push(Job { judge: Judge::Pytest, ..job("python", "/nowhere") });
        times.sort(&mut jobs);
        let names: Vec<_> = jobs.iter().map(|job| &*job.name).collect();
        assert_eq!(names, ["python", "big", "small", "long", "short"]);
    }

    #[test]
    fn times_survive_a_file() {
        let file = std::env::temp_dir().join(format!("anabranch-xtask-times-{}.json", std::process::id()));
        let mut times = Times::default();
        times.note("a (src/lib.rs)", Duration::from_millis(1500));
        times.note(FIRST[0].0, Duration::from_secs(1));
        times.write(&file);
        let read = Times::read(&file);
        assert_eq!(
            (read.0["a (src/lib.rs)"], read.0[FIRST[0].0]),
            (1.5, 1.0),
            "what was measured here counts"
        );
        fs::remove_file(&file).expect("it was written");
        let first = Times::read(&file);
        assert_eq!(first.0.len(), FIRST.len());
        assert!(FIRST.iter().all(|(name, seconds)| first.0[*name] == *seconds));
    }

    #[test]
    fn the_slowest_tests_come_first() {
        let mut slowest = Slowest::default();
        let lines =
            ["test a ... ok <0.100s>", "test b::c ... FAILED <12.000s>", "test d ... ok", "noise <1.0s>"];
        lines.iter().for_each(|line| slowest.read("core", line));
        slowest.read("sim", "test e - should panic ... ok <2.000s>");
        assert_eq!(slowest.table(2), "   12.00 s  core: b::c\n    2.00 s  sim: e - should panic\n");
    }
}
