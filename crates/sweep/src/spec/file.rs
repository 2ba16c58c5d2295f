//! The text of a spec. Unknown keys are refused with their place and a suggestion.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use anabranch_scenario::units::Quantity;
use anabranch_scenario::{ScenarioError, Source};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::{Distribution, Method, Runs, Samples, Scale, Spec, Subject, normal};
use crate::enough::{Enough, Width};
use crate::error::Error;
use crate::experiment::{self, Experiments};

/// Upper limit of listed points, seeds or runs, so that a typing error does not fill the memory.
const MOST: u64 = 1_000_000;

/// Context for parsing a spec.
pub(super) enum Given<'p> {
    /// The folder of the scenario that the spec names, and the experiments that it may name.
    Folder(&'p Path, Experiments<'p>),
    /// The scenario and the folder of its files.
    Scenario(Source, &'p Path),
}

/// The content of a spec file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    name: Option<String>,
    scenario: Option<Spanned<String>>,
    experiment: Option<Spanned<String>>,
    #[serde(default = "one")]
    seed: u64,
    seeds: Option<Spanned<SeedsFile>>,
    runs: Option<Spanned<u64>>,
    #[serde(default)]
    set: Table<Value>,
    #[serde(default)]
    grid: Table<Vec<Value>>,
    zip: Option<Spanned<Tables<Vec<Value>>>>,
    point: Option<Spanned<Tables<Value>>>,
    #[serde(default)]
    sample: Vec<SampleFile>,
    enough: Option<Spanned<EnoughFile>>,
}

type Table<T> = BTreeMap<Spanned<String>, Spanned<T>>;
type Tables<T> = Vec<Spanned<Table<T>>>;

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a list of seeds, or a range such as \"1..=10\"")]
enum SeedsFile {
    List(Vec<u64>),
    Range(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleFile {
    #[serde(default)]
    method: MethodName,
    count: Spanned<u64>,
    axes: Spanned<Table<DistributionFile>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MethodName {
    Random,
    #[default]
    LatinHypercube,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DistributionFile {
    Uniform([Value; 2]),
    LogUniform([Value; 2]),
    Integer([i64; 2]),
    Choice(Vec<Value>),
    Normal(NormalFile),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NormalFile {
    mean: Value,
    deviation: Value,
    min: Value,
    max: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnoughFile {
    metric: String,
    width: Spanned<Value>,
    #[serde(default = "least_runs")]
    min: u64,
    max: Spanned<u64>,
}

fn least_runs() -> u64 {
    10
}

/// Parses a spec.
pub(super) fn parse(name: &str, text: &str, given: Given<'_>) -> Result<Spec, Error> {
    let reader = Reader { source: Source::new(name, text) };
    let tree = reader.source.tree()?;
    let has = |key: &str| tree.get_ref().get(key).is_some();
    if !has("scenario") && (has("node") || has("nodes")) {
        let hint =
            format!("run it with `anabranch run {name}`, or name it in a spec: `scenario = \"{name}\"`");
        return reader.fault(0..0, "this is a scenario, not the spec of a sweep", &hint);
    }
    let file: SpecFile = reader.source.read(tree)?;
    let subject = reader.subject(&file, given)?;
    let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut spec = Spec::new(file.name.clone().or(stem).unwrap_or_default(), subject);
    spec.file = Some(name.to_owned());
    spec.seed = file.seed;
    spec.seeds = reader.seeds(file.seeds.as_ref())?;
    spec.runs = reader.runs(&file)?;
    reader.parameters(&file, &mut spec)?;
    Ok(spec)
}

struct Reader {
    source: Source,
}

type Checked<T> = Result<T, Error>;

impl Reader {
    fn error(&self, span: Range<usize>, message: impl Into<String>, hint: Option<&str>) -> Error {
        let place = self.source.place(span);
        ScenarioError { place, message: message.into(), hint: hint.map(str::to_owned) }.into()
    }

    fn fault<T>(&self, span: Range<usize>, message: impl Into<String>, hint: &str) -> Checked<T> {
        Err(self.error(span, message, Some(hint)))
    }

    fn subject(&self, file: &SpecFile, given: Given<'_>) -> Checked<Subject> {
        let (folder, experiments) = match given {
            Given::Scenario(source, folder) => {
                return match &file.experiment {
                    None => Ok(Subject::Scenario {
                        source: source.with_folder(folder),
                        folder: folder.to_owned(),
                    }),
                    Some(name) => self.both(name),
                };
            }
            Given::Folder(folder, experiments) => (folder, experiments),
        };
        match (&file.scenario, &file.experiment) {
            (Some(_), Some(name)) => self.both(name),
            (Some(path), None) => self.scenario(path, folder, experiments),
            (None, Some(name)) => match experiment::find(experiments, name.get_ref()) {
                Ok(experiment) => Ok(Subject::Experiment(experiment)),
                Err(error) => {
                    let path = name.get_ref();
                    let file = folder.join(path).is_file();
                    let file = file.then(|| format!("this is a file: write `scenario = \"{path}\"`"));
                    Err(self.error(name.span(), error.reason(), file.or(error.hint()).as_deref()))
                }
            },
            (None, None) => self.fault(
                0..0,
                "missing key `scenario` or `experiment`",
                "name a scenario file, as in `scenario = \"network.toml\"`, or one of `anabranch lab list`, as in `experiment = \"set\"`",
            ),
        }
    }

    fn both(&self, experiment: &Spanned<String>) -> Checked<Subject> {
        self.fault(
            experiment.span(),
            "a scenario and an experiment are both to be run",
            "make a spec of each: their parameters and metrics differ",
        )
    }

    fn scenario(
        &self,
        said: &Spanned<String>,
        folder: &Path,
        experiments: Experiments<'_>,
    ) -> Checked<Subject> {
        let path = folder.join(said.get_ref());
        let text = std::fs::read_to_string(&path).map_err(|error| {
            if experiment::find(experiments, said.get_ref()).is_err() {
                return Error::unreadable(&path, error);
            }
            let hint = format!("this is an experiment: write `experiment = \"{}\"`", said.get_ref());
            self.error(said.span(), format!("cannot read {}: {error}", path.display()), Some(&hint))
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let source = Source::new(path.display().to_string(), text).with_folder(&folder);
        Ok(Subject::Scenario { source, folder })
    }

    fn seeds(&self, seeds: Option<&Spanned<SeedsFile>>) -> Checked<Vec<u64>> {
        let Some(seeds) = seeds else { return Ok(Vec::new()) };
        let list = match seeds.get_ref() {
            SeedsFile::List(list) => list.clone(),
            SeedsFile::Range(text) => {
                let Some((first, last)) = range(text) else {
                    let message = format!("`{text}` is not a range of seeds");
                    return self.fault(
                        seeds.span(),
                        message,
                        "a range is `\"1..=10\"` with the last, `\"1..10\"` without; a list is `[1, 2, 3]`",
                    );
                };
                if last.saturating_sub(first) >= MOST {
                    return self.fault(
                        seeds.span(),
                        "more than 1,000,000 seeds",
                        "take fewer seeds and more `runs`",
                    );
                }
                (first..=last).collect()
            }
        };
        if list.is_empty() {
            return self.fault(seeds.span(), "no seeds given", "remove `seeds` to take the scenario's own");
        }
        let unique: BTreeSet<u64> = list.iter().copied().collect();
        if unique.len() < list.len() {
            return self.fault(
                seeds.span(),
                "a seed is listed twice",
                "the same seed makes the same runs; name each once",
            );
        }
        Ok(list)
    }

    fn runs(&self, file: &SpecFile) -> Checked<Runs> {
        let Some(enough) = &file.enough else {
            return match &file.runs {
                Some(runs) if *runs.get_ref() == 0 || *runs.get_ref() > MOST => {
                    self.fault(runs.span(), "`runs` is in 1..=1000000", "remove it for one run of each point")
                }
                runs => Ok(Runs::Fixed(runs.as_ref().map_or(1, |runs| *runs.get_ref()))),
            };
        };
        if let Some(runs) = &file.runs {
            return self.fault(
                runs.span(),
                "`runs` and `[enough]` both set the number of runs",
                "give `min` and `max` in `[enough]`, or remove `[enough]`",
            );
        }
        let said = enough.get_ref();
        let width = self.width(&said.width)?;
        let (min, max) = (said.min, *said.max.get_ref());
        if min < 2 || min > max || max > MOST {
            let message = format!("expected 2 <= min <= max <= 1000000, found {min} and {max}");
            return self.fault(
                said.max.span(),
                message,
                "one run gives no confidence interval; set min to at least 2",
            );
        }
        Ok(Runs::Enough(Enough { metric: said.metric.clone(), width, min, max }))
    }

    fn width(&self, width: &Spanned<Value>) -> Checked<Width> {
        let relative = |text: &str| {
            text.strip_suffix('%')?.trim().parse::<f64>().ok().map(|n| Width::Relative(n / 100.0))
        };
        let found = match width.get_ref() {
            Value::String(text) => relative(text),
            number => number.as_f64().map(Width::Absolute),
        };
        match found {
            Some(width @ (Width::Relative(w) | Width::Absolute(w))) if w.is_finite() && w > 0.0 => Ok(width),
            _ => self.fault(
                width.span(),
                "no width of a confidence interval",
                "half its width: `\"5 %\"` of the mean, or a number in the metric's own unit, above 0",
            ),
        }
    }

    fn parameters(&self, file: &SpecFile, spec: &mut Spec) -> Checked<()> {
        for (path, value) in &file.set {
            self.value(value.span(), value.get_ref())?;
            self.claim(spec, path, value.span())?;
            spec.fixed.insert(path.get_ref().clone(), value.get_ref().clone());
        }
        for (path, values) in &file.grid {
            self.axis(spec, path, values)?;
            spec.grid.push((path.get_ref().clone(), values.get_ref().clone()));
        }
        self.zipped(file, spec)?;
        self.listed(file, spec)?;
        for sample in &file.sample {
            let samples = self.samples(sample, spec)?;
            spec.samples.push(samples);
        }
        Ok(())
    }

    /// Adds the values of an axis.
    fn axis(&self, spec: &mut Spec, path: &Spanned<String>, values: &Spanned<Vec<Value>>) -> Checked<()> {
        if values.get_ref().is_empty() {
            return self.fault(
                values.span(),
                "an axis needs at least one value",
                "remove the axis, or put it into `[set]`",
            );
        }
        for value in values.get_ref() {
            self.value(values.span(), value)?;
        }
        self.claim(spec, path, values.span())
    }

    /// Adds axes that vary together.
    fn zipped(&self, file: &SpecFile, spec: &mut Spec) -> Checked<()> {
        let Some(groups) = &file.zip else { return Ok(()) };
        let hint = "name axes of equal length, as in `\"link.a.loss\" = [0.0, 0.1]`; or remove `zip`";
        if groups.get_ref().is_empty() {
            return self.fault(groups.span(), "`zip` is empty", hint);
        }
        for group in groups.get_ref() {
            let axes = group.get_ref();
            let Some((first, values)) = axes.iter().next() else {
                return self.fault(group.span(), "`zip` is empty", hint);
            };
            let (first, count) = (first.get_ref(), values.get_ref().len());
            for (path, values) in axes {
                self.axis(spec, path, values)?;
                let own = values.get_ref().len();
                if own != count {
                    let message = format!("`{}` has {own} values, and `{first}` has {count}", path.get_ref());
                    let hint = "axes of one `[[zip]]` vary together and need as many values each; for every combination use `[grid]`";
                    return self.fault(values.span(), message, hint);
                }
            }
            let axes = axes.iter().map(|(path, values)| (path.get_ref().clone(), values.get_ref().clone()));
            spec.zipped.push(axes.collect());
        }
        Ok(())
    }

    /// Adds listed points.
    fn listed(&self, file: &SpecFile, spec: &mut Spec) -> Checked<()> {
        let Some(points) = &file.point else { return Ok(()) };
        let hint = "give each point its parameters, as in `\"link.a.loss\" = 0.1`; or remove `point`";
        let Some(first) = points.get_ref().first() else {
            return self.fault(points.span(), "`point` is empty", hint);
        };
        if first.get_ref().is_empty() {
            return self.fault(first.span(), "the point has no parameter", hint);
        }
        for (path, value) in first.get_ref() {
            self.claim(spec, path, value.span())?;
        }
        let names: BTreeSet<&String> = first.get_ref().keys().map(Spanned::get_ref).collect();
        for point in points.get_ref() {
            let all = "every `[[point]]` has the same parameters; give this one its value in all of them";
            let own: BTreeSet<&String> = point.get_ref().keys().map(Spanned::get_ref).collect();
            if let Some(path) = names.difference(&own).next() {
                let message = format!("the point has no `{path}`, which the first one has");
                return self.fault(point.span(), message, all);
            }
            if let Some(path) = point.get_ref().keys().find(|path| !names.contains(path.get_ref())) {
                let message = format!("the first point has no `{}`", path.get_ref());
                return self.fault(path.span(), message, all);
            }
            let (mut values, mut places) = (BTreeMap::new(), BTreeMap::new());
            for (path, value) in point.get_ref() {
                self.value(value.span(), value.get_ref())?;
                places.insert(path.get_ref().clone(), self.source.place(value.span()));
                values.insert(path.get_ref().clone(), value.get_ref().clone());
            }
            spec.listed.push(values);
            spec.listed_places.push(places);
        }
        Ok(())
    }

    fn samples(&self, sample: &SampleFile, spec: &mut Spec) -> Checked<Samples> {
        let count = *sample.count.get_ref();
        if count == 0 || count > MOST {
            return self.fault(
                sample.count.span(),
                "`count` is in 1..=1000000",
                "remove the sample if there is to be none",
            );
        }
        if sample.axes.get_ref().is_empty() {
            return self.fault(
                sample.axes.span(),
                "samples of nothing",
                "name the parameters in `[sample.axes]`, each with a distribution",
            );
        }
        let mut axes = BTreeMap::new();
        for (path, said) in sample.axes.get_ref() {
            self.claim(spec, path, said.span())?;
            axes.insert(path.get_ref().clone(), self.distribution(said)?);
        }
        let method = match sample.method {
            MethodName::Random => Method::Random,
            MethodName::LatinHypercube => Method::LatinHypercube,
        };
        Ok(Samples { method, count: count as u32, axes })
    }

    /// Checks that a parameter occurs only once in a spec.
    fn claim(&self, spec: &mut Spec, path: &Spanned<String>, value: Range<usize>) -> Checked<()> {
        let key = path.get_ref();
        match key.split('.').next() {
            Some("seed") => {
                return self.fault(
                    path.span(),
                    "`seed` is not a parameter",
                    "set `seeds` at the top of the spec",
                );
            }
            Some("sweep") => {
                return self.fault(path.span(), "`sweep` is not a parameter", "put the axis into `[grid]`");
            }
            _ => {}
        }
        if spec.places.insert(key.clone(), self.source.place(value)).is_some() {
            return self.fault(
                path.span(),
                format!("`{key}` is given twice"),
                "a parameter is fixed, on an axis, in the list of points or sampled, not two of these",
            );
        }
        Ok(())
    }

    /// Refuses TOML values that a scenario cannot have.
    fn value(&self, span: Range<usize>, value: &Value) -> Checked<()> {
        if value.is_null() {
            return self.fault(span, "expected a number that is finite", "no parameter is infinite or `nan`");
        }
        Ok(())
    }

    fn distribution(&self, said: &Spanned<DistributionFile>) -> Checked<Distribution> {
        let span = said.span();
        let ordered = |low: f64, high: f64| {
            if low < high {
                return Ok(());
            }
            self.fault(
                span.clone(),
                "the first bound is not below the second",
                "for one value only, put it into `[set]`",
            )
        };
        Ok(match said.get_ref() {
            DistributionFile::Uniform(bounds) => {
                let ([low, high], scale) = self.bounds(&span, [&bounds[0], &bounds[1]])?;
                ordered(low, high)?;
                Distribution::Uniform { low, high, scale }
            }
            DistributionFile::LogUniform(bounds) => {
                let ([low, high], scale) = self.bounds(&span, [&bounds[0], &bounds[1]])?;
                ordered(low, high)?;
                if low <= 0.0 {
                    return self.fault(
                        span,
                        "a logarithm needs bounds above 0",
                        "take `uniform`, or a small first bound",
                    );
                }
                Distribution::LogUniform { low, high, scale }
            }
            DistributionFile::Integer([low, high]) => {
                if low >= high {
                    ordered(1.0, 0.0)?;
                }
                Distribution::Integer { low: *low, high: *high }
            }
            DistributionFile::Choice(values) => {
                if values.is_empty() {
                    return self.fault(
                        span,
                        "a choice needs at least one value",
                        "list the values: `{ choice = [\"a\", \"b\"] }`",
                    );
                }
                for value in values {
                    self.value(span.clone(), value)?;
                }
                Distribution::Choice(values.clone())
            }
            DistributionFile::Normal(said) => {
                let given = [&said.mean, &said.deviation, &said.min, &said.max];
                let ([mean, deviation, low, high], scale) = self.bounds(&span, given)?;
                ordered(low, high)?;
                if deviation <= 0.0 {
                    return self.fault(
                        span,
                        "a deviation is above 0",
                        "for one value only, put it into `[set]`",
                    );
                }
                let kept = normal::below((high - mean) / deviation) - normal::below((low - mean) / deviation);
                if kept < 1e-6 {
                    return self.fault(
                        span,
                        "`min` and `max` leave nothing of the distribution",
                        "move them nearer to the mean",
                    );
                }
                Distribution::Normal { mean, deviation, low, high, scale }
            }
        })
    }

    /// Parses limits: numbers, or quantities of one kind.
    fn bounds<const N: usize>(&self, span: &Range<usize>, values: [&Value; N]) -> Checked<([f64; N], Scale)> {
        let mut numbers = [0.0; N];
        let mut scale = None;
        for (slot, value) in numbers.iter_mut().zip(values) {
            let (number, its) = self.bound(span, value)?;
            *slot = number;
            if *scale.get_or_insert(its) != its {
                return self.fault(
                    span.clone(),
                    "the values are not of one kind",
                    "give all of them units of one kind, or none a unit",
                );
            }
        }
        Ok((numbers, scale.unwrap_or(Scale::Number)))
    }

    fn bound(&self, span: &Range<usize>, value: &Value) -> Checked<(f64, Scale)> {
        if let Some(number) = value.as_f64().filter(|number| number.is_finite()) {
            return Ok((number, Scale::Number));
        }
        let Value::String(text) = value else {
            return self.fault(
                span.clone(),
                format!("expected a number or a quantity, found {value}"),
                "such as 0.02, \"2 %\" or \"250 kbit/s\"",
            );
        };
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        if let Some(percent) = percent.filter(|percent| percent.is_finite()) {
            return Ok((percent / 100.0, Scale::Number));
        }
        let quantity: Result<Quantity, _> = text.parse();
        let quantity = quantity.map_err(|e| self.error(span.clone(), e.to_string(), e.hint().as_deref()))?;
        Ok((quantity.value as f64, Scale::Quantity(quantity.unit)))
    }
}

/// Parses `a..=b` or `a..b` into the first and the last number.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, rest) = text.split_once("..")?;
    let first: u64 = first.trim().parse().ok()?;
    let last = match rest.strip_prefix('=') {
        Some(last) => last.trim().parse().ok()?,
        None => rest.trim().parse::<u64>().ok()?.checked_sub(1)?,
    };
    (first <= last).then_some((first, last))
}
