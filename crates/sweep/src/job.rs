//! Runs as something that can be sent away: with the resolved scenario, the contents of its files, seeds and numbers, a process
//! that has nothing but this library can make them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Real;

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::scenario::record::Metrics;
use anabranch_sim::scenario::{Plan, Scenario, Source, Undrawable};
use anabranch_sim::sim::Pause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::address::{BUILD, Files, Root, RunKey, VERSION};
use crate::clock::Began;
use crate::error::Error;
use crate::points::{Point, Sweep};
use crate::row::{Row, Schema};

/// Some runs of one point.
#[derive(Clone, Debug)]
pub struct Job {
    /// The point's number, for reports.
    pub point: usize,
    scenario: Arc<Scenario>,
    files: Arc<Files>,
    root: Root,
    /// The runs.
    pub runs: Vec<RunKey>,
}

/// A job as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    version: String,
    build: String,
    point: usize,
    scenario: String,
    files: std::collections::BTreeMap<String, String>,
    runs: Vec<(u64, u64)>,
}

impl Job {
    /// Some runs of a point.
    ///
    /// # Errors
    /// A scenario of a large sweep that could be read before and no longer can.
    pub fn new(sweep: &Sweep, point: &Point, runs: Vec<RunKey>) -> Result<Self, Error> {
        Ok(Self {
            point: point.index,
            scenario: sweep.scenario_of(point)?,
            files: point.files.clone(),
            root: point.root,
            runs,
        })
    }

    /// The job as JSON, for another process.
    pub fn to_json(&self) -> String {
        let letter = Letter {
            version: VERSION.to_owned(),
            build: BUILD.to_owned(),
            point: self.point,
            scenario: self.scenario.to_toml(),
            files: self
                .files
                .iter()
                .map(|(name, content)| (name.clone(), STANDARD.encode(content)))
                .collect(),
            runs: self.runs.iter().map(|key| (key.seed, key.run)).collect(),
        };
        serde_json::to_string(&letter).expect("a job is plain data with string keys")
    }

    /// A job from JSON.
    ///
    /// # Errors
    /// [`Error::Foreign`] if it is none, or one of another version, whose results need not be ours.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let foreign = |why: &dyn std::fmt::Display| Error::Foreign(format!("this is no job of ours: {why}"));
        let letter: Letter = serde_json::from_str(text).map_err(|e| foreign(&e))?;
        if letter.version != VERSION {
            let message = format!("the job is of version {}, this is {VERSION}", letter.version);
            return Err(Error::Foreign(message));
        }
        if letter.build != BUILD {
            let message = "the job is of another build of this version: its results need not be ours";
            return Err(Error::Foreign(message.to_owned()));
        }
        let scenario = Source::new("job", letter.scenario).scenario()?;
        let mut files = Files::new();
        for (name, content) in letter.files {
            files.insert(name, STANDARD.decode(content).map_err(|e| foreign(&e))?.into());
        }
        if let Some(name) = scenario.files().find(|name| !files.contains_key(*name)) {
            return Err(foreign(&format!("it lacks the file `{name}`")));
        }
        let root = scenario.root(&files);
        let runs = letter.runs.into_iter().map(|(seed, run)| RunKey { seed, run }).collect();
        Ok(Self { point: letter.point, scenario: Arc::new(scenario), files: Arc::new(files), root, runs })
    }

    /// Makes all its runs, one after another; `None` if `cancel` has become true meanwhile.
    ///
    /// # Errors
    /// [`Error::Panicked`], by a fault of the simulator.
    pub fn run(&self, cancel: &AtomicBool) -> Result<Option<Vec<Row>>, Error> {
        let mut rows: Vec<Row> = Vec::with_capacity(self.runs.len());
        for key in &self.runs {
            let like = rows.last().map(|row| row.schema.clone());
            match self.run_one(*key, like.as_ref(), cancel)? {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Makes one run. Rows whose metrics are those of `like` share it.
    pub(crate) fn run_one(
        &self,
        key: RunKey,
        like: Option<&Arc<Schema>>,
        cancel: &AtomicBool,
    ) -> Result<Option<Row>, Error> {
        let work = std::panic::AssertUnwindSafe(|| simulate(&self.scenario, key, &self.files, cancel));
        let metrics = std::panic::catch_unwind(work).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Error::Panicked {
                point: self.point,
                seed: key.seed,
                run: key.run,
                message: text.unwrap_or_default(),
            }
        })?;
        let metrics = metrics.map_err(|error| Error::Impossible {
            message: format!("run {} with seed {} of point {}: {error}", key.run, key.seed, self.point),
            hint: error.hint().to_owned(),
        })?;
        Ok(metrics.map(|metrics| Row::new(self.root.run(key.seed, key.run), &metrics, like)))
    }
}

/// Slices of simulated time after each of which one asks whether to go on, at least.
const SLICES: u64 = 64;
/// The first slice; those that take no time are followed by longer ones.
const FIRST: Duration = Duration::from_millis(1);
/// Real time that a slice should take, from and to: whoever stops a run does not wait for longer.
const QUICK: Real = Real::from_millis(5);
const SLOW: Real = Real::from_millis(50);

/// [`Scenario::run`], which can be stopped.
fn simulate(
    scenario: &Scenario,
    key: RunKey,
    files: &Files,
    cancel: &AtomicBool,
) -> Result<Option<Metrics>, Undrawable> {
    let Plan { builder, planned } = scenario.plan(key.seed, key.run, files)?;
    let mut sim = builder.build();
    let whole = scenario.stop.saturating_since(Instant::ZERO).as_nanos();
    let longest = Duration::from_nanos((whole / SLICES).max(1));
    let mut slice = FIRST.min(longest);
    loop {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (next, began) = ((sim.now() + slice).min(scenario.stop), Began::now());
        if sim.run_until(next) != Pause::Reached || next == scenario.stop {
            return Ok(Some(scenario.metrics(&planned, &sim)));
        }
        // Where slices end does not show in what a run says.
        let took = began.elapsed();
        if took < QUICK {
            slice = Duration::from_nanos(slice.as_nanos() * 2).min(longest);
        } else if took > SLOW {
            slice = Duration::from_nanos((slice.as_nanos() / 2).max(1));
        }
    }
}
