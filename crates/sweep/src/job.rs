//! Jobs: runs that can be sent to another process. A job contains the resolved scenario and the
//! contents of its files, or the name and parameters of an experiment, and the seeds and numbers of
//! its runs. A process with only this library can execute it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_scenario::{Policies, Source};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::address::{BUILD, Files, Root, RunKey, VERSION};
use crate::error::Error;
use crate::experiment::{self, Experiments, Settings};
use crate::points::{Point, Sweep};
use crate::row::{Row, Schema};
use crate::task::{Blind, Look, Recorder, Task, Trial};

/// Some runs of one point.
#[derive(Clone, Debug)]
pub struct Job {
    /// Number of the point, for reports.
    pub point: usize,
    task: Task,
    root: Root,
    /// Records more of the runs than their rows; `None` in a job that is sent.
    recorder: Option<Arc<dyn Recorder>>,
    /// The runs.
    pub runs: Vec<RunKey>,
}

/// The JSON form of a job.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    version: String,
    build: String,
    point: usize,
    task: TaskLetter,
    runs: Vec<(u64, u64)>,
}

/// The JSON form of a task.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum TaskLetter {
    Scenario { text: String, files: BTreeMap<String, String> },
    Experiment { name: String, build: String, parameters: BTreeMap<String, String> },
}

impl Job {
    /// Creates a job with these runs of a point.
    ///
    /// # Errors
    /// A scenario of a large sweep must be read again and cannot be read any more.
    pub fn new(sweep: &Sweep, point: &Point, runs: Vec<RunKey>) -> Result<Self, Error> {
        Ok(Self {
            point: point.index,
            task: sweep.task_of(point)?,
            root: point.root,
            recorder: sweep.recorder(),
            runs,
        })
    }

    /// The job as JSON, for another process.
    pub fn to_json(&self) -> String {
        let task = match &self.task {
            Task::Scenario { scenario, files } => TaskLetter::Scenario {
                text: scenario.to_toml(),
                files: files.iter().map(|(name, content)| (name.clone(), STANDARD.encode(content))).collect(),
            },
            Task::Experiment(trial) => TaskLetter::Experiment {
                name: trial.experiment.name().to_owned(),
                build: trial.experiment.build().to_owned(),
                parameters: trial.point.parameters().into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            },
        };
        let letter = Letter {
            version: VERSION.to_owned(),
            build: BUILD.to_owned(),
            point: self.point,
            task,
            runs: self.runs.iter().map(|key| (key.seed, key.run)).collect(),
        };
        serde_json::to_string(&letter).expect("a job is plain data with string keys")
    }

    /// Parses a job. `experiments` are those that this process knows.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the text is not a job, or a job of another version, whose results may
    /// differ.
    pub fn from_json(text: &str, experiments: Experiments<'_>) -> Result<Self, Error> {
        Self::from_json_with(text, experiments, Policies::default())
    }

    /// As [`Job::from_json`], for a scenario that may name custom policies. The process that sent
    /// the job has the same policies.
    ///
    /// # Errors
    /// As [`Job::from_json`].
    pub fn from_json_with(
        text: &str,
        experiments: Experiments<'_>,
        policies: Policies,
    ) -> Result<Self, Error> {
        let letter: Letter = serde_json::from_str(text).map_err(|e| foreign(&e))?;
        if letter.version != VERSION {
            let message = format!("the job is of version {}, this is {VERSION}", letter.version);
            return Err(Error::Foreign(message));
        }
        if letter.build != BUILD {
            return Err(other_build());
        }
        let task = letter.task.task(experiments, policies)?;
        let runs = letter.runs.into_iter().map(|(seed, run)| RunKey { seed, run }).collect();
        Ok(Self { point: letter.point, root: task.root(), task, recorder: None, runs })
    }

    /// Executes all runs, one after another; `None` if `cancel` was set meanwhile.
    ///
    /// # Errors
    /// [`Error::Panicked`] for a bug of the simulator.
    pub fn run(&self, cancel: &AtomicBool) -> Result<Option<Vec<Row>>, Error> {
        let mut rows: Vec<Row> = Vec::with_capacity(self.runs.len());
        for key in &self.runs {
            let like = rows.last().map(|row| row.schema.clone());
            match self.run_one(*key, like.as_ref(), &|| cancel.load(Ordering::Relaxed))? {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Executes one run. The row shares the schema `like` if its metrics match.
    pub(crate) fn run_one(
        &self,
        key: RunKey,
        like: Option<&Arc<Schema>>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Row>, Error> {
        let RunKey { seed, run } = key;
        let id = self.root.run(seed, run);
        let mut look: Box<dyn Look + '_> = match &self.recorder {
            Some(recorder) => recorder.look(self.point, key),
            None => Box::new(Blind),
        };
        let work = std::panic::AssertUnwindSafe(|| self.task.run(key, &mut *look, is_over));
        let metrics = std::panic::catch_unwind(work).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Error::Panicked { point: self.point, seed, run, message: text.unwrap_or_default() }
        })?;
        let metrics = metrics.map_err(|error| Error::Run { point: self.point, seed, run, error })?;
        Ok(metrics.map(|metrics| Row::new(id, &metrics, like)))
    }
}

impl TaskLetter {
    fn task(self, experiments: Experiments<'_>, policies: Policies) -> Result<Task, Error> {
        match self {
            Self::Scenario { text, files: encoded } => {
                let mut files = Files::new();
                for (name, content) in encoded {
                    files.insert(name, STANDARD.decode(content).map_err(|e| foreign(&e))?.into());
                }
                let sent = files.clone();
                let read = move |name: &str| {
                    let content = sent.get(name).ok_or("the job lacks it")?;
                    String::from_utf8(content.to_vec()).map_err(|error| error.to_string())
                };
                let scenario =
                    Source::new("job", text).with_texts(read).with_policies(policies).scenario()?;
                if let Some(name) = scenario.files().find(|name| !files.contains_key(*name)) {
                    return Err(foreign(&format!("it lacks the file `{name}`")));
                }
                Ok(Task::Scenario { scenario: Arc::new(scenario), files: Arc::new(files) })
            }
            Self::Experiment { name, build, parameters } => {
                let experiment = experiment::find(experiments, &name).map_err(|e| foreign(&e))?;
                if build != experiment.build() {
                    return Err(other_build());
                }
                let parameters = parameters.into_iter().map(|(name, text)| (name, text.into())).collect();
                let settings = Settings::of(experiment, &parameters).map_err(|e| foreign(&e))?;
                let point = experiment.point(&settings).map_err(|e| foreign(&e))?;
                Ok(Task::Experiment(Arc::new(Trial::new(experiment, point))))
            }
        }
    }
}

fn foreign(why: &dyn std::fmt::Display) -> Error {
    Error::Foreign(format!(
        "not a valid job file: {why}; expected a job written by `anabranch sweep` of the same version"
    ))
}

fn other_build() -> Error {
    Error::Foreign("the job is of another build of this version: its results need not be ours".to_owned())
}
