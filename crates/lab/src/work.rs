//! Number of runs, seed, and progress of measurements.

use std::fmt;

use crate::experiment::{Experiment, Settings};

/// Values of some parameters of an experiment.
pub type Values = [(&'static str, String)];

/// Number of runs per point with random input, their seed, and the progress callback.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Number of runs, at least 1.
    pub runs: usize,
    /// Seed of all runs.
    pub seed: u64,
    watch: Option<&'a (dyn Fn() + Sync)>,
    over: &'a Values,
}

impl<'a> Work<'a> {
    /// Creates work with this number of runs and no progress callback.
    pub fn new(runs: usize, seed: u64) -> Self {
        Self { runs: runs.max(1), seed, watch: None, over: &[] }
    }

    /// Adds a callback that is called after every run, by any thread.
    #[must_use]
    pub fn watched(self, watch: &'a (dyn Fn() + Sync)) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Changes the number of runs.
    #[must_use]
    pub fn with_runs(self, runs: usize) -> Self {
        Self { runs: runs.max(1), ..self }
    }

    /// Replaces the defaults of these parameters: see [`Work::settings`].
    #[must_use]
    pub fn with_values(self, over: &'a Values) -> Self {
        Self { over, ..self }
    }

    /// The settings to run. Values that differ from the defaults are kept.
    pub fn settings(&self, experiment: &dyn Experiment, settings: &Settings) -> Settings {
        let is_default = |key: &str| {
            let parameters = experiment.parameters();
            parameters.iter().any(|p| p.name == key && p.default == settings.text(key))
        };
        let over = self.over.iter().filter(|(key, _)| is_default(key));
        over.fold(settings.clone(), |settings, (key, value)| settings.with(key, value))
    }

    /// Reports that a run has ended.
    pub fn ran(&self) {
        if let Some(watch) = self.watch {
            watch();
        }
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, seed, over, .. } = self;
        let mut all = f.debug_struct("Work");
        all.field("runs", runs).field("seed", seed).field("over", over).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtc::Dtc;

    #[test]
    fn values_take_the_place_of_defaults_and_of_nothing_else() {
        let values = [("loss", "0.2".to_owned()), ("window", "7".to_owned()), ("hops", "9".to_owned())];
        let settings = Settings::defaults(&Dtc).with("hops", 11).with("window", 4);
        let work = Work::new(3, 1).with_values(&values).with_runs(2);
        let run = work.settings(&Dtc, &settings);
        assert_eq!(["loss", "window", "hops"].map(|key| run.text(key)), ["0.2", "4", "11"]);
        assert_eq!(run, settings.clone().with("loss", "0.2"));
        assert_eq!(Work::new(3, 1).settings(&Dtc, &settings), settings);
    }
}
