//! The points of a sweep: every combination of the grid with every combination of samples, and what each makes of the scenario.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anabranch_sim::scenario::{Place, Scenario, ScenarioError, Tree};
use bytes::Bytes;
use rayon::prelude::*;
use serde_json::Value;

use crate::address::{Files, Root};
use crate::error::Error;
use crate::spec::{Runs, Spec};

/// Points of a sweep, and runs of all points, at most: results of all of them are held at once when tables are written.
pub const MOST_RUNS: u64 = 1_000_000;

/// Scenarios that are held from when they were checked until they run; those of further points are made again.
const HELD: usize = 20_000;
/// Points that are made before one asks whether any was wrong.
const PORTION: usize = 1_024;

/// A spec together with its points.
#[derive(Debug)]
pub struct Sweep {
    spec: Spec,
    factors: Vec<Factor>,
    points: usize,
    seeds: Vec<u64>,
    /// The parameters as they apply: what is fixed comes first, and each part from the general to the particular.
    order: Vec<String>,
    files: Mutex<BTreeMap<PathBuf, Bytes>>,
}

/// Parameters that vary together, and how many values each has.
#[derive(Debug)]
struct Factor {
    count: usize,
    axes: BTreeMap<String, Vec<Value>>,
}

/// A point, ready to run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its number, from 0.
    pub index: usize,
    /// The scenario with the point's parameters; `None` where it is made again when it is needed.
    pub(crate) scenario: Option<Arc<Scenario>>,
    /// The contents that it carries.
    pub(crate) files: Arc<Files>,
    /// What `gateways = "best"` stands for, by the names of the transfers that say so.
    pub chosen: BTreeMap<String, u32>,
    /// SHA-256 of the resolved scenario, in hexadecimal.
    pub hash: String,
    /// What the addresses of its runs have in common.
    pub root: Root,
}

impl Sweep {
    /// All points of a spec.
    ///
    /// # Errors
    /// A scenario that cannot be read, and more than [`MOST_RUNS`] runs. What a parameter does to the scenario is found out by
    /// [`Sweep::all_points`].
    pub fn new(spec: Spec) -> Result<Self, Error> {
        let mut factors = Vec::new();
        let mut grid = spec.scenario.own_axes()?;
        grid.extend(spec.grid.clone());
        // The last one by name is the fastest, as in the scenario's own sweeps.
        for (path, values) in grid {
            factors.push(Factor { count: values.len(), axes: [(path, values)].into() });
        }
        for (which, samples) in (0..).zip(&spec.samples) {
            factors.push(Factor { count: samples.count as usize, axes: samples.values(spec.seed, which) });
        }
        let seeds = if spec.seeds.is_empty() { vec![spec.scenario.seed()?] } else { spec.seeds.clone() };
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
        let fixed = spec.fixed.keys().map(String::as_str).collect();
        let varied = factors.iter().flat_map(|factor| factor.axes.keys().map(String::as_str));
        let varied = varied.filter(|path| !spec.fixed.contains_key(*path)).collect();
        let order = [spec.scenario.in_order(fixed)?, spec.scenario.in_order(varied)?].concat();
        let order = order.into_iter().map(str::to_owned).collect();
        Ok(Self { spec, factors, points: points as usize, seeds, order, files: Mutex::default() })
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How many points there are.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The seeds, in the order of the runs of a point.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// The parameters that differ from the scenario's text, by their paths.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = self.spec.fixed.keys().map(String::as_str).collect();
        names.extend(self.varied());
        names.sort_unstable();
        names.into_iter()
    }

    /// The parameters that tell points apart.
    pub fn varied(&self) -> impl Iterator<Item = &str> {
        self.factors.iter().flat_map(|factor| factor.axes.keys().map(String::as_str))
    }

    /// All values that a parameter of [`Sweep::names`] has.
    pub fn values(&self, path: &str) -> impl Iterator<Item = &Value> {
        let varied = self.factors.iter().filter_map(move |factor| factor.axes.get(path)).flatten();
        self.spec.fixed.get(path).into_iter().chain(varied)
    }

    /// The parameters of a point that differ from the scenario's text, by their paths: those that are fixed, and those that vary.
    /// `index` is below [`Sweep::points`].
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

    /// Makes a point of the scenario's parsed text.
    fn point(&self, index: usize, parsed: &Tree<'_>) -> Result<Point, Error> {
        let parameters = self.parameters(index);
        let folder = self.spec.folder.clone();
        let length = move |name: &str| Some(std::fs::metadata(folder.join(name)).ok()?.len());
        let mut source = self.spec.scenario.clone().with_lengths(length);
        for path in &self.order {
            source = source.set(assignment(path, &parameters[path]));
        }
        let scenario =
            source.scenario_from(parsed.clone()).map_err(|error| self.placed(error, &parameters))?;
        let tun = scenario.nodes.iter().find(|node| node.tun.is_some());
        if let Some(node) = tun {
            return Err(Error::Impossible {
                message: format!("the kernel stands for the scenario's node `{}`", node.name),
                hint: "a sweep simulates; `anabranch emulate` runs such a network".to_owned(),
            });
        }
        let files = self.files_of(&scenario)?;
        let (hash, root) = (scenario.hash(), scenario.root(&files));
        let chosen = scenario.advised().iter();
        let chosen =
            chosen.map(|(transfer, best)| (scenario.transfers[*transfer].name.clone(), best.gateways as u32));
        let chosen = chosen.collect();
        Ok(Point { index, scenario: Some(Arc::new(scenario)), files: Arc::new(files), chosen, hash, root })
    }

    /// Makes all points, on all threads of the pool that this is called in.
    ///
    /// # Errors
    /// What is wrong with the scenario at the first such point, with the place in the spec if a parameter is to blame; a file that
    /// cannot be read.
    pub fn all_points(&self) -> Result<Vec<Point>, Error> {
        let mut points = Vec::with_capacity(self.points);
        let parsed = self.spec.scenario.parsed()?;
        // In portions, so that a value that is wrong everywhere is not found wrong a million times.
        for first in (0..self.points).step_by(PORTION) {
            let portion = first..(first + PORTION).min(self.points);
            let made: Vec<_> = portion.into_par_iter().map(|index| self.point(index, &parsed)).collect();
            for point in made {
                let mut point = point?;
                if point.index >= HELD {
                    point.scenario = None;
                }
                points.push(point);
            }
        }
        Ok(points)
    }

    /// A point's scenario.
    pub(crate) fn scenario_of(&self, point: &Point) -> Result<Arc<Scenario>, Error> {
        if let Some(scenario) = &point.scenario {
            return Ok(scenario.clone());
        }
        let again = self.point(point.index, &self.spec.scenario.parsed()?)?;
        Ok(again.scenario.expect("a point has its scenario when it has just been made"))
    }

    /// The contents that a scenario carries. Each file is read once.
    fn files_of(&self, scenario: &Scenario) -> Result<Files, Error> {
        let mut known = self.files.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let content = |name: &str| {
            let path = self.spec.folder.join(name);
            let content = match known.get(&path) {
                Some(content) => content.clone(),
                None => Bytes::from(std::fs::read(&path).map_err(|e| Error::unreadable(&path, e))?),
            };
            known.insert(path, content.clone());
            Ok((name.to_owned(), content))
        };
        scenario.files().map(content).collect()
    }

    /// An error of a scenario at a point: where the parameter was written if that is known, and which point it is.
    fn placed(&self, error: ScenarioError, parameters: &BTreeMap<String, Value>) -> Error {
        let ScenarioError { mut place, mut message, hint } = error;
        if let Place::Override(text) = &place
            && let Some((path, value)) = text.split_once('=')
        {
            message = format!("{message} (`{path}` = {value})");
            if let Some(said) = self.spec.place(path) {
                place = said.clone();
            }
        } else {
            // The scenario alone may be at fault; then the point has nothing to do with it.
            let alone = self.spec.scenario.scenario().is_err();
            let varied: Vec<String> = self
                .varied()
                .filter_map(|path| Some(format!("`{path}` = {}", parameters.get(path)?)))
                .collect();
            if !alone && !varied.is_empty() {
                message = format!("{message}, at the point {}", varied.join(", "));
            }
        }
        ScenarioError { place, message, hint }.into()
    }
}

/// A parameter as an override says it. JSON's strings, numbers and lists are TOML's too; tables are not.
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
        // JSON lets a delete stand as it is, TOML does not.
        plain => text.push_str(&plain.to_string().replace('\u{7f}', "\\u007f")),
    }
}
