//! Runs jobs, as many at a time as there are processors, and keeps the output of each apart.

#![expect(clippy::disallowed_types, reason = "how long a job took is real time")]

use crate::parallel;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a job's outcome is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
    /// By libtest's result lines, of which there must be at least one.
    Results,
    /// By the last line of pytest's report, which must exist.
    Pytest,
    /// By the exit status: the job counts as one test, skipped if it printed `SKIPPED:`.
    Status,
}

/// A program to run.
#[derive(Debug)]
pub(super) struct Job {
    /// Unique in a run, and equal in all runs.
    pub(super) name: String,
    pub(super) command: Command,
    pub(super) judge: Judge,
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) name: String,
    pub(super) judge: Judge,
    pub(super) took: Duration,
    /// The exit status, or why the job could not be started.
    pub(super) status: io::Result<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs the jobs in this order, as many at a time as there are processors. `each` receives them one
/// at a time as they end.
///
/// Output goes through files in `folder`: a pipe would stay open as long as any grandchild lives.
pub(super) fn all(jobs: Vec<Job>, folder: &Path, each: impl FnMut(Done) + Send) {
    let each = Mutex::new(each);
    parallel::each(jobs.into_iter().enumerate(), |(i, job)| {
        // The output is shown after the job; until then the terminal shows what is running.
        eprintln!("running {}", job.name);
        let done = one(job, &folder.join(format!("{}-{i}", std::process::id())));
        (*each.lock().unwrap_or_else(PoisonError::into_inner))(done);
        ControlFlow::Continue(())
    });
}

fn one(mut job: Job, output: &Path) -> Done {
    let [stdout, stderr] = ["stdout", "stderr"].map(|stream| output.with_extension(stream));
    let began = Instant::now();
    let mut status = || {
        job.command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        job.command.spawn()?.wait()
    };
    let status = status();
    let took = began.elapsed();
    let [stdout, stderr] = [stdout, stderr].map(|file| {
        let octets = fs::read(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        String::from_utf8_lossy(&octets).into_owned()
    });
    Done { name: job.name, judge: job.judge, took, status, stdout, stderr }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { name: script.to_owned(), command, judge: Judge::Results }
    }

    /// Runs the jobs with their output in a folder of this test.
    fn ran(test: &str, jobs: Vec<Job>) -> Vec<Done> {
        let folder = std::env::temp_dir().join(format!("anabranch-xtask-{test}-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder of our own");
        let mut all_done = Vec::new();
        all(jobs, &folder, |done| all_done.push(done));
        fs::remove_dir(&folder).expect("nothing is left behind");
        all_done.sort_by(|a, b| a.name.cmp(&b.name));
        all_done
    }

    #[test]
    fn each_job_runs_once_and_keeps_its_output() {
        let scripts = ["echo a; echo b >&2", "echo c; exit 3"];
        let done = ran("output", scripts.map(shell).into());
        let said: Vec<_> = done.iter().map(|done| (&*done.stdout, &*done.stderr)).collect();
        assert_eq!(said, [("a\n", "b\n"), ("c\n", "")]);
        let codes = done.iter().map(|done| done.status.as_ref().ok().and_then(ExitStatus::code));
        assert_eq!(codes.collect::<Vec<_>>(), [Some(0), Some(3)]);
    }

    /// With a pipe, the reader would wait forever for the grandchild.
    #[test]
    fn a_grandchild_that_outlives_its_parent_holds_nothing_up() {
        let fifo = std::env::temp_dir().join(format!("anabranch-xtask-pipe-{}", std::process::id()));
        let fifo = fifo.display();
        let done = ran("fifo", vec![shell(&format!("mkfifo {fifo}; (read line <{fifo}) & echo $!"))]);
        assert_eq!(done.len(), 1);
        let ended = Command::new("sh").args(["-c", &format!("echo >{fifo}; rm {fifo}")]).status();
        assert!(ended.is_ok_and(|status| status.success()));
    }

    #[test]
    fn a_program_that_is_missing_and_a_signal_are_told() {
        let missing = Job { name: "0".into(), command: Command::new("/nowhere/0"), judge: Judge::Status };
        let done = ran("missing", vec![missing, shell("kill -9 $$")]);
        assert!(done[0].status.is_err());
        assert!(done[1].status.as_ref().is_ok_and(|status| status.code().is_none()));
    }
}
