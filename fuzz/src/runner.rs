//! Feeds a target until its time or number of executions is over, or until it panics.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[allow(clippy::disallowed_types, reason = "how long a fuzzer runs is wall time; no target sees it")]
use std::time::Instant;

use crate::crash::{self, Crash};
use crate::mutate::{self, Rng};
use crate::probe::Probe;
use crate::targets::Target;
use crate::watchdog::Watchdog;

/// Extent of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budget {
    /// Limit on the time.
    Time(Duration),
    /// Number of executions, including the corpus; equal on every machine.
    Executions(u64),
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Number of executions.
    pub executions: u64,
    /// Number of inputs that reached something new, including those of the corpus.
    pub kept: usize,
    /// Number of different features reached.
    pub features: usize,
    /// Number of executions that reached each landmark.
    pub landmarks: BTreeMap<&'static str, u64>,
    /// The first panic, which ended the run.
    pub crash: Option<Crash>,
}

/// Runs the corpus of `target`, then inputs mutated from it.
pub fn run(target: &Target, corpus: &[Vec<u8>], seed: u64, budget: Budget) -> Report {
    run_with(target, corpus, seed, budget, Probe::quiet())
}

/// Like [`run`], with the given probe.
pub fn run_with(target: &Target, corpus: &[Vec<u8>], seed: u64, budget: Budget, probe: Probe) -> Report {
    let mut run = Run {
        target,
        rng: Rng::new(seed),
        probe,
        landmarks: BTreeMap::new(),
        known: vec![false; 1 << 16],
        pool: Vec::new(),
        executions: 0,
        watchdog: Watchdog::new(target.name),
    };
    let mut deadline = Deadline::new(budget);
    let mut next = corpus.iter();
    let mut failure = None;
    while failure.is_none() && deadline.allows(run.executions) {
        let input = next.next().cloned().unwrap_or_else(|| run.invent());
        failure = run.execute(input);
    }
    Report {
        executions: run.executions,
        kept: run.pool.len(),
        features: run.known.iter().filter(|known| **known).count(),
        landmarks: run.landmarks,
        crash: failure,
    }
}

struct Run<'a> {
    target: &'a Target,
    rng: Rng,
    probe: Probe,
    landmarks: BTreeMap<&'static str, u64>,
    /// Features reached so far.
    known: Vec<bool>,
    /// The inputs that reached them first.
    pool: Vec<Vec<u8>>,
    executions: u64,
    watchdog: Watchdog,
}

impl Run<'_> {
    fn invent(&mut self) -> Vec<u8> {
        let rng = &mut self.rng;
        if self.pool.is_empty() || rng.below(50) == 0 {
            let len = rng.below(self.target.max_len + 1);
            return mutate::random(len, rng);
        }
        // In half of the executions choose one of the newest inputs, where most remains to be
        // found.
        let newest = if rng.below(2) == 0 { self.pool.len().saturating_sub(32) } else { 0 };
        let mut input = self.pool[newest + rng.below(self.pool.len() - newest)].clone();
        let other = &self.pool[rng.below(self.pool.len())];
        mutate::mutate(&mut input, other, self.target.max_len, rng);
        input
    }

    fn execute(&mut self, input: Vec<u8>) -> Option<Crash> {
        self.executions += 1;
        self.probe.clear();
        self.watchdog.begin(&input);
        if let Err(failure) = crash::execute(self.target, &input, &mut self.probe) {
            return Some(crash::minimise(self.target, input, failure, MINIMISING_TRIES));
        }
        for landmark in self.probe.landmarks() {
            *self.landmarks.entry(landmark).or_default() += 1;
        }
        let mut is_new = false;
        for feature in self.probe.features() {
            let known = &mut self.known[usize::from(*feature)];
            is_new |= !*known;
            *known = true;
        }
        if is_new {
            self.pool.push(input);
        }
        None
    }
}

/// Checks the budget. The clock is not read for each execution, since that would cost as much as a
/// short target.
struct Deadline {
    budget: Budget,
    #[allow(clippy::disallowed_types, reason = "see the import")]
    start: Instant,
    ask_at: u64,
    asked: Duration,
}

impl Deadline {
    fn new(budget: Budget) -> Self {
        #[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "see the import")]
        let start = Instant::now();
        Self { budget, start, ask_at: 0, asked: Duration::ZERO }
    }

    fn allows(&mut self, executions: u64) -> bool {
        match self.budget {
            Budget::Executions(limit) => executions < limit,
            Budget::Time(limit) => {
                if executions >= self.ask_at {
                    let now = self.start.elapsed();
                    // About a hundred times per second.
                    let rate = executions.checked_div(now.as_millis() as u64).unwrap_or(1).max(1);
                    self.ask_at = executions + (rate * 10).min(1000);
                    self.asked = now;
                }
                self.asked < limit
            }
        }
    }
}

/// Folder of a target's corpus, with which every run starts.
pub fn corpus_directory(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// A target's corpus in the order of file names; empty if there is none.
pub fn corpus(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let entries = match fs::read_dir(corpus_directory(target)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    files.iter().map(fs::read).collect()
}

/// Limit on the executions for minimising an input.
const MINIMISING_TRIES: usize = 5_000;
