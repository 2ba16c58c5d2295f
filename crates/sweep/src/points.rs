//! The points of a sweep: every combination of the grid with every combination of samples, and the
//! scenario or experiment at each of them.

#[cfg(feature = "tables")]
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_scenario::{Place, Scenario, ScenarioError, Source, Tree};
use bytes::Bytes;
use rayon::prelude::*;
use serde_json::Value;

use crate::address::{Address, Files, Root, RunKey};
use crate::error::Error;
#[cfg(feature = "tables")]
use crate::experiment::json_value;
use crate::experiment::{ParameterError, Settings};
use crate::spec::{Runs, Spec, Subject};
use crate::store::Store;
use crate::task::{Recorder, Task, Trial};

/// Upper limit of points, and of runs of all points. Writing tables holds all results in memory.
pub const MOST_RUNS: u64 = 1_000_000;

/// Number of checked scenarios and experiment points that are kept until they run; those of further
/// points are created again.
const HELD: usize = 20_000;
/// Number of points that are created before errors are checked.
const PORTION: usize = 1_024;
/// Upper limit of points that are created on the calling thread; using other threads would take
/// longer.
pub const FEW: usize = 8;

/// A spec together with its points.
#[derive(Debug)]
pub struct Sweep {
    spec: Spec,
    factors: Vec<Factor>,
    points: usize,
    seeds: Vec<u64>,
    /// The parameters in the order in which they apply: fixed ones first, and in each part from
    /// general to specific.
    order: Vec<String>,
    files: Mutex<BTreeMap<PathBuf, Bytes>>,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
}

/// Parameters that vary together, and the number of their values.
#[derive(Debug)]
struct Factor {
    count: usize,
    axes: BTreeMap<String, Vec<Value>>,
}

/// A point, ready to run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Number of the point, counted from 0.
    pub index: usize,
    /// Executes its runs; `None` if it is created again when needed.
    task: Option<Task>,
    /// The number of gateways chosen for `gateways = "best"`, by transfer name.
    pub chosen: BTreeMap<String, u32>,
    /// SHA-256 of the resolved scenario in hexadecimal.
    pub hash: String,
    /// The common part of the addresses of its runs.
    pub root: Root,
}

/// A scenario and the contents of its files.
pub type Simulated = (Arc<Scenario>, Arc<Files>);

impl Sweep {
    /// Creates the points of a spec.
    ///
    /// # Errors
    /// The scenario cannot be read, or there are more than [`MOST_RUNS`] runs. The effects of
    /// parameters on the scenario are checked only by [`Sweep::all_points`].
    pub fn new(spec: Spec) -> Result<Self, Error> {
        let mut factors = Vec::new();
        let grid = match &spec.subject {
            Subject::Experiment(_) => spec.grid.clone(),
            Subject::Scenario { source, .. } => {
                let mut axes = source.own_axes()?;
                // A path in the spec replaces the file's own axis for the same path.
                let sampled = spec.samples.iter().flat_map(|samples| samples.axes.keys());
                let listed = spec.listed.iter().flat_map(|point| point.keys());
                let zipped = spec.zipped.iter().flat_map(|axes| axes.keys());
                for path in spec.fixed.keys().chain(sampled).chain(listed).chain(zipped) {
                    axes.remove(path);
                }
                axes.extend(spec.grid.iter().cloned());
                // The last axis by name varies fastest, as in the scenario's own sweeps.
                axes.into_iter().collect()
            }
        };
        if let Some(first) = spec.listed.first() {
            let column = |path: &String| {
                let values = spec.listed.iter().map(|point| point.get(path).cloned().unwrap_or_default());
                (path.clone(), values.collect())
            };
            factors.push(Factor { count: spec.listed.len(), axes: first.keys().map(column).collect() });
        }
        for axes in &spec.zipped {
            // The spec has checked that all axes have the same number of values.
            let count = axes.values().map(Vec::len).min().unwrap_or(0);
            factors.push(Factor { count, axes: axes.clone() });
        }
        for (path, values) in grid {
            factors.push(Factor { count: values.len(), axes: [(path, values)].into() });
        }
        for (which, samples) in (0..).zip(&spec.samples) {
            factors.push(Factor { count: samples.count as usize, axes: samples.values(spec.seed, which) });
        }
        let seeds = match &spec.subject {
            _ if !spec.seeds.is_empty() => spec.seeds.clone(),
            Subject::Scenario { source, .. } => vec![source.seed()?],
            Subject::Experiment(_) => vec![1],
        };
        let points = factors.iter().map(|factor| factor.count as u128).fold(1, u128::saturating_mul);
        let runs = match &spec.runs {
            Runs::Fixed(runs) => *runs,
            Runs::Enough(enough) => enough.max,
        };
        let all = points.saturating_mul(seeds.len() as u128).saturating_mul(u128::from(runs));
        if all > u128::from(MOST_RUNS) {
            return Err(Error::Impossible {
                message: format!(
                    "{points} points with {} seeds and up to {runs} runs each are {all} runs, more than {MOST_RUNS}",
                    seeds.len()
                ),
                hint: "make several sweeps of it, or sample instead of a grid".to_owned(),
            });
        }
        let mut order = Vec::new();
        if let Subject::Scenario { source, .. } = &spec.subject {
            let fixed = spec.fixed.keys().map(String::as_str).collect();
            let varied = factors.iter().flat_map(|factor| factor.axes.keys().map(String::as_str));
            let varied = varied.filter(|path| !spec.fixed.contains_key(*path)).collect();
            let paths = [source.in_order(fixed)?, source.in_order(varied)?].concat();
            order.extend(paths.into_iter().map(str::to_owned));
        }
        Ok(Self {
            spec,
            factors,
            points: points as usize,
            seeds,
            order,
            files: Mutex::default(),
            recorder: None,
        })
    }

    /// The recorder of its runs, if there is one.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.recorder.clone()
    }

    /// True if all results of a run exist.
    pub(crate) fn has(&self, store: &Store, point: &Point, key: RunKey, run: &Address) -> bool {
        store.contains(run) && self.recorder.as_ref().is_none_or(|recorder| recorder.has(point.index, key))
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The seeds, in the order of the runs of a point.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// The paths of parameters that differ from the scenario's text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = self.spec.fixed.keys().map(String::as_str).collect();
        names.extend(self.varied());
        names.sort_unstable();
        names.into_iter()
    }

    /// The paths of parameters that vary between points.
    pub fn varied(&self) -> impl Iterator<Item = &str> {
        self.factors.iter().flat_map(|factor| factor.axes.keys().map(String::as_str))
    }

    /// All values of a parameter of [`Sweep::names`].
    pub fn values(&self, path: &str) -> impl Iterator<Item = &Value> {
        let varied = self.factors.iter().filter_map(move |factor| factor.axes.get(path)).flatten();
        self.spec.fixed.get(path).into_iter().chain(varied)
    }

    /// The parameters of a point that differ from the scenario's text, fixed and varied, by path.
    /// `index` must be below [`Sweep::points`].
    pub fn parameters(&self, index: usize) -> BTreeMap<String, Value> {
        let mut parameters = self.spec.fixed.clone();
        let mut rest = index;
        for factor in self.factors.iter().rev() {
            let place = rest % factor.count;
            rest /= factor.count;
            parameters.extend(factor.axes.iter().map(|(path, values)| (path.clone(), values[place].clone())));
        }
        parameters
    }

    /// The value as shown in tables. Experiments may have numbers that were given as text, as on a
    /// command line.
    #[cfg(feature = "tables")]
    pub(crate) fn shown<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        match (&self.spec.subject, value) {
            (Subject::Experiment(_), Value::String(text)) => Cow::Owned(json_value(text)),
            _ => Cow::Borrowed(value),
        }
    }

    /// The settings of each point of an experiment, not parsed yet; empty for a scenario.
    ///
    /// # Errors
    /// The experiment does not have a parameter.
    pub fn settings(&self) -> Result<Vec<Settings>, ParameterError> {
        let Some(experiment) = self.spec.experiment() else { return Ok(Vec::new()) };
        (0..self.points).map(|index| Settings::of(experiment, &self.parameters(index))).collect()
    }

    /// Creates a point. `parsed` is the text of a scenario.
    fn point(&self, index: usize, parsed: Option<&Tree<'_>>) -> Result<Point, Error> {
        let parameters = self.parameters(index);
        let task = match (&self.spec.subject, parsed) {
            (Subject::Scenario { source, folder }, Some(parsed)) => {
                self.simulation(source, folder, parsed, &parameters)?
            }
            (Subject::Experiment(experiment), _) => {
                let point = Settings::of(*experiment, &parameters).and_then(|all| experiment.point(&all));
                let point = point.map_err(|error| self.refused(error, &parameters))?;
                Task::Experiment(Arc::new(Trial::new(*experiment, point)))
            }
            (Subject::Scenario { .. }, None) => unreachable!("the text of a scenario is parsed first"),
        };
        let scenario = task.scenario();
        let chosen = scenario.advised().iter();
        let chosen =
            chosen.map(|(transfer, best)| (scenario.transfers[*transfer].name.clone(), best.gateways as u32));
        let (chosen, hash, root) = (chosen.collect(), scenario.hash(), task.root());
        Ok(Point { index, task: Some(task), chosen, hash, root })
    }

    /// Creates the scenario at a point.
    fn simulation(
        &self,
        source: &Source,
        folder: &Path,
        parsed: &Tree<'_>,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Task, Error> {
        let mut set = source.clone();
        for path in &self.order {
            set = set.set(assignment(path, &parameters[path]));
        }
        let scenario = set.scenario_from(parsed);
        let scenario = scenario.map_err(|error| self.placed(source, error, parameters))?;
        let tun = scenario.nodes.iter().find(|node| node.tun.is_some());
        if let Some(node) = tun {
            return Err(Error::Impossible {
                message: format!(
                    "the scenario's node `{}` has host = \"tun\" and cannot be simulated",
                    node.name
                ),
                hint: "a sweep simulates; `anabranch emulate` runs such a network".to_owned(),
            });
        }
        let files = Arc::new(self.files_of(&scenario, folder)?);
        Ok(Task::Scenario { scenario: Arc::new(scenario), files })
    }

    /// Parses the text of the scenario, if there is one.
    fn parsed(&self) -> Result<Option<Tree<'_>>, Error> {
        match &self.spec.subject {
            Subject::Scenario { source, .. } => Ok(Some(source.parsed()?)),
            Subject::Experiment(_) => Ok(None),
        }
    }

    /// Creates all points on all threads of the current pool, or up to [`FEW`] on this thread.
    ///
    /// # Errors
    /// The first invalid point, with the place in the spec if a parameter causes the error; a file
    /// that cannot be read.
    pub fn all_points(&self) -> Result<Vec<Point>, Error> {
        let mut points = Vec::with_capacity(self.points);
        let parsed = self.parsed()?;
        if self.points <= FEW {
            return (0..self.points).map(|index| self.point(index, parsed.as_ref())).collect();
        }
        // In portions, so that a value that is invalid everywhere is not reported a million times.
        for first in (0..self.points).step_by(PORTION) {
            let portion = first..(first + PORTION).min(self.points);
            let made = portion.into_par_iter().map(|index| self.point(index, parsed.as_ref()));
            for point in made.collect::<Vec<_>>() {
                let mut point = point?;
                if point.index >= HELD {
                    point.task = None;
                }
                points.push(point);
            }
        }
        Ok(points)
    }

    /// Returns the task of a point, creating it if it was not kept.
    pub(crate) fn task_of(&self, point: &Point) -> Result<Task, Error> {
        if let Some(task) = &point.task {
            return Ok(task.clone());
        }
        let again = self.point(point.index, self.parsed()?.as_ref())?;
        Ok(again.task.expect("a point has its task when it has just been made"))
    }

    /// The scenario at a point with the contents of its files, for runs with observers; `None` for
    /// an experiment, which executes its own runs.
    ///
    /// # Errors
    /// As [`crate::Job::new`].
    pub fn simulated(&self, point: &Point) -> Result<Option<Simulated>, Error> {
        Ok(match self.task_of(point)? {
            Task::Scenario { scenario, files } => Some((scenario, files)),
            Task::Experiment(_) => None,
        })
    }

    /// Every parameter of an experiment at a point with its resolved value, in a form that can be
    /// parsed again; empty for a scenario.
    ///
    /// # Errors
    /// As [`crate::Job::new`].
    pub fn resolved(&self, point: &Point) -> Result<Vec<(&'static str, String)>, Error> {
        Ok(match self.task_of(point)? {
            Task::Experiment(trial) => trial.point.parameters(),
            Task::Scenario { .. } => Vec::new(),
        })
    }

    /// The contents of the files that a scenario uses. Each file is read once.
    fn files_of(&self, scenario: &Scenario, folder: &Path) -> Result<Files, Error> {
        let mut known = self.files.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let content = |name: &str| {
            let path = folder.join(name);
            let content = match known.get(&path) {
                Some(content) => content.clone(),
                None => Bytes::from(std::fs::read(&path).map_err(|e| Error::unreadable(&path, e))?),
            };
            known.insert(path, content.clone());
            Ok((name.to_owned(), content))
        };
        scenario.files().map(content).collect()
    }

    /// An error of a scenario at a point, with the place of the parameter if known, and the point.
    fn placed(&self, source: &Source, error: ScenarioError, parameters: &BTreeMap<String, Value>) -> Error {
        let ScenarioError { mut place, mut message, hint } = error;
        if let Place::Override(text) = &place
            && let Some((path, value)) = text.split_once('=')
        {
            message = format!("{message} (`{path}` = {value})");
            if let Some(said) =
                self.spec.place(path, parameters.get(path)).cloned().or_else(|| source.axis_place(path))
            {
                place = said;
            }
        } else {
            // If the scenario itself is invalid, the point is not the cause.
            if source.scenario().is_ok() {
                message += &self.at(parameters);
            }
        }
        ScenarioError { place, message, hint }.into()
    }

    /// An error of an experiment at a point, with the place of the parameter if it comes from a
    /// file.
    fn refused(&self, error: ParameterError, parameters: &BTreeMap<String, Value>) -> Error {
        let Some(file) = self.spec.file() else { return error.into() };
        let (mut place, mut message) = (Place::Whole { name: file.to_owned() }, error.reason());
        match error.key().and_then(|key| Some((key, self.spec.place(key, parameters.get(key))?))) {
            Some((key, said)) => {
                place = said.clone();
                if matches!(error, ParameterError::BadValue { .. }) {
                    message += &format!(" (`{key}` = {})", parameters[key]);
                }
            }
            // Several parameters together are invalid, while each is valid.
            None => message += &self.at(parameters),
        }
        ScenarioError { place, message, hint: error.hint() }.into()
    }

    /// Describes a point for an error message.
    fn at(&self, parameters: &BTreeMap<String, Value>) -> String {
        let value = |path: &str| Some(format!("`{path}` = {}", parameters.get(path)?));
        let varied: Vec<String> = self.varied().filter_map(value).collect();
        if varied.is_empty() { String::new() } else { format!(", at the point {}", varied.join(", ")) }
    }
}

/// Formats a parameter as an override. JSON strings, numbers and lists are valid TOML; tables are
/// not.
fn assignment(path: &str, value: &Value) -> String {
    let mut text = format!("{path}=");
    toml_of(value, &mut text);
    text
}

fn toml_of(value: &Value, text: &mut String) {
    let list = |text: &mut String, ends: [char; 2], write: &mut dyn FnMut(&mut String)| {
        text.push(ends[0]);
        write(text);
        text.push(ends[1]);
    };
    match value {
        Value::Array(items) => list(text, ['[', ']'], &mut |text| {
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i > 0 { ", " } else { "" });
                toml_of(item, text);
            }
        }),
        Value::Object(entries) => list(text, ['{', '}'], &mut |text| {
            for (i, (key, item)) in entries.iter().enumerate() {
                text.push_str(if i > 0 { ", " } else { "" });
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push_str(" = ");
                toml_of(item, text);
            }
        }),
        // JSON allows an unescaped DEL, TOML does not.
        plain => text.push_str(&plain.to_string().replace('\u{7f}', "\\u007f")),
    }
}
