//! How much is to be run, and who is told how far it is.

use std::fmt;

/// Runs of each random point, the root of their random streams, and who watches.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Runs, at least 1.
    pub runs: usize,
    /// The root of all random streams.
    pub seed: u64,
    watch: Option<&'a (dyn Fn() + Sync)>,
}

impl<'a> Work<'a> {
    /// So many runs that nobody watches.
    pub fn new(runs: usize, seed: u64) -> Self {
        Self { runs: runs.max(1), seed, watch: None }
    }

    /// The same; `watch` is called after every run, by any thread.
    #[must_use]
    pub fn watched(self, watch: &'a (dyn Fn() + Sync)) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// The same with another number of runs.
    #[must_use]
    pub fn with_runs(self, runs: usize) -> Self {
        Self { runs: runs.max(1), ..self }
    }

    /// A run is over.
    pub fn ran(&self) {
        if let Some(watch) = self.watch {
            watch();
        }
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, seed, .. } = self;
        f.debug_struct("Work").field("runs", runs).field("seed", seed).finish_non_exhaustive()
    }
}
